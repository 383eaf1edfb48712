/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "notices/notices.h"

#include <errno.h>
#include <string.h>

#define REFRESH      (600 * USEC_PER_SEC)
#define FIRST_WAIT   (5 * USEC_PER_SEC)
#define LONGEST_WAIT REFRESH
#define RECENT       256 /* Reports that are kept, to recognize repeated ones */
#define RECENT_FOR   (30 * USEC_PER_SEC) /* an SA gives up after some tries, a second or so apart */
/* In so many rounds: a request with a wrong SM_Key is never answered. */
#define UNSUBSCRIBE_ROUNDS  5
#define UNSUBSCRIBE_RETRIES 2

/* What pkeyd can subscribe to. */
enum kind {
        KIND_P_KEY,
        KIND_Q_KEY,
        KIND_SWITCH_P_KEY,
        KIND_SECURITY,
        N_KINDS,
};

#define BIT(kind) (1U << (kind))
#define BY_NUMBER (BIT(KIND_P_KEY) | BIT(KIND_Q_KEY) | BIT(KIND_SWITCH_P_KEY))
#define BY_TYPE   BIT(KIND_SECURITY)

static const struct inform_info kinds[N_KINDS] = {
        [KIND_P_KEY] = { NOTICE_P_KEY, INFORM_ANY, true },
        [KIND_Q_KEY] = { NOTICE_Q_KEY, INFORM_ANY, true },
        [KIND_SWITCH_P_KEY] = { NOTICE_SWITCH_P_KEY, INFORM_ANY, true },
        [KIND_SECURITY] = { INFORM_ANY, INFORM_TYPE_SECURITY, true },
};

struct subscription {
        uint64_t key;          /* the SM_Key of the request, which is needed to unsubscribe */
        unsigned n_unanswered; /* requests to unsubscribe */
};

struct recent {
        struct mad_frame frame;
        usec_t when;
};

struct notices {
        struct notices_sa sa;
        struct notices_status status;

        /* A round: subscribes to all that is wanted, then unsubscribes from the rest. */
        unsigned wanted;      /* kinds: BY_NUMBER or BY_TYPE */
        unsigned settled;     /* kinds that are done in this round */
        unsigned existing;    /* kinds that the SA has, or may have: its answer may be lost */
        struct subscription subscriptions[N_KINDS];
        usec_t next_at, wait;

        /* The request in flight. */
        bool in_flight;
        uint64_t cookie;      /* of the last request; 0 in `expected`: its answer is ignored */
        uint64_t expected;
        enum kind kind;
        struct inform_info request;
        uint64_t key;
        bool had_existed;     /* the subscription, before the request */

        struct recent recent[RECENT]; /* a ring */
        uint64_t n_recent;            /* ever */
        struct notice queue[NOTICES_MAX_QUEUED]; /* a ring */
        unsigned first, n_queued;
};

DEFINE_WORDS(notices_state_to_string, enum notices_state, NULL,
             [NOTICES_OFF] = "off", [NOTICES_SUBSCRIBING] = "subscribing", [NOTICES_SUBSCRIBED] = "subscribed",
             [NOTICES_REFUSED] = "refused", [NOTICES_UNANSWERED] = "unanswered")

struct notices *notices_new(void)
{
        struct notices *n = calloc(1, sizeof(*n));

        if (n)
                n->next_at = USEC_INFINITY;
        return n;
}

struct notices *notices_free(struct notices *n)
{
        free(n);
        return NULL;
}

/* --- the subscription ------------------------------------------------------------------------------------------------ */

static void begin_round(struct notices *n, usec_t when, unsigned wanted)
{
        n->wanted = wanted;
        n->settled = 0;
        n->next_at = when;
}

void notices_set_sa(struct notices *n, usec_t now, const struct notices_sa *sa, bool again)
{
        bool is_there = lid_is_unicast(sa->lid), moved = sa->lid.v != n->sa.lid.v;

        if (!moved && sa->sl == n->sa.sl && sa->sm_key == n->sa.sm_key && !again)
                return;
        n->sa = *sa;
        n->expected = 0;
        n->wait = 0;
        if (moved) {
                memset(n->subscriptions, 0, sizeof(n->subscriptions));
                n->existing = BIT(KIND_SECURITY); /* perhaps of an earlier process of this port that had no SM_Key */
        }
        n->status.mad_status = 0;
        n->status.key_unanswered = false;
        n->status.state = is_there ? NOTICES_SUBSCRIBING : NOTICES_OFF;
        begin_round(n, is_there ? now : USEC_INFINITY, BY_NUMBER);
}

/* Kinds to subscribe to in this round; then those to unsubscribe from. */
static unsigned missing(const struct notices *n)
{
        return n->wanted & ~n->settled;
}

static unsigned unwanted(const struct notices *n)
{
        return n->existing & ~n->wanted & ~n->settled;
}

static bool next(void *state, usec_t now, struct mad_request *ret)
{
        struct notices *n = state;
        unsigned todo = missing(n) ? missing(n) : unwanted(n);
        bool subscribe = missing(n) != 0;

        if (n->in_flight || now < n->next_at || todo == 0)
                return false;
        n->kind = (enum kind) __builtin_ctz(todo);
        n->key = !subscribe ? n->subscriptions[n->kind].key : n->status.key_unanswered ? 0 : n->sa.sm_key;
        n->had_existed = n->existing & BIT(n->kind);
        if (!n->had_existed)
                n->subscriptions[n->kind] = (struct subscription) { .key = n->key };
        n->existing |= BIT(n->kind);
        n->request = kinds[n->kind];
        n->request.subscribe = subscribe;
        inform_info_request(&n->request, n->sa.lid, n->sa.sl, n->key, ret);
        ret->cookie = n->expected = ++n->cookie;
        ret->retries = subscribe ? STAGE_RETRIES : UNSUBSCRIBE_RETRIES;
        n->in_flight = true;
        return true;
}

static usec_t due(const void *state)
{
        const struct notices *n = state;

        return n->in_flight ? USEC_INFINITY : n->next_at;
}

static void fail(struct notices *n, usec_t now, enum notices_state state, uint16_t mad_status)
{
        n->status.state = state;
        n->status.mad_status = mad_status;
        n->status.key_unanswered = false;
        n->wait = n->wait == 0 ? FIRST_WAIT : MIN(n->wait * 2, LONGEST_WAIT);
        begin_round(n, now + n->wait, BY_NUMBER);
}

/* One kind is done, with or without success: the next one, or the round is over. */
static void settle(struct notices *n, usec_t now)
{
        n->settled |= BIT(n->kind);
        if (!missing(n)) {
                n->status.state = NOTICES_SUBSCRIBED;
                n->status.mad_status = 0;
                n->wait = 0;
        }
        if (!missing(n) && !unwanted(n))
                begin_round(n, now + REFRESH, n->wanted);
}

static void refused(struct notices *n, usec_t now, uint16_t mad_status)
{
        if (!n->had_existed)
                n->existing &= ~BIT(n->kind);
        if (n->wanted == BY_NUMBER)
                begin_round(n, now, BY_TYPE);
        else
                fail(n, now, NOTICES_REFUSED, mad_status);
}

/* timed_out: the request was sent, and there was no answer. */
static void unanswered(struct notices *n, usec_t now, bool timed_out)
{
        if (timed_out && n->wanted == BY_NUMBER && n->sa.sm_key != 0) {
                n->status.key_unanswered = true;
                begin_round(n, now, BY_TYPE);
        } else {
                fail(n, now, NOTICES_UNANSWERED, 0);
        }
}

static void subscribe_ended(struct notices *n, usec_t now, const struct mad_result *result)
{
        if (result->outcome == MAD_ANSWERED && inform_info_is_accepted(&n->request, result->data)) {
                n->subscriptions[n->kind] = (struct subscription) { .key = n->key };
                settle(n, now);
        } else if (result->outcome == MAD_ANSWERED || result->outcome == MAD_REFUSED) {
                refused(n, now, result->outcome == MAD_REFUSED ? result->mad_status : 0);
        } else {
                unanswered(n, now, result->outcome == MAD_TIMED_OUT);
        }
}

/* Refused: the SA did not have it any more. Unanswered: again in the next round. */
static void unsubscribe_ended(struct notices *n, usec_t now, const struct mad_result *result)
{
        if (result->outcome == MAD_ANSWERED || result->outcome == MAD_REFUSED ||
            ++n->subscriptions[n->kind].n_unanswered == UNSUBSCRIBE_ROUNDS)
                n->existing &= ~BIT(n->kind);
        settle(n, now);
}

static void result(void *state, usec_t now, const struct mad_result *result)
{
        struct notices *n = state;

        if (!n->in_flight || result->cookie != n->cookie)
                return;
        n->in_flight = false;
        if (n->expected != n->cookie)
                return; /* the SA has changed or may have lost the subscription, so a new round has begun */
        n->expected = 0;
        if (n->request.subscribe)
                subscribe_ended(n, now, result);
        else
                unsubscribe_ended(n, now, result);
}

static void reset(void *state, usec_t now)
{
        struct notices *n = state;

        if (n->in_flight && n->next_at != USEC_INFINITY)
                n->next_at = now;
        n->in_flight = false;
        n->expected = 0;
}

/* --- Reports --------------------------------------------------------------------------------------------------------- */

/* The SA sends the very same MAD again, transaction ID and all. */
static bool is_repeated(const struct notices *n, usec_t now, const struct mad_frame *frame)
{
        for (unsigned i = 0; i < MIN(n->n_recent, (uint64_t) RECENT); i++) {
                const struct recent *r = &n->recent[i];

                if (now - r->when < RECENT_FOR && r->frame.lid.v == frame->lid.v && memcmp(r->frame.mad, frame->mad, MAD_SIZE) == 0)
                        return true;
        }
        return false;
}

static void deliver(struct notices *n, const struct notice *notice)
{
        n->status.n_reports++;
        if (n->n_queued == NOTICES_MAX_QUEUED) {
                n->status.n_lost++;
                return;
        }
        n->queue[(n->first + n->n_queued++) % NOTICES_MAX_QUEUED] = *notice;
}

static bool report(void *state, usec_t now, const struct mad_frame *frame)
{
        struct notices *n = state;
        uint8_t data[MAD_DATA_SIZE];
        struct notice notice;
        int r;

        if (n->status.state == NOTICES_OFF || !mad_frame_is_report(frame))
                return false;
        if (frame->lid.v != n->sa.lid.v) {
                n->status.n_foreign++;
                return false;
        }
        if (is_repeated(n, now, frame)) {
                n->status.n_repeated++;
                return true;
        }
        mad_frame_get_data(frame, MAD_CLASS_SA, data);
        r = notice_decode(data, &notice);
        if (r == 0) {
                n->recent[n->n_recent++ % RECENT] = (struct recent) { *frame, now };
                deliver(n, &notice);
        }
        n->status.n_others += r == -ENOMSG;
        n->status.n_malformed += r < 0 && r != -ENOMSG;
        return true;
}

bool notices_next(struct notices *n, struct notice *ret)
{
        if (n->n_queued == 0)
                return false;
        *ret = n->queue[n->first];
        n->first = (n->first + 1) % NOTICES_MAX_QUEUED;
        n->n_queued--;
        return true;
}

struct mad_background_task notices_task(struct notices *n)
{
        return (struct mad_background_task) {
                .state = n, .next = next, .result = result, .due = due, .report = report, .reset = reset,
        };
}

void notices_get_status(const struct notices *n, struct notices_status *ret)
{
        *ret = n->status;
        ret->by_type = n->wanted == BY_TYPE;
}
