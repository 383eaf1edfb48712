/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "discovery/walk.h"

#define MAX_LMC 7

/* Makes a fabric snapshot of what the walk learned. */
struct conversion {
        struct discovery *d;
        struct arena *arena;
        struct subnet_builder *builder;
        uint8_t *lid_claims;   /* per unicast LID: how many agents claim it, up to 255 */
        bool may_route_by_lid; /* the local port has a LID and is up */
        struct guid sm_node;
        uint8_t sm_number;
};

static bool is_switch(const struct discovery_agent *a)
{
        return a->info.type == NODE_SWITCH;
}

static uint8_t endport_number(const struct discovery_agent *a)
{
        return is_switch(a) ? 0 : a->info.local_port;
}

/* --- selection ------------------------------------------------------------------------------------------------------- */

/* A CA or router port is in the snapshot only with its link: the switch port beside it decides what the policy grants
 * it. What was found through an agent that is dropped may be an invention of the device that answered there. */
static bool is_selected(const struct discovery *d, uint32_t agent)
{
        const struct discovery_agent *a = &d->agents[agent];

        if (a->has_changed)
                return false;
        if (a->via == DISCOVERY_NONE)
                return true;
        return discovery_peer(d, a->via) == agent && d->agents[d->ports[a->via].agent].is_in_snapshot &&
               (is_switch(a) || a->state != PORT_STATE_DOWN);
}

/* --- routes ---------------------------------------------------------------------------------------------------------- */

static bool state_is_up(enum port_state s)
{
        return s == PORT_STATE_ARMED || s == PORT_STATE_ACTIVE;
}

/* Port 0 of a switch has no link. It can be reached by LID if the SM brought up any link of the switch. */
static bool is_up(const struct discovery_agent *a)
{
        return is_switch(a) ? a->has_active_port : state_is_up(a->state);
}

static uint32_t count_lids(const struct discovery_agent *a)
{
        return a->lid.v == 0 ? 0 : 1u << MIN(a->lmc, (uint8_t) MAX_LMC);
}

static bool has_lid(const struct discovery_agent *a, struct lid lid)
{
        return lid.v >= a->lid.v && (uint32_t) (lid.v - a->lid.v) < count_lids(a);
}

/* Several agents may claim a LID, for instance after two subnets were joined. A MAD sent to it could reach any of
 * them. */
static void claim_lids(struct conversion *c, const struct discovery_agent *a)
{
        for (uint32_t i = 0; i < count_lids(a) && a->lid.v + i <= LID_MAX_UNICAST; i++)
                if (c->lid_claims[a->lid.v + i] < UINT8_MAX)
                        c->lid_claims[a->lid.v + i]++;
}

static bool route_by_lid(const struct conversion *c, const struct discovery_agent *a)
{
        if (!c->may_route_by_lid || !lid_is_unicast(a->lid) || a->has_conflict)
                return false;
        return c->lid_claims[a->lid.v] == 1 && is_up(a);
}

/* The local port is always reached by a route of no hops: the kernel answers, and whether the adapter loops a
 * LID-routed SMP back is not known. */
static struct mad_route find_route(const struct conversion *c, const struct discovery_agent *a)
{
        struct mad_route route = { .lid = a->lid };

        if (a->via == DISCOVERY_NONE || !route_by_lid(c, a))
                discovery_get_route(c->d, a->via, &route);
        return route;
}

/* The port of the master SM becomes a full member of the default partition. A port must not get there by claiming the
 * SM's LID: if several ports claim it, or the port has a conflict, no port is the SM's. The local port is trusted. */
static void find_sm(struct conversion *c)
{
        const struct discovery *d = c->d;
        const struct discovery_agent *local = &d->agents[DISCOVERY_LOCAL], *sm = NULL;

        if (!lid_is_unicast(d->sm_lid))
                return;
        if (has_lid(local, d->sm_lid))
                sm = local;
        for (uint32_t i = 0; !sm && i < d->n_agents; i++)
                if (d->agents[i].is_in_snapshot && has_lid(&d->agents[i], d->sm_lid))
                        sm = &d->agents[i];
        if (!sm || (sm != local && (sm->has_conflict || c->lid_claims[d->sm_lid.v] != 1)))
                return;
        c->sm_node = sm->info.node_guid;
        c->sm_number = endport_number(sm);
}

/* --- nodes ----------------------------------------------------------------------------------------------------------- */

/* The port at the other end of an endport's link, of a switch or the local port. The local port itself was found
 * through no port; its link leads to the port by which the first switch was entered. DISCOVERY_NONE: there is no such
 * port. */
static uint32_t find_far_port(const struct discovery *d, const struct discovery_agent *a)
{
        const struct discovery_agent *peer;
        const struct discovery_port *local;

        if (is_switch(a))
                return DISCOVERY_NONE;
        if (a->via != DISCOVERY_NONE)
                return a->via;
        local = &d->ports[a->first_port];
        peer = local->peer == DISCOVERY_NONE ? NULL : &d->agents[local->peer];
        if (!peer || !peer->is_in_snapshot || !is_switch(peer))
                return DISCOVERY_NONE;
        return discovery_find_port(d, local->peer, local->peer_number);
}

/* Other links are followed only after the PortInfo of their switch port was read. The local link is followed in any
 * case, so it may be unknown whether the switch port beside it enforces partitions: PortInfo was not answered, or the
 * switch reports that the port is down or does not exist. */
static bool is_local_leaf_unknown(const struct discovery *d, const struct discovery_agent *a)
{
        uint32_t port = find_far_port(d, &d->agents[DISCOVERY_LOCAL]);

        return port != DISCOVERY_NONE && &d->agents[d->ports[port].agent] == a && d->ports[port].link != LINK_UP;
}

/* Ignores whether it has NodeDescription, which any agent of the node can supply. */
static bool is_incomplete(const struct discovery *d, const struct discovery_agent *a)
{
        return !a->has_port_info || (is_switch(a) && (!a->has_switch_info || is_local_leaf_unknown(d, a)));
}

/* What is at the other ends of its links. */
static int find_peers(const struct conversion *c, const struct discovery_agent *a, struct subnet_node *node)
{
        const struct discovery *d = c->d;

        if (is_switch(a)) {
                node->links = arena_new_array(c->arena, struct subnet_place, discovery_count_ports(a));
                if (!node->links)
                        return -ENOMEM;
        }
        for (uint32_t i = 0; i < discovery_count_ports(a); i++) {
                const struct discovery_port *p = &d->ports[a->first_port + i];
                uint32_t agent = discovery_peer(d, a->first_port + i);
                const struct discovery_agent *peer = agent == DISCOVERY_NONE ? NULL : &d->agents[agent];
                uint64_t bit = UINT64_C(1) << (p->number % 64);

                if (p->link == LINK_DOWN)
                        continue;
                if (!peer || !peer->is_in_snapshot)
                        node->silent_ports[p->number / 64] |= bit;
                if (!peer || !peer->is_in_snapshot || !is_switch(peer))
                        continue;
                node->switch_ports[p->number / 64] |= bit;
                if (node->links)
                        node->links[node->n_links++] = (struct subnet_place) { peer->info.node_guid, p->peer_number };
        }
        return 0;
}

/* `first` is the first agent of the node. All agents of a node gave the same NodeInfo, apart from the port. */
static int add_node(const struct conversion *c, uint32_t first)
{
        const struct discovery *d = c->d;
        const struct discovery_agent *a = &d->agents[first];
        struct subnet_node node = {
                .guid = a->info.node_guid, .type = a->info.type, .num_ports = a->info.num_ports,
                .partition_cap = a->info.partition_cap, .partition_enforcement_cap = a->switch_info.partition_enforcement_cap,
                .inbound_enforcement_cap = a->switch_info.inbound_enforcement_cap,
                .outbound_enforcement_cap = a->switch_info.outbound_enforcement_cap,
        };
        const char *description = NULL;
        bool is_there = false;
        int r = 0;

        for (uint32_t i = first; r == 0 && i != DISCOVERY_NONE; i = d->agents[i].next_of_node) {
                a = &d->agents[i];
                if (!a->is_in_snapshot)
                        continue;
                is_there = true;
                node.incomplete = node.incomplete || is_incomplete(d, a);
                if (!description && a->has_description)
                        description = a->description;
                r = find_peers(c, a, &node);
        }
        if (r < 0 || !is_there)
                return r;
        if (description)
                return subnet_builder_add_node(c->builder, &node, description, NODE_DESCRIPTION_SIZE);
        node.incomplete = true;
        description = d->config.known ? known_description(d->config.known, node.guid) : "";
        return subnet_builder_add_described(c->builder, &node, description);
}

/* --- ports ----------------------------------------------------------------------------------------------------------- */

static int add_endport(const struct conversion *c, const struct discovery_agent *a)
{
        struct subnet_port port = {
                .number = endport_number(a), .state = a->state, .guid = a->info.port_guid, .lid = a->lid,
                .lmc = MIN(a->lmc, (uint8_t) MAX_LMC), .is_sm = a->is_sm, .route = find_route(c, a),
        };

        return subnet_builder_add_port(c->builder, a->info.node_guid, &port);
}

/* Adds the link of an endport, and the far port if it is a switch port. GUID, LID and route of a switch port are those
 * of port 0 of the switch; the builder fills them in. */
static int add_link(const struct conversion *c, const struct discovery_agent *a, uint32_t far_port)
{
        const struct discovery *d = c->d;
        const struct discovery_port *p = &d->ports[far_port];
        const struct discovery_agent *far = &d->agents[p->agent];
        struct subnet_port port = {
                .number = p->number, .state = (enum port_state) p->state, .enforce_inbound = p->enforce_inbound,
                .enforce_outbound = p->enforce_outbound,
        };
        int r = 0;

        if (is_switch(far))
                r = subnet_builder_add_port(c->builder, far->info.node_guid, &port);
        if (r < 0)
                return r;
        return subnet_builder_add_link(c->builder, far->info.node_guid, p->number, a->info.node_guid, a->info.local_port);
}

static int add_ports(const struct conversion *c)
{
        const struct discovery *d = c->d;
        int r = 0;

        for (uint32_t i = 0; r == 0 && i < d->n_agents; i++) {
                const struct discovery_agent *a = &d->agents[i];
                uint32_t far_port;

                if (!a->is_in_snapshot)
                        continue;
                far_port = find_far_port(d, a);
                r = add_endport(c, a);
                if (r == 0 && far_port != DISCOVERY_NONE)
                        r = add_link(c, a, far_port);
        }
        return r;
}

/* --- snapshot -------------------------------------------------------------------------------------------------------- */

static int reserve(const struct conversion *c)
{
        const struct discovery *d = c->d;
        uint32_t n_nodes = 0, n_endports = 0, n_links = 0;

        for (uint32_t i = 0; i < d->n_agents; i++) {
                const struct discovery_agent *a = &d->agents[i];

                n_nodes += a->is_first_of_node;
                n_endports += a->is_in_snapshot;
                n_links += a->is_in_snapshot && !is_switch(a);
        }
        return subnet_builder_reserve(c->builder, n_nodes, n_endports + n_links, n_links);
}

static int add_conflicts(const struct conversion *c, struct subnet *s)
{
        uint32_t n = MIN(c->d->n_conflicts, (uint32_t) SUBNET_MAX_CONFLICTS);

        s->conflicts = arena_new_array(c->arena, struct subnet_conflict, n);
        if (!s->conflicts)
                return -ENOMEM;
        memcpy(s->conflicts, c->d->conflicts, n * sizeof(*s->conflicts));
        s->n_conflicts = n;
        s->n_conflicts_all = c->d->n_conflicts;
        return 0;
}

static int convert(struct conversion *c, struct subnet **ret)
{
        const struct discovery *d = c->d;
        const struct discovery_agent *local = &d->agents[DISCOVERY_LOCAL];
        struct subnet *s;
        int r = reserve(c);

        for (uint32_t i = 0; r == 0 && i < d->n_agents; i++)
                if (d->agents[i].is_first_of_node)
                        r = add_node(c, i);
        r = r ?: add_ports(c);
        if (r < 0)
                return r;
        find_sm(c);
        r = subnet_builder_finish(c->builder, local->info.node_guid, endport_number(local), c->sm_node, c->sm_number, &s);
        r = r ?: add_conflicts(c, s);
        if (r < 0)
                return r;
        s->sm_lid = d->sm_lid;
        s->truncated = d->is_truncated;
        *ret = s;
        return 0;
}

static void select_agents(struct conversion *c)
{
        struct discovery *d = c->d;

        for (uint32_t i = 0; i < d->n_agents; i++) {
                struct discovery_agent *a = &d->agents[i];

                a->is_in_snapshot = is_selected(d, i);
                if (a->is_in_snapshot)
                        claim_lids(c, a);
                else if (a->second != DISCOVERY_NONE && !a->has_conflict && discovery_peer(d, a->via) != i)
                        discovery_add_conflict(d, i, a->info.node_guid, discovery_place(d, a->via), discovery_place(d, a->second));
        }
        c->may_route_by_lid = d->agents[DISCOVERY_LOCAL].lid.v != 0 && is_up(&d->agents[DISCOVERY_LOCAL]);
}

int discovery_finish(struct discovery *d, struct arena *a, struct subnet **ret)
{
        struct conversion c = { .d = d, .arena = a };
        int r;

        if (d->error < 0)
                return d->error;
        if (!discovery_is_done(d))
                return -EBUSY;
        if (d->n_agents == 0 || !d->agents[DISCOVERY_LOCAL].has_port_info)
                return d->local_failure == MAD_UNSENT ? -EIO : -ENODATA;
        r = subnet_builder_new(a, &c.builder);
        if (r < 0)
                return r;
        c.lid_claims = calloc(LID_MAX_UNICAST + 1, 1);
        if (!c.lid_claims)
                return -ENOMEM;
        select_agents(&c);
        r = convert(&c, ret);
        free(c.lid_claims);
        return r;
}
