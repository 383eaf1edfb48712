/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <string.h>

#include "discovery/walk.h"

/* An agent that left so many requests unanswered, each after all retries, is not queried further. Its other requests could take a
 * quarter of an hour on a switch with 64 ports. */
#define MAX_TIMEOUTS 2

/* --- NodeInfo over a link -------------------------------------------------------------------------------------------- */

/* The SMA of the local port of a switch reports port 0, all others the port through which the request came in. */
static bool is_plausible(const struct node_info *info, bool is_local)
{
        if (info->node_guid.v == 0 || info->port_guid.v == 0 || info->local_port > info->num_ports || info->type < NODE_CA ||
            info->type > NODE_ROUTER)
                return false;
        return info->local_port > 0 || (is_local && info->type == NODE_SWITCH);
}

/* Compares what does not depend on the port that answers. */
static bool is_same_node(const struct node_info *x, const struct node_info *y)
{
        return x->node_guid.v == y->node_guid.v && x->type == y->type && x->num_ports == y->num_ports &&
               x->partition_cap == y->partition_cap;
}

static bool is_equal(const struct node_info *x, const struct node_info *y)
{
        return is_same_node(x, y) && x->port_guid.v == y->port_guid.v && x->local_port == y->local_port;
}

/* Each port of a CA or router has its own agent, GUID and number. */
static bool are_ports_of_one_node(const struct node_info *x, const struct node_info *y)
{
        return x->type != NODE_SWITCH && is_same_node(x, y) && x->port_guid.v != y->port_guid.v && x->local_port != y->local_port;
}

/* An agent that has one of these GUIDs and does not belong to the same node. */
static uint32_t find_conflict(const struct discovery *d, const struct node_info *info)
{
        uint32_t i = discovery_find_agent(d, info->port_guid);

        if (i != DISCOVERY_NONE)
                return i;
        i = discovery_find_node(d, info->node_guid);
        while (i != DISCOVERY_NONE && are_ports_of_one_node(&d->agents[i].info, info))
                i = d->agents[i].next_of_node;
        return i;
}

static void set_peer(struct discovery *d, uint32_t port, uint32_t agent, uint8_t number)
{
        d->ports[port].peer = agent;
        d->ports[port].peer_number = number;
}

static struct subnet_place peer_place(const struct discovery *d, uint32_t agent, uint8_t number)
{
        return (struct subnet_place) { d->agents[agent].info.node_guid, number };
}

static bool names_another(const struct discovery_port *p, uint32_t agent, uint8_t number)
{
        return p->peer != DISCOVERY_NONE && (p->peer != agent || p->peer_number != number);
}

static void follow_link(struct discovery *d, uint32_t port)
{
        struct discovery_port *p = &d->ports[port];

        if (p->is_followed)
                return;
        if (d->agents[p->agent].hops >= d->config.max_hops) {
                d->is_truncated = true;
                return;
        }
        p->is_followed = true;
        d->n_queries++;
        discovery_queue_add(d, &d->ports_to_query, port);
}

/* A device names this port as the end of a link, and the switch reports that the port is down. */
static void deny_claim(struct discovery *d, const struct discovery_port *p)
{
        const struct discovery_agent *a = &d->agents[p->agent];

        discovery_add_conflict(d, p->agent, a->info.node_guid, discovery_place(d, a->via), peer_place(d, p->peer, p->peer_number));
}

/* The device that answered over the claimant's link names this port. Only the snapshot before can confirm that, if the claimant is
 * the switch that it has: otherwise the port is queried, too, because any device could name it, and what is plugged in there would
 * disappear. */
static void take_claim(struct discovery *d, uint32_t port, const struct discovery_port *claimant)
{
        struct discovery_port *p = &d->ports[port];

        set_peer(d, port, claimant->agent, claimant->number);
        p->is_confirmed = p->is_confirmed || (discovery_is_trusted(d, claimant->agent) && discovery_was_linked(d, port));
        if (!p->is_confirmed && p->link == LINK_DOWN)
                deny_claim(d, p);
        else if (!p->is_confirmed)
                follow_link(d, port);
}

/* `agent` answered over the link of `via`, through its port `number`. Each end has one peer; for a port the answer over its own
 * link counts, whatever others said before. */
static void connect_ports(struct discovery *d, uint32_t via, uint32_t agent, uint8_t number)
{
        struct discovery_port *near = &d->ports[via], *far;
        uint32_t i = discovery_find_port(d, agent, number);

        if (names_another(near, agent, number))
                discovery_add_conflict(d, near->agent, d->agents[near->agent].info.node_guid, peer_place(d, agent, number),
                                       peer_place(d, near->peer, near->peer_number));
        set_peer(d, via, agent, number);
        near->is_confirmed = true;
        if (i == DISCOVERY_NONE)
                return;
        far = &d->ports[i];
        if (names_another(far, near->agent, near->number))
                discovery_add_conflict(d, agent, d->agents[agent].info.node_guid,
                                       peer_place(d, far->peer, far->peer_number), discovery_place(d, via));
        else
                take_claim(d, i, near);
}

static uint64_t count_queries(const struct node_info *info)
{
        return info->type == NODE_SWITCH ? 4u + info->num_ports : 3u;
}

static void add_agent(struct discovery *d, uint32_t via, const struct node_info *info)
{
        uint32_t agent = discovery_add_agent(d, via, info), entry;

        if (agent == DISCOVERY_NONE)
                return;
        d->n_queries += count_queries(info);
        discovery_queue_add(d, &d->agents_to_query, agent);
        if (via == DISCOVERY_NONE)
                return;
        entry = discovery_find_port(d, agent, info->local_port);
        if (entry != DISCOVERY_NONE)
                d->ports[entry].is_confirmed = true; /* until a second link is found */
        connect_ports(d, via, agent, info->local_port);
}

/* The agent has a GUID of a switch that was found later. If it is the false one of the two, the ports behind the switch would
 * disappear: neither is in the snapshot. */
static void drop_doubtful(struct discovery *d, uint32_t agent)
{
        if (agent != DISCOVERY_NONE && !discovery_is_trusted(d, agent))
                d->ports[d->agents[agent].via].is_confirmed = false;
}

static void drop_all_doubtful(struct discovery *d, const struct node_info *info)
{
        drop_doubtful(d, discovery_find_agent(d, info->port_guid));
        for (uint32_t i = discovery_find_node(d, info->node_guid); i != DISCOVERY_NONE; i = d->agents[i].next_of_node)
                drop_doubtful(d, i);
}

/* Several links lead to a switch. Only one link leads to any other port, and none is expected to lead back to the
 * local one. */
static void node_info_answered(struct discovery *d, uint32_t via, const struct node_info *info)
{
        uint32_t known = discovery_find_agent(d, info->port_guid), other;

        if (!is_plausible(info, via == DISCOVERY_NONE))
                return;
        if (known != DISCOVERY_NONE && info->type == NODE_SWITCH && is_same_node(&d->agents[known].info, info)) {
                connect_ports(d, via, known, info->local_port);
                discovery_take_second_link(d, known, via);
                return;
        }
        other = find_conflict(d, info);
        if (other == DISCOVERY_NONE) {
                add_agent(d, via, info);
                return;
        }
        discovery_add_conflict(d, other, known == other ? info->port_guid : info->node_guid,
                               discovery_place(d, d->agents[other].via), discovery_place(d, via));
        if (info->type == NODE_SWITCH)
                drop_all_doubtful(d, info);
}

/* A wrong M_Key gets no answer, as a lost MAD does. The port counts every wrong key, so there is one second try. */
static void try_second_m_key(struct discovery *d, uint32_t port)
{
        struct discovery_port *p = &d->ports[port];

        if (p->is_second_try || discovery_first_m_key(d, port) == discovery_second_m_key(d, port))
                return;
        p->is_second_try = true;
        p->tries = 0;
        d->n_queries++;
        discovery_queue_add(d, &d->ports_to_query, port);
}

void discovery_node_info_ended(struct discovery *d, uint32_t port, const struct mad_result *result)
{
        struct node_info info;

        if (result->outcome == MAD_ANSWERED) {
                node_info_decode(result->data, &info);
                node_info_answered(d, port, &info);
        } else if (port == DISCOVERY_NONE) {
                d->local_failure = result->outcome;
        } else if (result->outcome == MAD_TIMED_OUT) {
                d->ports[port].tries = discovery_add_tries(d->ports[port].tries, result);
                try_second_m_key(d, port);
        }
}

/* --- attributes ------------------------------------------------------------------------------------------------------ */

static void take_link(struct discovery *d, uint32_t port, const struct port_info *info)
{
        struct discovery_port *p = &d->ports[port];

        p->state = (uint8_t) info->state & 0xf;
        p->enforce_inbound = info->enforce_inbound;
        p->enforce_outbound = info->enforce_outbound;
        p->link = info->link_up && info->state != PORT_STATE_DOWN ? LINK_UP : LINK_DOWN;
        if (p->link == LINK_UP && !p->is_confirmed)
                follow_link(d, port);
        else if (!p->is_confirmed && p->peer != DISCOVERY_NONE)
                deny_claim(d, p);
}

static void take_port_info(struct discovery *d, uint32_t agent, const uint8_t *data)
{
        struct discovery_agent *a = &d->agents[agent];
        struct port_info info;

        port_info_decode(data, &info);
        a->has_port_info = true;
        a->lid = info.lid;
        a->lmc = info.lmc;
        a->state = info.state;
        a->is_sm = info.is_sm;
        if (agent != DISCOVERY_LOCAL)
                return;
        d->sm_lid = info.sm_lid;
        if (a->info.type != NODE_SWITCH)
                take_link(d, a->first_port, &info);
}

static void take_external_port(struct discovery *d, uint32_t agent, const uint8_t *data)
{
        struct discovery_agent *a = &d->agents[agent];
        struct port_info info;

        port_info_decode(data, &info);
        a->has_active_port = a->has_active_port || info.state >= PORT_STATE_ARMED;
        take_link(d, discovery_find_port(d, agent, a->number), &info);
}

static void verify(struct discovery_agent *a, const uint8_t *data)
{
        struct node_info info;

        node_info_decode(data, &info);
        a->is_verified = is_equal(&a->info, &info);
        a->has_changed = !a->is_verified;
}

static void take_answer(struct discovery *d, uint32_t agent, const uint8_t *data)
{
        struct discovery_agent *a = &d->agents[agent];

        switch (a->query) {
        case QUERY_DESCRIPTION:
                memcpy(a->description, data, sizeof(a->description));
                a->has_description = true;
                break;
        case QUERY_SWITCH_INFO:
                switch_info_decode(data, &a->switch_info);
                a->has_switch_info = true;
                break;
        case QUERY_PORT_INFO:
                take_port_info(d, agent, data);
                break;
        case QUERY_EXTERNAL_PORT:
                take_external_port(d, agent, data);
                break;
        case QUERY_NODE_INFO_AGAIN:
                verify(a, data);
                break;
        case QUERY_NODE_INFO:
        case QUERY_NONE:
                break;
        }
}

/* --- from query to query --------------------------------------------------------------------------------------------- */

static void next_query(struct discovery_agent *a)
{
        bool is_switch = a->info.type == NODE_SWITCH, is_port = a->query == QUERY_PORT_INFO || a->query == QUERY_EXTERNAL_PORT;

        if (is_port && is_switch && a->number < a->info.num_ports) {
                a->query = QUERY_EXTERNAL_PORT;
                a->number++;
        } else if (is_port) {
                a->query = QUERY_NODE_INFO_AGAIN;
                a->number = 0;
        } else if (a->query == QUERY_SWITCH_INFO || a->query == QUERY_DESCRIPTION) {
                a->query = is_switch && a->query == QUERY_DESCRIPTION ? QUERY_SWITCH_INFO : QUERY_PORT_INFO;
        } else {
                a->query = QUERY_NONE;
        }
}

/* A confirmed link between switches is up, and whether the port enforces partitions is of no interest. */
static bool is_known(const struct discovery *d, const struct discovery_agent *a)
{
        const struct discovery_port *p = &d->ports[a->first_port + a->number - 1u];

        return a->has_active_port && p->is_confirmed && d->agents[p->peer].info.type == NODE_SWITCH;
}

static uint64_t count_queries_left(const struct discovery_agent *a)
{
        struct discovery_agent copy = *a;
        uint64_t n = 0;

        for (; copy.query != QUERY_NONE; n++)
                next_query(&copy);
        return n;
}

/* Attributes that were not verified may belong to another node. */
static void drop_attributes(struct discovery_agent *a)
{
        a->has_description = a->has_switch_info = a->has_port_info = false;
        a->switch_info = (struct switch_info) {};
        a->lid.v = 0;
        a->lmc = 0;
        a->state = PORT_STATE_NONE;
        a->is_sm = false;
}

static void query_failed(struct discovery *d, uint32_t agent, const struct mad_result *result)
{
        struct discovery_agent *a = &d->agents[agent];
        bool is_refused = result->outcome == MAD_REFUSED;

        if (agent == DISCOVERY_LOCAL)
                d->local_failure = result->outcome;
        a->timeouts += !is_refused;
        if (is_refused && a->query == QUERY_EXTERNAL_PORT && mad_status_is_invalid_attribute(result->mad_status))
                d->ports[discovery_find_port(d, agent, a->number)].link = LINK_DOWN;
}

void discovery_query_ended(struct discovery *d, uint32_t agent, const struct mad_result *result)
{
        struct discovery_agent *a = &d->agents[agent];

        if (result->outcome == MAD_ANSWERED)
                take_answer(d, agent, result->data);
        else
                query_failed(d, agent, result);
        a->tries = 0;
        next_query(a);
        while (a->query == QUERY_EXTERNAL_PORT && is_known(d, a)) {
                d->n_ended++;
                next_query(a);
        }
        if (a->timeouts >= MAX_TIMEOUTS) {
                d->n_ended += count_queries_left(a);
                a->query = QUERY_NONE;
        }
        if (a->query != QUERY_NONE)
                discovery_queue_add(d, &d->agents_to_query, agent);
        else if (!a->is_verified)
                drop_attributes(a);
}
