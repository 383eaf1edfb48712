/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "state/directory_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>

#include "shell/file.h"
#include "util/scan.h"

static void name_holder(int fd, char ret_holder[LOCK_HOLDER_SIZE])
{
        char text[16];
        ssize_t n = pread(fd, text, sizeof(text), 0);
        struct scan s = { text, text + MAX(n, 0) };
        uint64_t pid;

        if (scan_number(&s, 10, INT_MAX, &pid) && scan_char(&s, '\n'))
                (void) snprintf(ret_holder, LOCK_HOLDER_SIZE, "process %d", (int) pid);
        else
                (void) snprintf(ret_holder, LOCK_HOLDER_SIZE, "another process");
}

static void write_pid(int fd)
{
        if (ftruncate(fd, 0) == 0)
                (void) dprintf(fd, "%d\n", (int) getpid());
}

int directory_lock_take(const char *dir, const char *name, int operation, int *ret_fd, char ret_holder[LOCK_HOLDER_SIZE])
{
        _cleanup_free_ char *path = file_path(dir, name);
        _cleanup_close_ int fd = -1;

        if (!path)
                return -ENOMEM;
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return -errno;
        if (flock(fd, operation | LOCK_NB) < 0) {
                if (errno != EWOULDBLOCK)
                        return -errno;
                name_holder(fd, ret_holder);
                return -EWOULDBLOCK;
        }
        write_pid(fd);
        *ret_fd = fd;
        fd = -1;
        return 0;
}

void directory_lock_release(int fd)
{
        (void) !ftruncate(fd, 0);
        (void) close(fd);
}
