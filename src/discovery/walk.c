/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "discovery/walk.h"

#include <assert.h>

#include "util/vector.h"

static_assert(HASH_INDEX_NONE == DISCOVERY_NONE, "HASH_INDEX_FIND() is DISCOVERY_NONE if there is no such item");
static_assert(sizeof(struct discovery_port) == 16, "a large fabric has hundreds of thousands of ports");

uint32_t discovery_find_agent(const struct discovery *d, struct guid port_guid)
{
        return HASH_INDEX_FIND(i, &d->by_port_guid, hash_mix(0, port_guid.v), d->agents[i].info.port_guid.v == port_guid.v);
}

uint32_t discovery_find_node(const struct discovery *d, struct guid node_guid)
{
        return HASH_INDEX_FIND(i, &d->by_node_guid, hash_mix(0, node_guid.v), d->agents[i].info.node_guid.v == node_guid.v);
}

uint32_t discovery_count_ports(const struct discovery_agent *a)
{
        if (a->info.type == NODE_SWITCH)
                return a->info.num_ports;
        return a->via == DISCOVERY_NONE ? 1 : 0;
}

static uint8_t first_number(const struct discovery_agent *a)
{
        return a->info.type == NODE_SWITCH ? 1 : a->info.local_port;
}

uint32_t discovery_find_port(const struct discovery *d, uint32_t agent, uint8_t number)
{
        const struct discovery_agent *a = &d->agents[agent];
        uint8_t first = first_number(a);

        if (number < first || (uint32_t) (number - first) >= discovery_count_ports(a))
                return DISCOVERY_NONE;
        return a->first_port + number - first;
}

/* --- growing --------------------------------------------------------------------------------------------------------- */

static int make_room_for_agent(struct discovery *d, uint32_t n_ports)
{
        return VECTOR_GROW(NULL, d->agents, d->n_agents, d->allocated_agents) ?:
               VECTOR_EXTEND(NULL, d->ports, d->n_ports, d->allocated_ports, n_ports) ?:
               hash_index_reserve(&d->by_port_guid, d->n_agents + 1) ?: hash_index_reserve(&d->by_node_guid, d->n_agents + 1);
}

static void add_ports(struct discovery *d, uint32_t agent, uint32_t n_ports)
{
        uint8_t first = first_number(&d->agents[agent]);

        for (uint32_t i = 0; i < n_ports; i++)
                d->ports[d->n_ports++] = (struct discovery_port) {
                        .agent = agent, .number = (uint8_t) (first + i), .peer = DISCOVERY_NONE, .next = DISCOVERY_NONE,
                };
}

/* A node has at most 255 ports, so the list of its agents is short. */
static void add_to_node(struct discovery *d, uint32_t agent)
{
        uint32_t i = discovery_find_node(d, d->agents[agent].info.node_guid);

        if (i == DISCOVERY_NONE) {
                d->agents[agent].is_first_of_node = true;
                hash_index_add(&d->by_node_guid, agent, hash_mix(0, d->agents[agent].info.node_guid.v));
                return;
        }
        while (d->agents[i].next_of_node != DISCOVERY_NONE)
                i = d->agents[i].next_of_node;
        d->agents[i].next_of_node = agent;
}

uint32_t discovery_add_agent(struct discovery *d, uint32_t via, const struct node_info *info)
{
        struct discovery_agent a = {
                .info = *info, .via = via, .first_port = d->n_ports, .second = DISCOVERY_NONE, .next_of_node = DISCOVERY_NONE,
                .next = DISCOVERY_NONE,
                .hops = via == DISCOVERY_NONE ? 0 : (uint8_t) (d->agents[d->ports[via].agent].hops + 1), .query = QUERY_DESCRIPTION,
        };
        uint32_t agent = d->n_agents, n_ports = discovery_count_ports(&a);

        a.shared_hops = a.hops;
        if (agent >= d->config.max_nodes || n_ports > d->config.max_ports - d->n_ports) {
                d->is_truncated = true;
                return DISCOVERY_NONE;
        }
        d->error = make_room_for_agent(d, n_ports);
        if (d->error < 0)
                return DISCOVERY_NONE;
        d->agents[d->n_agents++] = a;
        add_ports(d, agent, n_ports);
        hash_index_add(&d->by_port_guid, agent, hash_mix(0, info->port_guid.v));
        add_to_node(d, agent);
        return agent;
}

/* --- queues ---------------------------------------------------------------------------------------------------------- */

static uint32_t *next_of(struct discovery *d, const struct discovery_queue *q, uint32_t item)
{
        return q == &d->ports_to_query ? &d->ports[item].next : &d->agents[item].next;
}

void discovery_queue_add(struct discovery *d, struct discovery_queue *q, uint32_t item)
{
        *next_of(d, q, item) = DISCOVERY_NONE;
        if (q->last == DISCOVERY_NONE)
                q->first = item;
        else
                *next_of(d, q, q->last) = item;
        q->last = item;
}

uint32_t discovery_queue_take(struct discovery *d, struct discovery_queue *q)
{
        uint32_t item = q->first;

        if (item != DISCOVERY_NONE)
                q->first = *next_of(d, q, item);
        if (q->first == DISCOVERY_NONE)
                q->last = DISCOVERY_NONE;
        return item;
}

/* --- places and routes ----------------------------------------------------------------------------------------------- */

struct subnet_place discovery_place(const struct discovery *d, uint32_t via)
{
        const struct discovery_port *p;

        if (via == DISCOVERY_NONE)
                return (struct subnet_place) {};
        p = &d->ports[via];
        return (struct subnet_place) { d->agents[p->agent].info.node_guid, p->number };
}

void discovery_add_conflict(struct discovery *d, uint32_t agent, struct guid guid, struct subnet_place first,
                            struct subnet_place second)
{
        d->agents[agent].has_conflict = true;
        if (d->n_conflicts < SUBNET_MAX_CONFLICTS)
                d->conflicts[d->n_conflicts] = (struct subnet_conflict) { guid, { first, second } };
        d->n_conflicts++;
}

/* --- links between switches ------------------------------------------------------------------------------------------ */

bool discovery_was_linked(const struct discovery *d, uint32_t port)
{
        const struct discovery_port *p = &d->ports[port];
        struct subnet_place far = { d->agents[p->peer].info.node_guid, p->peer_number };

        return d->config.before && subnet_has_link(d->config.before, discovery_place(d, port), far);
}

uint32_t discovery_peer(const struct discovery *d, uint32_t port)
{
        const struct discovery_port *p = &d->ports[port];
        uint32_t far = p->peer == DISCOVERY_NONE ? DISCOVERY_NONE : discovery_find_port(d, p->peer, p->peer_number);

        if (!p->is_confirmed)
                return DISCOVERY_NONE;
        if (far == DISCOVERY_NONE)
                return p->peer;
        if (!d->ports[far].is_confirmed || d->ports[far].peer != p->agent || d->ports[far].peer_number != p->number)
                return DISCOVERY_NONE;
        return p->peer;
}

bool discovery_is_trusted(const struct discovery *d, uint32_t agent)
{
        uint32_t via = d->agents[agent].via;

        return via == DISCOVERY_NONE || d->agents[d->ports[via].agent].info.type != NODE_SWITCH || discovery_was_linked(d, via);
}

/* Every agent was found through one with a lower index. */
static uint8_t count_shared_hops(const struct discovery *d, uint32_t x, uint32_t y)
{
        while (x != y) {
                uint32_t *last = x > y ? &x : &y;

                *last = d->ports[d->agents[*last].via].agent;
        }
        return d->agents[x].hops;
}

void discovery_take_second_link(struct discovery *d, uint32_t agent, uint32_t via)
{
        struct discovery_agent *a = &d->agents[agent];
        uint8_t hops = d->agents[d->ports[via].agent].hops, shared = count_shared_hops(d, d->ports[via].agent, agent);

        if (shared >= a->shared_hops || discovery_is_trusted(d, agent))
                return;
        if (hops + 2 > d->config.max_hops) {
                d->is_truncated = true;
                return;
        }
        a->second = via;
        a->shared_hops = shared;
        if (agent < d->n_passed)
                d->n_passed = d->n_passable = agent;
}

static uint32_t find_entry(const struct discovery *d, uint32_t agent)
{
        return discovery_find_port(d, agent, d->agents[agent].info.local_port);
}

uint32_t discovery_next_entry(struct discovery *d)
{
        if (d->n_in_flight == 0)
                d->n_passable = d->n_agents;
        while (d->n_passed < d->n_passable) {
                uint32_t agent = d->n_passed++;

                if (d->agents[agent].second != DISCOVERY_NONE) {
                        d->n_queries++;
                        d->ports[find_entry(d, agent)].is_confirmed = false;
                        return find_entry(d, agent);
                }
        }
        return DISCOVERY_NONE;
}

/* The link over which a route comes to the switch of this port. */
static uint32_t link_to_switch(const struct discovery *d, uint32_t port)
{
        const struct discovery_agent *a = &d->agents[d->ports[port].agent];

        return a->second != DISCOVERY_NONE && port == find_entry(d, d->ports[port].agent) ? a->second : a->via;
}

void discovery_get_route(const struct discovery *d, uint32_t via, struct mad_route *ret)
{
        uint32_t link = via == DISCOVERY_NONE ? DISCOVERY_NONE : link_to_switch(d, via);

        *ret = (struct mad_route) {};
        if (via == DISCOVERY_NONE)
                return;
        ret->hops = link == DISCOVERY_NONE ? 1 : (uint8_t) (d->agents[d->ports[link].agent].hops + 2);
        for (uint8_t i = ret->hops; i > 0; i--) {
                ret->path[i] = d->ports[via].number;
                via = i == ret->hops ? link : d->agents[d->ports[via].agent].via;
        }
}

/* --- M_Keys of links ------------------------------------------------------------------------------------------------- */

static struct guid expected_peer(const struct discovery *d, uint32_t port)
{
        const struct discovery_port *p;

        if (port == DISCOVERY_NONE)
                return d->config.local_port;
        p = &d->ports[port];
        return discovery_links_get(d->config.expected, d->agents[p->agent].info.port_guid, p->number);
}

static uint64_t m_key_of(const struct discovery *d, struct guid peer)
{
        return peer.v ? m_keys_get(d->config.m_keys, peer) : m_keys_common(d->config.m_keys);
}

static bool is_named(const struct discovery *d, uint32_t port)
{
        return port != DISCOVERY_NONE && d->ports[port].peer != DISCOVERY_NONE;
}

uint64_t discovery_first_m_key(const struct discovery *d, uint32_t port)
{
        struct guid peer = is_named(d, port) ? d->agents[d->ports[port].peer].info.port_guid : expected_peer(d, port);

        return m_key_of(d, peer);
}

uint64_t discovery_second_m_key(const struct discovery *d, uint32_t port)
{
        return m_key_of(d, is_named(d, port) ? expected_peer(d, port) : (struct guid) { 0 });
}

/* --- the end ---------------------------------------------------------------------------------------------------------- */

static bool has_unchecked_entry(const struct discovery *d)
{
        for (uint32_t i = d->n_passed; i < d->n_agents; i++)
                if (d->agents[i].second != DISCOVERY_NONE)
                        return true;
        return false;
}

bool discovery_is_done(const struct discovery *d)
{
        if (d->n_in_flight > 0)
                return false;
        return d->error < 0 || (d->is_started && d->ports_to_query.first == DISCOVERY_NONE &&
                                d->agents_to_query.first == DISCOVERY_NONE && !has_unchecked_entry(d));
}
