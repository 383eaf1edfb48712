/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "state/sqlite_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "shell/file.h"

#define DAMAGED    SQLITE_FILES_NAME ".damaged-"
#define NAME_SIZE  64 /* bytes of each name below */
#define NAMES_MAX  99 /* databases that can be moved aside in one second */
#define RETRY_USEC 10000

/* The suffixes of the files of a database. The database is moved first: without its -wal it could pass the checks and be used,
 * while a -wal without a database is never used, and is moved aside when the store is next opened. */
static const char *const parts[] = { "", "-wal", "-shm", "-journal" };

/* --- state.db ----------------------------------------------------------------------------------------------------- */

int sqlite_files_check(int dir_fd)
{
        struct stat st;

        if (faccessat(dir_fd, ".", R_OK | W_OK | X_OK, AT_EACCESS) < 0)
                return -errno;
        if (fstatat(dir_fd, SQLITE_FILES_NAME, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return -errno;
        if (S_ISLNK(st.st_mode))
                return -ELOOP;
        if (S_ISDIR(st.st_mode))
                return -EISDIR;
        if (!S_ISREG(st.st_mode))
                return -EINVAL;
        if (faccessat(dir_fd, SQLITE_FILES_NAME, R_OK | W_OK, AT_EACCESS) < 0)
                return -errno;
        return st.st_size == 0 ? -EUCLEAN : 0;
}

bool sqlite_files_is_whole(int dir_fd, int64_t page_size)
{
        struct stat db, wal;

        /* A process that was killed while it copied pages from the -wal to the database has left them in the -wal. */
        if (fstatat(dir_fd, SQLITE_FILES_NAME "-wal", &wal, AT_SYMLINK_NOFOLLOW) == 0 && wal.st_size > 0)
                return true;
        if (fstatat(dir_fd, SQLITE_FILES_NAME, &db, AT_SYMLINK_NOFOLLOW) < 0)
                return false;
        return page_size > 0 && db.st_size % page_size == 0;
}

int sqlite_files_lock(int dir_fd, int operation, unsigned msec)
{
        usec_t end = clock_now() + (usec_t) msec * 1000;

        while (flock(dir_fd, operation | LOCK_NB) < 0) {
                if (errno != EWOULDBLOCK && errno != EINTR)
                        return -errno;
                if (clock_now() >= end)
                        return -EBUSY;
                (void) usleep(RETRY_USEC);
        }
        return 0;
}

/* --- state.db.new ------------------------------------------------------------------------------------------------- */

static void name_part(char name[static NAME_SIZE], const char *base, size_t part)
{
        (void) snprintf(name, NAME_SIZE, "%s%s", base, parts[part]);
}

void sqlite_files_remove_new(int dir_fd)
{
        char name[NAME_SIZE];

        for (size_t i = 0; i < ELEMENTS(parts); i++) {
                name_part(name, SQLITE_FILES_NAME_NEW, i);
                (void) unlinkat(dir_fd, name, 0);
        }
}

int sqlite_files_make_new(int dir_fd)
{
        int fd, r;

        sqlite_files_remove_new(dir_fd);
        fd = openat(dir_fd, SQLITE_FILES_NAME_NEW, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return -errno;
        r = fchmod(fd, 0600) < 0 ? -errno : 0; /* whatever the umask is */
        (void) close(fd);
        return r;
}

/* --- moving aside ------------------------------------------------------------------------------------------------- */

static bool is_free(int dir_fd, const char *base)
{
        char name[NAME_SIZE];
        struct stat st;

        for (size_t i = 0; i < ELEMENTS(parts); i++) {
                name_part(name, base, i);
                if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT)
                        return false;
        }
        return true;
}

int sqlite_files_time(char ret[static SQLITE_FILES_TIME_SIZE])
{
        time_t now = (time_t) (clock_wall() / USEC_PER_SEC);
        struct tm tm;

        return gmtime_r(&now, &tm) && strftime(ret, SQLITE_FILES_TIME_SIZE, "%Y%m%dT%H%M%SZ", &tm) > 0 ? 0 : -EOVERFLOW;
}

/* Finds an unused name that sorts after all older ones. */
static int find_name(int dir_fd, char ret_base[static NAME_SIZE])
{
        char when[SQLITE_FILES_TIME_SIZE];
        int r = sqlite_files_time(when);

        if (r < 0)
                return r;
        (void) snprintf(ret_base, NAME_SIZE, DAMAGED "%s", when);
        for (unsigned n = 2; !is_free(dir_fd, ret_base); n++) {
                if (n > NAMES_MAX)
                        return -EEXIST;
                (void) snprintf(ret_base, NAME_SIZE, DAMAGED "%s-%02u", when, n);
        }
        return 0;
}

static int move_aside(int dir_fd)
{
        char base[NAME_SIZE], from[NAME_SIZE], to[NAME_SIZE];
        int r = find_name(dir_fd, base);

        if (r < 0)
                return r;
        for (size_t i = 0; i < ELEMENTS(parts); i++) {
                name_part(from, SQLITE_FILES_NAME, i);
                name_part(to, base, i);
                if (renameat(dir_fd, from, dir_fd, to) < 0 && errno != ENOENT)
                        return -errno;
        }
        return fsync(dir_fd) < 0 ? -errno : 0;
}

int sqlite_files_replace(int dir_fd)
{
        int r = move_aside(dir_fd);

        if (r == 0 && (renameat(dir_fd, SQLITE_FILES_NAME_NEW, dir_fd, SQLITE_FILES_NAME) < 0 || fsync(dir_fd) < 0))
                r = -errno;
        return r;
}

/* The name of the database that a file belongs to. False: it is not a file that was moved aside. */
static bool base_of(const char *file, char ret_base[static NAME_SIZE])
{
        size_t n = strlen(file), n_part;

        if (strncmp(file, DAMAGED, strlen(DAMAGED)) != 0 || n >= NAME_SIZE)
                return false;
        memcpy(ret_base, file, n + 1);
        for (size_t i = 1; i < ELEMENTS(parts); i++) {
                n_part = strlen(parts[i]);
                if (n > n_part && strcmp(file + n - n_part, parts[i]) == 0)
                        ret_base[n - n_part] = '\0';
        }
        return true;
}

static void closedir_p(DIR **d)
{
        if (*d)
                (void) closedir(*d);
}

int sqlite_files_newest_damaged(int dir_fd, char **ret)
{
        _cleanup_close_ int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        _cleanup_(closedir_p) DIR *d = fd < 0 ? NULL : fdopendir(fd);
        char newest[NAME_SIZE] = "", base[NAME_SIZE];
        const struct dirent *entry;

        if (!d)
                return -errno;
        fd = -1; /* d owns it */
        while ((entry = readdir(d)))
                if (base_of(entry->d_name, base) && strcmp(base, newest) > 0)
                        memcpy(newest, base, sizeof(newest));
        *ret = newest[0] ? strdup(newest) : NULL;
        return newest[0] && !*ret ? -ENOMEM : 0;
}
