/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "mad_engine/mad_engine.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mad_engine/transactions.h"
#include "mad_engine/window.h"

/* The first, the second and all later tries have 1, 2 and 4 times the configured timeout. */
#define TIMEOUT_LEVELS 3
/* A try after the first is in flight for this part of the first timeout: a MAD that is not lost is answered long before. */
#define RETRY_FLIGHT   8
/* Pauses before a try after busy or a failure to send: doubling from REST_FIRST on. */
#define REST_LEVELS   6
#define REST_FIRST    (4 * USEC_PER_MSEC)

#define TIMEOUT_MAX       (3600 * USEC_PER_SEC)
#define SLOTS_AT_START    64
#define SEND_FAILURES_MAX 3
#define TID_ROUNDS        4
/* Requests per slot of the window before wants() returns 0: all of them may wait for few destinations. */
#define BACKLOG_PER_WINDOW_SLOT 64

/*
 * Each list of `flying`, `quiet` and `resting` has one constant delay, and time does not go back, so each is sorted by deadline.
 * The earliest deadline of all is that of one of their first members.
 */
struct mad_engine {
        struct mad_transactions table;
        struct mad_engine_window window;
        struct mad_transaction_list again; /* READY after an earlier try: sent before new ones */
        struct mad_transaction_list ready; /* READY for the first time */
        struct mad_transaction_list flying[TIMEOUT_LEVELS];
        struct mad_transaction_list quiet[TIMEOUT_LEVELS];
        struct mad_transaction_list resting[REST_LEVELS];
        struct mad_transaction_list ended;
        usec_t timeout;
        usec_t now;                        /* the latest `now` of a caller */
        uint64_t n_sends;
        uint64_t tid_key;
        uint32_t n_tids;
        unsigned in_flight;
        struct mad_engine_counters counters;
};

int mad_engine_new(const struct mad_engine_config *config, struct mad_engine **ret)
{
        _cleanup_(mad_engine_free_p) struct mad_engine *e = NULL;

        if (config->window < 1 || config->timeout < 1 || config->timeout > TIMEOUT_MAX)
                return -EINVAL;
        e = calloc(1, sizeof(*e));
        if (!e || mad_transactions_init(&e->table, SLOTS_AT_START) < 0)
                return -ENOMEM;

        mad_engine_window_init(&e->window, config->window);
        mad_transaction_list_init(&e->again);
        mad_transaction_list_init(&e->ready);
        mad_transaction_list_init(&e->ended);
        for (size_t i = 0; i < TIMEOUT_LEVELS; i++) {
                mad_transaction_list_init(&e->flying[i]);
                mad_transaction_list_init(&e->quiet[i]);
        }
        for (size_t i = 0; i < REST_LEVELS; i++)
                mad_transaction_list_init(&e->resting[i]);
        e->timeout = config->timeout;
        e->tid_key = config->tid_key;
        *ret = STEAL(e);
        return 0;
}

struct mad_engine *mad_engine_free(struct mad_engine *e)
{
        if (!e)
                return NULL;
        mad_transactions_done(&e->table);
        free(e);
        return NULL;
}

static struct mad_transaction *transaction(const struct mad_engine *e, uint32_t slot)
{
        return &e->table.slots[slot];
}

static usec_t usec_add(usec_t a, usec_t b)
{
        return a > USEC_INFINITY - b ? USEC_INFINITY : a + b;
}

int mad_engine_submit(struct mad_engine *e, const struct mad_request *request)
{
        uint32_t slot;
        int r = mad_transactions_add(&e->table, request, &slot);

        if (r < 0)
                return r;
        if (transaction(e, slot)->state == TRANSACTION_READY)
                mad_transaction_list_append(&e->table, &e->ready, slot);
        return 0;
}

unsigned mad_engine_wants(const struct mad_engine *e)
{
        uint64_t backlog = (uint64_t) e->window.maximum * BACKLOG_PER_WINDOW_SLOT;
        unsigned have = e->in_flight + e->again.n + e->ready.n;
        unsigned want = e->window.size + e->window.size / 4 + 1;

        if (have >= want || e->table.n_used >= backlog)
                return 0;
        return (unsigned) MIN(want - have, backlog - e->table.n_used);
}

static bool is_holder(const struct mad_transaction *x)
{
        return x->state == TRANSACTION_READY || x->state == TRANSACTION_FLYING || x->state == TRANSACTION_QUIET ||
               x->state == TRANSACTION_RESTING;
}

/* The list of a holder, by its state. */
static struct mad_transaction_list *list_of(struct mad_engine *e, const struct mad_transaction *x)
{
        if (x->state == TRANSACTION_FLYING)
                return &e->flying[x->level];
        if (x->state == TRANSACTION_QUIET)
                return &e->quiet[x->level];
        if (x->state == TRANSACTION_RESTING)
                return &e->resting[x->level];
        return x->has_tid ? &e->again : &e->ready;
}

static void take_out(struct mad_engine *e, uint32_t slot)
{
        const struct mad_transaction *x = transaction(e, slot);

        assert(x->state != TRANSACTION_FLYING || e->in_flight > 0);
        e->in_flight -= x->state == TRANSACTION_FLYING;
        mad_transaction_list_remove(&e->table, list_of(e, x), slot);
}

/* Adds a holder that is in no list to that of its new state. */
static void put(struct mad_engine *e, uint32_t slot, enum mad_transaction_state state)
{
        struct mad_transaction *x = transaction(e, slot);

        x->state = state;
        e->in_flight += state == TRANSACTION_FLYING;
        mad_transaction_list_append(&e->table, list_of(e, x), slot);
}

/* Ends a transaction that is in no list and holds no destination. */
static void finish(struct mad_engine *e, uint32_t slot, enum mad_outcome outcome)
{
        struct mad_transaction *x = transaction(e, slot);

        if (x->has_tid)
                mad_transactions_clear_tid(&e->table, slot);
        x->state = TRANSACTION_ENDED;
        x->outcome = outcome;
        mad_transaction_list_append(&e->table, &e->ended, slot);
}

/* Ends a holder that is in no list; the next transaction to its destination is ready. */
static void end(struct mad_engine *e, uint32_t slot, enum mad_outcome outcome)
{
        uint32_t heir = mad_transactions_pass_on(&e->table, slot);

        if (heir != SLOT_NONE) {
                transaction(e, heir)->suspect = outcome == MAD_TIMED_OUT;
                put(e, heir, TRANSACTION_READY);
        }
        finish(e, slot, outcome);
}

/* A holder that is in no list waits before it is sent again. */
static void rest(struct mad_engine *e, uint32_t slot, unsigned level)
{
        struct mad_transaction *x = transaction(e, slot);

        x->level = (uint8_t) MIN(level, REST_LEVELS - 1U);
        x->deadline = usec_add(e->now, REST_FIRST << x->level);
        put(e, slot, TRANSACTION_RESTING);
}

static usec_t flight_time(const struct mad_engine *e, unsigned level)
{
        return level == 0 ? e->timeout : e->timeout / RETRY_FLIGHT;
}

static bool has_tries_left(const struct mad_transaction *x)
{
        return x->tries <= x->request.retries;
}

/* A loss counts for the window only if an answer could be expected. Without an answer to an earlier request or in an earlier sweep
 * the port is silent, and must not slow down all others. And only SMPs count: the window is for VL15; QP 1 is on a lane with flow
 * control. */
static bool counts_for_window(const struct mad_transaction *x)
{
        return !x->suspect && !x->request.doubtful && x->request.mgmt_class == MAD_CLASS_SMP;
}

/* The first try had no answer in time. Nothing takes the cut back for a request that is not sent again. */
static void narrow_window(struct mad_engine *e, const struct mad_transaction *x)
{
        mad_engine_window_lost(&e->window, x->send_number, x->window_then, e->n_sends);
        if (!has_tries_left(x))
                mad_engine_window_confirm(&e->window, x->send_number);
}

/* A try ends its flight: its answer is not expected any more, but may still come. */
static void land(struct mad_engine *e, uint32_t slot)
{
        struct mad_transaction *x = transaction(e, slot);

        take_out(e, slot);
        if (x->timeouts > 0 && counts_for_window(x))
                mad_engine_window_take_back(&e->window, x->send_number);
        x->deadline = usec_add(x->deadline, (e->timeout << x->level) - flight_time(e, x->level));
        put(e, slot, TRANSACTION_QUIET);
}

static void time_out(struct mad_engine *e, uint32_t slot)
{
        struct mad_transaction *x = transaction(e, slot);

        e->counters.timed_out++;
        x->timeouts++;
        take_out(e, slot);
        if (x->tries == 1 && counts_for_window(x))
                narrow_window(e, x);

        if (has_tries_left(x)) {
                x->repeated = true;
                put(e, slot, TRANSACTION_READY);
        } else {
                end(e, slot, MAD_TIMED_OUT);
        }
}

static bool is_due(const struct mad_engine *e, const struct mad_transaction_list *l)
{
        return l->first != SLOT_NONE && transaction(e, l->first)->deadline <= e->now;
}

static void check_deadlines(struct mad_engine *e)
{
        for (size_t i = 0; i < REST_LEVELS; i++)
                while (is_due(e, &e->resting[i])) {
                        uint32_t slot = e->resting[i].first;

                        take_out(e, slot);
                        put(e, slot, TRANSACTION_READY);
                }
        for (size_t i = 0; i < TIMEOUT_LEVELS; i++) {
                while (is_due(e, &e->flying[i]))
                        land(e, e->flying[i].first);
                while (is_due(e, &e->quiet[i]))
                        time_out(e, e->quiet[i].first);
        }
}

/* A permutation of 32 bits by a key: a Feistel network. */
static uint32_t permute(uint64_t key, uint32_t n)
{
        uint16_t left = (uint16_t) (n >> 16), right = (uint16_t) n;

        for (unsigned round = 0; round < TID_ROUNDS; round++) {
                uint16_t mixed = left ^ (uint16_t) hash_mix(hash_mix(key, round), right);

                left = right;
                right = mixed;
        }
        return (uint32_t) left << 16 | right;
}

/* An ID that no transaction has. A number comes back only after four thousand million sends, and a host that sees some IDs cannot
 * predict others. */
static uint32_t make_tid(struct mad_engine *e)
{
        uint32_t tid;

        do
                tid = permute(e->tid_key, e->n_tids++);
        while (mad_transactions_find(&e->table, tid) != SLOT_NONE);
        return tid;
}

static bool may_send(const struct mad_engine *e)
{
        return e->in_flight < e->window.size && (e->again.n > 0 || e->ready.n > 0);
}

/* True if it waited for its first try until after its send_before. */
static bool is_too_late(const struct mad_engine *e, const struct mad_transaction *x)
{
        return x->tries == 0 && x->request.send_before > 0 && e->now >= x->request.send_before;
}

/* The next transaction to send, removed from its list; SLOT_NONE: none. */
static uint32_t take_next(struct mad_engine *e)
{
        while (may_send(e)) {
                uint32_t slot = e->again.n > 0 ? e->again.first : e->ready.first;

                take_out(e, slot);
                if (!is_too_late(e, transaction(e, slot)))
                        return slot;
                end(e, slot, MAD_UNSENT);
        }
        return SLOT_NONE;
}

bool mad_engine_next_send(struct mad_engine *e, usec_t now, struct mad_frame *ret)
{
        struct mad_transaction *x;
        uint32_t slot;

        e->now = MAX(e->now, now);
        check_deadlines(e);
        slot = take_next(e);
        if (slot == SLOT_NONE)
                return false;
        x = transaction(e, slot);
        if (!x->has_tid)
                mad_transactions_set_tid(&e->table, slot, make_tid(e));

        x->level = (uint8_t) MIN(x->tries, TIMEOUT_LEVELS - 1U);
        x->deadline = usec_add(e->now, flight_time(e, x->level));
        e->n_sends++;
        if (x->tries == 0) {
                x->send_number = e->n_sends;
                x->window_then = e->window.size;
        }
        put(e, slot, TRANSACTION_FLYING);
        e->counters.sent++;
        if (x->tries++ > 0)
                e->counters.retried++;

        mad_request_encode(&x->request, x->tid, ret);
        ret->timeout = e->timeout << x->level;
        return true;
}

static bool error_is_final(int error)
{
        return error == ENODEV || error == ENXIO || error == EBADF || error == EPERM || error == EACCES;
}

/* The gate admits a Set by what is known at that moment: later the same Set may have to be refused, so it is not tried again. */
static bool is_judged(const struct mad_request *q)
{
        return q->mgmt_class == MAD_CLASS_SMP && q->method == MAD_SET;
}

void mad_engine_send_failed(struct mad_engine *e, usec_t now, const struct mad_frame *frame, int error)
{
        uint32_t slot = mad_transactions_find(&e->table, mad_frame_tid(frame));
        struct mad_transaction *x;

        e->now = MAX(e->now, now);
        if (slot == SLOT_NONE || transaction(e, slot)->state != TRANSACTION_FLYING)
                return;

        /* It never left, so it was no try: even a request without retries may be sent again. */
        x = transaction(e, slot);
        take_out(e, slot);
        x->tries--;
        x->failures++;
        e->counters.sent--;
        if (x->tries > 0)
                e->counters.retried--;
        if (error_is_final(error < 0 ? -error : error) || x->failures > SEND_FAILURES_MAX || is_judged(&x->request))
                end(e, slot, MAD_UNSENT);
        else
                rest(e, slot, x->failures);
}

/* Takes a busy status. Returns 1, or 0 for an answer to an earlier try before the next one was sent. */
static int refused_busy(struct mad_engine *e, uint32_t slot)
{
        struct mad_transaction *x = transaction(e, slot);

        if (x->state != TRANSACTION_FLYING && x->state != TRANSACTION_QUIET) {
                e->counters.stray++;
                return 0;
        }
        e->counters.busy++;
        take_out(e, slot);
        if (has_tries_left(x)) {
                x->repeated = true;
                rest(e, slot, x->tries);
        } else {
                end(e, slot, MAD_BUSY);
        }
        return 1;
}

int mad_engine_receive(struct mad_engine *e, usec_t now, const struct mad_frame *frame)
{
        struct mad_transaction *x;
        uint16_t status;
        uint32_t slot;

        e->now = MAX(e->now, now);
        if (frame->length < MAD_SIZE) {
                e->counters.malformed++;
                return -EBADMSG;
        }
        slot = mad_transactions_find(&e->table, mad_frame_tid(frame));
        if (slot == SLOT_NONE) {
                e->counters.stray++;
                return 0;
        }
        x = transaction(e, slot);
        if (mad_check_response(&x->request, frame, &status) < 0) {
                e->counters.malformed++;
                return -EBADMSG;
        }
        if (mad_status_is_busy(status))
                return refused_busy(e, slot);

        x->repeated |= x->state == TRANSACTION_FLYING && x->deadline <= e->now;
        e->counters.answered++;
        if (x->timeouts > 0)
                mad_engine_window_confirm(&e->window, x->send_number);
        mad_engine_window_answered(&e->window);
        take_out(e, slot);
        x->mad_status = status;
        mad_frame_get_data(frame, x->request.mgmt_class, x->request.data);
        end(e, slot, status == 0 ? MAD_ANSWERED : MAD_REFUSED);
        return 1;
}

/* First those that wait in chains, so that none of them becomes the holder. */
void mad_engine_give_up(struct mad_engine *e, uint8_t lane)
{
        for (uint32_t slot = 0; slot < e->table.n_slots; slot++)
                if (transaction(e, slot)->request.lane == lane && transaction(e, slot)->state == TRANSACTION_CHAINED) {
                        mad_transactions_unchain(&e->table, slot);
                        finish(e, slot, MAD_TIMED_OUT);
                }
        for (uint32_t slot = 0; slot < e->table.n_slots; slot++)
                if (transaction(e, slot)->request.lane == lane && is_holder(transaction(e, slot))) {
                        take_out(e, slot);
                        end(e, slot, MAD_TIMED_OUT);
                }
}

bool mad_engine_next_result(struct mad_engine *e, struct mad_result *ret)
{
        uint32_t slot = e->ended.first;
        const struct mad_transaction *x;

        if (slot == SLOT_NONE)
                return false;
        x = transaction(e, slot);
        *ret = (struct mad_result) {
                .cookie = x->request.cookie, .lane = x->request.lane, .mgmt_class = x->request.mgmt_class,
                .attribute = x->request.attribute, .modifier = x->request.modifier, .route = x->request.route,
                .outcome = x->outcome, .mad_status = x->mad_status, .repeated = x->repeated, .timeouts = x->timeouts,
        };
        memcpy(ret->data, x->request.data, sizeof(ret->data));
        mad_transaction_list_remove(&e->table, &e->ended, slot);
        mad_transactions_release(&e->table, slot);
        return true;
}

static usec_t earliest(const struct mad_engine *e, const struct mad_transaction_list *lists, size_t n)
{
        usec_t t = USEC_INFINITY;

        for (size_t i = 0; i < n; i++)
                if (lists[i].first != SLOT_NONE)
                        t = MIN(t, transaction(e, lists[i].first)->deadline);
        return t;
}

usec_t mad_engine_deadline(const struct mad_engine *e)
{
        usec_t t = MIN(earliest(e, e->flying, TIMEOUT_LEVELS), earliest(e, e->quiet, TIMEOUT_LEVELS));

        return may_send(e) ? e->now : MIN(t, earliest(e, e->resting, REST_LEVELS));
}

bool mad_engine_is_idle(const struct mad_engine *e)
{
        return e->table.n_used == 0;
}

void mad_engine_get_counters(const struct mad_engine *e, struct mad_engine_counters *ret)
{
        *ret = e->counters;
        ret->window = e->window.size;
        ret->in_flight = e->in_flight;
        ret->slots = e->table.n_slots;
}
