/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "discovery/discovery.h"

#include <assert.h>
#include <errno.h>

#include "discovery/walk.h"

/* --- requests -------------------------------------------------------------------------------------------------------- */

/* `index` is that of a port for QUERY_NODE_INFO, of an agent for all other queries. */
static uint64_t make_cookie(enum discovery_query query, uint32_t index, uint8_t number)
{
        return (uint64_t) index << 16 | (uint64_t) query << 8 | number;
}

static uint32_t index_of_cookie(uint64_t cookie)
{
        return (uint32_t) (cookie >> 16);
}

/* Which agent is at the other end of a link is not known before it has answered, so that each link has a destination
 * of its own: odd numbers, while those of agents are even. */
static uint32_t agent_destination(uint32_t agent)
{
        return 2 * agent;
}

static uint32_t link_destination(uint32_t port)
{
        return port == DISCOVERY_NONE ? UINT32_MAX : 2 * port + 1;
}

static uint32_t node_before(const struct discovery *d, struct guid node)
{
        return d->config.before ? subnet_find_node(d->config.before, node) : SUBNET_NONE;
}

static bool link_was_silent(const struct discovery *d, uint32_t port)
{
        const struct discovery_port *p = port == DISCOVERY_NONE ? NULL : &d->ports[port];
        uint32_t node = p ? node_before(d, d->agents[p->agent].info.node_guid) : SUBNET_NONE;

        return node != SUBNET_NONE && subnet_port_is_silent(&d->config.before->nodes[node], p->number);
}

static bool agent_was_incomplete(const struct discovery *d, const struct discovery_agent *a)
{
        uint32_t node = node_before(d, a->info.node_guid);

        return node != SUBNET_NONE && d->config.before->nodes[node].incomplete;
}

/* Takes over the unanswered tries of the walk that was interrupted. */
static void recall_link(struct discovery *d, uint32_t port)
{
        const struct discovery *old = d->config.interrupted;
        struct discovery_port *p = &d->ports[port];
        uint32_t agent = old ? discovery_find_agent(old, d->agents[p->agent].info.port_guid) : DISCOVERY_NONE;
        uint32_t i = agent == DISCOVERY_NONE ? DISCOVERY_NONE : discovery_find_port(old, agent, p->number);

        if (i != DISCOVERY_NONE && old->ports[i].is_second_try == p->is_second_try)
                p->tries = old->ports[i].tries;
}

static void recall_agent(struct discovery *d, struct discovery_agent *a)
{
        const struct discovery *old = d->config.interrupted;
        uint32_t i = old ? discovery_find_agent(old, a->info.port_guid) : DISCOVERY_NONE;

        if (i == DISCOVERY_NONE)
                return;
        if (old->agents[i].timeouts > 0)
                a->tries = DISCOVERY_MAX_TRIES;
        else if (old->agents[i].query == a->query && old->agents[i].number == a->number)
                a->tries = old->agents[i].tries;
}

static void query_link(struct discovery *d, uint32_t port, struct mad_request *ret)
{
        bool is_second_try = port != DISCOVERY_NONE && d->ports[port].is_second_try;

        if (port != DISCOVERY_NONE)
                recall_link(d, port);
        *ret = (struct mad_request) {
                .destination = link_destination(port), .cookie = make_cookie(QUERY_NODE_INFO, port, 0), .method = MAD_GET,
                .attribute = SMP_ATTR_NODE_INFO,
                .key = is_second_try ? discovery_second_m_key(d, port) : discovery_first_m_key(d, port),
        };
        mad_stage_set_retries(ret, d->config.retries, link_was_silent(d, port), port == DISCOVERY_NONE ? 0 : d->ports[port].tries);
        discovery_get_route(d, port, &ret->route);
        if (port == DISCOVERY_NONE)
                d->is_local_in_flight = true;
        else
                d->ports[port].in_flight = true;
}

static void query_agent(struct discovery *d, uint32_t agent, struct mad_request *ret)
{
        static const uint16_t attributes[] = {
                [QUERY_DESCRIPTION] = SMP_ATTR_NODE_DESCRIPTION, [QUERY_SWITCH_INFO] = SMP_ATTR_SWITCH_INFO,
                [QUERY_PORT_INFO] = SMP_ATTR_PORT_INFO, [QUERY_EXTERNAL_PORT] = SMP_ATTR_PORT_INFO,
                [QUERY_NODE_INFO_AGAIN] = SMP_ATTR_NODE_INFO,
        };
        struct discovery_agent *a = &d->agents[agent];
        bool is_own_port = a->query == QUERY_PORT_INFO && a->info.type != NODE_SWITCH;

        assert(a->query > QUERY_NODE_INFO && a->query < QUERY_NONE);
        recall_agent(d, a);
        *ret = (struct mad_request) {
                .destination = agent_destination(agent), .cookie = make_cookie(a->query, agent, a->number), .method = MAD_GET,
                .attribute = attributes[a->query], .modifier = is_own_port ? a->info.local_port : a->number,
                .key = m_keys_get(d->config.m_keys, a->info.port_guid),
        };
        mad_stage_set_retries(ret, d->config.retries, agent_was_incomplete(d, a), a->tries);
        discovery_get_route(d, a->via, &ret->route);
        a->in_flight = true;
}

/* A port whose link was confirmed in the meantime is not queried. */
static uint32_t next_port(struct discovery *d)
{
        uint32_t i = discovery_queue_take(d, &d->ports_to_query);

        while (i != DISCOVERY_NONE && d->ports[i].is_confirmed) {
                d->n_ended++;
                i = discovery_queue_take(d, &d->ports_to_query);
        }
        return i;
}

/* Links first: the more agents are known, the more requests can be in flight. */
static bool discovery_next(void *state, usec_t, struct mad_request *ret)
{
        struct discovery *d = state;
        uint32_t i;

        if (d->error < 0)
                return false;
        if (!d->is_started) {
                d->is_started = true;
                query_link(d, DISCOVERY_NONE, ret);
        } else if ((i = next_port(d)) != DISCOVERY_NONE) {
                query_link(d, i, ret);
        } else if ((i = discovery_queue_take(d, &d->agents_to_query)) != DISCOVERY_NONE) {
                query_agent(d, i, ret);
        } else if ((i = discovery_next_entry(d)) != DISCOVERY_NONE) {
                query_link(d, i, ret);
        } else {
                return false;
        }
        d->n_in_flight++;
        return true;
}

/* --- results --------------------------------------------------------------------------------------------------------- */

/* Marks the request with this cookie as ended. False: it was not in flight. */
static bool end_flight(struct discovery *d, uint64_t cookie)
{
        uint32_t index = index_of_cookie(cookie);

        if (cookie == make_cookie(QUERY_NODE_INFO, DISCOVERY_NONE, 0)) {
                if (!d->is_local_in_flight)
                        return false;
                d->is_local_in_flight = false;
        } else if (cookie == make_cookie(QUERY_NODE_INFO, index, 0)) {
                if (index >= d->n_ports || !d->ports[index].in_flight)
                        return false;
                d->ports[index].in_flight = false;
        } else {
                struct discovery_agent *a = index < d->n_agents ? &d->agents[index] : NULL;

                if (!a || !a->in_flight || cookie != make_cookie(a->query, index, a->number))
                        return false;
                a->in_flight = false;
        }
        return true;
}

static void discovery_result(void *state, usec_t, const struct mad_result *result)
{
        struct discovery *d = state;
        uint32_t index = index_of_cookie(result->cookie);

        if (!end_flight(d, result->cookie))
                return;
        d->n_in_flight--;
        d->n_ended++;
        if (d->error < 0)
                return;
        if (result->cookie == make_cookie(QUERY_NODE_INFO, index, 0))
                discovery_node_info_ended(d, index, result);
        else
                discovery_query_ended(d, index, result);
}

/* Keeps only the number of tries without an answer, except of the local port, for which this host's kernel answers. */
static void discovery_take_back(void *state, usec_t, const struct mad_result *result)
{
        struct discovery *d = state;
        uint32_t index = index_of_cookie(result->cookie);

        if (result->cookie == make_cookie(QUERY_NODE_INFO, DISCOVERY_NONE, 0) || !end_flight(d, result->cookie))
                return;
        if (result->cookie == make_cookie(QUERY_NODE_INFO, index, 0))
                d->ports[index].tries = discovery_add_tries(d->ports[index].tries, result);
        else
                d->agents[index].tries = discovery_add_tries(d->agents[index].tries, result);
}

static bool discovery_done(const void *state)
{
        return discovery_is_done(state);
}

static void discovery_progress(const void *state, uint64_t *ret_done, uint64_t *ret_total)
{
        const struct discovery *d = state;

        *ret_done = d->n_ended;
        *ret_total = d->n_queries;
}

struct mad_stage discovery_stage(struct discovery *d)
{
        return (struct mad_stage) {
                .state = d, .next = discovery_next, .result = discovery_result, .done = discovery_done,
                .take_back = discovery_take_back, .progress = discovery_progress,
        };
}

/* --- life ------------------------------------------------------------------------------------------------------------ */

static uint32_t limit(uint32_t configured, uint32_t most)
{
        return configured == 0 ? most : MIN(configured, most);
}

int discovery_new(const struct discovery_config *config, struct discovery **ret)
{
        struct discovery *d = calloc(1, sizeof(*d));

        if (!d)
                return -ENOMEM;
        d->config = *config;
        d->config.max_nodes = limit(config->max_nodes, DISCOVERY_MAX_NODES);
        d->config.max_ports = limit(config->max_ports, DISCOVERY_MAX_PORTS);
        d->config.max_hops = (uint8_t) limit(config->max_hops, MAD_MAX_HOPS);
        d->ports_to_query = d->agents_to_query = (struct discovery_queue) { DISCOVERY_NONE, DISCOVERY_NONE };
        d->n_queries = 1;
        *ret = d;
        return 0;
}

struct discovery *discovery_free(struct discovery *d)
{
        if (!d)
                return NULL;
        hash_index_done(&d->by_port_guid);
        hash_index_done(&d->by_node_guid);
        free(d->agents);
        free(d->ports);
        free(d);
        return NULL;
}

int discovery_learn_links(const struct discovery *d, struct discovery_links *links)
{
        for (uint32_t i = 0; i < d->n_ports; i++) {
                const struct discovery_port *p = &d->ports[i];
                int r;

                if (discovery_peer(d, i) == DISCOVERY_NONE || d->agents[p->agent].has_changed || d->agents[p->peer].has_changed)
                        continue;
                r = discovery_links_set(links, d->agents[p->agent].info.port_guid, p->number, d->agents[p->peer].info.port_guid);
                if (r == -ENOMEM)
                        return r;
        }
        return 0;
}
