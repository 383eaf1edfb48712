/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "violations/poll.h"

#include <string.h>

#include "violations/poll_internal.h"

/* --- in the background ----------------------------------------------------------------------------------------------- */

static bool poll_next(void *state, usec_t now, struct mad_request *ret)
{
        struct violation_poll *p = state;
        uint32_t i;

        if (poll_request_queued(p, ret))
                return true;
        while (p->n_flights < POLL_MAX_FLIGHTS && poll_schedule_next(&p->schedule, now, &i))
                if (poll_request_in_turn(p, &p->t.items[i], ret))
                        return true;
        return false;
}

static usec_t poll_due(const void *state)
{
        const struct violation_poll *p = state;

        if (p->n_flights == POLL_MAX_FLIGHTS)
                return USEC_INFINITY;
        return poll_has_queued(p) ? 0 : poll_schedule_due(&p->schedule);
}

static void poll_result(void *state, usec_t, const struct mad_result *result)
{
        struct violation_poll *p = state;
        struct poll_flight *f = &p->flights[result->cookie % POLL_MAX_FLIGHTS], flight = *f;

        if (!f->is_used || f->cookie != result->cookie)
                return;
        f->is_used = false;
        p->n_flights--;
        p->n_silent_flights -= f->is_silent;
        poll_take_result(p, &flight, result);
}

static void poll_reset(void *state, usec_t)
{
        struct violation_poll *p = state;

        memset(p->flights, 0, sizeof(p->flights));
        p->n_flights = p->n_silent_flights = 0;
        poll_schedule_forget_cycle(&p->schedule);
        for (enum poll_todo k = 0; k < N_TODOS; k++)
                p->todo[k].end = p->todo[k].first;
        for (uint32_t i = 0; i < p->t.n_targets; i++) {
                struct poll_target *t = &p->t.targets[i];

                for (enum poll_block b = 0; b < N_POLL_BLOCKS; b++)
                        t->blocks[b].progress = PROGRESS_IDLE;
                memset(t->is_clearing, 0, sizeof(t->is_clearing));
        }
        for (uint32_t i = 0; i < p->t.n_agents; i++)
                if (p->t.agents[i].state == AGENT_QUERIED)
                        p->t.agents[i].state = AGENT_UNKNOWN;
}

struct mad_background_task violation_poll_task(struct violation_poll *p)
{
        return (struct mad_background_task) {
                .state = p, .next = poll_next, .result = poll_result, .due = poll_due, .reset = poll_reset,
        };
}

/* --- once ------------------------------------------------------------------------------------------------------------ */

static bool once_next(void *state, usec_t, struct mad_request *ret)
{
        struct violation_poll *p = state;
        bool found = poll_request_queued(p, ret);

        while (!found && p->n_flights < POLL_MAX_FLIGHTS && p->once_position < p->t.n_items)
                found = poll_request(p, &p->t.items[p->once_position++], ret);
        if (found && ret->method == MAD_GET)
                ret->retries = POLL_RETRIES;
        return found;
}

static bool once_done(const void *state)
{
        const struct violation_poll *p = state;

        return p->once_position >= p->t.n_items && p->n_flights == 0 && !poll_has_queued(p);
}

static void once_progress(const void *state, uint64_t *ret_done, uint64_t *ret_total)
{
        const struct violation_poll *p = state;
        uint64_t n = MIN(p->once_position, p->t.n_items);

        *ret_done = n - MIN((uint64_t) p->n_flights, n);
        *ret_total = p->t.n_items;
}

struct mad_stage violation_poll_once(struct violation_poll *p)
{
        p->once_position = 0;
        return (struct mad_stage) {
                .state = p, .next = once_next, .result = poll_result, .done = once_done, .progress = once_progress,
        };
}

/* --- the poll itself ------------------------------------------------------------------------------------------------- */

static usec_t interval_of(const struct violation_poll_config *config)
{
        return MAX(config->interval, UINT64_C(1));
}

static void set_config(struct violation_poll *p, const struct violation_poll_config *config)
{
        struct m_keys *old = p->config.m_keys;

        p->config = *config;
        p->config.m_keys = m_keys_ref(config->m_keys);
        (void) m_keys_free(old);
}

struct violation_poll *violation_poll_new(const struct violation_poll_config *config)
{
        struct violation_poll *p = calloc(1, sizeof(*p));

        if (!p)
                return NULL;
        set_config(p, config);
        poll_schedule_init(&p->schedule, interval_of(config));
        return p;
}

struct violation_poll *violation_poll_free(struct violation_poll *p)
{
        if (!p)
                return NULL;
        (void) m_keys_free(p->config.m_keys);
        poll_targets_done(&p->t);
        free(p->samples.items);
        for (enum poll_todo k = 0; k < N_TODOS; k++)
                free(p->todo[k].items);
        free(p);
        return NULL;
}

void violation_poll_set_config(struct violation_poll *p, usec_t now, const struct violation_poll_config *config)
{
        set_config(p, config);
        poll_schedule_set_interval(&p->schedule, now, interval_of(config));
}

int violation_poll_set_subnet(struct violation_poll *p, usec_t now, const struct subnet *subnet)
{
        const uint32_t n_taken = p->schedule.position;
        struct poll_targets t;
        uint32_t position = 0;
        int r;

        r = poll_targets_make(subnet, &p->t, &t);
        if (r < 0)
                return r;
        if (n_taken > 0) /* after the items that had their turn, in the order of hashes */
                position = LOWER_BOUND(item, t.items, t.n_items, item->hash <= p->t.items[n_taken - 1].hash);
        poll_targets_done(&p->t);
        p->t = t;
        poll_schedule_set_items(&p->schedule, now, t.n_items, position);
        return 0;
}

bool violation_poll_next_sample(struct violation_poll *p, struct violation_sample *ret)
{
        return poll_queue_pop(&p->samples, ret);
}

void violation_poll_clear(struct violation_poll *p, struct violation_port port, enum violation_source source)
{
        const struct violation_sample s = { .port = port, .source = source };
        struct poll_target *t = poll_targets_find(&p->t, port);

        if (!p->config.clear_saturated || !t ||
            (source != VIOLATION_RCV_CONSTRAINT && source != VIOLATION_XMIT_CONSTRAINT) || t->is_clearing[source])
                return;
        t->is_clearing[source] = poll_queue_push(&p->todo[TODO_CLEAR], &s);
}

int violations_take_samples(struct violations *violations, usec_t now, struct violation_poll *poll)
{
        struct violation_sample s;
        int error = 0, r;

        while (violation_poll_next_sample(poll, &s)) {
                if (s.is_cleared) {
                        violations_counter_cleared(violations, s.port, s.source);
                        continue;
                }
                if (s.is_doubted)
                        violations_doubt_host(violations, s.port, s.source);
                r = violations_see_counter(violations, now, s.port, s.source, s.bits, s.value);
                if (r > 0)
                        violation_poll_clear(poll, s.port, s.source);
                error = error ?: MIN(r, 0);
        }
        return error;
}

bool violation_poll_is_late(const struct violation_poll *p)
{
        return poll_schedule_is_late(&p->schedule);
}

void violation_poll_get_counters(const struct violation_poll *p, struct violation_poll_counters *ret)
{
        const struct poll_schedule *s = &p->schedule;

        *ret = (struct violation_poll_counters) {
                .n_ports = p->t.n_targets, .n_rounds = s->n_rounds, .interval = s->interval,
                .cycle_duration = s->cycle_duration, .is_slow = s->is_slow, .is_late = poll_schedule_is_late(s),
        };
        for (uint32_t i = 0; i < p->t.n_targets; i++)
                ret->n_silent += p->t.targets[i].blocks[POLL_BLOCK_PORT_INFO].answer == ANSWER_SILENT ||
                                 p->t.targets[i].blocks[POLL_BLOCK_COUNTERS].answer == ANSWER_SILENT;
}
