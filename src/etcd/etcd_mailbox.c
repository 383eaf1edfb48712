/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "etcd/etcd_mailbox.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/queue.h>

#include "etcd/etcd_message.h"
#include "shell/shell.h"
#include "shell/timer.h"
#include "util/scan.h"

#define INTERVAL  (500 * USEC_PER_MSEC)
#define TIMEOUT   (3 * USEC_PER_SEC)
#define SPARE     60u  /* seconds that the lease of a request is longer than its sender waits */
#define MAX_INCOMING 128u /* requests that are carried out at a time, and answers that one poll reads */

/* A request of this process. */
struct outgoing {
        struct etcd_mailbox *mailbox;
        LIST_ENTRY(outgoing) in_list;
        uint64_t request;
        char *text;
        usec_t deadline;
        unsigned seconds;
        uint64_t lease;            /* 0: there is none yet */
        bool is_put;               /* etcd has it */
        struct etcd_request *call; /* under way; NULL: none is */
};

/* A request that this process carries out. */
struct incoming {
        struct etcd_mailbox *mailbox;
        LIST_ENTRY(incoming) in_list;
        uint64_t id;
        uint64_t created;          /* revision of `ask/ID` */
        bool is_found;             /* by the last poll */
        bool is_asked;             /* the handler has it */
        char *reply;               /* NULL: there is none yet */
        bool is_replied;           /* etcd has the reply */
        struct etcd_request *call; /* under way; NULL: none is */
};

struct etcd_mailbox {
        struct etcd_mailbox_handlers handlers;
        struct etcd_http *http;
        const char *fabric;        /* of several; NULL: there is one */
        sd_event_source *timer;
        struct etcd_request *poll; /* under way; NULL: none is */
        LIST_HEAD(, outgoing) outgoing;
        LIST_HEAD(, incoming) incoming;
        unsigned n_incoming;
        bool serves;
};

/* --- keys ------------------------------------------------------------------------------------------------------------- */

static struct etcd_key key_of(const struct etcd_mailbox *m, const char *folder, uint64_t id)
{
        char text[24];

        (void) snprintf(text, sizeof(text), "%" PRIu64, id);
        return etcd_key(m->fabric, folder, text);
}

/* Returns 0 if it is not the key of a request or an answer. */
static uint64_t id_of(const struct etcd_mailbox *m, const char *folder, const char *key)
{
        struct scan s = { key, key + strlen(key) };
        uint64_t id;

        return scan_word(&s, etcd_key(m->fabric, folder, "").text) && scan_number(&s, 10, UINT64_MAX, &id) && s.p == s.end ? id : 0;
}

static json_t *make_range(const struct etcd_mailbox *m, const char *folder, bool keys_only)
{
        const struct etcd_key first = etcd_key(m->fabric, folder, ETCD_NAMES_FIRST);
        const struct etcd_key end = etcd_key(m->fabric, folder, ETCD_NAMES_END);

        return etcd_op_range(first.text, end.text, MAX_INCOMING, keys_only);
}

/* The same request may succeed later. */
static bool may_pass(int r)
{
        return r == -EHOSTUNREACH || r == -ENOMEM;
}

/* --- outgoing requests ------------------------------------------------------------------------------------------------ */

/* If etcd does not answer, the lease ends by itself. */
static void revoke_lease(struct etcd_mailbox *m, uint64_t lease)
{
        if (lease > 0)
                (void) etcd_http_post(m->http, ETCD_LEASE_REVOKE, etcd_lease_reference(lease), TIMEOUT, NULL, NULL, NULL);
}

static void outgoing_free(struct outgoing *out)
{
        LIST_REMOVE(out, in_list);
        etcd_http_drop(out->call);
        free(out->text);
        free(out);
}

static void outgoing_end(struct outgoing *out, int r, const char *text)
{
        struct etcd_mailbox *m = out->mailbox;
        uint64_t request = out->request;

        revoke_lease(m, out->lease);
        outgoing_free(out);
        m->handlers.answered(request, r, text, m->handlers.userdata);
}

static void on_put(int r, json_t *, void *userdata)
{
        struct outgoing *out = userdata;

        out->call = NULL;
        out->is_put = r == 0;
        if (r < 0 && !may_pass(r))
                outgoing_end(out, r, NULL);
}

static void put_request(struct outgoing *out)
{
        const struct etcd_key key = key_of(out->mailbox, "ask/", out->lease);
        json_t *put = etcd_op_put(key.text, out->text, strlen(out->text), out->lease);

        (void) etcd_http_post(out->mailbox->http, ETCD_TRANSACTION, etcd_transaction(json_array(), json_pack("[o]", put)), TIMEOUT,
                              on_put, out, &out->call);
}

static void on_granted(int r, json_t *answer, void *userdata)
{
        struct outgoing *out = userdata;

        out->call = NULL;
        if (r == 0 && (!etcd_number(answer, "ID", &out->lease) || out->lease == 0))
                r = -EPROTO;
        if (r == 0)
                put_request(out);
        else if (!may_pass(r))
                outgoing_end(out, r, NULL);
}

/* Asks for the lease, then puts the request. The next poll repeats what failed. */
static void outgoing_advance(struct outgoing *out)
{
        if (out->call || out->is_put)
                return;
        if (out->lease > 0)
                put_request(out);
        else
                (void) etcd_http_post(out->mailbox->http, ETCD_LEASE_GRANT, etcd_lease_grant(out->seconds + SPARE), TIMEOUT,
                                      on_granted, out, &out->call);
}

/* NULL also for the ID 0, which requests without a lease have. */
static struct outgoing *find_outgoing(const struct etcd_mailbox *m, uint64_t id)
{
        struct outgoing *out;

        LIST_FOREACH(out, &m->outgoing, in_list)
                if (out->lease == id && id > 0)
                        break;
        return out;
}

/* A request that was not answered in time; NULL: there is none. */
static struct outgoing *find_late(const struct etcd_mailbox *m, usec_t now)
{
        struct outgoing *out;

        LIST_FOREACH(out, &m->outgoing, in_list)
                if (out->deadline <= now)
                        break;
        return out;
}

/* --- incoming requests ------------------------------------------------------------------------------------------------ */

static void incoming_free(struct incoming *in)
{
        LIST_REMOVE(in, in_list);
        in->mailbox->n_incoming--;
        etcd_http_drop(in->call);
        free(in->reply);
        free(in);
}

static struct incoming *find_incoming(const struct etcd_mailbox *m, uint64_t id)
{
        struct incoming *in;

        LIST_FOREACH(in, &m->incoming, in_list)
                if (in->id == id)
                        break;
        return in;
}

static void on_fetched(int r, json_t *answer, void *userdata)
{
        _cleanup_arena_ struct arena *a = arena_new();
        struct incoming *in = userdata;
        struct etcd_mailbox *m = in->mailbox;
        struct etcd_record record;

        in->call = NULL;
        r = r ?: a ? etcd_read_record(answer, 0, a, &record) : -ENOMEM;
        if (r < 0 || record.created != in->created)
                return; /* the next poll finds it, or not */
        in->is_asked = true;
        m->handlers.asked(in->id, record.value, m->handlers.userdata);
}

/* etcd has the reply, or the sender does not wait any more: either way the next poll does not find the request. */
static void on_replied(int r, json_t *, void *userdata)
{
        struct incoming *in = userdata;

        in->call = NULL;
        in->is_replied = !may_pass(r);
}

static json_t *make_reply(const struct incoming *in)
{
        const struct etcd_key ask = key_of(in->mailbox, "ask/", in->id), answer = key_of(in->mailbox, "answer/", in->id);

        return etcd_transaction(json_pack("[o]", etcd_if_created(ask.text, in->created)),
                                json_pack("[o, o]", etcd_op_put(answer.text, in->reply, strlen(in->reply), in->id),
                                          etcd_op_delete(ask.text, NULL)));
}

/* Reads the text of the request, then puts the reply when there is one. */
static void incoming_advance(struct incoming *in)
{
        struct etcd_mailbox *m = in->mailbox;

        if (in->call)
                return;
        if (!in->is_asked)
                (void) etcd_http_post(m->http, ETCD_RANGE, etcd_range(key_of(m, "ask/", in->id).text, NULL, 1, 0), TIMEOUT, on_fetched,
                                      in, &in->call);
        else if (in->reply && !in->is_replied)
                (void) etcd_http_post(m->http, ETCD_TRANSACTION, make_reply(in), TIMEOUT, on_replied, in, &in->call);
}

static void handle_request(struct etcd_mailbox *m, const struct etcd_record *ask)
{
        uint64_t id = id_of(m, "ask/", ask->key);
        struct incoming *in = find_incoming(m, id);

        if (in && in->created != ask->created) { /* it was put again after it was answered */
                incoming_free(in);
                in = NULL;
        }
        if (!in && id > 0 && m->n_incoming < MAX_INCOMING) {
                in = calloc(1, sizeof(*in));
                if (!in)
                        return;
                *in = (struct incoming) { .mailbox = m, .id = id, .created = ask->created };
                LIST_INSERT_HEAD(&m->incoming, in, in_list);
                m->n_incoming++;
        }
        if (in)
                in->is_found = true;
}

/* --- polling ---------------------------------------------------------------------------------------------------------- */

static void handle_requests(struct etcd_mailbox *m, const json_t *range)
{
        _cleanup_arena_ struct arena *a = arena_new();
        struct incoming *in, *next;
        struct etcd_record ask;

        if (!a)
                return;
        LIST_FOREACH(in, &m->incoming, in_list)
                in->is_found = false;
        for (size_t i = 0; etcd_read_record(range, i, a, &ask) == 0; i++)
                handle_request(m, &ask);
        for (in = LIST_FIRST(&m->incoming); in; in = next) {
                next = LIST_NEXT(in, in_list);
                if (!in->is_found && (in->is_replied || !etcd_has_more(range)))
                        incoming_free(in);
        }
        LIST_FOREACH(in, &m->incoming, in_list)
                incoming_advance(in);
}

/* A handler may leave more requests, or stop serving. */
static void handle_answers(struct etcd_mailbox *m, const json_t *range)
{
        _cleanup_arena_ struct arena *a = arena_new();
        struct etcd_record answer;
        struct outgoing *out;

        for (size_t i = 0; a && etcd_read_record(range, i, a, &answer) == 0; i++) {
                out = find_outgoing(m, id_of(m, "answer/", answer.key));
                if (out)
                        outgoing_end(out, 0, answer.value);
        }
}

static void on_polled(int r, json_t *answer, void *userdata)
{
        struct etcd_mailbox *m = userdata;

        m->poll = NULL;
        if (r < 0)
                return;
        if (m->serves)
                handle_requests(m, etcd_range_of(answer, 0));
        handle_answers(m, etcd_range_of(answer, 1));
}

/* Whether the mailbox has to be polled. */
static bool is_active(const struct etcd_mailbox *m)
{
        return m->serves || !LIST_EMPTY(&m->outgoing);
}

static void arm(struct etcd_mailbox *m)
{
        (void) timer_set(m->timer, is_active(m) ? clock_now() + INTERVAL : USEC_INFINITY);
}

static int on_time(sd_event_source *, uint64_t, void *userdata)
{
        struct etcd_mailbox *m = userdata;
        struct outgoing *out;

        while ((out = find_late(m, clock_now())))
                outgoing_end(out, -ETIMEDOUT, NULL);
        LIST_FOREACH(out, &m->outgoing, in_list)
                outgoing_advance(out);
        if (!m->poll && is_active(m))
                (void) etcd_http_post(m->http, ETCD_TRANSACTION,
                                      etcd_transaction(json_array(), json_pack("[o, o]", make_range(m, "ask/", true),
                                                                               make_range(m, "answer/", false))),
                                      TIMEOUT, on_polled, m, &m->poll);
        arm(m);
        return 0;
}

/* --- the interface ---------------------------------------------------------------------------------------------------- */

int etcd_mailbox_new(sd_event *event, const struct etcd_config *config, const struct etcd_mailbox_handlers *handlers,
                     struct etcd_mailbox **ret)
{
        _cleanup_(etcd_mailbox_free_p) struct etcd_mailbox *m = calloc(1, sizeof(*m));
        int r;

        if (!m)
                return -ENOMEM;
        m->handlers = *handlers;
        m->fabric = config->fabric;
        r = etcd_http_new(event, config, &m->http);
        if (r >= 0)
                r = sd_event_add_time(event, &m->timer, CLOCK_MONOTONIC, UINT64_MAX, 1, on_time, m);
        if (r < 0)
                return r;
        *ret = STEAL(m);
        return 0;
}

struct etcd_mailbox *etcd_mailbox_free(struct etcd_mailbox *m)
{
        if (!m)
                return NULL;
        while (!LIST_EMPTY(&m->outgoing))
                outgoing_free(LIST_FIRST(&m->outgoing));
        while (!LIST_EMPTY(&m->incoming))
                incoming_free(LIST_FIRST(&m->incoming));
        m->http = etcd_http_free(m->http);
        sd_event_source_disable_unref(m->timer);
        free(m);
        return NULL;
}

int etcd_mailbox_ask(struct etcd_mailbox *m, uint64_t request, const char *text, unsigned seconds)
{
        struct outgoing *out = calloc(1, sizeof(*out));

        if (!out)
                return -ENOMEM;
        *out = (struct outgoing) {
                .mailbox = m, .request = request, .text = strdup(text), .seconds = seconds,
                .deadline = clock_now() + seconds * USEC_PER_SEC,
        };
        LIST_INSERT_HEAD(&m->outgoing, out, in_list);
        if (!out->text) {
                outgoing_free(out);
                return -ENOMEM;
        }
        outgoing_advance(out);
        arm(m);
        return 0;
}

void etcd_mailbox_serve(struct etcd_mailbox *m, bool serves)
{
        struct incoming *next;

        for (struct incoming *in = serves ? NULL : LIST_FIRST(&m->incoming); in; in = next) {
                next = LIST_NEXT(in, in_list);
                if (!in->reply)
                        incoming_free(in);
        }
        if (m->serves == serves)
                return;
        m->serves = serves;
        arm(m);
}

void etcd_mailbox_reply(struct etcd_mailbox *m, uint64_t id, const char *text)
{
        struct incoming *in = find_incoming(m, id);

        if (!in || in->reply)
                return;
        in->reply = strdup(text);
        if (in->reply)
                incoming_advance(in);
}
