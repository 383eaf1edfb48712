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
 * discovery.c has the stage and its requests, answers.c what follows from each answer, walk.c the structures. links.h remembers
 * which port was at the other end of each link, opensm_neighbors.c reads that from a file of OpenSM.
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
 *   *incomplete* (subnet.h), without name and LID. It is also incomplete, and not queried further, if two requests to
 *   its agent were not answered. A node whose NodeDescription, SwitchInfo or own PortInfo was not answered is incomplete, too.
 *   A node without a name has the one by which it is known (known.h). Nothing on an incomplete node is changed.
 * - A GUID has one place. The agent found first stays, with its own attributes. A second place is listed as a
 *   *conflict*, and so is a switch port that two links lead to. An agent with a conflict is reached by its directed
 *   route only, because the other device may have the same LID.
 * - A switch is queried once, however many links lead to it. An answer over the link of one switch names a port of
 *   another: that is a *claim* of whatever device answered. The port named is queried, too, unless the snapshot before
 *   has the link, and the first switch was found over another one that it has. If it does not name the other end, its own
 *   answer counts, and the claimant is silent: a false claim must not hide what is plugged in there. PortInfo of a
 *   confirmed link is needed only to see whether the switch has an active port.
 * - A device that is found first and answers as a switch hides all ports behind the true one. Therefore, if several
 *   links lead to a switch, the walk also enters it over a second one and leaves it by the port of the first: the
 *   switch at that end must answer. If it does not, or if the second device differs in NodeInfo, two devices claim to
 *   be the switch. It is not known which one lies: neither is in the snapshot, nor what was found through the first, and the
 *   links to them are silent. A switch found over a link that the snapshot before has needs no such check.
 * - Both checks together are one NodeInfo for each link between switches in a first walk, and none in later ones. They
 *   do not detect devices at both ends of an invented link, a device with several links that shadows a switch, one that
 *   is plugged in at the other end of a cable that the snapshot before has, or one that answers as a switch which does not
 *   answer itself.
 *
 * Invariants of the snapshot: every switch port in it (and the local port) whose link is up, or was not read, leads to
 * a node in the snapshot or is silent. A CA or router port other than the local one is in it only together with its
 * link. Links are mutual. Every node GUID and every port GUID is in it once.
 *
 * M_Keys: a request carries the M_Key of the port it is sent to. Until NodeInfo has named that port, this is the key
 * of the claimant, else of the expected peer (links.h), or the most common key. If it gets no answer, the next of these
 * is tried once; a third key is never tried, because the port counts each wrong one. A device that claims the GUID of
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
        const struct subnet *before;            /* borrows; NULL: none. Its links between switches are not confirmed again.
                                                 * Ports and nodes that did not answer then get fewer retries
                                                 * (STAGE_RETRIES_AGAIN) */
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
