/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "violations/poll.h"

#include <string.h>

#include "ib/smp.h"
#include "util/vector.h"
#include "violations/poll_schedule.h"
#include "violations/poll_targets.h"

#define MAX_FLIGHTS   256 /* a background task has a handful */
#define MAX_QUEUED    262144
#define RETRIES       2 /* of what no later turn repeats: checks, and reads of the stage "once" */
/* Requests at a time to ports that did not answer before, of those that the dispatcher gives to background tasks. */
#define SILENT_FLIGHTS 2
#define GSI_QP        1

/* Requests in flight. */
enum flight_kind {
        FLIGHT_PORT_INFO,
        FLIGHT_CLASS_PORT_INFO,
        FLIGHT_COUNTERS,
        FLIGHT_CLEAR,
        FLIGHT_FORWARDING,
        FLIGHT_IDENTITY,
};

struct flight {
        bool is_used;
        bool is_silent;              /* to a port that did not answer before */
        uint64_t cookie;
        enum flight_kind kind;
        struct violation_port port;  /* of FLIGHT_CLASS_PORT_INFO: that of the agent */
        enum violation_source source; /* of FLIGHT_CLEAR: of the counter; of a check: of the block that waits for the answer */
        bool is_extended;
        struct lid lid;              /* of FLIGHT_FORWARDING: the host's */
};

/* What is to be sent beside the round, in this order. */
enum todo {
        TODO_CHECK, /* the host of a target */
        TODO_CLEAR, /* a counter */
        TODO_READ,  /* the counters of a target that waited for its agent */
        N_TODOS,
};

/* Samples that were read; or what is to be sent, of which only the port and the source are set. */
struct queue {
        struct violation_sample *items;
        uint32_t first, end, allocated; /* items[first..end) */
};

struct violation_poll {
        struct violation_poll_config config;
        struct poll_targets t;

        struct poll_schedule schedule;
        uint32_t once_position;

        struct flight flights[MAX_FLIGHTS];
        unsigned n_flights, n_silent_flights;
        uint64_t next_serial;
        struct queue samples, todo[N_TODOS];
};

/* --- queues ---------------------------------------------------------------------------------------------------------- */

/* What does not fit (false) is no loss: the next sample of that counter has it, and a counter that went down was cleared. */
static bool queue_push(struct queue *q, const struct violation_sample *s)
{
        if (q->first == q->end)
                q->first = q->end = 0;
        if (q->end == MAX_QUEUED || VECTOR_GROW(NULL, q->items, q->end, q->allocated) < 0)
                return false;
        q->items[q->end++] = *s;
        return true;
}

static bool queue_pop(struct queue *q, struct violation_sample *ret)
{
        if (q->first == q->end)
                return false;
        *ret = q->items[q->first++];
        return true;
}

/* --- requests -------------------------------------------------------------------------------------------------------- */

static struct flight *take_flight(struct violation_poll *p, enum flight_kind kind, struct violation_port port)
{
        unsigned i = 0;

        while (p->flights[i].is_used)
                i++;
        p->flights[i] = (struct flight) {
                .is_used = true, .cookie = ++p->next_serial * MAX_FLIGHTS + i, .kind = kind, .port = port,
        };
        p->n_flights++;
        return &p->flights[i];
}

static struct flight *smp_request(struct violation_poll *p, const struct poll_target *t, enum flight_kind kind, uint16_t attribute,
                                  uint32_t modifier, struct mad_request *ret)
{
        struct flight *flight = take_flight(p, kind, t->port);

        *ret = (struct mad_request) {
                .mgmt_class = MAD_CLASS_SMP, .method = MAD_GET, .cookie = flight->cookie, .route = t->route,
                .destination = t->destination, .key = m_keys_get(p->config.m_keys, t->port_guid),
                .attribute = attribute, .modifier = modifier,
        };
        return flight;
}

static struct flight *pma_request(struct violation_poll *p, const struct poll_target *t, enum flight_kind kind,
                                  struct mad_request *ret)
{
        const struct poll_agent *agent = &p->t.agents[t->agent];
        bool is_info = kind == FLIGHT_CLASS_PORT_INFO;
        struct flight *flight = take_flight(p, kind, is_info ? agent->port : t->port);

        flight->is_extended = agent->is_extended;
        *ret = (struct mad_request) {
                .mgmt_class = MAD_CLASS_PMA, .method = MAD_GET, .cookie = flight->cookie,
                .route.lid = agent->redirect_lid.v ? agent->redirect_lid : t->lid, .destination = t->destination,
                .attribute = is_info              ? PMA_ATTR_CLASS_PORT_INFO
                             : agent->is_extended ? PMA_ATTR_PORT_COUNTERS_EXTENDED
                                                  : PMA_ATTR_PORT_COUNTERS,
        };
        return flight;
}

/* True: there is a request. */
static bool request_counters(struct violation_poll *p, struct poll_target *t, struct mad_request *ret)
{
        struct poll_agent *agent = &p->t.agents[t->agent];
        struct poll_block_state *b = &t->blocks[BLOCK_COUNTERS];

        switch (agent->state) {
        case AGENT_UNKNOWN:
                b->progress = BLOCK_WAITING;
                agent->state = AGENT_QUERIED;
                (void) pma_request(p, t, FLIGHT_CLASS_PORT_INFO, ret);
                return true;
        case AGENT_QUERIED:
                b->progress = BLOCK_WAITING;
                return false;
        case AGENT_UNREACHABLE:
                b->answer = BLOCK_SILENT;
                return false;
        case AGENT_KNOWN:
                break;
        }
        b->progress = BLOCK_PENDING;
        (void) pma_request(p, t, FLIGHT_COUNTERS, ret);
        pma_counters_encode(t->port.number, ret->data);
        return true;
}

static bool may_request(const struct poll_block_state *b)
{
        return b->progress == BLOCK_IDLE && b->answer != BLOCK_REFUSED;
}

/* A block that may be requested. True: there is a request. */
static bool request(struct violation_poll *p, const struct poll_item *item, struct mad_request *ret)
{
        struct poll_target *t = &p->t.targets[item->target];

        if (item->block == BLOCK_COUNTERS)
                return request_counters(p, t, ret);
        t->blocks[BLOCK_PORT_INFO].progress = BLOCK_PENDING;
        (void) smp_request(p, t, FLIGHT_PORT_INFO, SMP_ATTR_PORT_INFO, t->port.number, ret);
        return true;
}

/* A port of this agent that is not known to be silent has not answered the request for its counters yet. */
static bool has_pending_counters(const struct violation_poll *p, const struct poll_agent *agent)
{
        for (uint32_t i = agent->first; i < agent->end; i++) {
                const struct poll_block_state *b = &p->t.targets[i].blocks[BLOCK_COUNTERS];

                if (b->progress == BLOCK_PENDING && b->answer != BLOCK_SILENT)
                        return true;
        }
        return false;
}

static void mark_silent_flight(struct violation_poll *p, const struct mad_request *request)
{
        p->flights[request->cookie % MAX_FLIGHTS].is_silent = true;
        p->n_silent_flights++;
}

/* The same in the background, where a port that did not answer before may have to wait. Counters of the ports of one agent are
 * read one after the other: if it stops answering, all requests in flight would be to it. */
static bool request_in_turn(struct violation_poll *p, const struct poll_item *item, struct mad_request *ret)
{
        struct poll_target *t = &p->t.targets[item->target];
        const struct poll_agent *agent = &p->t.agents[t->agent];
        struct poll_block_state *b = &t->blocks[item->block];
        bool is_silent = b->answer == BLOCK_SILENT || (item->block == BLOCK_COUNTERS && agent->is_silent);

        if (!may_request(b))
                return false;
        if (item->block == BLOCK_COUNTERS && has_pending_counters(p, agent)) {
                b->progress = BLOCK_WAITING;
                return false;
        }
        if (is_silent && b->cycle == p->schedule.cycle)
                return false;
        if (is_silent && p->n_silent_flights >= SILENT_FLIGHTS) {
                p->schedule.is_behind = true;
                return false;
        }
        if (!request(p, item, ret))
                return false;
        if (is_silent) {
                b->cycle = p->schedule.cycle;
                mark_silent_flight(p, ret);
        }
        return true;
}

static bool request_todo_read(struct violation_poll *p, struct poll_target *t, enum violation_source source,
                              struct mad_request *ret)
{
        struct poll_block_state *b = &t->blocks[BLOCK_COUNTERS];

        (void) source;
        if (b->progress != BLOCK_QUEUED)
                return false;
        b->progress = BLOCK_IDLE;
        if (!poll_target_has(t, BLOCK_COUNTERS) || !request_counters(p, t, ret))
                return false;
        if (b->answer == BLOCK_SILENT) /* it replaces the request for ClassPortInfo, which was answered */
                mark_silent_flight(p, ret);
        return true;
}

static enum poll_block block_of(enum violation_source source)
{
        return source == VIOLATION_P_KEY_VIOLATIONS ? BLOCK_PORT_INFO : BLOCK_COUNTERS;
}

/* Without retries: if only the answer was lost, the second request would clear what was counted in between. */
static bool request_todo_clear(struct violation_poll *p, struct poll_target *t, enum violation_source source,
                               struct mad_request *ret)
{
        struct flight *flight;

        t->is_clearing[source] = p->t.agents[t->agent].state == AGENT_KNOWN && poll_target_has(t, BLOCK_COUNTERS);
        if (!t->is_clearing[source])
                return false;
        flight = pma_request(p, t, FLIGHT_CLEAR, ret);
        flight->source = source;
        ret->method = MAD_SET;
        pma_clear_encode(t->port.number, flight->is_extended,
                         source == VIOLATION_XMIT_CONSTRAINT ? PMA_XMIT_CONSTRAINT_ERRORS : PMA_RCV_CONSTRAINT_ERRORS, ret->data);
        return true;
}

/* The port that is at the LID of an endport, or through which the switch forwards to the host that is plugged into this one. */
static bool request_todo_check(struct violation_poll *p, struct poll_target *t, enum violation_source source,
                               struct mad_request *ret)
{
        struct flight *flight;

        if (t->is_endport) {
                flight = smp_request(p, t, FLIGHT_IDENTITY, SMP_ATTR_NODE_INFO, 0, ret);
        } else {
                flight = smp_request(p, t, FLIGHT_FORWARDING, SMP_ATTR_LINEAR_FORWARDING_TABLE,
                                     t->host_lid.v / LINEAR_FORWARDING_BLOCK, ret);
                flight->lid = t->host_lid;
        }
        flight->source = source;
        ret->retries = RETRIES;
        return true;
}

/* Requests beside those of the round. */
static bool request_queued(struct violation_poll *p, struct mad_request *ret)
{
        static bool (*const requests[N_TODOS])(struct violation_poll *, struct poll_target *, enum violation_source,
                                               struct mad_request *) = {
                [TODO_CHECK] = request_todo_check, [TODO_CLEAR] = request_todo_clear, [TODO_READ] = request_todo_read,
        };
        struct violation_sample s;

        if (p->n_flights == MAX_FLIGHTS)
                return false;
        for (enum todo k = 0; k < N_TODOS; k++)
                while (queue_pop(&p->todo[k], &s)) {
                        struct poll_target *t = poll_targets_find(&p->t, s.port);

                        if (t && requests[k](p, t, s.source, ret))
                                return true;
                }
        return false;
}

static bool has_queued_requests(const struct violation_poll *p)
{
        for (enum todo k = 0; k < N_TODOS; k++)
                if (p->todo[k].first < p->todo[k].end)
                        return true;
        return false;
}

static bool poll_next(void *state, usec_t now, struct mad_request *ret)
{
        struct violation_poll *p = state;
        uint32_t i;

        if (request_queued(p, ret))
                return true;
        while (p->n_flights < MAX_FLIGHTS && poll_schedule_next(&p->schedule, now, &i))
                if (request_in_turn(p, &p->t.items[i], ret))
                        return true;
        return false;
}

static usec_t poll_due(const void *state)
{
        const struct violation_poll *p = state;

        if (p->n_flights == MAX_FLIGHTS)
                return USEC_INFINITY;
        return has_queued_requests(p) ? 0 : poll_schedule_due(&p->schedule);
}

/* --- results --------------------------------------------------------------------------------------------------------- */

/* An agent that answers again may be another one than before: its ClassPortInfo is read anew. */
static void agent_answered(struct violation_poll *p, struct poll_agent *agent)
{
        if (!agent->is_silent)
                return;
        agent->is_silent = false;
        if (agent->state != AGENT_QUERIED)
                agent->state = AGENT_UNKNOWN;
        agent->redirect_lid.v = 0;
        for (uint32_t i = agent->first; i < agent->end; i++)
                for (enum poll_block b = 0; b < N_BLOCKS; b++)
                        if (p->t.targets[i].blocks[b].answer == BLOCK_REFUSED)
                                p->t.targets[i].blocks[b].answer = BLOCK_ANSWERED;
}

/* Returns whether the agent answered, perhaps with a refusal. */
static bool take_agent_outcome(struct violation_poll *p, struct poll_agent *agent, enum mad_outcome o)
{
        bool is_answer = o == MAD_ANSWERED || o == MAD_REFUSED;

        if (is_answer)
                agent_answered(p, agent);
        if (o == MAD_TIMED_OUT)
                agent->is_silent = true;
        return is_answer;
}

/* The same for a block. What was not sent means nothing for the port. */
static bool take_outcome(struct violation_poll *p, struct poll_target *t, enum poll_block block, enum mad_outcome o)
{
        bool is_answer = take_agent_outcome(p, &p->t.agents[t->agent], o);

        t->blocks[block].progress = BLOCK_IDLE;
        if (o != MAD_UNSENT)
                t->blocks[block].answer = is_answer ? BLOCK_ANSWERED : BLOCK_SILENT;
        return is_answer;
}

static const enum violation_source sources[N_BLOCKS][PMA_N_COUNTERS] = {
        [BLOCK_PORT_INFO] = { VIOLATION_P_KEY_VIOLATIONS },
        [BLOCK_COUNTERS] = { [PMA_RCV_CONSTRAINT_ERRORS] = VIOLATION_RCV_CONSTRAINT,
                             [PMA_XMIT_CONSTRAINT_ERRORS] = VIOLATION_XMIT_CONSTRAINT },
};

static void push_block(struct violation_poll *p, struct poll_target *t, enum poll_block block, bool is_doubted)
{
        struct poll_block_state *b = &t->blocks[block];

        b->is_unconfirmed = false;
        for (unsigned c = 0; c < (block == BLOCK_COUNTERS ? PMA_N_COUNTERS : 1); c++)
                (void) queue_push(&p->samples, &(struct violation_sample) {
                        .port = t->port, .source = sources[block][c], .is_doubted = is_doubted,
                        .bits = b->bits, .value = b->values[c],
                });
}

/* Queues a check of the host, because a counter moved. Its new value is in the target, and becomes a sample after the check. */
static void queue_check(struct violation_poll *p, struct poll_target *t, enum poll_block block)
{
        const struct violation_sample s = { .port = t->port, .source = sources[block][0] };

        t->blocks[block].is_unconfirmed = true;
        if (queue_push(&p->todo[TODO_CHECK], &s))
                t->blocks[block].progress = BLOCK_PENDING;
        else if (!t->is_endport)
                push_block(p, t, block, true);
}

/* The values that were read become samples, those that moved after a check of the host. */
static void take_values(struct violation_poll *p, struct poll_target *t, enum poll_block block, unsigned bits,
                        const uint64_t values[PMA_N_COUNTERS])
{
        struct poll_block_state *b = &t->blocks[block];
        bool is_first = b->bits != bits, has_moved = b->is_unconfirmed || memcmp(b->values, values, sizeof(b->values)) != 0;

        memcpy(b->values, values, sizeof(b->values));
        b->bits = bits;
        /* the first sample of a leaf port counts nothing; that of an endport must be confirmed to be of this port */
        has_moved = t->is_endport ? has_moved || is_first : has_moved && !is_first && t->host_lid.v != 0;
        if (has_moved && p->config.check_hosts)
                queue_check(p, t, block);
        else
                push_block(p, t, block, false);
}

static void handle_forwarding(struct violation_poll *p, struct poll_target *t, const struct flight *flight,
                            const struct mad_result *result)
{
        bool is_forwarded = result->outcome == MAD_ANSWERED &&
                            result->data[flight->lid.v % LINEAR_FORWARDING_BLOCK] == t->port.number;

        t->blocks[BLOCK_COUNTERS].progress = BLOCK_IDLE;
        push_block(p, t, BLOCK_COUNTERS, !is_forwarded && result->outcome != MAD_REFUSED);
}

/* What another port answered is no value of this one, and is dropped. Without an answer the block is read again in its turn. */
static void handle_identity(struct violation_poll *p, struct poll_target *t, const struct flight *flight,
                          const struct mad_result *result)
{
        enum poll_block block = block_of(flight->source);
        struct node_info info = {};

        t->blocks[block].progress = BLOCK_IDLE;
        if (result->outcome == MAD_ANSWERED)
                node_info_decode(result->data, &info);
        if (result->outcome == MAD_REFUSED || (result->outcome == MAD_ANSWERED && info.port_guid.v == t->port_guid.v))
                push_block(p, t, block, false);
}

static void handle_port_info(struct violation_poll *p, struct poll_target *t, const struct flight *flight,
                             const struct mad_result *result)
{
        struct port_info info;

        (void) flight;
        if (!take_outcome(p, t, BLOCK_PORT_INFO, result->outcome))
                return;
        if (result->outcome == MAD_REFUSED) {
                t->blocks[BLOCK_PORT_INFO].answer = BLOCK_REFUSED;
                return;
        }
        port_info_decode(result->data, &info);
        take_values(p, t, BLOCK_PORT_INFO, 16, (uint64_t[PMA_N_COUNTERS]) { info.p_key_violations });
}

/* The PMA has another LID now: pkeyd reads it from ClassPortInfo in the next interval. */
static void handle_redirect(struct violation_poll *p, struct poll_target *t)
{
        struct poll_agent *agent = &p->t.agents[t->agent];

        t->blocks[BLOCK_COUNTERS].answer = BLOCK_SILENT;
        agent->redirect_lid.v = 0;
        if (agent->state != AGENT_QUERIED)
                agent->state = AGENT_UNKNOWN;
}

static void handle_counters(struct violation_poll *p, struct poll_target *t, const struct flight *flight,
                            const struct mad_result *result)
{
        unsigned bits = flight->is_extended ? PMA_PORT_COUNTERS_EXTENDED_BITS : PMA_PORT_COUNTERS_BITS;
        uint64_t values[PMA_N_COUNTERS];

        if (!take_outcome(p, t, BLOCK_COUNTERS, result->outcome))
                return;
        if (result->outcome == MAD_ANSWERED) {
                pma_counters_decode(result->data, flight->is_extended, values);
                take_values(p, t, BLOCK_COUNTERS, bits, values);
        } else if (mad_status_is_redirect(result->mad_status)) {
                handle_redirect(p, t);
        } else if (flight->is_extended) { /* from the next interval on, the poll reads those of 8 bits */
                p->t.agents[t->agent].is_extended = false;
        } else {
                t->blocks[BLOCK_COUNTERS].answer = BLOCK_REFUSED;
        }
}

static void handle_clear(struct violation_poll *p, struct poll_target *t, const struct flight *flight,
                         const struct mad_result *result)
{
        const struct violation_sample s = { .port = t->port, .source = flight->source, .is_cleared = true };

        t->is_clearing[flight->source] = false;
        if (result->outcome == MAD_ANSWERED)
                (void) queue_push(&p->samples, &s);
}

/* Targets that waited for this agent have their turn, or miss it. */
static void end_waiting(struct violation_poll *p, const struct poll_agent *agent, bool has_answered)
{
        for (uint32_t i = agent->first; i < agent->end; i++) {
                struct poll_target *t = &p->t.targets[i];
                struct poll_block_state *b = &t->blocks[BLOCK_COUNTERS];

                if (b->progress != BLOCK_WAITING)
                        continue;
                b->progress = BLOCK_IDLE;
                if (has_answered && queue_push(&p->todo[TODO_READ], &(struct violation_sample) { .port = t->port }))
                        b->progress = BLOCK_QUEUED;
                else
                        b->answer = BLOCK_SILENT;
        }
}

/* A PMA may be at another LID (IBA 1.5, 13.4.8.1: RedirectLID), whose ClassPortInfo is read then, once. */
static void set_class_port_info(struct violation_poll *p, struct poll_agent *agent, const struct pma_class_port_info *info)
{
        struct lid own = p->t.targets[agent->first].lid;
        bool is_redirected = info->redirect_lid.v != 0 && info->redirect_lid.v != own.v && agent->redirect_lid.v == 0;

        agent->is_extended = info->has_extended_errors;
        if (!is_redirected) {
                agent->state = AGENT_KNOWN;
        } else if (!lid_is_unicast(info->redirect_lid) || info->redirect_qp != GSI_QP) {
                agent->state = AGENT_UNREACHABLE;
        } else {
                agent->state = AGENT_UNKNOWN;
                agent->redirect_lid = info->redirect_lid;
        }
}

static void handle_class_port_info(struct violation_poll *p, struct poll_agent *agent, const struct mad_result *result)
{
        struct pma_class_port_info info = {}; /* refused: what every PMA has, PortCounters */
        bool is_answer;

        agent->state = AGENT_UNKNOWN;
        is_answer = take_agent_outcome(p, agent, result->outcome);
        if (result->outcome == MAD_ANSWERED)
                pma_class_port_info_decode(result->data, &info);
        if (is_answer)
                set_class_port_info(p, agent, &info);
        end_waiting(p, agent, is_answer);
}

/* Ports that waited until the agent had answered another one have their turn. If it did not answer, they count as silent. */
static void end_waiting_for_counters(struct violation_poll *p, const struct poll_agent *agent)
{
        if (agent->state != AGENT_QUERIED && !has_pending_counters(p, agent))
                end_waiting(p, agent, !agent->is_silent);
}

static void handle_result(struct violation_poll *p, const struct flight *flight, const struct mad_result *result)
{
        static void (*const handlers[])(struct violation_poll *, struct poll_target *, const struct flight *,
                                        const struct mad_result *) = {
                [FLIGHT_PORT_INFO] = handle_port_info, [FLIGHT_COUNTERS] = handle_counters, [FLIGHT_CLEAR] = handle_clear,
                [FLIGHT_FORWARDING] = handle_forwarding, [FLIGHT_IDENTITY] = handle_identity,
        };
        struct poll_agent *agent = poll_targets_find_agent(&p->t, flight->port);
        struct poll_target *t = poll_targets_find(&p->t, flight->port);

        if (flight->kind == FLIGHT_CLASS_PORT_INFO) {
                if (agent)
                        handle_class_port_info(p, agent, result);
        } else if (t) {
                handlers[flight->kind](p, t, flight, result);
                end_waiting_for_counters(p, &p->t.agents[t->agent]);
        }
}

static void poll_result(void *state, usec_t now, const struct mad_result *result)
{
        struct violation_poll *p = state;
        struct flight *f = &p->flights[result->cookie % MAX_FLIGHTS], flight = *f;

        (void) now;
        if (!f->is_used || f->cookie != result->cookie)
                return;
        f->is_used = false;
        p->n_flights--;
        p->n_silent_flights -= f->is_silent;
        handle_result(p, &flight, result);
}

static void poll_reset(void *state, usec_t now)
{
        struct violation_poll *p = state;

        (void) now;
        memset(p->flights, 0, sizeof(p->flights));
        p->n_flights = p->n_silent_flights = 0;
        poll_schedule_forget_cycle(&p->schedule);
        for (enum todo k = 0; k < N_TODOS; k++)
                p->todo[k].end = p->todo[k].first;
        for (uint32_t i = 0; i < p->t.n_targets; i++) {
                struct poll_target *t = &p->t.targets[i];

                for (enum poll_block b = 0; b < N_BLOCKS; b++)
                        t->blocks[b].progress = BLOCK_IDLE;
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

static bool next_of_once(struct violation_poll *p, struct mad_request *ret)
{
        if (request_queued(p, ret))
                return true;
        while (p->n_flights < MAX_FLIGHTS && p->once_position < p->t.n_items) {
                const struct poll_item *item = &p->t.items[p->once_position++];

                if (may_request(&p->t.targets[item->target].blocks[item->block]) && request(p, item, ret))
                        return true;
        }
        return false;
}

static bool once_next(void *state, usec_t now, struct mad_request *ret)
{
        (void) now;
        if (!next_of_once(state, ret))
                return false;
        if (ret->method == MAD_GET)
                ret->retries = RETRIES;
        return true;
}

static bool once_done(const void *state)
{
        const struct violation_poll *p = state;

        return p->once_position >= p->t.n_items && p->n_flights == 0 && !has_queued_requests(p);
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
        for (enum todo k = 0; k < N_TODOS; k++)
                free(p->todo[k].items);
        free(p);
        return NULL;
}

void violation_poll_set_config(struct violation_poll *p, usec_t now, const struct violation_poll_config *config)
{
        set_config(p, config);
        poll_schedule_set_interval(&p->schedule, now, interval_of(config));
}

/* Ports stop waiting for an agent, unless that was queried for ClassPortInfo: with the old snapshot the agent may have been another
 * one, and the port for whose answer they wait may be gone. */
static void stop_waiting(struct violation_poll *p)
{
        for (uint32_t i = 0; i < p->t.n_targets; i++) {
                struct poll_target *t = &p->t.targets[i];

                if (t->blocks[BLOCK_COUNTERS].progress == BLOCK_WAITING && p->t.agents[t->agent].state != AGENT_QUERIED)
                        t->blocks[BLOCK_COUNTERS].progress = BLOCK_IDLE;
        }
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
        if (n_taken > 0) /* behind the items that had their turn, in the order of hashes */
                position = LOWER_BOUND(item, t.items, t.n_items, item->hash <= p->t.items[n_taken - 1].hash);
        poll_targets_done(&p->t);
        p->t = t;
        poll_schedule_set_items(&p->schedule, now, t.n_items, position);
        stop_waiting(p);
        return 0;
}

bool violation_poll_next_sample(struct violation_poll *p, struct violation_sample *ret)
{
        return queue_pop(&p->samples, ret);
}

void violation_poll_clear(struct violation_poll *p, struct violation_port port, enum violation_source source)
{
        const struct violation_sample s = { .port = port, .source = source };
        struct poll_target *t = poll_targets_find(&p->t, port);

        if (!p->config.clear_saturated || !t ||
            (source != VIOLATION_RCV_CONSTRAINT && source != VIOLATION_XMIT_CONSTRAINT) || t->is_clearing[source])
                return;
        t->is_clearing[source] = queue_push(&p->todo[TODO_CLEAR], &s);
}

int violations_see_sample(struct violations *violations, usec_t now, const struct violation_sample *s)
{
        if (s->is_doubted)
                violations_doubt_host(violations, s->port, s->source);
        return violations_see_counter(violations, now, s->port, s->source, s->bits, s->value);
}

void violations_take_samples(struct violations *violations, usec_t now, struct violation_poll *poll)
{
        struct violation_sample s;

        while (violation_poll_next_sample(poll, &s))
                if (s.is_cleared)
                        violations_counter_cleared(violations, s.port, s.source);
                else if (violations_see_sample(violations, now, &s) > 0)
                        violation_poll_clear(poll, s.port, s.source);
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
                ret->n_silent += p->t.targets[i].blocks[BLOCK_PORT_INFO].answer == BLOCK_SILENT ||
                                 p->t.targets[i].blocks[BLOCK_COUNTERS].answer == BLOCK_SILENT;
}
