/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <string.h>

#include "ib/smp.h"
#include "violations/poll_internal.h"

#define GSI_QP 1

/* --- what an outcome means for the port and its agent ---------------------------------------------------------------- */

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
                for (enum poll_block b = 0; b < N_POLL_BLOCKS; b++)
                        if (p->t.targets[i].blocks[b].answer == ANSWER_REFUSED)
                                p->t.targets[i].blocks[b].answer = ANSWER_GOOD;
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

        t->blocks[block].progress = PROGRESS_IDLE;
        if (o != MAD_UNSENT)
                t->blocks[block].answer = is_answer ? ANSWER_GOOD : ANSWER_SILENT;
        return is_answer;
}

/* --- samples --------------------------------------------------------------------------------------------------------- */

static const enum violation_source sources[N_POLL_BLOCKS][PMA_N_COUNTERS] = {
        [POLL_BLOCK_PORT_INFO] = { VIOLATION_P_KEY_VIOLATIONS },
        [POLL_BLOCK_COUNTERS] = { [PMA_RCV_CONSTRAINT_ERRORS] = VIOLATION_RCV_CONSTRAINT,
                                  [PMA_XMIT_CONSTRAINT_ERRORS] = VIOLATION_XMIT_CONSTRAINT },
};

static void push_block(struct violation_poll *p, struct poll_target *t, enum poll_block block, bool is_doubted)
{
        struct poll_block_state *b = &t->blocks[block];

        b->check = CHECK_NONE;
        b->sampled_bits = b->bits;
        for (unsigned c = 0; c < (block == POLL_BLOCK_COUNTERS ? PMA_N_COUNTERS : 1); c++)
                (void) poll_queue_push(&p->samples, &(struct violation_sample) {
                        .port = t->port, .source = sources[block][c], .is_doubted = is_doubted,
                        .bits = b->bits, .value = b->values[c],
                });
}

/* Queues a check, because a counter moved. Its new value is in the target, and becomes a sample after the check. */
static void queue_check(struct violation_poll *p, struct poll_target *t, enum poll_block block, enum poll_check check)
{
        const struct violation_sample s = { .port = t->port, .source = sources[block][0] };

        t->blocks[block].check = check;
        if (poll_queue_push(&p->todo[TODO_CHECK], &s))
                t->blocks[block].progress = PROGRESS_PENDING;
}

/* The values that were read become samples, those that moved after a check of the host. */
static void take_values(struct violation_poll *p, struct poll_target *t, enum poll_block block, unsigned bits,
                        const uint64_t values[PMA_N_COUNTERS])
{
        struct poll_block_state *b = &t->blocks[block];
        bool is_news = b->check != CHECK_NONE || b->bits != bits || memcmp(b->values, values, sizeof(b->values)) != 0;

        memcpy(b->values, values, sizeof(b->values));
        b->bits = bits;
        b->lid = t->lid;
        if (is_news && p->config.check_hosts)
                queue_check(p, t, block, CHECK_IDENTITY);
        else
                push_block(p, t, block, false);
}

/* --- answers about hosts --------------------------------------------------------------------------------------------- */

static void handle_forwarding(struct violation_poll *p, struct poll_target *t, const struct poll_flight *flight,
                              const struct mad_result *result)
{
        bool is_forwarded = result->outcome == MAD_ANSWERED &&
                            result->data[flight->host_lid.v % LINEAR_FORWARDING_BLOCK] == t->port.number;

        t->blocks[POLL_BLOCK_COUNTERS].progress = PROGRESS_IDLE;
        if (result->outcome != MAD_UNSENT)
                push_block(p, t, POLL_BLOCK_COUNTERS, !is_forwarded && result->outcome != MAD_REFUSED);
}

/* What another port answered is no value of this one, and is dropped. Without an answer the block is read again in its turn. The
 * first sample of a switch port counts nothing, whichever host is plugged in. */
static void handle_identity(struct violation_poll *p, struct poll_target *t, const struct poll_flight *flight,
                            const struct mad_result *result)
{
        enum poll_block block = poll_block_of(flight->source);
        struct poll_block_state *b = &t->blocks[block];
        struct node_info info = {};

        b->progress = PROGRESS_IDLE;
        if (result->outcome == MAD_ANSWERED)
                node_info_decode(result->data, &info);
        if (result->outcome != MAD_REFUSED && (result->outcome != MAD_ANSWERED || info.port_guid.v != t->port_guid.v))
                return;
        if (!t->is_endport && b->sampled_bits == b->bits && t->host_lid.v != 0)
                queue_check(p, t, block, CHECK_HOST);
        else
                push_block(p, t, block, false);
}

/* --- answers about counters ------------------------------------------------------------------------------------------ */

static void handle_port_info(struct violation_poll *p, struct poll_target *t, const struct poll_flight *,
                             const struct mad_result *result)
{
        struct port_info info;

        if (!take_outcome(p, t, POLL_BLOCK_PORT_INFO, result->outcome))
                return;
        if (result->outcome == MAD_REFUSED) {
                t->blocks[POLL_BLOCK_PORT_INFO].answer = ANSWER_REFUSED;
                return;
        }
        port_info_decode(result->data, &info);
        take_values(p, t, POLL_BLOCK_PORT_INFO, 16, (uint64_t[PMA_N_COUNTERS]) { info.p_key_violations });
}

/* The PMA has another LID now: pkeyd reads it from ClassPortInfo in the next interval. */
static void handle_redirect(struct violation_poll *p, struct poll_target *t)
{
        struct poll_agent *agent = &p->t.agents[t->agent];

        t->blocks[POLL_BLOCK_COUNTERS].answer = ANSWER_SILENT;
        agent->redirect_lid.v = 0;
        if (agent->state != AGENT_QUERIED)
                agent->state = AGENT_UNKNOWN;
}

static void handle_counters(struct violation_poll *p, struct poll_target *t, const struct poll_flight *flight,
                            const struct mad_result *result)
{
        unsigned bits = flight->is_extended ? PMA_PORT_COUNTERS_EXTENDED_BITS : PMA_PORT_COUNTERS_BITS;
        uint64_t values[PMA_N_COUNTERS];

        if (!take_outcome(p, t, POLL_BLOCK_COUNTERS, result->outcome))
                return;
        if (result->outcome == MAD_ANSWERED) {
                pma_counters_decode(result->data, flight->is_extended, values);
                take_values(p, t, POLL_BLOCK_COUNTERS, bits, values);
        } else if (mad_status_is_redirect(result->mad_status)) {
                handle_redirect(p, t);
        } else if (flight->is_extended) { /* from the next interval on, the poll reads those of 8 bits */
                p->t.agents[t->agent].is_extended = false;
        } else {
                t->blocks[POLL_BLOCK_COUNTERS].answer = ANSWER_REFUSED;
        }
}

static void handle_clear(struct violation_poll *p, struct poll_target *t, const struct poll_flight *flight,
                         const struct mad_result *result)
{
        const struct violation_sample s = { .port = t->port, .source = flight->source, .is_cleared = true };

        t->is_clearing[flight->source] = false;
        if (result->outcome == MAD_ANSWERED)
                (void) poll_queue_push(&p->samples, &s);
}

/* --- agents ---------------------------------------------------------------------------------------------------------- */

/* Targets that waited for this agent have their turn, or miss it. */
static void end_waiting(struct violation_poll *p, const struct poll_agent *agent, bool has_answered)
{
        for (uint32_t i = agent->first; i < agent->end; i++) {
                struct poll_target *t = &p->t.targets[i];
                struct poll_block_state *b = &t->blocks[POLL_BLOCK_COUNTERS];

                if (b->progress != PROGRESS_WAITING)
                        continue;
                b->progress = PROGRESS_IDLE;
                if (has_answered && poll_queue_push(&p->todo[TODO_READ], &(struct violation_sample) { .port = t->port }))
                        b->progress = PROGRESS_QUEUED;
                else
                        b->answer = ANSWER_SILENT;
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
        if (agent->state != AGENT_QUERIED && !poll_targets_have_pending(&p->t, agent))
                end_waiting(p, agent, !agent->is_silent);
}

/* --- all ------------------------------------------------------------------------------------------------------------- */

void poll_take_result(struct violation_poll *p, const struct poll_flight *flight, const struct mad_result *result)
{
        static void (*const handlers[])(struct violation_poll *, struct poll_target *, const struct poll_flight *,
                                        const struct mad_result *) = {
                [FLIGHT_PORT_INFO] = handle_port_info, [FLIGHT_COUNTERS] = handle_counters, [FLIGHT_CLEAR] = handle_clear,
                [FLIGHT_FORWARDING] = handle_forwarding, [FLIGHT_IDENTITY] = handle_identity,
        };
        static const struct mad_result unsent = { .outcome = MAD_UNSENT };
        struct poll_target *t = poll_targets_find(&p->t, flight->port);

        if (t && t->lid.v != flight->lid.v) /* another port may have answered */
                result = &unsent;
        if (flight->kind == FLIGHT_CLASS_PORT_INFO) {
                struct poll_agent *agent = poll_targets_find_agent(&p->t, flight->port);

                if (agent)
                        handle_class_port_info(p, agent, result);
        } else if (t) {
                handlers[flight->kind](p, t, flight, result);
                end_waiting_for_counters(p, &p->t.agents[t->agent]);
        }
}
