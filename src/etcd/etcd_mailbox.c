/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "etcd/etcd_mailbox.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "etcd/etcd_message.h"
#include "shell/shell.h"
#include "shell/timer.h"
#include "util/scan.h"

#define INTERVAL  (500 * USEC_PER_MSEC)
#define TIMEOUT   (3 * USEC_PER_SEC)
#define SPARE     60u  /* seconds that a lease is longer than its asker waits */
#define MAX_TAKEN 128u /* requests that are carried out at a time, and answers in one look */

/* A request of this process. */
struct letter {
        struct etcd_mailbox *mailbox;
        struct letter *next;
        uint64_t request;
        char *text;
        usec_t deadline;
        unsigned seconds;
        uint64_t lease;            /* 0: there is none yet */
        bool is_left;              /* it is in the mailbox */
        struct etcd_request *call; /* the one under way; NULL: none is */
};

/* A request that this process carries out. */
struct taken {
        struct etcd_mailbox *mailbox;
        struct taken *next;
        uint64_t id;
        uint64_t created;          /* revision of `ask/ID` */
        bool is_found;             /* by the last look */
        bool is_asked;             /* its handler has it */
        char *reply;               /* NULL: there is none yet */
        bool is_replied;
        struct etcd_request *call;
};

struct etcd_mailbox {
        struct etcd_mailbox_handlers handlers;
        struct etcd_http *http;
        const char *fabric;        /* of several; NULL: there is one */
        sd_event_source *timer;
        struct etcd_request *look;
        struct letter *letters;
        struct taken *taken;
        unsigned n_taken;
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

        return etcd_op_range(first.text, end.text, MAX_TAKEN, keys_only);
}

/* The same may succeed later. */
static bool is_passing(int r)
{
        return r == -EHOSTUNREACH || r == -ENOMEM;
}

/* --- letters ---------------------------------------------------------------------------------------------------------- */

static void ignore(int r, json_t *answer, void *userdata)
{
        (void) r;
        (void) answer;
        (void) userdata;
}

/* If etcd does not answer, the lease ends by itself. */
static void give_back(struct etcd_mailbox *m, uint64_t lease)
{
        if (lease > 0)
                (void) etcd_http_post(m->http, ETCD_LEASE_REVOKE, etcd_lease_reference(lease), TIMEOUT, ignore, NULL, NULL);
}

static void letter_free(struct letter *l)
{
        struct etcd_mailbox *m = l->mailbox;

        for (struct letter **at = &m->letters; *at; at = &(*at)->next)
                if (*at == l) {
                        *at = l->next;
                        break;
                }
        etcd_http_drop(l->call);
        free(l->text);
        free(l);
}

static void letter_end(struct letter *l, int r, const char *text)
{
        struct etcd_mailbox *m = l->mailbox;
        uint64_t request = l->request;

        give_back(m, l->lease);
        letter_free(l);
        m->handlers.answered(request, r, text, m->handlers.userdata);
}

static void on_left(int r, json_t *answer, void *userdata)
{
        struct letter *l = userdata;

        (void) answer;
        l->call = NULL;
        l->is_left = r == 0;
        if (r < 0 && !is_passing(r))
                letter_end(l, r, NULL);
}

static void on_granted(int r, json_t *answer, void *userdata);

/* The next step: a lease, then the request itself. What fails is tried again with the next look. */
static void letter_go_on(struct letter *l)
{
        struct etcd_mailbox *m = l->mailbox;
        json_t *put;

        if (l->call || l->is_left)
                return;
        if (l->lease == 0) {
                (void) etcd_http_post(m->http, ETCD_LEASE_GRANT, etcd_lease_grant(l->seconds + SPARE), TIMEOUT, on_granted, l,
                                      &l->call);
                return;
        }
        put = etcd_op_put(key_of(m, "ask/", l->lease).text, l->text, strlen(l->text), l->lease);
        (void) etcd_http_post(m->http, ETCD_TRANSACTION, etcd_transaction(json_array(), json_pack("[o]", put)), TIMEOUT, on_left, l,
                              &l->call);
}

static void on_granted(int r, json_t *answer, void *userdata)
{
        struct letter *l = userdata;

        l->call = NULL;
        if (r == 0 && (!etcd_number(answer, "ID", &l->lease) || l->lease == 0))
                r = -EPROTO;
        if (r == 0)
                letter_go_on(l);
        else if (!is_passing(r))
                letter_end(l, r, NULL);
}

/* id 0: none, also where a letter has no lease yet. */
static struct letter *find_letter(const struct etcd_mailbox *m, uint64_t id)
{
        struct letter *l = m->letters;

        while (l && (l->lease != id || id == 0))
                l = l->next;
        return l;
}

/* One that nobody answered in time; NULL: there is none. */
static struct letter *find_late(const struct etcd_mailbox *m, usec_t now)
{
        struct letter *l = m->letters;

        while (l && l->deadline > now)
                l = l->next;
        return l;
}

/* --- taken requests --------------------------------------------------------------------------------------------------- */

static void taken_free(struct taken *t)
{
        struct etcd_mailbox *m = t->mailbox;

        for (struct taken **at = &m->taken; *at; at = &(*at)->next)
                if (*at == t) {
                        *at = t->next;
                        m->n_taken--;
                        break;
                }
        etcd_http_drop(t->call);
        free(t->reply);
        free(t);
}

static struct taken *find_taken(const struct etcd_mailbox *m, uint64_t id)
{
        struct taken *t = m->taken;

        while (t && t->id != id)
                t = t->next;
        return t;
}

static void on_fetched(int r, json_t *answer, void *userdata)
{
        _cleanup_arena_ struct arena *a = arena_new();
        struct taken *t = userdata;
        struct etcd_mailbox *m = t->mailbox;
        struct etcd_record record;

        t->call = NULL;
        r = r ?: a ? etcd_read_record(answer, 0, a, &record) : -ENOMEM;
        if (r < 0 || record.created != t->created)
                return; /* the next look finds it, or not */
        t->is_asked = true;
        m->handlers.asked(t->id, record.value, m->handlers.userdata);
}

/* Etcd has the answer, or nobody waits for it any more; then the next look does not find the request. */
static void on_replied(int r, json_t *answer, void *userdata)
{
        struct taken *t = userdata;

        (void) answer;
        t->call = NULL;
        t->is_replied = !is_passing(r);
}

static json_t *make_reply(const struct taken *t)
{
        const struct etcd_key ask = key_of(t->mailbox, "ask/", t->id), answer = key_of(t->mailbox, "answer/", t->id);

        return etcd_transaction(json_pack("[o]", etcd_if_created(ask.text, t->created)),
                                json_pack("[o, o]", etcd_op_put(answer.text, t->reply, strlen(t->reply), t->id),
                                          etcd_op_delete(ask.text, NULL)));
}

/* The next step: its text, then the answer when there is one. */
static void taken_go_on(struct taken *t)
{
        struct etcd_mailbox *m = t->mailbox;

        if (t->call)
                return;
        if (!t->is_asked)
                (void) etcd_http_post(m->http, ETCD_RANGE, etcd_range(key_of(m, "ask/", t->id).text, NULL, 1, 0), TIMEOUT, on_fetched,
                                      t, &t->call);
        else if (t->reply && !t->is_replied)
                (void) etcd_http_post(m->http, ETCD_TRANSACTION, make_reply(t), TIMEOUT, on_replied, t, &t->call);
}

static void take(struct etcd_mailbox *m, const struct etcd_record *ask)
{
        uint64_t id = id_of(m, "ask/", ask->key);
        struct taken *t = find_taken(m, id);

        if (t && t->created != ask->created) { /* it was left once more after it was answered */
                taken_free(t);
                t = NULL;
        }
        if (!t && id > 0 && m->n_taken < MAX_TAKEN) {
                t = calloc(1, sizeof(*t));
                if (!t)
                        return;
                *t = (struct taken) { .mailbox = m, .next = m->taken, .id = id, .created = ask->created };
                m->taken = t;
                m->n_taken++;
        }
        if (t)
                t->is_found = true;
}

/* --- looking ---------------------------------------------------------------------------------------------------------- */

static void see_requests(struct etcd_mailbox *m, const json_t *range)
{
        _cleanup_arena_ struct arena *a = arena_new();
        struct etcd_record ask;
        struct taken *next;

        for (struct taken *t = m->taken; t; t = t->next)
                t->is_found = false;
        for (size_t i = 0; a && etcd_read_record(range, i, a, &ask) == 0; i++)
                take(m, &ask);
        for (struct taken *t = a ? m->taken : NULL; t; t = next) {
                next = t->next;
                if (!t->is_found && (t->is_replied || !etcd_has_more(range)))
                        taken_free(t);
        }
        for (struct taken *t = m->taken; t; t = t->next)
                taken_go_on(t);
}

/* A handler may leave more requests, or stop serving. */
static void see_answers(struct etcd_mailbox *m, const json_t *range)
{
        _cleanup_arena_ struct arena *a = arena_new();
        struct etcd_record answer;
        struct letter *l;

        for (size_t i = 0; a && etcd_read_record(range, i, a, &answer) == 0; i++) {
                l = find_letter(m, id_of(m, "answer/", answer.key));
                if (l)
                        letter_end(l, 0, answer.value);
        }
}

static void on_looked(int r, json_t *answer, void *userdata)
{
        struct etcd_mailbox *m = userdata;

        m->look = NULL;
        if (r < 0)
                return;
        if (m->serves)
                see_requests(m, etcd_range_of(answer, 0));
        see_answers(m, etcd_range_of(answer, 1));
}

static void arm(struct etcd_mailbox *m)
{
        (void) timer_set(m->timer, m->serves || m->letters ? clock_now() + INTERVAL : USEC_INFINITY);
}

static int on_time(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct etcd_mailbox *m = userdata;
        struct letter *late;

        (void) source;
        (void) usec;
        while ((late = find_late(m, clock_now())))
                letter_end(late, -ETIMEDOUT, NULL);
        for (struct letter *l = m->letters; l; l = l->next)
                letter_go_on(l);
        if (!m->look && (m->serves || m->letters))
                (void) etcd_http_post(m->http, ETCD_TRANSACTION,
                                      etcd_transaction(json_array(), json_pack("[o, o]", make_range(m, "ask/", true),
                                                                               make_range(m, "answer/", false))),
                                      TIMEOUT, on_looked, m, &m->look);
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
        while (m->letters)
                letter_free(m->letters);
        while (m->taken)
                taken_free(m->taken);
        m->http = etcd_http_free(m->http);
        sd_event_source_disable_unref(m->timer);
        free(m);
        return NULL;
}

int etcd_mailbox_ask(struct etcd_mailbox *m, uint64_t request, const char *text, unsigned seconds)
{
        struct letter *l = calloc(1, sizeof(*l));

        if (!l)
                return -ENOMEM;
        *l = (struct letter) {
                .mailbox = m, .next = m->letters, .request = request, .text = strdup(text), .seconds = seconds,
                .deadline = clock_now() + seconds * USEC_PER_SEC,
        };
        m->letters = l;
        if (!l->text) {
                letter_free(l);
                return -ENOMEM;
        }
        letter_go_on(l);
        arm(m);
        return 0;
}

void etcd_mailbox_serve(struct etcd_mailbox *m, bool serves)
{
        struct taken *next;

        for (struct taken *t = serves ? NULL : m->taken; t; t = next) {
                next = t->next;
                if (!t->reply)
                        taken_free(t);
        }
        if (m->serves == serves)
                return;
        m->serves = serves;
        arm(m);
}

void etcd_mailbox_reply(struct etcd_mailbox *m, uint64_t id, const char *text)
{
        struct taken *t = find_taken(m, id);

        if (!t || t->reply)
                return;
        t->reply = strdup(text);
        if (t->reply)
                taken_go_on(t);
}
