/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fabric.h"

#include <infiniband/mad.h>
#include <stdio.h>
#include <string.h>

#include "util/macros.h"

void fabsim_init(struct fabsim *f)
{
        memset(f, 0, sizeof(*f));
}

unsigned fabsim_add_node(struct fabsim *f, enum node_type type, uint8_t num_ports, uint16_t partition_cap,
                         const char *description)
{
        unsigned n = f->n_nodes++;
        struct fabsim_node *node = &f->nodes[n];

        *node = (struct fabsim_node) {
                .guid.v = UINT64_C(0x0002c90300000000) + n * 0x100,
                .type = type,
                .num_ports = num_ports,
                .partition_cap = partition_cap,
                .is_up = true,
        };
        (void) snprintf(node->description, sizeof(node->description), "%s", description);
        for (uint8_t p = 0; p <= num_ports; p++) {
                node->ports[p].guid.v = node->guid.v + (type == NODE_SWITCH ? 0 : p);
                if (fabsim_is_endport(f, (struct fabsim_place) { n, p }))
                        node->ports[p].capacity = partition_cap;
        }
        return n;
}

void fabsim_set_enforcement_cap(struct fabsim *f, unsigned node, uint16_t entries, bool inbound, bool outbound)
{
        struct fabsim_node *s = &f->nodes[node];

        s->partition_enforcement_cap = entries;
        s->inbound_cap = inbound;
        s->outbound_cap = outbound;
        for (uint8_t p = 1; p <= s->num_ports; p++)
                s->ports[p].capacity = entries;
}

void fabsim_connect(struct fabsim *f, unsigned node_a, uint8_t port_a, unsigned node_b, uint8_t port_b)
{
        struct fabsim_port *a = &f->nodes[node_a].ports[port_a], *b = &f->nodes[node_b].ports[port_b];

        a->is_cabled = b->is_cabled = true;
        a->peer_node = node_b;
        a->peer_port = port_b;
        b->peer_node = node_a;
        b->peer_port = port_a;
}

void fabsim_disconnect(struct fabsim *f, unsigned node, uint8_t port)
{
        struct fabsim_port *p = &f->nodes[node].ports[port];

        if (p->is_cabled)
                f->nodes[p->peer_node].ports[p->peer_port].is_cabled = false;
        p->is_cabled = false;
}

bool fabsim_is_mute(const struct fabsim *f, struct fabsim_place p)
{
        const struct fabsim_node *n = &f->nodes[p.node];

        return n->ports[n->type == NODE_SWITCH ? 0 : p.port].mute != FABSIM_ANSWERS;
}

bool fabsim_peer(const struct fabsim *f, struct fabsim_place p, struct fabsim_place *ret)
{
        const struct fabsim_port *port = &f->nodes[p.node].ports[p.port];

        if (p.port == 0 || !port->is_cabled || !f->nodes[p.node].is_up || !f->nodes[port->peer_node].is_up)
                return false;
        *ret = (struct fabsim_place) { port->peer_node, port->peer_port };
        return true;
}

/* --- ways ------------------------------------------------------------------------------------------------------------ */

/* Breadth first from the port pkeyd works through; only switches pass anything on. */
int fabsim_distance(const struct fabsim *f, struct fabsim_place to)
{
        int distance[FABSIM_MAX_NODES];
        unsigned queue[FABSIM_MAX_NODES], first = 0, n = 0;
        struct fabsim_place next;

        if (!f->nodes[f->self.node].is_up)
                return -1;
        if (to.node == f->self.node && to.port == f->self.port)
                return 0;
        memset(distance, 0xff, sizeof(distance));
        distance[f->self.node] = 0;
        queue[n++] = f->self.node;
        while (first < n) {
                unsigned node = queue[first++];
                bool is_self = node == f->self.node;

                for (uint8_t p = 1; p <= f->nodes[node].num_ports; p++) {
                        if (is_self && p != f->self.port)
                                continue;
                        if (!fabsim_peer(f, (struct fabsim_place) { node, p }, &next) || f->nodes[next.node].is_forged)
                                continue;
                        if (next.node == to.node && (next.port == to.port || to.port == 0))
                                return distance[node] + 1;
                        if (distance[next.node] >= 0 || f->nodes[next.node].type != NODE_SWITCH)
                                continue;
                        distance[next.node] = distance[node] + 1;
                        queue[n++] = next.node;
                }
        }
        return -1;
}

static bool find_lid(const struct fabsim *f, struct lid lid, struct fabsim_place *ret)
{
        for (unsigned n = 0; n < f->n_nodes; n++)
                for (uint8_t p = 0; p <= f->nodes[n].num_ports; p++) {
                        const struct fabsim_port *port = &f->nodes[n].ports[p];

                        *ret = (struct fabsim_place) { n, p };
                        if (fabsim_is_endport(f, *ret) && port->lid.v && lid.v >= port->lid.v &&
                            lid.v < port->lid.v + (1 << port->lmc))
                                return true;
                }
        return false;
}

static bool walk(const struct fabsim *f, const struct mad_frame *frame, struct fabsim_place *ret, unsigned *ret_hops)
{
        unsigned hops = mad_get_field((void *) frame->mad, 0, IB_DRSMP_HOPCNT_F);
        uint8_t path[MAD_MAX_HOPS + 1];
        struct fabsim_place at = f->self;

        if (hops > MAD_MAX_HOPS || !f->nodes[at.node].is_up)
                return false;
        mad_get_array((void *) frame->mad, 0, IB_DRSMP_PATH_F, path);
        for (unsigned i = 1; i <= hops; i++) {
                const struct fabsim_node *node = &f->nodes[at.node];

                if (path[i] == 0 || path[i] > node->num_ports)
                        return false;
                if (node->type == NODE_SWITCH ? i == 1 : i != 1 || path[i] != f->self.port)
                        return false;
                if (!fabsim_peer(f, (struct fabsim_place) { at.node, path[i] }, &at))
                        return false;
        }
        if (f->nodes[at.node].type == NODE_SWITCH)
                at.port = 0;
        *ret = at;
        *ret_hops = hops;
        return true;
}

bool fabsim_route(const struct fabsim *f, const struct mad_frame *frame, struct fabsim_place *ret, unsigned *ret_hops)
{
        struct fabsim_place at;
        int distance;

        if (mad_get_field((void *) frame->mad, 0, IB_MAD_MGMTCLASS_F) == IB_SMI_DIRECT_CLASS)
                return walk(f, frame, ret, ret_hops);
        if (!find_lid(f, frame->lid, &at))
                return false;
        distance = fabsim_distance(f, at);
        if (distance < 0)
                return false;
        *ret = at;
        *ret_hops = (unsigned) distance;
        return true;
}

/* --- packets --------------------------------------------------------------------------------------------------------- */

int fabsim_level(const struct fabsim_port *p, uint16_t base)
{
        int level = 0;

        for (unsigned i = 0; i < p->capacity; i++)
                if ((p->table[i].v & 0x7fff) == base && base != 0)
                        level = p->table[i].v & 0x8000 ? 2 : MAX(level, 1);
        return level;
}

/* The switch port beside an endport, if there is one; the endport's own node being a switch, none. */
static const struct fabsim_port *leaf_of(const struct fabsim *f, struct fabsim_place p, struct fabsim_place *ret)
{
        if (!fabsim_peer(f, p, ret) || f->nodes[ret->node].type != NODE_SWITCH)
                return NULL;
        return &f->nodes[ret->node].ports[ret->port];
}

bool fabsim_base_passes(const struct fabsim *f, struct fabsim_place a, struct fabsim_place b, uint16_t base, bool strict)
{
        int x = fabsim_level(&f->nodes[a.node].ports[a.port], base), y = fabsim_level(&f->nodes[b.node].ports[b.port], base);
        const struct fabsim_port *leaf;
        struct fabsim_place at;
        int here;

        leaf = leaf_of(f, a, &at);
        if (leaf && leaf->enforce_inbound) {
                here = fabsim_level(leaf, base);
                x = strict || here == 0 ? MIN(x, here) : x;
        }
        leaf = leaf_of(f, b, &at);
        if (leaf && leaf->enforce_outbound) {
                here = fabsim_level(leaf, base);
                y = strict || here == 0 ? MIN(y, here) : y;
        }
        return x > 0 && y > 0 && (x == 2 || y == 2);
}

static bool holds(const struct fabsim_port *p, struct p_key key)
{
        for (unsigned i = 0; i < p->capacity; i++)
                if (p->table[i].v == key.v)
                        return (key.v & 0x7fff) != 0;
        return false;
}

/* Would an endport with this table take a packet with this key? */
static bool takes(const struct fabsim_port *p, struct p_key key)
{
        int level = fabsim_level(p, key.v & 0x7fff);

        return level == 2 || (level == 1 && key.v & 0x8000);
}

enum refusal {
        REFUSED_NOT,
        REFUSED_BY_SENDER,   /* it has no such entry to send with */
        REFUSED_AT_ENTRY,    /* by the sender's own switch port */
        REFUSED_AT_EXIT,     /* by the receiver's switch port */
        REFUSED_BY_RECEIVER,
};

static enum refusal judge(const struct fabsim *f, struct fabsim_place a, struct fabsim_place b, struct p_key key)
{
        const struct fabsim_port *leaf;
        struct fabsim_place at;

        if (!holds(&f->nodes[a.node].ports[a.port], key))
                return REFUSED_BY_SENDER;
        leaf = leaf_of(f, a, &at);
        if (leaf && leaf->enforce_inbound && fabsim_level(leaf, key.v & 0x7fff) == 0)
                return REFUSED_AT_ENTRY;
        leaf = leaf_of(f, b, &at);
        if (leaf && leaf->enforce_outbound && fabsim_level(leaf, key.v & 0x7fff) == 0)
                return REFUSED_AT_EXIT;
        return takes(&f->nodes[b.node].ports[b.port], key) ? REFUSED_NOT : REFUSED_BY_RECEIVER;
}

bool fabsim_may_pass(const struct fabsim *f, struct fabsim_place a, struct fabsim_place b, struct p_key key)
{
        return judge(f, a, b, key) == REFUSED_NOT;
}

static void raise_notice(struct fabsim *f, uint16_t trap, struct fabsim_place a, struct fabsim_place b, struct p_key key,
                         const struct fabsim_place *at)
{
        struct fabsim_notice *n = &f->notices[f->n_notices++ % FABSIM_MAX_NOTICES];

        *n = (struct fabsim_notice) {
                .trap = trap,
                .lid1 = fabsim_port_at(f, a)->lid,
                .lid2 = fabsim_port_at(f, b)->lid,
                .key = key,
        };
        if (at) {
                n->switch_lid = f->nodes[at->node].ports[0].lid;
                n->switch_port = at->port;
        }
}

/* Counters do not wrap: they stay at their maximum (IBA 1.5, 16.1.3.5 and 14.2.5.6). */
static void count64(uint64_t *counter)
{
        *counter += *counter < UINT64_MAX;
}

void fabsim_reset_counters(struct fabsim *f, unsigned node)
{
        for (unsigned p = 0; p <= f->nodes[node].num_ports; p++) {
                struct fabsim_port *port = &f->nodes[node].ports[p];

                port->p_key_violations = 0;
                port->rcv_constraint_errors = port->xmit_constraint_errors = 0;
        }
}

bool fabsim_send_packet(struct fabsim *f, struct fabsim_place a, struct fabsim_place b, struct p_key key)
{
        struct fabsim_port *victim = fabsim_port_at(f, b);
        struct fabsim_place at;

        switch (judge(f, a, b, key)) {
        case REFUSED_NOT:
                return true;
        case REFUSED_BY_SENDER:
                break;
        case REFUSED_AT_ENTRY:
                if (fabsim_peer(f, a, &at)) {
                        count64(&fabsim_port_at(f, at)->rcv_constraint_errors);
                        raise_notice(f, 259, a, b, key, &at);
                }
                break;
        case REFUSED_AT_EXIT:
                if (fabsim_peer(f, b, &at)) {
                        count64(&fabsim_port_at(f, at)->xmit_constraint_errors);
                        raise_notice(f, 259, a, b, key, &at);
                }
                break;
        case REFUSED_BY_RECEIVER:
                victim->p_key_violations += victim->p_key_violations < UINT16_MAX;
                raise_notice(f, 257, a, b, key, NULL);
                break;
        }
        return false;
}
