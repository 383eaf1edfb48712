/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames in flight.
 *
 * A request is in the fabric for less than half of the shortest timeout, or lost: switches drop old packets, and pkeyd relies
 * on that (a Set that arrives after the block was read again could undo later writes; no program can defend against that).
 * Requests are not duplicated, because links do not do that. Answers may be late and duplicated, because they wait in queues of
 * this host.
 */

#include <infiniband/mad.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"
#include "util/macros.h"

#define STATUS_BUSY    1
#define STATUS_REFUSED 0x1c /* invalid attribute or modifier */
#define STATUS_UNSUPPORTED 0x0c

static void digest_frame(struct sim *s, const struct mad_frame *frame)
{
        for (size_t i = 0; i < frame->length; i++)
                s->digest = (s->digest ^ frame->mad[i]) * UINT64_C(0x100000001b3);
        s->digest = (s->digest ^ s->now) * UINT64_C(0x100000001b3);
}

static void trace_frame(struct sim *s, const char *what, const struct mad_frame *frame, struct fabsim_place at)
{
        digest_frame(s, frame);
        if (s->trace)
                sim_trace(s, "%s tid %08x method %02x attribute %02x modifier %08x status %04x at %u/%u", what,
                          mad_frame_tid(frame), frame->mad[3], mad_get_field((void *) frame->mad, 0, IB_MAD_ATTRID_F),
                          mad_get_field((void *) frame->mad, 0, IB_MAD_ATTRMOD_F), frame->mad[4] << 8 | frame->mad[5],
                          at.node, at.port);
}

static usec_t latency(struct sim *s, unsigned hops)
{
        return 2 + hops + prng_below(&s->rng, 50 + 20 * hops);
}

/* One outstanding to a destination: none of another transaction of this process to the same agent may wait for its answer
 * still. A frame that finds no way out of the fabric is outstanding nowhere: no agent will answer it. The local port has two
 * addresses, for its state is queried while it is written. */
static void check_outstanding(struct sim *s, const struct process *p, const struct mad_frame *frame, struct fabsim_place at)
{
        uint32_t tid = mad_frame_tid(frame);

        if (at.node == p->head->place.node && at.port == p->head->place.port)
                return;
        if (!frame->directed && s->lid_moved_at[world_endport_at(s, at)] >= p->adopted.began)
                return; /* it is for another port, that had this LID */
        if (frame->directed && (s->n_liars > 0 || s->cables_moved_at >= MIN(p->stage_began, p->adopted.began)))
                return; /* ... or that was at the end of this route; or a liar passes it on */
        if (s->outstanding[at.node][at.port].is_out && s->outstanding[at.node][at.port].process == p->number &&
            s->outstanding[at.node][at.port].tid != tid && s->outstanding[at.node][at.port].until > s->now)
                sim_fail(s, "two MADs outstanding to node %u port %u", at.node, at.port);
        s->outstanding[at.node][at.port].is_out = true;
        s->outstanding[at.node][at.port].process = p->number;
        s->outstanding[at.node][at.port].tid = tid;
        s->outstanding[at.node][at.port].until = s->now + frame->timeout;
}

static bool is_again(const struct sim *s, const struct process *p, const struct mad_frame *frame, struct fabsim_place at)
{
        return s->outstanding[at.node][at.port].is_out && s->outstanding[at.node][at.port].process == p->number &&
               s->outstanding[at.node][at.port].tid == mad_frame_tid(frame);
}

static void forget_outstanding(struct sim *s, const struct process *p, uint32_t tid)
{
        for (unsigned n = 0; n < s->f.n_nodes; n++)
                for (unsigned i = 0; i <= s->f.nodes[n].num_ports; i++)
                        if (s->outstanding[n][i].is_out && s->outstanding[n][i].process == p->number &&
                            s->outstanding[n][i].tid == tid)
                                s->outstanding[n][i].is_out = false;
}

void wire_abandoned(struct sim *s, const struct process *p)
{
        for (unsigned n = 0; n < s->f.n_nodes; n++)
                for (unsigned i = 0; i <= s->f.nodes[n].num_ports; i++)
                        if (s->outstanding[n][i].process == p->number)
                                s->outstanding[n][i].is_out = false;
}

void wire_forget(struct sim *s, const struct process *p)
{
        wire_abandoned(s, p);
        for (unsigned n = 0; n < s->f.n_nodes; n++)
                for (unsigned i = 0; i <= s->f.nodes[n].num_ports; i++)
                        if (s->last_set[n][i].process == p->number)
                                s->last_set[n][i].is_there = false;
}

/* pkeyd reads tables only of ports that have to do with partitions, and discovers nothing but nodes, switches and ports. */
static void check_target(struct sim *s, const struct process *p, const struct mad_frame *frame, struct fabsim_place at)
{
        uint32_t attribute = mad_get_field((void *) frame->mad, 0, IB_MAD_ATTRID_F);
        uint32_t modifier = mad_get_field((void *) frame->mad, 0, IB_MAD_ATTRMOD_F);
        struct fabsim_node *n = &s->f.nodes[at.node];
        uint32_t port = modifier >> 16;
        unsigned sma = world_endport_at(s, at);
        struct fabsim_place peer;

        if (!frame->directed && s->lid_moved_at[sma] >= p->adopted.began)
                return; /* it is for another port, that had this LID */
        switch (attribute) {
        case SMP_ATTR_NODE_INFO:
        case SMP_ATTR_NODE_DESCRIPTION:
        case SMP_ATTR_SWITCH_INFO:
        case SMP_ATTR_PORT_INFO:
                return;
        case SMP_ATTR_P_KEY_TABLE:
                break;
        default:
                sim_fail(s, "an attribute (0x%x) that pkeyd has no business with", attribute);
        }
        if (n->type != NODE_SWITCH || port == 0)
                return;
        if (!n->partition_enforcement_cap || (!n->inbound_cap && !n->outbound_cap))
                sim_fail(s, "a P_Key MAD to port %u of switch %u, which cannot enforce", port, at.node);
        /* if cables were as they are when it was discovered */
        if (s->cables_moved_at <= p->adopted.began &&
            fabsim_peer(&s->f, (struct fabsim_place) { at.node, (uint8_t) port }, &peer) &&
            s->f.nodes[peer.node].type == NODE_SWITCH)
                sim_fail(s, "a P_Key MAD to a port between two switches");
}

static void check_set(struct sim *s, struct process *p, const struct mad_frame *frame, struct fabsim_place at)
{
        uint32_t tid = mad_frame_tid(frame);

        s->counters.sets++;
        /* what it wrote on may have changed since: it must read first */
        if (s->last_set[at.node][at.port].is_there && s->last_set[at.node][at.port].process == p->number &&
            s->last_set[at.node][at.port].tid == tid)
                sim_fail(s, "a Set is sent again without a read");
        s->last_set[at.node][at.port].is_there = true;
        s->last_set[at.node][at.port].process = p->number;
        s->last_set[at.node][at.port].tid = tid;
        if (frame->directed || s->lid_moved_at[world_endport_at(s, at)] < p->lid_asked_at[frame->lid.v % SIM_MAX_LIDS])
                promises_check_set(s, p, frame, at);
        if (!s->quiet && prng_permille(&s->rng, s->faults.trigger))
                world_schedule(s, s->now + prng_below(&s->rng, 400));
}

static struct basis make_basis(const struct sim *s, const struct process *p, const struct mad_frame *frame)
{
        struct basis basis;

        observer_basis(s, p, &basis);
        basis.lid = frame->directed ? (struct lid) {} : frame->lid;
        basis.asked_at = frame->directed ? p->route_asked_at : p->lid_asked_at[frame->lid.v % SIM_MAX_LIDS];
        return basis;
}

static void check_frame(struct sim *s, struct process *p, const struct mad_frame *frame, struct fabsim_place at)
{
        observer_sent(s, p, frame, at, is_again(s, p, frame, at));
        check_outstanding(s, p, frame, at);
        check_target(s, p, frame, at);
        keys_check_frame(s, p, frame, at);
        if (frame->mad[3] == MAD_SET)
                check_set(s, p, frame, at);
}

void wire_send(struct sim *s, struct process *p, const struct mad_frame *frame)
{
        struct fabsim_place at = {};
        struct basis *basis;
        struct event *e;
        unsigned hops = 0;

        s->counters.frames++;
        s->f.self = p->head->place;
        if (!fabsim_route(&s->f, frame, &at, &hops)) {
                trace_frame(s, "nowhere", frame, at);
                observer_sent_nowhere(s, p, frame);
                return;
        }
        trace_frame(s, "send", frame, at);
        if (!s->f.nodes[at.node].is_forged)
                check_frame(s, p, frame, at);
        if (!s->quiet && prng_permille(&s->rng, s->faults.kill))
                p->killed = true;
        if (prng_permille(&s->rng, s->faults.lose_request)) {
                sim_trace(s, "lost");
                return;
        }
        e = events_add(&s->events, s->now + latency(s, hops), EVENT_ARRIVE);
        e->place = at;
        e->sent_at = s->now;
        e->hops = hops;
        e->frame = *frame;
        e->process = p->number;
        e->life = p->life;
        if (frame->mad[3] == MAD_SET) {
                basis = malloc(sizeof(*basis));
                *basis = make_basis(s, p, frame);
                e->data = basis;
        }
}

static void deliver(struct sim *s, const struct event *request, const struct mad_frame *frame, usec_t at)
{
        struct event *e = events_add(&s->events, at, EVENT_DELIVER);

        e->frame = *frame;
        e->process = request->process;
        e->life = request->life;
        e->place = request->place;
        e->sent_at = request->sent_at;
        e->answered_at = s->now;
}

static void reply(struct sim *s, const struct event *request, const struct mad_frame *frame)
{
        usec_t at = s->now + latency(s, request->hops);

        bool is_late = prng_permille(&s->rng, s->faults.late);

        s->counters.late += is_late;
        if (is_late)
                at += prng_below(&s->rng, 3000000);
        deliver(s, request, frame, at);
        if (prng_permille(&s->rng, s->faults.twice))
                deliver(s, request, frame, at + prng_below(&s->rng, 3000000));
}

static void set_status(struct mad_frame *frame, unsigned status)
{
        if (mad_get_field(frame->mad, 0, IB_MAD_MGMTCLASS_F) == IB_SMI_DIRECT_CLASS)
                mad_set_field(frame->mad, 0, IB_DRSMP_STATUS_F, status);
        else
                mad_set_field(frame->mad, 0, IB_MAD_STATUS_F, status);
}

/* pkeyd believes a switch that reports that a port does not exist, and ignores what is behind it. So no switch reports this for an
 * existing port. */
static unsigned refusal(const struct mad_frame *frame)
{
        bool is_port_info = mad_get_field((void *) frame->mad, 0, IB_MAD_ATTRID_F) == SMP_ATTR_PORT_INFO;

        return is_port_info ? STATUS_UNSUPPORTED : STATUS_REFUSED;
}

/* The answer without the deed. */
static bool answer_only(struct sim *s, struct event *e, unsigned status)
{
        struct mad_frame answer = e->frame;

        answer.mad[3] = MAD_GET_RESP;
        if (mad_get_field(answer.mad, 0, IB_MAD_MGMTCLASS_F) == IB_SMI_DIRECT_CLASS)
                mad_set_field(answer.mad, 0, IB_DRSMP_DIRECTION_F, 1);
        set_status(&answer, status);
        reply(s, e, &answer);
        return true;
}

/* What may happen to an answer; an additional one, or another one. */
static void spoil(struct sim *s, struct event *e, struct mad_frame *answer)
{
        struct mad_frame other = *answer;

        if (prng_permille(&s->rng, s->faults.status_done))
                set_status(answer, refusal(answer));
        if (prng_permille(&s->rng, s->faults.cut_short))
                answer->length = prng_below(&s->rng, MAD_SIZE);
        if (prng_permille(&s->rng, s->faults.stranger)) {
                mad_set_field64(other.mad, 0, IB_MAD_TRID_F, prng_next(&s->rng) & 0xffffffff);
                reply(s, e, &other);
        }
        if (prng_permille(&s->rng, s->faults.wrong_modifier)) {
                other = *answer;
                mad_set_field(other.mad, 0, IB_MAD_ATTRMOD_F, mad_get_field(other.mad, 0, IB_MAD_ATTRMOD_F) ^ 1);
                memset(other.mad + IB_SMP_DATA_OFFS, 0x5a, SMP_DATA_SIZE);
                reply(s, e, &other);
        }
}

/* The table or the port that a Set changes; false: none. */
static bool find_target(const struct sim *s, const struct event *e, struct fabsim_place *ret)
{
        uint32_t modifier = mad_get_field((void *) e->frame.mad, 0, IB_MAD_ATTRMOD_F);
        bool is_table = mad_get_field((void *) e->frame.mad, 0, IB_MAD_ATTRID_F) == SMP_ATTR_P_KEY_TABLE;
        bool is_switch = s->f.nodes[e->place.node].type == NODE_SWITCH;

        *ret = e->place;
        if (is_switch)
                ret->port = (uint8_t) (is_table ? modifier >> 16 : modifier);
        return e->frame.mad[3] == MAD_SET && ret->port <= s->f.nodes[ret->node].num_ports;
}

void wire_arrive(struct sim *s, struct event *e)
{
        struct fabsim_place target;
        struct mad_frame answer;
        bool is_set = find_target(s, e, &target), answered;

        trace_frame(s, "arrive", &e->frame, e->place);
        if (prng_permille(&s->rng, s->faults.busy) && answer_only(s, e, STATUS_BUSY))
                return;
        if (prng_permille(&s->rng, s->faults.status_undone) && answer_only(s, e, refusal(&e->frame)))
                return;
        s->f.self = s->heads[e->process == 1].place; /* pkeyctl is on the first one */
        answered = fabsim_answer(&s->f, s->now, e->place, &e->frame, &answer);
        if (is_set && !s->f.nodes[e->place.node].is_forged)
                promises_changed(s, e->data, e, target);
        if (!answered)
                return;
        if (prng_permille(&s->rng, s->faults.lose_answer)) {
                sim_trace(s, "answer lost");
                return;
        }
        spoil(s, e, &answer);
        reply(s, e, &answer);
}

/* The engine took this answer. */
void wire_answered(struct sim *s, struct process *p, const struct event *e)
{
        forget_outstanding(s, p, mad_frame_tid(&e->frame));
        if (!s->f.nodes[e->place.node].is_forged && (mad_get_field((void *) e->frame.mad, 0, IB_MAD_STATUS_F) & 0x7fff) == 0)
                observer_answered(s, p, e);
}

void wire_deliver(struct sim *s, struct event *e)
{
        struct process *p = &s->processes[e->process];

        trace_frame(s, "deliver", &e->frame, (struct fabsim_place) {});
        if (p->control && p->life == e->life)
                process_receive(s, p, e);
}
