/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "shell/text_diff.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "shell/file.h"
#include "util/text.h"

#define PATH_SIZE 32
#define CHUNK     65536

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

/* Reads to the end. */
static int read_all(int fd, struct text *to)
{
        char chunk[CHUNK];

        for (;;) {
                ssize_t n = read(fd, chunk, sizeof(chunk));

                if (n == 0 || (n < 0 && errno != EINTR))
                        return n < 0 ? -errno : to->failed ? -ENOMEM : 0;
                if ((size_t) MAX(n, 0) > TEXT_DIFF_MAX - to->n)
                        return -EFBIG;
                text_add_n(to, chunk, (size_t) MAX(n, 0));
        }
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

static int run(const struct text_version *before, const struct text_version *after, struct text *to)
{
        _cleanup_close_ int before_fd = make_file(before), after_fd = before_fd < 0 ? before_fd : make_file(after);
        int r = MIN(before_fd, after_fd), fds[2], ended;
        pid_t pid;

        if (r < 0)
                return r;
        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        r = spawn(before, before_fd, after, after_fd, fds[1], &pid);
        (void) close(fds[1]);
        if (r < 0) {
                (void) close(fds[0]);
                return r;
        }
        r = read_all(fds[0], to);
        (void) close(fds[0]); /* ends diff, if it would go on */
        ended = wait_status(pid);
        return r < 0 ? r : ended;
}

int text_diff(struct arena *a, const struct text_version *before, const struct text_version *after, const char **ret,
              size_t *ret_n)
{
        bool is_equal = before->n == after->n && (before->n == 0 || memcmp(before->bytes, after->bytes, before->n) == 0);
        _cleanup_text_ struct text text = {};
        int r = is_equal ? 0 : run(before, after, &text);
        const char *copy = r == 0 ? arena_copy(a, text.bytes ?: "", text.n + 1) : NULL;

        if (r < 0)
                return r;
        if (!copy)
                return -ENOMEM;
        *ret = copy;
        *ret_n = text.n;
        return 0;
}
