/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd_rest/door.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>

#include "pkeyd_rest/door_conf.h"
#include "pkeyd_rest/jobs.h"
#include "pkeyd_rest/listeners.h"
#include "pkeyd_rest/login.h"
#include "shell/shell.h"
#include "util/text.h"

/* Descriptors besides connections and listening sockets: standard ones, the loop, signals, timers, the bus, the journal,
 * libmicrohttpd, files of a reload, and a few connections that were cut off and are not closed yet. */
#define OTHER_DESCRIPTORS 24

/* A server with its configuration. */
struct door_server {
        struct door_server *next;    /* the one before it, which still has connections */
        struct door_conf *conf;      /* owned */
        struct http_server *http;    /* owned */
};

struct door {
        struct journal_output journal;
        const char *file;
        const struct fabric *fabric;
        sd_event *event;
        struct pkeyd_bus bus;
        struct login login;
        struct jobs *jobs;
        struct listeners *listeners; /* NULL: the door is ending */
        struct door_server *servers; /* the first one is in force */
        size_t max_connections;
};

/* --- requests --------------------------------------------------------------------------------------------------------- */

static void refuse_login(struct door *d, struct http_request *q, const struct login_result *result)
{
        uint64_t n = result->n_failures;

        if (n == 0) {
                http_refuse(q, 401, "authentication is required (accepted: with /ufmRest a user name and a password, or a client "
                                    "certificate; with /ufmRestV3 a token)");
                return;
        }
        if ((n & (n - 1)) == 0) /* the 1st, 2nd, 4th, 8th ... */
                door_log_login(&d->journal, q->address, n);
        http_refuse_login(q, result->delay);
}

static void check_login(struct door *d, struct http_request *q, enum rest_prefix prefix)
{
        const struct login_attempt attempt = {
                .prefix = prefix, .authorization = q->authorization, .certificate = q->certificate, .from = q->from,
        };
        struct login_result result;
        int r = login_check(&d->login, &attempt, clock_now(), &result);

        if (r < 0) {
                http_refuse(q, 503, r == -ENOMEM ? "out of memory" : "GnuTLS fails, so no login can be checked");
                return;
        }
        switch (result.outcome) {
        case LOGIN_OK:
                q->client = result.client;
                break;
        case LOGIN_WRONG:
                refuse_login(d, q, &result);
                break;
        case LOGIN_TOO_MANY_LOGINS:
                http_refuse(q, 429, "too many logins at a time; try again later");
                break;
        case LOGIN_TOO_MANY_REQUESTS:
                http_refuse(q, 429, "too many requests in a second from this client; try again later");
                break;
        }
}

/* A path outside of the API needs no client. It is answered now, so that its body is dropped. */
static void on_begun(struct http_request *q, void *userdata)
{
        enum rest_prefix prefix = rest_prefix_of(q->target);
        struct door *d = userdata;

        if (prefix == REST_PREFIX_PASSWORD || prefix == REST_PREFIX_TOKEN)
                check_login(d, q, prefix);
        else
                jobs_add(d->jobs, q);
}

static void on_complete(struct http_request *q, void *userdata)
{
        struct door *d = userdata;

        jobs_add(d->jobs, q);
}

/* --- servers ---------------------------------------------------------------------------------------------------------- */

static struct door_server *server_free(struct door_server *s)
{
        if (!s)
                return NULL;
        (void) http_server_free(s->http);
        (void) door_conf_free(s->conf);
        free(s);
        return NULL;
}
DEFINE_CLEANUP(struct door_server *, server_free)

static void on_ended(struct http_server *http, void *userdata)
{
        struct door *d = userdata;

        for (struct door_server **i = &d->servers; *i; i = &(*i)->next)
                if ((*i)->http == http) {
                        struct door_server *s = *i;

                        *i = s->next;
                        (void) server_free(s);
                        break;
                }
        if (!d->servers)
                (void) sd_event_exit(d->event, 0);
}

static void on_accepted(int fd, const struct sockaddr *address, socklen_t n_address, void *userdata)
{
        struct door *d = userdata;

        http_server_take(d->servers->http, fd, address, n_address, d->max_connections);
}

/* Takes the configuration over. */
static int server_new(struct door *d, struct door_conf *conf, struct door_server **ret)
{
        const struct http_handlers handlers = { .begun = on_begun, .complete = on_complete, .ended = on_ended, .userdata = d };
        _cleanup_(server_free_p) struct door_server *s = calloc(1, sizeof(*s));
        int r;

        if (!s) {
                (void) door_conf_free(conf);
                return -ENOMEM;
        }
        s->conf = conf;
        r = http_server_new(d->event, conf->rest, &conf->tls, &handlers, &s->http);
        if (r == 0)
                *ret = STEAL(s);
        return r;
}

/* Loads rest.yaml into a new server, which gets no connections yet. Logs its errors. */
static int load(struct door *d, struct door_server **ret)
{
        _cleanup_arena_ struct arena *a = arena_new();
        _cleanup_findings_ struct findings findings = { .arena = a };
        struct door_conf *conf;
        int r = a ? door_conf_load(d->file, &findings, &conf) : -ENOMEM;

        r = r ?: server_new(d, conf, ret);
        if (r == -EBADMSG)
                door_log_findings(&d->journal, &findings);
        else if (r < 0)
                door_log(&d->journal, DOOR_EVENT_CONF_REFUSED, "%s cannot be put in force: %s", d->file, strerror(-r));
        return r;
}

static void set_max_connections(struct door *d)
{
        size_t wanted = (size_t) d->servers->conf->rest->max_connections, others = OTHER_DESCRIPTORS + listeners_n(d->listeners);
        struct rlimit limit;
        size_t max = getrlimit(RLIMIT_NOFILE, &limit) < 0 ? wanted + others : (size_t) limit.rlim_cur;
        size_t room = max > others ? max - others : 1;

        d->max_connections = MIN(wanted, room);
        if (room < wanted)
                door_log(&d->journal, DOOR_EVENT_FEW_CONNECTIONS, "limits.connections is %zu, but with a limit of %zu open files there "
                         "can be %zu connections; see LimitNOFILE= in systemd.exec(5)", wanted, max, room);
}

/* Gives new connections to this server, which it takes over; the one in force ends. */
static int put_in_force(struct door *d, struct door_server *s)
{
        int r = login_use(&d->login, s->conf->rest);

        if (r < 0) {
                (void) server_free(s);
                return r;
        }
        if (d->servers)
                http_server_end(d->servers->http);
        s->next = d->servers;
        d->servers = s;
        set_max_connections(d);
        return 0;
}

/* --- signals ---------------------------------------------------------------------------------------------------------- */

static bool is_same_listen(const struct rest_conf *a, const struct rest_conf *b)
{
        return text_lists_are_equal(a->listen, a->n_listen, b->listen, b->n_listen);
}

static int reload(struct door *d)
{
        const struct rest_conf *before = d->servers->conf->rest;
        struct door_server *s;
        int r = load(d, &s);

        if (r < 0)
                return r;
        if (!listeners_are_from_systemd(d->listeners) && !is_same_listen(before, s->conf->rest))
                door_log(&d->journal, DOOR_EVENT_LISTEN_DIFFERS, "`listen` has changed: restart pkeyd-rest to listen on other addresses");
        return put_in_force(d, s);
}

static int on_hangup(sd_event_source *, const struct signalfd_siginfo *, void *userdata)
{
        struct door *d = userdata;

        if (!d->listeners)
                return 0;
        (void) sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, clock_now());
        if (reload(d) == 0)
                door_log(&d->journal, DOOR_EVENT_READY, "%s was reloaded", d->file);
        else
                door_log(&d->journal, DOOR_EVENT_CONF_REFUSED, "%s was refused; the previous configuration stays in force", d->file);
        (void) sd_notify(0, "READY=1");
        return 0;
}

static int on_terminate(sd_event_source *, const struct signalfd_siginfo *, void *userdata)
{
        struct door *d = userdata;

        if (!d->listeners)
                return 0;
        (void) sd_notify(0, "STOPPING=1");
        d->listeners = listeners_free(d->listeners);
        http_server_end(d->servers->http);
        return 0;
}

/* --- life ------------------------------------------------------------------------------------------------------------- */

static int listen_at(struct door *d)
{
        _cleanup_arena_ struct arena *a = arena_new();
        _cleanup_findings_ struct findings findings = { .arena = a };
        struct door_server *s;
        int r = load(d, &s);

        if (r < 0)
                return r;
        r = a ? listeners_new(d->event, s->conf->rest, on_accepted, d, &findings, &d->listeners) : -ENOMEM;
        if (r < 0)
                (void) server_free(s);
        else
                r = put_in_force(d, s);
        if (r == -EBADMSG)
                door_log_findings(&d->journal, &findings);
        else if (r < 0)
                door_log(&d->journal, DOOR_EVENT_CONF_REFUSED, "cannot start: %s", strerror(-r));
        return r;
}

static int set_up(struct door *d)
{
        int r = sd_event_new(&d->event);

        if (r >= 0)
                r = sd_event_add_signal(d->event, NULL, SIGHUP, on_hangup, d);
        if (r >= 0)
                r = sd_event_add_signal(d->event, NULL, SIGTERM, on_terminate, d);
        if (r >= 0)
                r = sd_event_add_signal(d->event, NULL, SIGINT, on_terminate, d);
        if (r >= 0)
                r = pkeyd_bus_init(&d->bus, d->event, d->fabric, &d->journal);
        if (r >= 0)
                r = jobs_new(d->event, &d->bus, &d->journal, &d->jobs);
        if (r >= 0)
                r = login_init(&d->login);
        if (r < 0)
                door_log(&d->journal, DOOR_EVENT_CONF_REFUSED, "cannot start: %s", strerror(-r));
        return r < 0 ? r : listen_at(d);
}

static void tear_down(struct door *d)
{
        (void) listeners_free(d->listeners);
        (void) jobs_free(d->jobs);
        while (d->servers) {
                struct door_server *s = d->servers;

                d->servers = s->next;
                (void) server_free(s);
        }
        login_done(&d->login);
        pkeyd_bus_done(&d->bus);
        (void) sd_event_unref(d->event);
}

int door_run(const char *file, const struct fabric *fabric)
{
        struct door d = { .file = file, .fabric = fabric };
        int r;

        journal_output_init(&d.journal, "pkeyd-rest", fabric->name);
        r = set_up(&d);
        if (r >= 0) {
                const struct rest_conf *c = d.servers->conf->rest;

                door_log(&d.journal, DOOR_EVENT_READY, "serving %zu client%s on %zu address%s, with %s", c->n_clients,
                         text_plural(c->n_clients), listeners_n(d.listeners), listeners_n(d.listeners) == 1 ? "" : "es",
                         c->tls_certificate ? "TLS" : "http");
                (void) sd_notify(0, "READY=1");
                r = sd_event_loop(d.event);
        }
        tear_down(&d);
        return r;
}
