/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "shell/discovery_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "subnet/flat.h"

#define ARGUMENT      "--discover-for-parent"
#define RESULT_FD     3
#define LONGEST       (600 * USEC_PER_SEC)
#define MAX_RESULT    ((size_t) 1 << 30)
#define MAX_EXIT_CODE 125 /* more: a library or a sanitizer ended it */

/* What the process is to do. */
struct order {
        struct local_port lp;
        struct discovery_options options;
};

/* --- the process -------------------------------------------------------------------------------------------------- */

bool discovery_process_is_wanted(int argc, char *argv[])
{
        return argc == 2 && strcmp(argv[1], ARGUMENT) == 0;
}

static int write_all(int fd, const void *bytes, size_t n)
{
        const char *at = bytes;

        while (n > 0) {
                ssize_t done = write(fd, at, n);

                if (done < 0 && errno == EINTR)
                        continue;
                if (done < 0)
                        return -errno;
                at += done;
                n -= (size_t) done;
        }
        return 0;
}

static int follow_order(struct arena *a)
{
        struct subnet *subnet = NULL;
        const char *bytes;
        struct order order;
        size_t n;
        int r;

        if (!a)
                return -ENOMEM;
        if (read(STDIN_FILENO, &order, sizeof(order)) != sizeof(order))
                return -EPIPE;
        r = discovery_run(a, &order.lp, &order.options, &subnet);
        explicit_bzero(&order, sizeof(order));
        if (r == 0)
                r = subnet_flatten(a, subnet, &bytes, &n);
        if (r == 0)
                r = write_all(RESULT_FD, bytes, n);
        return r;
}

/* With exit(), not _exit(): ibsim's preload library says good-bye in a destructor. */
void discovery_process(void)
{
        struct arena *a = arena_new();
        int r;

        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        r = follow_order(a);
        arena_free(a);
        exit(MIN(-r, MAX_EXIT_CODE));
}

/* --- its parent --------------------------------------------------------------------------------------------------- */

struct buffer {
        char *bytes;
        size_t n, allocated;
};

static void buffer_done(struct buffer *b)
{
        free(b->bytes);
}

static void close_p(int *fd)
{
        if (*fd >= 0)
                (void) close(*fd);
}

/* 1: more may come; 0: the end; < 0: trouble. */
static int read_some(int fd, struct buffer *b)
{
        ssize_t n;

        if (b->n == b->allocated) {
                size_t allocated = b->allocated ? b->allocated * 2 : 65536;
                char *bytes = allocated <= MAX_RESULT ? realloc(b->bytes, allocated) : NULL;

                if (!bytes)
                        return -ENOMEM;
                b->bytes = bytes;
                b->allocated = allocated;
        }
        n = read(fd, b->bytes + b->n, b->allocated - b->n);
        if (n < 0)
                return errno == EINTR ? 1 : -errno;
        b->n += (size_t) n;
        return n > 0;
}

static int read_to_end(int fd, struct buffer *b)
{
        usec_t until = clock_now() + LONGEST, now;
        int r = 1;

        while (r > 0) {
                struct pollfd p = { .fd = fd, .events = POLLIN };

                now = clock_now();
                if (now >= until)
                        return -ETIMEDOUT;
                if (poll(&p, 1, (int) ((until - now) / USEC_PER_MSEC) + 1) > 0)
                        r = read_some(fd, b);
        }
        return r;
}

/* The daemon's signals are blocked or ignored here; the process shall end by any of them. */
static int set_attributes(posix_spawnattr_t *attributes)
{
        sigset_t none, defaults;

        (void) sigemptyset(&none);
        (void) sigemptyset(&defaults);
        (void) sigaddset(&defaults, SIGPIPE);
        if (posix_spawnattr_setsigmask(attributes, &none) != 0 ||
            posix_spawnattr_setsigdefault(attributes, &defaults) != 0 ||
            posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF) != 0)
                return -ENOMEM;
        return 0;
}

static int spawn(int order_fd, int result_fd, pid_t *ret)
{
        char *argv[] = { (char[]) { "pkeyd-discovery" }, (char[]) { ARGUMENT }, NULL };
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attributes;
        int r;

        if (posix_spawn_file_actions_init(&actions) != 0)
                return -ENOMEM;
        if (posix_spawnattr_init(&attributes) != 0) {
                (void) posix_spawn_file_actions_destroy(&actions);
                return -ENOMEM;
        }
        r = set_attributes(&attributes);
        if (r == 0 && (posix_spawn_file_actions_adddup2(&actions, order_fd, STDIN_FILENO) != 0 ||
                       posix_spawn_file_actions_adddup2(&actions, result_fd, RESULT_FD) != 0))
                r = -ENOMEM;
        if (r == 0)
                r = -posix_spawn(ret, "/proc/self/exe", &actions, &attributes, argv, environ);
        (void) posix_spawnattr_destroy(&attributes);
        (void) posix_spawn_file_actions_destroy(&actions);
        return r;
}

/* How it ended: 0 or a negative errno. */
static int wait_for(pid_t pid)
{
        int status;

        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        return -errno;
        if (!WIFEXITED(status) || WEXITSTATUS(status) > MAX_EXIT_CODE)
                return -EIO;
        return -WEXITSTATUS(status);
}

static int run_process(const struct order *order, struct buffer *result)
{
        _cleanup_(close_p) int order_read = -1, order_write = -1, result_read = -1, result_write = -1;
        int fds[2], r, r_process;
        pid_t pid;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        order_read = fds[0];
        order_write = fds[1];
        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        result_read = fds[0];
        result_write = fds[1];

        r = write_all(order_write, order, sizeof(*order)); /* fits into a pipe */
        if (r == 0)
                r = spawn(order_read, result_write, &pid);
        if (r < 0)
                return r;
        close_p(&result_write);
        result_write = -1;
        r = read_to_end(result_read, result);
        if (r < 0)
                (void) kill(pid, SIGKILL);
        r_process = wait_for(pid);
        return r < 0 ? r : r_process;
}

int discovery_run_apart(struct arena *a, const struct local_port *lp, const struct discovery_options *options,
                        struct subnet **ret)
{
        struct order order;
        _cleanup_(buffer_done) struct buffer result = {};
        int r;

        memset(&order, 0, sizeof(order)); /* with what is between the members: it goes to another process */
        order.lp = *lp;
        order.options = *options;
        r = run_process(&order, &result);
        explicit_bzero(&order, sizeof(order));
        if (r < 0)
                return r;
        return subnet_unflatten(a, result.bytes, result.n, ret);
}
