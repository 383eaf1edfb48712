/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames on their way.
 *
 * A request is either in the fabric for less than half of the shortest timeout, or lost: switches drop what is old, and
 * pkeyd rests on it (a Set that arrives after the block was read again could undo what came later; nobody can defend
 * against that). Requests are not doubled for the same reason: links do not do that. Answers may be as late and as many as
 * they like, since they wait in this host's queues.
 */

#include <infiniband/mad.h>
#include <string.h>

#include "sim.h"
#include "util/cleanup.h"

#define STATUS_BUSY    1
#define STATUS_REFUSED 0x1c

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

/* One outstanding to a destination: none of another transaction to the same agent may wait for its answer still. A frame
 * that finds no way out of the fabric is outstanding nowhere: nobody will answer it. */
static void check_outstanding(struct sim *s, const struct mad_frame *frame, struct fabsim_place at)
{
        uint32_t tid = mad_frame_tid(frame);

        if (s->outstanding[at.node][at.port].is_out && s->outstanding[at.node][at.port].tid != tid &&
            s->outstanding[at.node][at.port].until > s->now)
                sim_fail(s, "two MADs outstanding to node %u port %u", at.node, at.port);
        s->outstanding[at.node][at.port].is_out = true;
        s->outstanding[at.node][at.port].tid = tid;
        s->outstanding[at.node][at.port].until = s->now + frame->timeout;
}

static void answered(struct sim *s, uint32_t tid)
{
        for (unsigned n = 0; n < s->f.n_nodes; n++)
                for (unsigned p = 0; p <= s->f.nodes[n].num_ports; p++)
                        if (s->outstanding[n][p].is_out && s->outstanding[n][p].tid == tid)
                                s->outstanding[n][p].is_out = false;
}

void wire_forget(struct sim *s)
{
        memset(s->outstanding, 0, sizeof(s->outstanding));
        memset(s->last_set, 0, sizeof(s->last_set));
}

/* pkeyd asks tables only of ports that have to do with partitions. */
static void check_target(struct sim *s, const struct mad_frame *frame, struct fabsim_place at)
{
        uint32_t attribute = mad_get_field((void *) frame->mad, 0, IB_MAD_ATTRID_F);
        uint32_t modifier = mad_get_field((void *) frame->mad, 0, IB_MAD_ATTRMOD_F);
        struct fabsim_node *n = &s->f.nodes[at.node];
        uint32_t port = attribute == SMP_ATTR_P_KEY_TABLE ? modifier >> 16 : modifier;
        struct fabsim_place peer;

        if (attribute != SMP_ATTR_P_KEY_TABLE && attribute != SMP_ATTR_PORT_INFO)
                sim_fail(s, "an attribute (0x%x) that pkeyd has no business with", attribute);
        if (n->type != NODE_SWITCH || port == 0)
                return;
        if (!n->partition_enforcement_cap || (!n->inbound_cap && !n->outbound_cap))
                sim_fail(s, "a MAD to port %u of switch %u, which cannot enforce", port, at.node);
        /* if cables were as they are when it looked */
        if (!s->moves_cables && fabsim_neighbour(&s->f, (struct fabsim_place) { at.node, (uint8_t) port }, &peer) &&
            s->f.nodes[peer.node].type == NODE_SWITCH)
                sim_fail(s, "a MAD to a port between two switches");
}

void wire_send(struct sim *s, const struct mad_frame *frame)
{
        struct fabsim_place at = {};
        struct event *e;
        unsigned hops = 0;
        bool is_set = frame->mad[3] == MAD_SET;

        s->counters.frames++;
        if (!fabsim_route(&s->f, frame, &at, &hops)) {
                trace_frame(s, "nowhere", frame, at);
                return;
        }
        trace_frame(s, "send", frame, at);
        check_outstanding(s, frame, at);
        check_target(s, frame, at);
        keys_check_frame(s, frame, at);
        if (is_set) {
                s->counters.sets++;
                /* what it wrote on may have changed since: it must look first */
                if (s->has_set && s->last_set[at.node][at.port] == mad_frame_tid(frame))
                        sim_fail(s, "a Set is sent again without a look");
                s->last_set[at.node][at.port] = mad_frame_tid(frame);
                s->has_set = true;
                promises_check_set(s, frame, at);
                if (!s->quiet && prng_permille(&s->rng, s->faults.trigger))
                        world_schedule(s, s->now + prng_below(&s->rng, 400));
        }
        if (!s->quiet && prng_permille(&s->rng, s->faults.kill))
                s->daemon.killed = true;
        if (prng_permille(&s->rng, s->faults.lose_request)) {
                sim_trace(s, "lost");
                return;
        }
        e = events_add(&s->events, s->now + latency(s, hops), EVENT_ARRIVE);
        e->place = at;
        e->hops = hops;
        e->frame = *frame;
}

static void reply(struct sim *s, const struct mad_frame *frame, unsigned hops)
{
        usec_t at = s->now + latency(s, hops);

        if (prng_permille(&s->rng, s->faults.late))
                at += prng_below(&s->rng, 3000000);
        events_add(&s->events, at, EVENT_DELIVER)->frame = *frame;
        if (prng_permille(&s->rng, s->faults.twice))
                events_add(&s->events, at + prng_below(&s->rng, 3000000), EVENT_DELIVER)->frame = *frame;
}

static void set_status(struct mad_frame *frame, unsigned status)
{
        if (mad_get_field(frame->mad, 0, IB_MAD_MGMTCLASS_F) == IB_SMI_DIRECT_CLASS)
                mad_set_field(frame->mad, 0, IB_DRSMP_STATUS_F, status);
        else
                mad_set_field(frame->mad, 0, IB_MAD_STATUS_F, status);
}

/* The answer without the deed. */
static bool answer_only(struct sim *s, struct event *e, unsigned status)
{
        struct mad_frame answer = e->frame;

        answer.mad[3] = MAD_GET_RESP;
        if (mad_get_field(answer.mad, 0, IB_MAD_MGMTCLASS_F) == IB_SMI_DIRECT_CLASS)
                mad_set_field(answer.mad, 0, IB_DRSMP_DIRECTION_F, 1);
        set_status(&answer, status);
        reply(s, &answer, e->hops);
        return true;
}

/* What may happen to an answer; an additional one, or another one. */
static void spoil(struct sim *s, struct event *e, struct mad_frame *answer)
{
        struct mad_frame other = *answer;

        if (prng_permille(&s->rng, s->faults.status_done))
                set_status(answer, STATUS_REFUSED);
        if (prng_permille(&s->rng, s->faults.cut_short))
                answer->length = prng_below(&s->rng, MAD_SIZE);
        if (prng_permille(&s->rng, s->faults.stranger)) {
                mad_set_field64(other.mad, 0, IB_MAD_TRID_F, prng_next(&s->rng) & 0xffffffff);
                reply(s, &other, e->hops);
        }
        if (prng_permille(&s->rng, s->faults.wrong_modifier)) {
                other = *answer;
                mad_set_field(other.mad, 0, IB_MAD_ATTRMOD_F, mad_get_field(other.mad, 0, IB_MAD_ATTRMOD_F) ^ 1);
                memset(other.mad + IB_SMP_DATA_OFFS, 0x5a, SMP_DATA_SIZE);
                reply(s, &other, e->hops);
        }
}

void wire_arrive(struct sim *s, struct event *e)
{
        struct mad_frame answer;
        struct p_key before[FABSIM_MAX_ENTRIES];
        uint32_t modifier = mad_get_field(e->frame.mad, 0, IB_MAD_ATTRMOD_F);
        bool is_set = e->frame.mad[3] == MAD_SET;
        bool is_table = mad_get_field(e->frame.mad, 0, IB_MAD_ATTRID_F) == SMP_ATTR_P_KEY_TABLE;
        struct fabsim_port *table = NULL;
        uint16_t block = 0;

        trace_frame(s, "arrive", &e->frame, e->place);
        if (prng_permille(&s->rng, s->faults.busy) && answer_only(s, e, STATUS_BUSY))
                return;
        if (prng_permille(&s->rng, s->faults.status_undone) && answer_only(s, e, STATUS_REFUSED))
                return;
        if (is_set && is_table)
                table = fabsim_table_at(&s->f, e->place, modifier, &block);
        if (table)
                memcpy(before, table->table, sizeof(before));
        if (!fabsim_answer(&s->f, s->now, e->place, &e->frame, &answer))
                return;
        if (table) {
                e->place.port = s->f.nodes[e->place.node].type == NODE_SWITCH ? (uint8_t) (modifier >> 16) : e->place.port;
                promises_set(s, e->place, before, block);
        } else if (is_set) {
                promises_enforcement(s, (struct fabsim_place) { e->place.node, (uint8_t) modifier });
        }
        if (prng_permille(&s->rng, s->faults.lose_answer)) {
                sim_trace(s, "answer lost");
                return;
        }
        spoil(s, e, &answer);
        reply(s, &answer, e->hops);
}

void wire_deliver(struct sim *s, struct event *e)
{
        trace_frame(s, "deliver", &e->frame, (struct fabsim_place) {});
        if (s->daemon.engine && mad_engine_receive(s->daemon.engine, s->now, &e->frame) > 0)
                answered(s, mad_frame_tid(&e->frame));
}
