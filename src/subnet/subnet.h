/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * subnet/: fabric snapshots.
 *
 * A subnet is a snapshot of the fabric at one moment: its nodes, and the ports that matter to partitions. These are the endports
 * (ports of channel adapters and routers, port 0 of switches) and, for each endport that is plugged into a switch, the external
 * port of that switch. A snapshot does not change once it is built, and one arena owns it; the next sweep builds another. It does
 * not record its origin (discovery, a file of ibnetdiscover, a virtual fabric of the tests).
 *
 * Observed tables (observed.h) are the P_Key tables of these ports as they were read; the survey (survey.h) is the state machine
 * that reads them.
 *
 *     builder       makes a subnet of nodes, ports and links in any order; a subnet of some ports of another
 *     description   NodeDescription: escaped, split into host and device
 *     topology      a subnet of the output of ibnetdiscover
 *     fold          names as one hostlist, for output
 *     known         endports that were seen before
 *     layout        tables as they once were, for an undo
 *
 * NodeDescription comes from the fabric and may be hostile: a name here is printable ASCII with everything else escaped as \xNN,
 * so it may be printed anywhere.
 *
 * This folder knows nothing about policies and memberships.
 */

#include <assert.h>

#include "ib/smp.h"
#include "util/arena.h"
#include "util/findings.h"

#define SUBNET_NONE UINT32_MAX
#define SUBNET_FIRST_BOARD "U1" /* of a switch with one chip */

/* Where discovery found a device: at the other end of the link of this port, which is a switch port or the local port. A GUID of 0:
 * the local port itself. */
struct subnet_place {
        struct guid node;
        uint8_t number;
};

struct subnet_node {
        struct guid guid;
        enum node_type type;
        uint8_t num_ports;
        uint16_t partition_cap;             /* NodeInfo; 0: unknown (a topology file) */
        uint16_t partition_enforcement_cap; /* SwitchInfo; 0: it cannot enforce */
        bool inbound_enforcement_cap, outbound_enforcement_cap;
        bool incomplete;                    /* a query was not answered, so the name or capabilities are unknown. Nothing on it
                                             * may be changed, see subnet_port_is_incomplete */
        uint64_t silent_ports[4];           /* a bit for each port number: its link is up, but the device at the other end did
                                             * not answer discovery and is not in the snapshot */
        uint64_t switch_ports[4];           /* a bit for each port number: a switch of the snapshot is at the other end */
        struct subnet_place *links;         /* of a switch: the ports of other switches that it is connected to, in
                                             * the order of its own in switch_ports */
        uint16_t n_links;
        const char *description;            /* NodeDescription, escaped, without trailing blanks; never NULL */
        const char *name;                   /* "" if the description names no host */
        const char *device;                 /* second word; "" if there is none */
};

enum port_role {
        PORT_ENDPORT,         /* of a CA or router, or a switch's port 0 */
        PORT_SWITCH_EXTERNAL, /* of a switch, its peer is an endport of a CA or router */
};

struct subnet_port {
        uint32_t node;    /* index into nodes */
        uint32_t peer;    /* index into ports: the other end of the cable, or SUBNET_NONE. Endports that are plugged into a
                           * switch and the external ports of that switch point at each other */
        uint8_t number;   /* 0: switch port 0 */
        enum port_role role;
        enum port_state state;
        struct guid guid; /* port GUID; of an external port: that of its switch's port 0 */
        struct lid lid;   /* base LID of the SMA that answers for this port; 0: none */
        uint8_t lmc;
        bool enforce_inbound, enforce_outbound; /* PortInfo at discovery; external ports only */
        bool is_sm;             /* a subnet manager, master or not, runs on it; endports only */
        struct mad_route route; /* to the SMA that answers for this port */
        uint32_t destination;   /* the SMA, for mad_request: equal for all ports of a switch */
};

/* A node GUID or port GUID that was found in two places: two devices have it, or a cable was moved during discovery (then the next
 * discovery finds it once). The device found first is in the snapshot, and is reached by its directed route, because both may have
 * the same LID. The port at the second place counts as silent. If the second device claims to be a switch, so does the port at the
 * first place, unless the snapshot before had its link, and neither device is in this one. */
struct subnet_conflict {
        struct guid guid;
        struct subnet_place places[2];
};

#define SUBNET_MAX_CONFLICTS 64 /* in the list */

struct subnet {
        struct subnet_node *nodes; /* ascending GUID */
        uint32_t n_nodes;
        struct subnet_port *ports; /* ascending (node, number) */
        uint32_t n_ports;
        uint32_t *by_name;         /* indexes of nodes with a name, ascending strcmp(name). Of one name, switches come last, and
                                    * those with one board, or with one device and type, one after another */
        uint32_t n_by_name;
        uint32_t *by_port_guid;    /* indexes of endports, ascending port GUID */
        uint32_t n_by_port_guid;
        uint32_t self;             /* the endport through which the snapshot was taken, or SUBNET_NONE (a topology file) */
        uint32_t sm;               /* the endport of the master SM, or SUBNET_NONE */
        struct lid sm_lid;         /* self's PortInfo:MasterSMLID; 0: no SM, or no self. With a LID but no `sm` the snapshot
                                    * lacks the port of the SM, which must not be overlooked */
        struct subnet_conflict *conflicts;
        uint32_t n_conflicts;      /* in the list, at most SUBNET_MAX_CONFLICTS */
        uint32_t n_conflicts_all;  /* found */
        bool truncated;            /* the fabric exceeds a limit of discovery: nodes beyond it are not in the snapshot, and the
                                    * ports that lead to them are silent */
};

/* Index of the first port of a node that has ports. */
static inline uint32_t subnet_first_port(const struct subnet *s, uint32_t node)
{
        return LOWER_BOUND(port, s->ports, s->n_ports, port->node < node);
}

static inline const struct subnet_node *subnet_port_node(const struct subnet *s, const struct subnet_port *p)
{
        assert(p->node < s->n_nodes);
        return &s->nodes[p->node];
}

/* The node at index i of by_name. */
static inline const struct subnet_node *subnet_named_node(const struct subnet *s, uint32_t i)
{
        assert(i < s->n_by_name);
        return &s->nodes[s->by_name[i]];
}

/* Returns whether the nodes at index i and i - 1 of by_name are channel adapters with the same name and device. */
bool subnet_is_twin(const struct subnet *s, uint32_t i);

/* PartitionCap of an endport, PartitionEnforcementCap of a switch external port: entries of its P_Key table. */
uint16_t subnet_port_capacity(const struct subnet *s, const struct subnet_port *p);

/* True for an external port whose switch can enforce partitions there (capability bits and a table). */
bool subnet_port_can_enforce(const struct subnet *s, const struct subnet_port *p);

/* True if pkeyd manages this port's P_Key table: endports, and external ports that can enforce. */
bool subnet_port_is_managed(const struct subnet *s, const struct subnet_port *p);

/* True if its node, or the node at the other end of its link, is incomplete: then the table that this port should have cannot be
 * computed. A host without a name would lose the partitions of its name, and so would its switch port. Hosts plugged into a switch
 * without a name would lose those of `@SWITCH/PORTS`. */
bool subnet_port_is_incomplete(const struct subnet *s, const struct subnet_port *p);
/* The incomplete node of the two; NULL: none. */
const struct subnet_node *subnet_port_incomplete_node(const struct subnet *s, const struct subnet_port *p);

/* True for an endport of a host whose other end is not in the snapshot: a switch that did not answer discovery, and may filter. */
bool subnet_port_is_behind_unknown(const struct subnet *s, const struct subnet_port *p);

/* True if this NodeInfo comes from the SMA that answers for the port. */
bool subnet_port_has_sma(const struct subnet *s, const struct subnet_port *p, const struct node_info *info);

static inline bool subnet_port_is_silent(const struct subnet_node *n, uint8_t number)
{
        return n->silent_ports[number / 64] >> (number % 64) & 1;
}

/* True if a master SM runs, or may run: MasterSMLID stays after the SM ended, but then the SM's port, if it is in the snapshot, has
 * no IsSM. */
static inline bool subnet_has_master(const struct subnet *s)
{
        return s->sm_lid.v != 0 && (s->sm == SUBNET_NONE || s->ports[s->sm].is_sm);
}

/* The number of silent ports: of one node; of all. */
uint32_t subnet_node_count_silent(const struct subnet_node *n);
uint32_t subnet_count_silent(const struct subnet *s);

static inline bool subnet_port_leads_to_switch(const struct subnet_node *n, uint8_t number)
{
        return n->switch_ports[number / 64] >> (number % 64) & 1;
}

/* True if the snapshot has a link between switches from place a, the port of one of them, to place b. */
bool subnet_has_link(const struct subnet *s, struct subnet_place a, struct subnet_place b);

/* Of a silent port: the conflict whose second place it is, so that the device there did answer, with a GUID that was found
 * elsewhere. NULL: none is in the list. */
const struct subnet_conflict *subnet_find_conflict(const struct subnet *s, struct guid node, uint8_t number);

/* The node with this GUID, or the endport with this port GUID (the first, should a fabric have two); SUBNET_NONE if
 * there is none. External ports are not found by GUID. */
uint32_t subnet_find_node(const struct subnet *s, struct guid guid);
uint32_t subnet_find_endport(const struct subnet *s, struct guid port_guid);
/* True if this port, of a larger subnet (known_extend()), is an endport with a GUID that `s` does not have. */
bool subnet_lacks_endport(const struct subnet *s, const struct subnet_port *p);
/* Port `number` of a node, given by index or by GUID; SUBNET_NONE: there is none. */
uint32_t subnet_find_port(const struct subnet *s, uint32_t node, uint8_t number);
uint32_t subnet_find_port_of(const struct subnet *s, struct guid node_guid, uint8_t number);
/* The leaf port of an endport, as an index into ports; SUBNET_NONE: it is not plugged into a switch of this snapshot. */
uint32_t subnet_leaf_port(const struct subnet *s, uint32_t endport);
/* True if `number` is an external port of this node (SUBNET_NONE: no node). With nothing in it, or a switch, or a device that did
 * not answer, it is not among the ports of the snapshot. */
bool subnet_node_has_external(const struct subnet *s, uint32_t node, uint8_t number);
/* Index into by_name of the first node whose name is >= `name` in strcmp order (n_by_name: none). */
uint32_t subnet_first_name(const struct subnet *s, const char *name);
/* The same from index `from` (<= n_by_name) on; its cost grows with the logarithm of the distance. */
uint32_t subnet_next_name(const struct subnet *s, uint32_t from, const char *name);
/* Returns whether a node has this name. */
bool subnet_has_name(const struct subnet *s, const char *name);

/* True for the name of a board of a director: "L20/U2", "U2". Each part has capitals and then digits; slashes separate them. */
bool subnet_is_board(const char *text);
/* Which switch of a director this is, as they share one name: "L20/U2" of "MF0;NAME:MODEL/L20/U2"; "U1" if the description has no
 * board. Borrowed from the node's description. */
const char *subnet_node_board(const struct subnet_node *n);

#define SUBNET_NAME_SIZE (4 * NODE_DESCRIPTION_SIZE + 1)

/* The name of a node for display, without its device: "node0001", "leaf07", "director:L20/U2" (made in buf), or its description.
 * Borrowed from the node or buf. */
const char *subnet_node_name(const struct subnet_node *n, char buf[SUBNET_NAME_SIZE]);
/* A label for display: "node0001 mlx5_0", "leaf07", "director:L20/U2" (without a board U1); for nodes without a name their
 * description, or else their GUID. Allocated from a, or borrowed from the subnet; NULL: out of memory. */
const char *subnet_node_label(struct arena *a, const struct subnet_node *n);
/* A label for display: "node0001 mlx5_0/1", "leaf07/12"; for nodes without a name their description. Allocated from a; NULL: out of
 * memory. */
const char *subnet_port_label(struct arena *a, const struct subnet *s, uint32_t port);
/* Whether this is the label of the port with that name, or of a port of the node, or of a board of the director, with that name.
 * NULL is none. */
bool subnet_label_is_of(const char *label, const char *name);

/* The device that discovery found at this place: "the device at leaf07/12", "this host's own port". Allocated from a; NULL: out of
 * memory. */
const char *subnet_place_label(struct arena *a, const struct subnet *s, struct subnet_place place);

/*
 * Building a snapshot: add nodes, then ports, then links, then finish, each in any order; the builder sorts. All from one arena,
 * which then owns the subnet.
 */
struct subnet_builder;

/* Returns 0 or -ENOMEM. *ret borrows the arena and lives in it. */
int subnet_builder_new(struct arena *a, struct subnet_builder **ret);

/* Reserves memory for this many in total: a builder that grows needs twice as much. Returns 0 or -ENOMEM. */
int subnet_builder_reserve(struct subnet_builder *b, uint32_t n_nodes, uint32_t n_ports, uint32_t n_links);

/* Copies `node`, except its description, name and device: they come from `raw_description` (up to NODE_DESCRIPTION_SIZE bytes of
 * any content). A switch has no device. Returns 0, -ENOMEM, -EEXIST for a GUID that was added before, or -EINVAL for an unknown
 * type. */
int subnet_builder_add_node(struct subnet_builder *b, const struct subnet_node *node, const char *raw_description, size_t raw_size);
/* The same with an escaped description, such as that of a node of another subnet. */
int subnet_builder_add_described(struct subnet_builder *b, const struct subnet_node *node, const char *description);

/* Copies `port` without `node`, `peer`, `role` and `destination`: the node is `node_guid`, and its type and the number determine
 * the role. An external port takes its GUID, and LID and route if it has none, from port 0 of its switch. Returns 0, -ENOMEM,
 * -ENOENT for an unknown node, -EEXIST, or -EINVAL for port 0 of a node that is no switch. Finish drops external ports that lead to
 * another switch or nowhere. */
int subnet_builder_add_port(struct subnet_builder *b, struct guid node_guid, const struct subnet_port *port);

/* Adds the cable between two ports that were added; it may be added from both ends. Finish ignores links with an unknown end, and
 * of links that contradict each other all but the first. Returns 0 or -ENOMEM. */
int subnet_builder_add_link(struct subnet_builder *b, struct guid node_a, uint8_t number_a, struct guid node_b, uint8_t number_b);

/* self and sm: node GUID and port number; a GUID of 0: none. Returns 0 or -ENOMEM; the arena owns *ret. */
int subnet_builder_finish(struct subnet_builder *b, struct guid self_node, uint8_t self_number, struct guid sm_node,
                          uint8_t sm_number, struct subnet **ret);

/* The description of a node and its parts, escaped, as in struct subnet_node. */
struct subnet_name {
        const char *description, *name, *device;
};

/* The same subnet, in which node i has names[i], unless its description is NULL: then it keeps its own. The result borrows
 * everything else from `s`, and the names. Returns 0 or -ENOMEM; *ret in the arena. */
int subnet_with_names(struct arena *a, const struct subnet *s, const struct subnet_name *names, struct subnet **ret);

/* A subnet of some ports of another, ascending, and their nodes, for work that must not cost as much as the whole fabric. A port
 * has a peer if that is among them, too. Nodes are not found by name. The result borrows texts and links of nodes. Returns 0 or
 * -ENOMEM; *ret in the arena. */
int subnet_part(struct arena *a, const struct subnet *s, const uint32_t *ports, uint32_t n, struct subnet **ret);

/* A raw NodeDescription (up to NODE_DESCRIPTION_SIZE bytes of any content) without blanks at its end, its other bytes escaped as
 * \xHH where they are not printable ASCII, or a backslash. A new string in the arena; NULL: out of memory. */
const char *node_description_escape(struct arena *a, const char *raw, size_t size);
/* Splits an escaped description. Hosts have "HOST DEVICE" (rdma-ndd's "%h %d"); managed switches of NVIDIA have
 * "MF0;NAME:MODEL/U1"; an "... Aggregation Node" is no host. The results are new strings in the arena, escaped. Returns 0 or
 * -ENOMEM. */
int node_description_split(struct arena *a, const char *description, const char **ret_name, const char **ret_device);

/* Parses the output of ibnetdiscover, which is also ibsim's netfile. It contains no capabilities, states and routes (partition_cap
 * 0, PORT_STATE_NONE). Bad lines become findings. Returns 0, -EBADMSG (see the findings), or -ENOMEM. */
int subnet_parse_topology(struct arena *a, const char *file_name, const char *bytes, size_t n, struct findings *findings,
                          struct subnet **ret);
