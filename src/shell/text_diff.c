/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "shell/text_diff.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "shell/file.h"

#define PATH_SIZE 32

/* A file without a name that has these bytes. Returns a descriptor or negative errno. */
static int make_file(const struct text_version *v)
{
        _cleanup_close_ int fd = memfd_create("pkeyd", MFD_CLOEXEC);
        int opened = fd, r = fd < 0 ? -errno : file_write_all(fd, v->bytes, v->n);

        if (r < 0)
                return r;
        fd = -1;
        return opened;
}

/* diff inherits three descriptors and nothing else: no preloaded library, no language. */
static int spawn(const struct text_version *before, int before_fd, const struct text_version *after, int after_fd, int out,
                 pid_t *ret)
{
        char before_path[PATH_SIZE], after_path[PATH_SIZE];
        char *arguments[] = { (char[]) { "diff" }, (char[]) { "--text" }, (char[]) { "--unified" },
                              (char[]) { "--label" }, (char *) before->label, (char[]) { "--label" }, (char *) after->label,
                              (char[]) { "--" }, before_path, after_path, NULL };
        char *environment[] = { (char[]) { "LC_ALL=C" }, NULL };
        posix_spawn_file_actions_t actions;
        int r = posix_spawn_file_actions_init(&actions);

        if (r != 0)
                return -r;
        (void) snprintf(before_path, sizeof(before_path), "/proc/self/fd/%d", before_fd);
        (void) snprintf(after_path, sizeof(after_path), "/proc/self/fd/%d", after_fd);
        /* to its own number: it stays open in diff */
        r = posix_spawn_file_actions_adddup2(&actions, before_fd, before_fd) ?:
            posix_spawn_file_actions_adddup2(&actions, after_fd, after_fd) ?:
            posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO) ?:
            posix_spawnp(ret, "diff", &actions, NULL, arguments, environment);
        (void) posix_spawn_file_actions_destroy(&actions);
        return -r;
}

/* Its status is 0 if they are equal, 1 if they differ, else it failed. */
static int wait_status(pid_t pid)
{
        int status;

        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        return -errno;
        return WIFEXITED(status) && WEXITSTATUS(status) <= 1 ? 0 : -EIO;
}

int text_diff(struct arena *a, const struct text_version *before, const struct text_version *after, const char **ret,
              size_t *ret_n)
{
        const bool is_equal = before->n == after->n && (before->n == 0 || memcmp(before->bytes, after->bytes, before->n) == 0);
        _cleanup_close_ int before_fd = make_file(before), after_fd = make_file(after), out = make_file(&(struct text_version) {});
        int r = MIN(MIN(before_fd, after_fd), out);
        pid_t pid;

        if (r >= 0 && !is_equal)
                r = spawn(before, before_fd, after, after_fd, out, &pid) ?: wait_status(pid);
        if (r >= 0 && lseek(out, 0, SEEK_SET) < 0)
                r = -errno;
        return r < 0 ? r : file_read_opened(a, out, TEXT_DIFF_MAX, ret, ret_n);
}
