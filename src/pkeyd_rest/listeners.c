/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd_rest/listeners.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "shell/file.h"
#include "shell/timer.h"

#define PAUSE   (1 * USEC_PER_SEC) /* when there are no descriptors for more connections */
#define BACKLOG 128
#define BATCH   16                 /* connections accepted at once, so that other events have their turn */

struct listener {
        struct listeners *all;
        int fd;
        sd_event_source *io;
};

struct listeners {
        listeners_accepted_t *accepted;
        void *userdata;
        struct listener items[REST_CONF_MAX_LISTEN];
        size_t n;
        sd_event_source *timer; /* ends a pause */
        bool are_from_systemd;
};

/* --- accepting --------------------------------------------------------------------------------------------------------- */

static void set_enabled(struct listeners *l, int enabled)
{
        for (size_t i = 0; i < l->n; i++)
                (void) sd_event_source_set_enabled(l->items[i].io, enabled);
}

static int on_timer(sd_event_source *, uint64_t, void *userdata)
{
        set_enabled(userdata, SD_EVENT_ON);
        return 0;
}

/* A connection that cannot be accepted stays in the kernel's queue, and would wake the loop again and again. */
static void pause_listening(struct listeners *l)
{
        set_enabled(l, SD_EVENT_OFF);
        (void) timer_set(l->timer, clock_now() + PAUSE);
}

/* One connection failed, or no more are waiting. */
static bool is_harmless(int error)
{
        return error == ECONNABORTED || error == EINTR || error == EPROTO || error == EAGAIN;
}

static int on_connection(sd_event_source *, int fd, uint32_t, void *userdata)
{
        struct listener *item = userdata;
        struct listeners *l = item->all;

        for (size_t i = 0; i < BATCH; i++) {
                struct sockaddr_storage address = {};
                socklen_t n = sizeof(address);
                int one = 1, accepted = accept4(fd, (struct sockaddr *) &address, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);

                if (accepted < 0) {
                        if (!is_harmless(errno))
                                pause_listening(l);
                        return 0;
                }
                (void) setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
                l->accepted(accepted, (struct sockaddr *) &address, n, l->userdata);
        }
        return 0;
}

static int add(struct listeners *l, sd_event *event, int fd)
{
        struct listener *item = &l->items[l->n];

        *item = (struct listener) { .all = l, .fd = fd };
        l->n++;
        if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0) /* systemd passes blocking sockets */
                return -errno;
        return sd_event_add_io(event, &item->io, fd, EPOLLIN, on_connection, item);
}

/* --- opening ------------------------------------------------------------------------------------------------------------ */

/* Returns the descriptor or negative errno. [::] takes IPv4, too, unless the door also listens on an IPv4 address. */
static int open_socket(const char *text, bool only_v6)
{
        struct sockaddr_storage address;
        socklen_t n = (socklen_t) rest_conf_parse_address(text, &address);
        _cleanup_close_ int fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        int one = 1, only = only_v6, r;

        if (fd < 0)
                return -errno;
        (void) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
        if (address.ss_family == AF_INET6)
                (void) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof(only));
        if (bind(fd, (struct sockaddr *) &address, n) < 0 || listen(fd, BACKLOG) < 0)
                return -errno;
        r = fd;
        fd = -1;
        return r;
}

static bool has_v4(const struct rest_conf *c)
{
        for (size_t i = 0; i < c->n_listen; i++)
                if (c->listen[i][0] != '[')
                        return true;
        return false;
}

static int open_all(struct listeners *l, sd_event *event, const struct rest_conf *c, struct findings *findings)
{
        int r = 0;

        for (size_t i = 0; r >= 0 && i < c->n_listen; i++) {
                int fd = open_socket(c->listen[i], has_v4(c));

                if (fd < 0)
                        return findings_error(findings, FINDING_FILE_UNREADABLE,
                                              "choose another address in `listen`, or let systemd open it: pkeyd-rest.socket",
                                              "cannot listen on %s: %s", c->listen[i], strerror(-fd));
                r = add(l, event, fd);
        }
        return r;
}

static int take_from_systemd(struct listeners *l, sd_event *event, int n, struct findings *findings)
{
        int r = 0;

        l->are_from_systemd = true;
        for (int fd = SD_LISTEN_FDS_START; r >= 0 && fd < SD_LISTEN_FDS_START + n; fd++) {
                if (l->n == REST_CONF_MAX_LISTEN || sd_is_socket(fd, AF_UNSPEC, SOCK_STREAM, 1) <= 0)
                        return findings_error(findings, FINDING_FILE_UNREADABLE,
                                              "ListenStream= in pkeyd-rest.socket, at most 16 times, with Accept=no",
                                              "systemd passed descriptor %d, which is not a listening stream socket, or one too many", fd);
                r = add(l, event, fd);
        }
        return r;
}

int listeners_new(sd_event *event, const struct rest_conf *conf, listeners_accepted_t *accepted, void *userdata,
                  struct findings *findings, struct listeners **ret)
{
        _cleanup_(listeners_free_p) struct listeners *l = calloc(1, sizeof(*l));
        int n = sd_listen_fds(1), r;

        if (!l)
                return -ENOMEM;
        *l = (struct listeners) { .accepted = accepted, .userdata = userdata };
        r = sd_event_add_time(event, &l->timer, CLOCK_MONOTONIC, USEC_INFINITY, 0, on_timer, l);
        if (r >= 0)
                r = n > 0 ? take_from_systemd(l, event, n, findings) : open_all(l, event, conf, findings);
        if (r >= 0 && l->n == 0)
                r = findings_error(findings, FINDING_KEY_MISSING, "set `listen` in rest.yaml, or start pkeyd-rest.socket",
                                   "there is no address to listen on");
        if (r < 0)
                return r;
        *ret = STEAL(l);
        return 0;
}

struct listeners *listeners_free(struct listeners *l)
{
        if (!l)
                return NULL;
        for (size_t i = 0; i < l->n; i++) {
                sd_event_source_disable_unref(l->items[i].io);
                (void) close(l->items[i].fd);
        }
        sd_event_source_disable_unref(l->timer);
        free(l);
        return NULL;
}

size_t listeners_n(const struct listeners *l)
{
        return l->n;
}

bool listeners_are_from_systemd(const struct listeners *l)
{
        return l->are_from_systemd;
}
