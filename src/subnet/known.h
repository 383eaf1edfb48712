/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Known endports: every endport that was ever seen, as it was when it was last seen. A host that is down is in no snapshot, but a
 * partition file for the day it returns (opensm/phases.h) needs the port GUIDs behind its name.
 *
 * Bounded: a port that was absent for KNOWN_DAYS is forgotten, and beyond KNOWN_MAX no new ports are added. The absence of a port
 * is counted from sweep to sweep of one process, by a monotonic clock. So no port is forgotten because the wall clock was set
 * wrong, or because no process ran for a long time.
 */

#include "subnet/subnet.h"

#define KNOWN_MAX  200000
#define KNOWN_DAYS 90

struct known_port {
        struct guid node_guid, port_guid;
        enum node_type type;
        uint8_t number;
        char description[4 * NODE_DESCRIPTION_SIZE + 1]; /* escaped, as in struct subnet_node */
        struct guid switch_guid;    /* the switch that it was plugged into; 0: none */
        uint8_t switch_port;
        uint64_t seen;              /* seconds since 1970; after a restart up to a day too early */
        usec_t absent;              /* how long it has been absent, as counted; after a restart up to an hour too little */
        bool is_absent;             /* the last snapshot of known_learn() did not have it */
        bool is_stored;             /* the store has it as it is here */
        bool is_new;                /* first seen by a discovery since known_reported() */
        uint64_t noted;             /* `seen` as the store has it, or will have it */
};

struct known {
        struct known_port *ports;   /* ascending port GUID; malloc'ed */
        uint32_t n, allocated;
        struct guid *gone;          /* malloc'ed; port GUIDs that were forgotten since the last known_stored() */
        uint32_t n_gone, allocated_gone;
        usec_t counted, unnoted;    /* when absence was last counted (0: never), and how much of it is not stored yet */
};

void known_done(struct known *k);

/* Adds a port from the store. They may come in any order; of two with one GUID the last counts. Returns 0, -ENOSPC or -ENOMEM. */
int known_add(struct known *k, const struct known_port *port);

/* The port with this GUID; NULL: it was never seen. Borrowed until the next change. */
const struct known_port *known_find(const struct known *k, struct guid port_guid);

/* The port that was last at this switch port, of those that are not in the subnet; NULL: none is known. Borrowed until the next
 * change. */
const struct known_port *known_find_at(const struct known *k, const struct subnet *subnet, struct subnet_place place);

/* "node0001 mlx5_0/1", "leaf07/0", as subnet_port_label(); without a description the GUID of the port. Allocated from a; NULL: out
 * of memory. */
const char *known_port_label(struct arena *a, const struct known_port *p);

/* The last NodeDescription of the node, escaped; "": it was never seen. Borrowed until the next change. */
const char *known_description(const struct known *k, struct guid node);

/* True if x was last present after y was. */
bool known_is_later(const struct known_port *x, const struct known_port *y);

/* Records that all endports of a snapshot, except incomplete ones, were seen at `wall` (seconds since 1970), and forgets ports that
 * are absent for too long by the clock of `now`. Returns 1 if that should be stored (a port is new, moved, disappeared or was
 * forgotten, what is stored is a day old, or an hour of absence was counted), 0, or -ENOMEM. */
int known_learn(struct known *k, const struct subnet *subnet, usec_t now, uint64_t wall);

/* Extends the snapshot by the known ports that are not in it, where they were last seen, and by what is known of incomplete nodes.
 * Use the result only to compute memberships. Returns 0 or -ENOMEM; *ret in the arena. */
int known_extend(struct arena *a, const struct known *k, const struct subnet *subnet, struct subnet **ret);
/* The same, and adds a port for each of these GUIDs that was never seen as the GUID of a port or node: it has no name and no place,
 * and its node is of this type (NODE_UNKNOWN: not known). */
int known_extend_named(struct arena *a, const struct known *k, const struct subnet *subnet, const struct guid *guids,
                       uint32_t n_guids, enum node_type type, struct subnet **ret);

/* Marks the new ports as reported. */
void known_reported(struct known *k);
/* Marks all ports as stored, and the forgotten ones as deleted from the store. */
void known_stored(struct known *k);
/* Marks every port as not stored, because the store was lost. */
void known_unstore(struct known *k);
