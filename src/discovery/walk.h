/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What the walk has learned: agents, the ports through which routes continue, and indexes by GUID. Private to the
 * folder.
 *
 * Agents and ports are referred to by index, because the arrays move when they grow. The route to an agent is not
 * stored: `via` is the port through which it was found, the agent of that port has a `via` of its own, and so on to
 * the local port. An agent is always found through an agent with a lower index, so the chain ends.
 */

#include "discovery/discovery.h"
#include "util/hash_index.h"

#define DISCOVERY_NONE  UINT32_MAX
#define DISCOVERY_LOCAL 0 /* the agent of the local port */

/* What is queried, in this order. */
enum discovery_query {
        QUERY_NODE_INFO,        /* over a link, or of the local port: the agent is not known yet */
        QUERY_DESCRIPTION,
        QUERY_SWITCH_INFO,      /* switches only */
        QUERY_PORT_INFO,        /* of port 0 of a switch, of the port that answers on other nodes */
        QUERY_EXTERNAL_PORT,    /* PortInfo of ports 1, 2, ... of a switch */
        QUERY_NODE_INFO_AGAIN,  /* to verify that the link still leads to the same node */
        QUERY_NONE,             /* all done */
};

/* The SMA of a switch, or of one port of a CA or router. */
struct discovery_agent {
        struct node_info info;      /* the first answer */
        uint32_t via;               /* the port through which it was found; DISCOVERY_NONE: it is the local one */
        uint32_t second;            /* of a switch: another port that leads to it, see discovery_take_second_link() */
        uint32_t first_port;        /* index of port 1 of a switch, or of the local port */
        uint32_t next_of_node;      /* the next port of the same CA or router */
        uint32_t next;              /* in agents_to_query */
        uint8_t hops;
        uint8_t shared_hops;        /* of the routes over `via` and `second`; `hops`: there is no second */
        enum discovery_query query; /* the next one, or the one that is in flight */
        uint8_t number;             /* port number of QUERY_EXTERNAL_PORT */
        uint8_t timeouts;           /* requests that were not answered */
        uint8_t tries;              /* of the next one without an answer, in walks that were interrupted */
        bool in_flight;
        bool is_first_of_node;
        bool has_description, has_switch_info, has_port_info;
        bool is_verified;           /* the last NodeInfo was equal to the first */
        bool has_changed;           /* the last NodeInfo was different */
        bool has_conflict;          /* one of its GUIDs was found in a second place */
        bool has_active_port;       /* of a switch: an external port is ARMED or ACTIVE */
        bool is_in_snapshot;
        struct lid lid;             /* this and the rest are attributes, valid if has_... is set */
        uint8_t lmc;
        enum port_state state;
        bool is_sm;
        struct switch_info switch_info;
        char description[NODE_DESCRIPTION_SIZE];
};

enum discovery_link_state {
        LINK_UNKNOWN, /* PortInfo was not answered */
        LINK_DOWN,    /* or the switch reports that the port does not exist */
        LINK_UP,
};

/* An external port of a switch, or the local port. */
struct discovery_port {
        uint32_t agent;
        uint32_t peer;             /* the agent at the other end, as far as is known; DISCOVERY_NONE: no agent answered */
        uint32_t next;             /* in ports_to_query */
        uint8_t number;
        uint8_t peer_number;       /* LocalPortNum of the peer's NodeInfo */
        uint8_t state : 4;         /* enum port_state */
        uint8_t tries : 4;         /* as of an agent, of NodeInfo over its link */
        uint8_t link : 2;          /* enum discovery_link_state */
        uint8_t enforce_inbound : 1;
        uint8_t enforce_outbound : 1;
        uint8_t in_flight : 1;
        uint8_t is_second_try : 1; /* with another M_Key */
        uint8_t is_followed : 1;   /* NodeInfo over its link was queued */
        uint8_t is_confirmed : 1;  /* `peer` is not only the claim of the device at the other end */
};

/* A FIFO through the `next` of agents or of ports. */
struct discovery_queue {
        uint32_t first, last;
};

struct discovery {
        struct discovery_config config;
        struct discovery_agent *agents;
        uint32_t n_agents, allocated_agents;
        struct discovery_port *ports;
        uint32_t n_ports, allocated_ports;
        struct hash_index by_port_guid; /* all agents */
        struct hash_index by_node_guid; /* the first agent of each node */
        struct discovery_queue ports_to_query, agents_to_query;
        uint32_t n_in_flight;
        uint32_t n_passed, n_passable; /* agents that discovery_next_entry() has passed, and may pass now */
        bool is_started;
        bool is_local_in_flight;        /* the first NodeInfo of the local port */
        enum mad_outcome local_failure; /* of the last request to the local port that was not answered */
        struct lid sm_lid;              /* MasterSMLID of the local port */
        struct subnet_conflict conflicts[SUBNET_MAX_CONFLICTS];
        uint32_t n_conflicts;           /* found; more than the list holds */
        bool is_truncated;
        uint64_t n_queries, n_ended;    /* for the progress */
        int error;                      /* negative errno that ended the walk */
};

/* The agent with this port GUID; the first agent of the node with this GUID. DISCOVERY_NONE: there is none. */
uint32_t discovery_find_agent(const struct discovery *d, struct guid port_guid);
uint32_t discovery_find_node(const struct discovery *d, struct guid node_guid);

/* Ports of an agent through which routes can continue, and the one with this number; DISCOVERY_NONE: there is none. */
uint32_t discovery_count_ports(const struct discovery_agent *a);
uint32_t discovery_find_port(const struct discovery *d, uint32_t agent, uint8_t number);

/* Adds the agent that answered over the link of `via`, and its ports. DISCOVERY_NONE: a limit is reached, or out of memory
 * (d->error). */
uint32_t discovery_add_agent(struct discovery *d, uint32_t via, const struct node_info *info);

/* Append to and take from one of the two queues of what can be queried now; DISCOVERY_NONE: the queue is empty. */
void discovery_queue_add(struct discovery *d, struct discovery_queue *q, uint32_t item);
uint32_t discovery_queue_take(struct discovery *d, struct discovery_queue *q);

/* Records that `guid` of the agent was found in two places. */
void discovery_add_conflict(struct discovery *d, uint32_t agent, struct guid guid, struct subnet_place first,
                            struct subnet_place second);
struct subnet_place discovery_place(const struct discovery *d, uint32_t via);

/* The agent at the other end of this port's link. DISCOVERY_NONE: none answered, or the two ends do not confirm the link. */
uint32_t discovery_peer(const struct discovery *d, uint32_t port);

/* True if no other device can be taken for the agent: the local port, what is plugged into that, and what was found over a link
 * between switches that the snapshot before has. */
bool discovery_is_trusted(const struct discovery *d, uint32_t agent);
/* True if the snapshot before has the link of this port to its peer. */
bool discovery_was_linked(const struct discovery *d, uint32_t port);

/* The link of `via` leads to a switch that was found over another link. Of all such links, the one whose route has the fewest hops
 * in common with that of the switch becomes its second one: all links that one device invents lie behind that device. */
void discovery_take_second_link(struct discovery *d, uint32_t agent, uint32_t via);
/* The next port by which a switch with a second link was entered, after all other queries. NodeInfo is sent through it over the
 * second link, and confirms that both links lead to one switch. DISCOVERY_NONE: there is none left, or other queries are in
 * flight. */
uint32_t discovery_next_entry(struct discovery *d);

/* The directed route that leaves through this port; if a switch was entered there and has a second link, over that. DISCOVERY_NONE:
 * the route of no hops. */
void discovery_get_route(const struct discovery *d, uint32_t via, struct mad_route *ret);

/* True if nothing is in flight and nothing is left to query. */
bool discovery_is_done(const struct discovery *d);

/* The M_Key for NodeInfo over the link of this port (DISCOVERY_NONE: to the local port): that of the peer that was named from the
 * other end, or of the expected one, or the common one. */
uint64_t discovery_first_m_key(const struct discovery *d, uint32_t port);
/* The other key to try: that of the expected peer if another one was named, or the common one. */
uint64_t discovery_second_m_key(const struct discovery *d, uint32_t port);

/* Adds a request without an answer to `tries` of a port or an agent. */
#define DISCOVERY_MAX_TRIES 15 /* that are counted */
static inline uint8_t discovery_add_tries(uint8_t before, const struct mad_result *result)
{
        return (uint8_t) MIN(before + result->timeouts, DISCOVERY_MAX_TRIES);
}

/* answers.c: take the result of NodeInfo over the link of a port (DISCOVERY_NONE: of the local port), or of another query
 * of an agent. */
void discovery_node_info_ended(struct discovery *d, uint32_t port, const struct mad_result *result);
void discovery_query_ended(struct discovery *d, uint32_t agent, const struct mad_result *result);
