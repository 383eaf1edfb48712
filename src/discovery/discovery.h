/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * discovery/: a walk through the fabric that ends in a fabric snapshot (struct subnet).
 *
 * The walk is a stage (mad_engine/stage.h). It starts at the local port and uses directed routes only. NodeInfo sent
 * over a link names the node at its other end. A node that is not known yet is queried: NodeDescription, SwitchInfo
 * (switches), PortInfo of the port that answers, PortInfo of the other ports of a switch, and NodeInfo a second time. Every
 * switch port whose link is up leads to the next NodeInfo. Channel adapters and routers forward no directed route; a
 * CA with several ports is reached over each of its links. Hundreds of agents are queried at once, each with one
 * request at a time, because an SMA buffers few requests.
 *
 * Structures (walk.h): an *agent* is an SMA: that of a switch, or of one port of a CA or router. A *port* is one
 * through which a route can continue: an external port of a switch, or the local port. Each agent stores the port
 * through which it was found, so that routes take no memory. walk_snapshot.c builds the snapshot after the walk.
 *
 * Only the answers of the local port are trusted. Other nodes may lie, cables may be moved during the walk, and
 * answers may be missing. Therefore:
 *
 * - An agent is believed only about itself. An answer that cannot be true (GUID 0, unknown type, a local port number
 *   above the number of ports) counts as no answer. Agents, ports, hops and listed conflicts are bounded; what lies
 *   beyond a limit is not queried, and the port that leads there is silent.
 * - NodeInfo is queried first and last. If the last answer differs, the link led to another node in between, and the
 *   attributes may belong to either of the two. A name bound to the wrong GUID would bring along the partitions of
 *   that name. Such an agent is dropped as if it had not answered. It is not queried again in this walk: a second
 *   attempt can be cut in two as well, and the next discovery finds the fabric at rest.
 * - If the last NodeInfo is not answered, the snapshot keeps the node with its GUIDs and drops the attributes: it is
 *   *incomplete* (subnet.h), without name and LID. So it is if two requests to the agent were not answered; then it is
 *   not queried further. A node whose NodeDescription, SwitchInfo or own PortInfo was not answered is incomplete, too.
 *   A node without a name has the one by which it is known (known.h). Nothing on an incomplete node is changed.
 * - A GUID has one place. The agent found first stays, with its own attributes. A second place is listed as a
 *   *conflict*, and so is a switch port that two links lead to. An agent with a conflict is reached by its directed
 *   route only, because the other device may have the same LID.
 * - A switch is queried once, however many links lead to it. A link between two switches is followed from one end: the
 *   answer names the port at the other, whose PortInfo is then needed only to see whether the switch has an active port.
 *
 * Invariants of the snapshot: every switch port in it (and the local port) whose link is up, or was not read, leads to
 * a node in the snapshot or is silent. A CA or router port other than the local one is in it only together with its
 * link. Links are mutual. Every node GUID and every port GUID is in it once.
 *
 * M_Keys: a request carries the M_Key of the port it is sent to. Until NodeInfo has named that port, this is the key
 * of the expected peer (links.h), or the most common key. If the expected peer's key gets no answer, the common key is
 * tried once; a third key is never tried, because the port counts each wrong one. A device that claims the GUID of
 * another port is sent that port's key: M_Keys do not protect against such a device.
 *
 * Ownership: the walk owns all that it learned until discovery_free(). The snapshot belongs to its arena and borrows
 * nothing.
 *
 * This folder knows nothing about P_Key tables, policies and time, nor how a MAD is sent.
 */

#include "discovery/links.h"
#include "ib/m_keys.h"
#include "mad_engine/stage.h"
#include "subnet/known.h"
#include "subnet/subnet.h"

#define DISCOVERY_MAX_NODES 100000u    /* agents; a subnet has at most 49,151 unicast LIDs */
#define DISCOVERY_MAX_PORTS (1u << 20) /* of all switches together */

struct discovery;

struct discovery_config {
        const struct m_keys *m_keys;            /* borrows; NULL: none */
        const struct discovery_links *expected; /* borrows; NULL: no peer is expected */
        struct guid local_port;                 /* GUID of the local port, for its M_Key; 0: unknown */
        const struct subnet *before;            /* borrows; NULL: none. Ports and nodes that did not answer then get fewer
                                                 * retries (STAGE_RETRIES_AGAIN) */
        const struct known *known;              /* borrows; NULL: none. Names of nodes without a NodeDescription */
        const struct discovery *interrupted;    /* borrows; NULL: none. An abandoned walk (stage.h): its unanswered tries count
                                                 * for this one, which still tries each request once */
        uint8_t retries;                        /* of each request */
        /* Limits below the defaults; 0: the default (of hops: MAD_MAX_HOPS). */
        uint32_t max_nodes, max_ports;
        uint8_t max_hops;
};

/* Returns 0 or -ENOMEM; *ret owned. */
int discovery_new(const struct discovery_config *config, struct discovery **ret);
struct discovery *discovery_free(struct discovery *d);
DEFINE_CLEANUP(struct discovery *, discovery_free)

struct mad_stage discovery_stage(struct discovery *d);

/* Builds the snapshot, once, after the stage is done; *ret in the arena. Returns 0, -ENOMEM, -EBUSY (the stage is not
 * done), -ENODATA (the local port did not answer NodeInfo and PortInfo), -EIO (this host could not send those
 * requests). */
int discovery_finish(struct discovery *d, struct arena *a, struct subnet **ret);

/* Adds the links that the walk found to `links`, for the next walk. Expected links that did not answer stay. Returns 0
 * or -ENOMEM. */
int discovery_learn_links(const struct discovery *d, struct discovery_links *links);
