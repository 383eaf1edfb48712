/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd_rest/http.h"

#include <assert.h>
#include <errno.h>
#include <unistd.h>

#include "pkeyd_rest/http_internal.h"
#include "shell/shell.h"
#include "shell/timer.h"

/* Bytes that the library may use for a request without its body. */
#define MAX_HEADERS (REST_MAX_TARGET + (32u << 10))

#define PRIORITIES "NORMAL:-VERS-TLS1.0:-VERS-TLS1.1"

static struct http_connection *to_connection(struct rest_connection *c)
{
        return (struct http_connection *) c;
}

/* --- the event loop --------------------------------------------------------------------------------------------------- */

static void run_now(struct http_server *s)
{
        unsigned long long wait;

        (void) MHD_run(s->daemon);
        if (MHD_get_timeout(s->daemon, &wait) == MHD_YES && wait == 0)
                http_run_soon(s);
}

static int on_readable(sd_event_source *, int, uint32_t, void *userdata)
{
        run_now(userdata);
        return 0;
}

static int on_run(sd_event_source *, void *userdata)
{
        run_now(userdata);
        return 0;
}

/* Does what is due on a connection. Returns when the next is due. */
static usec_t handle_due(struct http_connection *c, usec_t now)
{
        struct http_request *q = c->request;

        if (q && q->is_delayed && q->answer_at <= now)
                http_resume(q);
        if (c->deadline <= now && q && http_request_is_awaited(q) && q->is_complete) {
                c->deadline = now + HTTP_GRACE;
                http_refuse(q, 503, q->is_sent ? "pkeyd did not answer in time" HTTP_MAY_BE_STORED : "pkeyd did not answer in time");
        } else if (c->deadline <= now) {
                http_cut(c);
        }
        return q && q->is_delayed ? MIN(c->deadline, q->answer_at) : c->deadline;
}

static int on_timer(sd_event_source *, uint64_t, void *userdata)
{
        struct http_server *s = userdata;
        usec_t now = clock_now(), next = USEC_INFINITY;

        s->timer_due = USEC_INFINITY;
        for (struct rest_connection *c = s->connections; c; c = c->next) {
                usec_t due = handle_due(to_connection(c), now);

                next = MIN(next, due);
        }
        http_wake_at(s, next);
        return 0;
}

static int on_end(sd_event_source *, void *userdata)
{
        struct http_server *s = userdata;

        if (http_has_ended(s))
                s->handlers.ended(s, s->handlers.userdata);
        return 0;
}

/* --- a server --------------------------------------------------------------------------------------------------------- */

static int start_library(struct http_server *s, const struct http_tls *tls)
{
        const struct MHD_OptionItem tls_options[] = {
                { MHD_OPTION_HTTPS_MEM_CERT, 0, (void *) tls->certificate },
                { MHD_OPTION_HTTPS_MEM_KEY, 0, (void *) tls->key },
                { MHD_OPTION_HTTPS_PRIORITIES, 0, (void *) PRIORITIES },
                { tls->client_ca ? MHD_OPTION_HTTPS_MEM_TRUST : MHD_OPTION_END, 0, (void *) tls->client_ca },
                { MHD_OPTION_END, 0, NULL },
        };
        unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET;

        s->has_tls = tls->certificate;
        s->daemon = MHD_start_daemon(flags | (s->has_tls ? MHD_USE_TLS : 0), 0, NULL, NULL, http_on_request, s,
                                     MHD_OPTION_CONNECTION_LIMIT, (unsigned) s->conf->max_connections + 1,
                                     MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t) MAX_HEADERS,
                                     MHD_OPTION_URI_LOG_CALLBACK, http_on_target, s,
                                     MHD_OPTION_NOTIFY_CONNECTION, http_on_connection, s,
                                     MHD_OPTION_NOTIFY_COMPLETED, http_on_completed, s,
                                     MHD_OPTION_STRICT_FOR_CLIENT, 1,
                                     s->has_tls ? MHD_OPTION_ARRAY : MHD_OPTION_END, tls_options, MHD_OPTION_END);
        return s->daemon ? 0 : -EINVAL;
}

static int add_sources(struct http_server *s)
{
        const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD);
        int r = info ? sd_event_add_io(s->event, &s->io, info->epoll_fd, EPOLLIN, on_readable, s) : -EINVAL;

        if (r >= 0)
                r = sd_event_add_time(s->event, &s->timer, CLOCK_MONOTONIC, USEC_INFINITY, 0, on_timer, s);
        if (r >= 0)
                r = sd_event_add_defer(s->event, &s->run, on_run, s);
        if (r >= 0)
                r = sd_event_add_defer(s->event, &s->end, on_end, s);
        if (r >= 0)
                r = sd_event_source_set_enabled(s->end, SD_EVENT_OFF);
        return r < 0 ? r : 0;
}

int http_server_new(sd_event *event, const struct rest_conf *conf, const struct http_tls *tls, const struct http_handlers *handlers,
                    struct http_server **ret)
{
        _cleanup_(http_server_free_p) struct http_server *s = calloc(1, sizeof(*s));
        int r;

        if (!s)
                return -ENOMEM;
        *s = (struct http_server) { .event = event, .conf = conf, .handlers = *handlers, .timer_due = USEC_INFINITY };
        r = start_library(s, tls) ?: add_sources(s);
        if (r == 0)
                *ret = STEAL(s);
        return r;
}

struct http_server *http_server_free(struct http_server *s)
{
        if (!s)
                return NULL;
        assert(!s->connections && s->n_requests == 0);
        sd_event_source_disable_unref(s->io);
        sd_event_source_disable_unref(s->run);
        sd_event_source_disable_unref(s->timer);
        sd_event_source_disable_unref(s->end);
        if (s->daemon)
                MHD_stop_daemon(s->daemon);
        free(s);
        return NULL;
}

void http_server_take(struct http_server *s, int fd, const struct sockaddr *address, socklen_t n_address, size_t max)
{
        struct rest_address from = http_address_of(address);
        struct rest_connection *instead;

        switch (rest_admit(s->connections, &from, max, &instead)) {
        case REST_ADMIT:
                break;
        case REST_ADMIT_INSTEAD:
                http_cut(to_connection(instead));
                run_now(s);
                break;
        case REST_TURN_AWAY:
                (void) close(fd);
                return;
        }
        (void) MHD_add_connection(s->daemon, fd, address, n_address); /* closes it if that fails */
        run_now(s);
}

void http_server_end(struct http_server *s)
{
        s->is_ending = true;
        for (struct rest_connection *c = s->connections; c; c = c->next) {
                const struct http_request *q = to_connection(c)->request;

                if (!q || !q->has_begun)
                        http_cut(to_connection(c));
        }
        http_check_end(s);
}
