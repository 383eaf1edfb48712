/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * pins/: which node a name belongs to.
 *
 * Root on a host can set any NodeDescription. With `identity: pin`, a name is bound to the node GUIDs that it was first seen with.
 * A *pin* binds one node GUID to what the node was called: its name, and its device or, for a switch, its board.
 * So each node has one pin at most, and a name has as many as it has nodes: a host with two adapters, the switches of a director.
 * A NodeDescription that names another host, device or board than the pin is a *claim* (claims.h).
 *
 *     the node   calls itself                      for the policy it has
 *     is pinned  as its pin has it                 that name
 *     is pinned  otherwise, or nothing yet         the name of its pin: it gains nothing and loses nothing; a claim, unless it
 *                                                  has no name yet
 *     is new     by a name without a pin           that name, to which it is bound now
 *     is new     by a name that others have        no name; lines with its GUID, its switch or its type still count; a claim
 *     is new     nothing yet                       what it calls itself
 *
 * Bound together are all new nodes that have one name in one snapshot, because a host with two adapters has two nodes. If two of
 * them have the same device, too, none is: one of them is an impostor, and it is not known which. Such ports are frozen
 * (policy/freeze.h) until an admin accepts one or renames the other.
 *
 * A name that a driver or the firmware sends before the host has set one is no name: the empty one, that of the product
 * ("MT4123 ConnectX6 Mellanox Technologies"), "localhost", and "(none)". It binds nothing, and takes nothing from a node that has a
 * pin. Nor does a node that did not answer all queries of discovery bind a name.
 *
 * Devices and boards are pinned, too, because lines can name them (node7/mlx5_1, @director:L20/U2): with two adapters root on a
 * host could otherwise move the memberships of one to the other. A kernel that numbers devices in another order therefore makes a
 * claim for each of them; `pkeyctl pin accept NAME` accepts all claims of the nodes that have this name already.
 *
 * Switches are pinned like hosts, because @SWITCH/PORTS selects what is plugged into them. All nodes share one set of names.
 *
 * Pins never expire: a host that is down keeps its name. They change only in these ways:
 *
 *     pins_bind      the daemon, or pkeyctl apply, decided by a policy with `identity: pin`: new names are bound. Such a pin is
 *                    provisional until that policy is in force (pins_keep); otherwise it is taken back (pins_take_back)
 *     pins_accept    an admin says that a node is what it calls itself; a node that had exactly this name loses its pin
 *     pins_drop      an admin drops a name: the next sweep binds it to the nodes that have it then
 *     pins_move      an admin exchanged an adapter: the new node gets the name of the old one
 *
 * Invariants: ascending node GUID, one pin for each node; no two pins have the same name, device and board, except what
 * another version of pkeyd stored. Names are escaped, as in struct subnet_node.
 *
 * This folder does not know the policy, nor where pins are stored.
 */

#include "subnet/subnet.h"

#define PINS_MAX 200000 /* beyond, new nodes are not bound, and have the name that they give themselves */

struct pin {
        struct guid node;
        enum node_type type;
        struct subnet_name name;  /* owned by struct pins */
        uint64_t since;           /* seconds since 1970 */
        bool is_provisional;      /* bound by pins_bind() since the last pins_keep() */
        bool is_stored;           /* the store has it as it is here */
};

struct pins {
        struct pin *items;        /* ascending node GUID; malloc'ed */
        uint32_t n, allocated;
        struct guid *gone;        /* malloc'ed; nodes that lost their pin since the last pins_stored() */
        uint32_t n_gone, allocated_gone;
};

void pins_done(struct pins *p);

/* Adds a pin from the store, or replaces that of the same node; everything is copied. Returns 0, -ENOSPC or -ENOMEM. */
int pins_add(struct pins *p, const struct pin *pin);

/* The pin of this node; NULL: it has none. Borrowed until the next change. */
const struct pin *pins_find(const struct pins *p, struct guid node);

/* True if the node has the name, and the device or board, of the pin. */
bool pin_is_of(const struct pin *pin, const struct subnet_node *node);
/* True if the node gives itself no name of its own, or none yet. */
bool pins_is_unnamed(const struct subnet_node *node);

/* Binds the new names of a snapshot, provisionally. Returns 1 if there were any, 0, or -ENOMEM. */
int pins_bind(struct pins *p, const struct subnet *s, uint64_t wall);
/* pins_keep() makes the provisional pins permanent; pins_take_back() removes them, as if they had never been. */
void pins_keep(struct pins *p);
void pins_take_back(struct pins *p);

/* Binds a node of the snapshot, which has a name, to what it calls itself. Returns 0, -ENOSPC or -ENOMEM. */
int pins_accept(struct pins *p, const struct subnet *s, uint32_t node, uint64_t wall);
/* Removes all pins of a name. Returns how many, or -ENOMEM. */
int pins_drop(struct pins *p, const char *name);
/* The pin of `from` becomes that of a node of the snapshot: with the device that this node calls itself if it has the name, else as
 * the pin has it. Returns 0, -ENOENT: `from` has no pin; -ENOSPC or -ENOMEM. */
int pins_move(struct pins *p, struct guid from, const struct subnet *s, uint32_t node, uint64_t wall);

/* All pins were stored, and the removed ones deleted. */
void pins_stored(struct pins *p);
/* The store was lost: every pin has to be stored again. */
void pins_unstore(struct pins *p);
