/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "shell/secret.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "discovery/links.h"
#include "shell/file.h"
#include "shell/user.h"
#include "util/macros.h"

void secret_done(struct secret *s)
{
        if (s->bytes)
                explicit_bzero(s->bytes, s->n);
        free(s->bytes);
        free(s->path);
        *s = (struct secret) {};
}

#define SM_KEY_MAX_FILE_SIZE 4096 /* a number and perhaps a comment */

/* Who may read a secret besides its owner. */
enum readers {
        READERS_PKEYD,      /* the group that pkeyd runs as */
        READERS_CREDENTIAL, /* the group of the file: an ACL that the service manager sets shows up like that */
        READERS_GROUP,      /* the group of the file */
};

static int refuse_exposed(struct findings *findings, const char *path, enum readers readers, const char *why)
{
        const char *hint = readers == READERS_GROUP
                                   ? "chown root:pkeyd-rest, chmod 640"
                                   : "chown root:pkeyd, chmod 640; or let systemd pass the key: LoadCredential= in a drop-in of "
                                     "pkeyd.service, see pkeyd.yaml(5), SECRETS";
        struct location where = { .file = arena_strdup(findings->arena, path) };
        struct finding *item;

        if (!where.file)
                return -ENOMEM;
        item = findings_add(findings, FINDING_ERROR, FINDING_SECRET_EXPOSED, &where, "contains a key, and %s; refused", why);
        finding_set_hint(findings, item, "%s", hint);
        return findings->out_of_memory ? -ENOMEM : -EBADMSG;
}

/* The service reads its files by the group that it runs as. Root's pkeyctl accepts what the service accepts. */
static bool is_group_of_pkeyd(gid_t gid)
{
        gid_t group;

        if (geteuid() != 0)
                return gid == getegid();
        return user_find_group(USER_PKEYD, &group) && gid == group;
}

static mode_t refused_bits(const struct stat *st, enum readers readers)
{
        const mode_t all = S_IRWXG | S_IRWXO;

        return readers != READERS_PKEYD || is_group_of_pkeyd(st->st_gid) ? all & ~(mode_t) S_IRGRP : all;
}

/* Refuses a file that other users can read or may have written. */
static int check_access(const struct stat *st, enum readers readers, const char *path, struct findings *findings)
{
        static const char *const why[] = {
                [READERS_PKEYD] = "it can be read by others than its owner and the group that pkeyd runs as, or written by others than its "
                                  "owner",
                [READERS_CREDENTIAL] = "it can be read or written by others than its owner",
                [READERS_GROUP] = "it can be read by others than its owner and its group, or written by others than its owner",
        };

        if (st->st_uid != 0 && st->st_uid != geteuid())
                return refuse_exposed(findings, path, readers, "it does not belong to root");
        return st->st_mode & refused_bits(st, readers) ? refuse_exposed(findings, path, readers, why[readers]) : 0;
}

/* Reads `size` bytes, the size of the file when it was opened. -EAGAIN: it has grown since. */
static int read_bytes(int fd, size_t size, struct secret *ret)
{
        /* one byte more, to notice that the file has grown, and one for the NUL */
        ret->bytes = calloc(1, size + 2);
        if (!ret->bytes)
                return -ENOMEM;
        while (ret->n <= size) {
                ssize_t k = read(fd, ret->bytes + ret->n, size + 1 - ret->n);

                if (k < 0 && errno == EINTR)
                        continue;
                if (k < 0)
                        return -errno;
                if (k == 0)
                        return 0;
                ret->n += (size_t) k;
        }
        return -EAGAIN;
}

static int read_file(int fd, enum readers readers, size_t max, struct findings *findings, struct secret *ret)
{
        struct stat st;
        int r;

        if (fstat(fd, &st) < 0)
                return file_refuse(findings, ret->path, max, -errno);
        if (!S_ISREG(st.st_mode))
                return file_refuse(findings, ret->path, max, -EINVAL);
        r = check_access(&st, readers, ret->path, findings);
        if (r < 0)
                return r;
        r = (uintmax_t) st.st_size > max ? -EFBIG : read_bytes(fd, (size_t) st.st_size, ret);
        return r < 0 ? file_refuse(findings, ret->path, max, r) : 0;
}

/* Opens the credential of the service manager, or, if there is none of that name, the file; path may be NULL. Returns a descriptor,
 * or negative errno (-ENOENT: neither exists). *ret_path is owned: what was tried last. */
static int open_either(const char *credential, const char *path, char **ret_path, bool *ret_is_credential)
{
        const char *directory = getenv("CREDENTIALS_DIRECTORY");
        int fd = -ENOENT;

        *ret_is_credential = true;
        if (directory && directory[0] == '/') {
                *ret_path = file_path(directory, credential);
                fd = *ret_path ? file_open(*ret_path) : -ENOMEM;
        }
        if (fd != -ENOENT || !path)
                return fd;
        *ret_is_credential = false;
        free(*ret_path);
        *ret_path = strdup(path);
        return *ret_path ? file_open(path) : -ENOMEM;
}

int secret_read(const char *path, const char *credential, size_t max, struct findings *findings, struct secret *ret)
{
        _cleanup_close_ int fd = -1;
        bool is_credential;

        *ret = (struct secret) {};
        fd = open_either(credential, path, &ret->path, &is_credential);
        if (fd == -ENOENT && !path)
                return 0;
        if (fd == -ENOMEM)
                return -ENOMEM;
        if (fd < 0)
                return file_refuse(findings, ret->path, max, fd);
        return read_file(fd, is_credential ? READERS_CREDENTIAL : READERS_PKEYD, max, findings, ret);
}

int secret_read_of_group(const char *path, size_t max, struct findings *findings, struct secret *ret)
{
        _cleanup_close_ int fd = file_open(path);

        *ret = (struct secret) { .path = strdup(path) };
        if (!ret->path || fd == -ENOMEM)
                return -ENOMEM;
        return fd < 0 ? file_refuse(findings, path, max, fd) : read_file(fd, READERS_GROUP, max, findings, ret);
}

int secret_read_m_keys(const struct settings *settings, struct findings *findings, struct m_keys **ret)
{
        _cleanup_secret_ struct secret secret = {};
        int r = secret_read(settings->m_key_file, "m_key", M_KEYS_MAX_FILE_SIZE, findings, &secret);

        *ret = NULL;
        if (r < 0 || !secret.bytes)
                return r;
        return m_keys_parse(secret.path, secret.bytes, secret.n, findings, ret);
}

/* The file decides which M_Key is sent to which port, so only root and pkeyd's user may be able to write it. */
static int check_writers(int fd)
{
        struct stat st;

        if (fstat(fd, &st) < 0)
                return -errno;
        return (st.st_uid != 0 && st.st_uid != geteuid()) || (st.st_mode & (S_IWGRP | S_IWOTH)) ? -EPERM : 0;
}

static int note_unused(size_t n_keys, const char *path, int r, struct findings *findings)
{
        const char *why = r == -EPERM ? "ignored, because users other than root and pkeyd can write it" : strerror(-r);
        struct location where = { .file = arena_strdup(findings->arena, path) };
        struct finding *item;

        if (!where.file)
                return -ENOMEM;
        item = findings_add(findings, FINDING_NOTE, FINDING_M_KEYS_DIFFER, &where,
                            "%s; there are %zu different M_Keys, and pkeyd queries a port that it has not found yet with the one that "
                            "most ports have", why, n_keys);
        finding_set_hint(findings, item,
                         "ports with another M_Key at protection level 2 or 3 are not found then; see pkeyd(8), M_KEYS");
        return findings->out_of_memory ? -ENOMEM : 0;
}

int secret_read_neighbors(struct arena *a, const struct settings *settings, const struct m_keys *keys,
                          struct findings *findings, const char **ret, size_t *ret_n)
{
        const char *key_file = settings->m_key_file, *slash = key_file ? strrchr(key_file, '/') : NULL;
        const char *beside = slash ? arena_printf(a, "%.*s/neighbors", (int) (slash - key_file), key_file) : NULL;
        _cleanup_free_ char *path = NULL;
        _cleanup_close_ int fd = -1;
        bool is_credential;
        int r;

        *ret = NULL;
        *ret_n = 0;
        if (m_keys_n_distinct(keys) < 2)
                return 0;
        if (slash && !beside)
                return -ENOMEM;
        fd = open_either("neighbors", beside, &path, &is_credential);
        r = fd < 0 ? fd : check_writers(fd);
        r = r ?: file_read_opened(a, fd, DISCOVERY_MAX_NEIGHBORS_SIZE, ret, ret_n);
        return r < 0 && r != -ENOMEM ? note_unused(m_keys_n_distinct(keys), path ?: "", r, findings) : r;
}

int secret_read_sm_key(const struct settings *settings, struct findings *findings, uint64_t *ret)
{
        _cleanup_secret_ struct secret secret = {};
        int r = secret_read(settings->sa_key_file, "sa_key", SM_KEY_MAX_FILE_SIZE, findings, &secret);

        *ret = 0;
        if (r < 0 || !secret.bytes)
                return r;
        return sm_key_parse(secret.path, secret.bytes, secret.n, findings, ret);
}
