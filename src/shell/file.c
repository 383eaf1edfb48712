/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "shell/file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shell/fabric.h"
#include "shell/user.h"
#include "util/vector.h"

#define READ_AT_LEAST 4096
#define MAX_LINKS     40 /* as the kernel */

int file_take_standard(void)
{
        for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
                /* in the wrong direction, so that reading or writing still fails */
                if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
                        return -errno;
        }
        return 0;
}

char *file_path(const char *dir, const char *name)
{
        char *path;

        return asprintf(&path, "%s/%s", dir, name) < 0 ? NULL : path;
}

int file_exists(const char *dir, const char *name)
{
        _cleanup_free_ char *path = file_path(dir, name);
        struct stat st;

        if (!path)
                return -ENOMEM;
        if (stat(path, &st) == 0)
                return 1;
        return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
}

bool file_may_exist(const char *dir, const char *name)
{
        return file_exists(dir, name) != 0;
}

int file_open(const char *path)
{
        /* O_NONBLOCK: opening a FIFO without a writer would block. */
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

        return fd < 0 ? -errno : fd;
}

void file_become_self_p(struct file_identity *i)
{
        if (!i->is_other)
                return;
        (void) setfsuid(i->uid);
        (void) setfsgid(i->gid);
        i->is_other = false;
}

/* Neither call reports an error, but both return what was set before. */
int file_become_owner_of(const char *dir, struct file_identity *ret)
{
        struct stat st;

        *ret = (struct file_identity) {};
        if (geteuid() != 0 || stat(dir, &st) < 0 || st.st_uid == 0)
                return 0;
        *ret = (struct file_identity) { true, (uid_t) setfsuid(st.st_uid), (gid_t) setfsgid(st.st_gid) };
        if ((uid_t) setfsuid(st.st_uid) == st.st_uid && (gid_t) setfsgid(st.st_gid) == st.st_gid)
                return 0;
        file_become_self_p(ret);
        return -EPERM;
}

static int read_all(struct arena *a, int fd, size_t max, const char **ret_bytes, size_t *ret_n)
{
        _cleanup_free_ char *bytes = NULL;
        size_t n = 0, allocated = 0;
        char *copy;

        if (max >= SIZE_MAX / 2)
                return -EINVAL;
        for (;;) {
                ssize_t k;

                if (n > max)
                        return -EFBIG;
                if (VECTOR_EXTEND(NULL, bytes, n, allocated, READ_AT_LEAST) < 0)
                        return -ENOMEM;
                /* One byte more than max, to notice a file that is larger. */
                k = read(fd, bytes + n, MIN(allocated, max + 1) - n);
                if (k < 0 && errno == EINTR)
                        continue;
                if (k < 0)
                        return -errno;
                if (k == 0)
                        break;
                n += (size_t) k;
        }

        copy = arena_new_array(a, char, n + 1);
        if (!copy)
                return -ENOMEM;
        if (n > 0)
                memcpy(copy, bytes, n);
        *ret_bytes = copy;
        *ret_n = n;
        return 0;
}

int file_read_opened(struct arena *a, int fd, size_t max, const char **ret_bytes, size_t *ret_n)
{
        struct stat st;

        if (fstat(fd, &st) < 0)
                return -errno;
        if (S_ISDIR(st.st_mode))
                return -EISDIR;
        if (!S_ISREG(st.st_mode))
                return -EINVAL;
        return read_all(a, fd, max, ret_bytes, ret_n);
}

int file_read(struct arena *a, const char *path, size_t max, const char **ret_bytes, size_t *ret_n)
{
        _cleanup_close_ int fd = -1;

        if (strcmp(path, "-") == 0)
                return read_all(a, STDIN_FILENO, max, ret_bytes, ret_n);
        fd = file_open(path);
        return fd < 0 ? fd : file_read_opened(a, fd, max, ret_bytes, ret_n);
}

/* Both services have users of their own, and a file is easily made readable for root only. */
static void hint_at_user(struct findings *findings, struct finding *item)
{
        const char *user = user_name_of_process(findings->arena);

        if (!user)
                findings->out_of_memory = true;
        else if (strcmp(user, USER_PKEYD) == 0 || strcmp(user, USER_PKEYD_REST) == 0)
                finding_set_hint(findings, item, "%s runs as a user of its own: chgrp %s and chmod 640, and chmod 751 for the directory",
                                 user, user);
        else
                finding_set_hint(findings, item, "run this as root; the user %s may not read the file", user);
}

/* If a file of this host's settings does not exist, that of a fabric may be meant. */
static void hint_at_fabrics(struct findings *findings, struct finding *item, const char *path)
{
        const char *hint = strncmp(path, CONFIG_DIR "/", strlen(CONFIG_DIR "/")) == 0 ? fabric_hint(findings->arena) : NULL;

        if (hint)
                finding_set_hint(findings, item, "%s", hint);
}

int file_refuse(struct findings *findings, const char *path, size_t max, int r)
{
        struct location where = { .file = arena_strdup(findings->arena, path) };
        struct finding *item = NULL;

        if (r == -ENOMEM || !where.file)
                return -ENOMEM;
        if (r == -EFBIG)
                (void) findings_add(findings, FINDING_ERROR, FINDING_FILE_TOO_LARGE, &where,
                                    "the file is too large (accepted: up to %zu bytes)", max);
        else if (r == -EINVAL)
                (void) findings_add(findings, FINDING_ERROR, FINDING_FILE_UNREADABLE, &where, "not a regular file");
        else
                item = findings_add(findings, FINDING_ERROR, FINDING_FILE_UNREADABLE, &where, "cannot be read: %s", strerror(-r));
        if (item && (r == -EACCES || r == -EPERM))
                hint_at_user(findings, item);
        if (item && r == -ENOENT)
                hint_at_fabrics(findings, item, path);
        return findings->out_of_memory ? -ENOMEM : -EBADMSG;
}

int file_read_found(struct arena *a, const char *path, size_t max, struct findings *findings, const char **ret_bytes,
                    size_t *ret_n)
{
        int r = file_read(a, path, max, ret_bytes, ret_n);

        return r < 0 ? file_refuse(findings, path, max, r) : r;
}

int file_write_all(int fd, const char *bytes, size_t n)
{
        while (n > 0) {
                ssize_t k = write(fd, bytes, n);

                if (k < 0 && errno == EINTR)
                        continue;
                if (k < 0)
                        return -errno;
                bytes += k;
                n -= (size_t) k;
        }
        return 0;
}

/* Syncs the directory, so that the new name is on the disk, too. */
static int sync_directory_of(const char *path)
{
        _cleanup_free_ char *copy = strdup(path);
        _cleanup_close_ int fd = -1;

        if (!copy)
                return -ENOMEM;
        fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        return fsync(fd) < 0 ? -errno : 0;
}

/* The final target of a symbolic link, whether it exists or not; the path itself if it is no link. Returns owned. */
static int follow_links(const char *path, char **ret)
{
        _cleanup_free_ char *at = strdup(path);
        char target[PATH_MAX];

        for (unsigned i = 0; at && i < MAX_LINKS; i++) {
                ssize_t n = readlink(at, target, sizeof(target));
                const char *name = strrchr(at, '/');
                char *next;

                if (n < 0 && (errno == EINVAL || errno == ENOENT)) {
                        *ret = STEAL(at);
                        return 0;
                }
                if (n < 0)
                        return -errno;
                if (n == sizeof(target))
                        return -ENAMETOOLONG;
                if (asprintf(&next, "%.*s%.*s", target[0] != '/' && name ? (int) (name - at) + 1 : 0, at, (int) n, target) < 0)
                        return -ENOMEM;
                free(at);
                at = next;
        }
        return at ? -ELOOP : -ENOMEM;
}

static mode_t mode_by_umask(void)
{
        mode_t mask = umask(0777);

        (void) umask(mask);
        return 0666 & ~mask;
}

/* The mode of the file that fd replaces; if there is none or it has another owner, that of a new one: pkeyd cannot give the file
 * to that owner, which may be OpenSM and must still be able to read it. */
static mode_t mode_of_replaced(const char *path, int fd, enum file_kind kind)
{
        struct stat old, new;

        if (kind == FILE_PUBLIC)
                return 0644;
        if (stat(path, &old) < 0 || fstat(fd, &new) < 0 || old.st_uid != new.st_uid || old.st_gid != new.st_gid)
                return kind == FILE_NAMED ? mode_by_umask() : 0644;
        return old.st_mode & 0777;
}

/* Before the new file, which only this process can read so far, gets its name. */
static int keep_owner(const char *path, int fd)
{
        struct stat old;

        if (stat(path, &old) < 0 || fchown(fd, old.st_uid, old.st_gid) < 0)
                return -errno;
        return fchmod(fd, old.st_mode & 0777) < 0 ? -errno : 0;
}

static int set_mode(const char *path, int fd, enum file_kind kind)
{
        if (kind == FILE_EDITED)
                return keep_owner(path, fd);
        return fchmod(fd, mode_of_replaced(path, fd, kind)) < 0 ? -errno : 0;
}

/* Of a shared or edited file, the file and its name are on the disk when this returns. */
static int replace(const char *path, const void *bytes, size_t n, enum file_kind kind)
{
        _cleanup_free_ char *beside = NULL;
        _cleanup_close_ int fd = -1;
        bool sync = kind == FILE_SHARED || kind == FILE_EDITED;
        int r;

        if (asprintf(&beside, "%s.XXXXXX", path) < 0) {
                beside = NULL;
                return -ENOMEM;
        }
        fd = mkostemp(beside, O_CLOEXEC); /* mode 0600 */
        if (fd < 0)
                return -errno;
        r = file_write_all(fd, bytes, n) ?: set_mode(path, fd, kind);
        if (r == 0 && ((sync && fsync(fd) < 0) || rename(beside, path) < 0))
                r = -errno;
        if (r < 0)
                (void) unlink(beside);
        return r < 0 || !sync ? r : sync_directory_of(path);
}

int file_write(enum file_kind kind, const char *path, const void *bytes, size_t n)
{
        _cleanup_free_ char *target = NULL;
        int r = kind == FILE_PUBLIC ? 0 : follow_links(path, &target);

        return r < 0 ? r : replace(target ?: path, bytes, n, kind);
}

int file_write_beside(const char *path, const char *beside, const void *bytes, size_t n)
{
        _cleanup_free_ char *target = NULL, *moved = NULL;
        const char *name = strrchr(path, '/');
        int r = beside ? follow_links(beside, &target) : 0;

        if (r < 0)
                return r;
        if (!beside || strcmp(target, beside) == 0)
                return file_write(FILE_SHARED, path, bytes, n);
        moved = file_path(dirname(target), name ? name + 1 : path);
        return moved ? file_write(FILE_SHARED, moved, bytes, n) : -ENOMEM;
}
