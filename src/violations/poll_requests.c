/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ib/smp.h"
#include "violations/poll_internal.h"

/* Requests at a time to ports that did not answer before, of those that the dispatcher gives to background tasks. */
#define SILENT_FLIGHTS 2

/* --- flights --------------------------------------------------------------------------------------------------------- */

static struct poll_flight *take_flight(struct violation_poll *p, enum flight_kind kind, struct violation_port port, struct lid lid)
{
        unsigned i = 0;

        while (p->flights[i].is_used)
                i++;
        p->flights[i] = (struct poll_flight) {
                .is_used = true, .cookie = ++p->next_serial * POLL_MAX_FLIGHTS + i, .kind = kind, .port = port, .lid = lid,
        };
        p->n_flights++;
        return &p->flights[i];
}

static struct poll_flight *smp_request(struct violation_poll *p, const struct poll_target *t, enum flight_kind kind,
                                       uint16_t attribute, uint32_t modifier, struct mad_request *ret)
{
        struct poll_flight *flight = take_flight(p, kind, t->port, t->lid);

        *ret = (struct mad_request) {
                .mgmt_class = MAD_CLASS_SMP, .method = MAD_GET, .cookie = flight->cookie, .route = t->route,
                .destination = t->destination, .key = m_keys_get(p->config.m_keys, t->port_guid),
                .attribute = attribute, .modifier = modifier,
        };
        return flight;
}

static struct poll_flight *pma_request(struct violation_poll *p, const struct poll_target *t, enum flight_kind kind,
                                       struct mad_request *ret)
{
        const struct poll_agent *agent = &p->t.agents[t->agent];
        bool is_info = kind == FLIGHT_CLASS_PORT_INFO;
        struct poll_flight *flight = take_flight(p, kind, is_info ? agent->port : t->port, t->lid);

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

/* --- blocks ---------------------------------------------------------------------------------------------------------- */

/* True: there is a request. */
static bool request_counters(struct violation_poll *p, struct poll_target *t, struct mad_request *ret)
{
        struct poll_agent *agent = &p->t.agents[t->agent];
        struct poll_block_state *b = &t->blocks[POLL_BLOCK_COUNTERS];

        switch (agent->state) {
        case AGENT_UNKNOWN:
                b->progress = PROGRESS_WAITING;
                agent->state = AGENT_QUERIED;
                (void) pma_request(p, t, FLIGHT_CLASS_PORT_INFO, ret);
                return true;
        case AGENT_QUERIED:
                b->progress = PROGRESS_WAITING;
                return false;
        case AGENT_UNREACHABLE:
                b->answer = ANSWER_SILENT;
                return false;
        case AGENT_KNOWN:
                break;
        }
        b->progress = PROGRESS_PENDING;
        (void) pma_request(p, t, FLIGHT_COUNTERS, ret);
        pma_counters_encode(t->port.number, ret->data);
        return true;
}

static bool may_request(const struct poll_block_state *b)
{
        return b->progress == PROGRESS_IDLE && b->answer != ANSWER_REFUSED;
}

/* A block that may be requested. True: there is a request. */
static bool request(struct violation_poll *p, const struct poll_item *item, struct mad_request *ret)
{
        struct poll_target *t = &p->t.targets[item->target];

        if (item->block == POLL_BLOCK_COUNTERS)
                return request_counters(p, t, ret);
        t->blocks[POLL_BLOCK_PORT_INFO].progress = PROGRESS_PENDING;
        (void) smp_request(p, t, FLIGHT_PORT_INFO, SMP_ATTR_PORT_INFO, t->port.number, ret);
        return true;
}

bool poll_request(struct violation_poll *p, const struct poll_item *item, struct mad_request *ret)
{
        return may_request(&p->t.targets[item->target].blocks[item->block]) && request(p, item, ret);
}

static void mark_silent_flight(struct violation_poll *p, const struct mad_request *request)
{
        p->flights[request->cookie % POLL_MAX_FLIGHTS].is_silent = true;
        p->n_silent_flights++;
}

/* Counters of the ports of one agent are read one after the other: if it stops answering, all requests in flight would be to it. */
bool poll_request_in_turn(struct violation_poll *p, const struct poll_item *item, struct mad_request *ret)
{
        struct poll_target *t = &p->t.targets[item->target];
        const struct poll_agent *agent = &p->t.agents[t->agent];
        struct poll_block_state *b = &t->blocks[item->block];
        bool is_silent = b->answer == ANSWER_SILENT || (item->block == POLL_BLOCK_COUNTERS && agent->is_silent);

        if (!may_request(b))
                return false;
        if (item->block == POLL_BLOCK_COUNTERS && poll_targets_have_pending(&p->t, agent)) {
                b->progress = PROGRESS_WAITING;
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

/* --- beside the round ------------------------------------------------------------------------------------------------ */

static bool request_read(struct violation_poll *p, struct poll_target *t, enum violation_source, struct mad_request *ret)
{
        struct poll_block_state *b = &t->blocks[POLL_BLOCK_COUNTERS];

        if (b->progress != PROGRESS_QUEUED)
                return false;
        b->progress = PROGRESS_IDLE;
        if (!poll_target_has(t, POLL_BLOCK_COUNTERS) || !request_counters(p, t, ret))
                return false;
        if (b->answer == ANSWER_SILENT) /* it replaces the request for ClassPortInfo, which was answered */
                mark_silent_flight(p, ret);
        return true;
}

/* Without retries: if only the answer was lost, the second request would clear what was counted in between. */
static bool request_clear(struct violation_poll *p, struct poll_target *t, enum violation_source source,
                          struct mad_request *ret)
{
        struct poll_flight *flight;

        t->is_clearing[source] = p->t.agents[t->agent].state == AGENT_KNOWN && poll_target_has(t, POLL_BLOCK_COUNTERS);
        if (!t->is_clearing[source])
                return false;
        flight = pma_request(p, t, FLIGHT_CLEAR, ret);
        flight->source = source;
        ret->method = MAD_SET;
        pma_clear_encode(t->port.number, flight->is_extended,
                         source == VIOLATION_XMIT_CONSTRAINT ? PMA_XMIT_CONSTRAINT_ERRORS : PMA_RCV_CONSTRAINT_ERRORS, ret->data);
        return true;
}

/* Queries which node is at the LID, or through which port the switch forwards to the host that is plugged into this port. */
static bool request_check(struct violation_poll *p, struct poll_target *t, enum violation_source source,
                          struct mad_request *ret)
{
        struct poll_block_state *b = &t->blocks[poll_block_of(source)];
        struct poll_flight *flight;

        if (b->lid.v != t->lid.v) { /* which may have been another port's when they were read: they are read again in their turn */
                b->progress = PROGRESS_IDLE;
                return false;
        }
        if (b->check != CHECK_HOST) {
                flight = smp_request(p, t, FLIGHT_IDENTITY, SMP_ATTR_NODE_INFO, 0, ret);
        } else {
                flight = smp_request(p, t, FLIGHT_FORWARDING, SMP_ATTR_LINEAR_FORWARDING_TABLE,
                                     t->host_lid.v / LINEAR_FORWARDING_BLOCK, ret);
                flight->host_lid = t->host_lid;
        }
        flight->source = source;
        ret->retries = POLL_RETRIES;
        return true;
}

bool poll_request_queued(struct violation_poll *p, struct mad_request *ret)
{
        static bool (*const requests[N_TODOS])(struct violation_poll *, struct poll_target *, enum violation_source,
                                               struct mad_request *) = {
                [TODO_CHECK] = request_check, [TODO_CLEAR] = request_clear, [TODO_READ] = request_read,
        };
        struct violation_sample s;

        if (p->n_flights == POLL_MAX_FLIGHTS)
                return false;
        for (enum poll_todo k = 0; k < N_TODOS; k++)
                while (poll_queue_pop(&p->todo[k], &s)) {
                        struct poll_target *t = poll_targets_find(&p->t, s.port);

                        if (t && requests[k](p, t, s.source, ret))
                                return true;
                }
        return false;
}

bool poll_has_queued(const struct violation_poll *p)
{
        for (enum poll_todo k = 0; k < N_TODOS; k++)
                if (p->todo[k].first < p->todo[k].end)
                        return true;
        return false;
}
