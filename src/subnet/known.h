/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Endports that were seen once. A host that is down is in no snapshot, but who writes partitions ahead for the day it comes back
 * (opensm/phases.h) has to know the port GUIDs behind its name. What is known of a port is what was true when it was last seen.
 *
 * Bounded: who was absent for KNOWN_DAYS is forgotten, and beyond KNOWN_MAX no new ones are taken. How long a port is absent is
 * counted from sweep to sweep of one process, by a clock that nobody can set. So nobody is forgotten because the wall clock was
 * set wrong, or because no process ran for long.
 */

#include "subnet/subnet.h"

#define KNOWN_MAX  200000
#define KNOWN_DAYS 90

struct known_port {
        struct guid node_guid, port_guid;
        enum node_type type;
        uint8_t number;
        char description[4 * NODE_DESCRIPTION_SIZE + 1]; /* escaped, as in struct subnet_node */
        struct guid switch_guid;    /* what it was plugged into; 0: no switch */
        uint8_t switch_port;
        uint64_t seen;              /* seconds since 1970, as the clock said; after a restart it may be a day early */
        usec_t absent;              /* for how long, as was counted; after a restart it may be an hour less */
        bool is_absent;             /* it was missing in the last snapshot that known_learn() took */
        bool is_stored;             /* it is in the store as it is here */
        bool is_new;                /* it was never seen before the discoveries since known_reported() */
        uint64_t noted;             /* `seen` as the store has it, or is to have it */
};

struct known {
        struct known_port *ports;   /* ascending port GUID; malloc'ed */
        uint32_t n, allocated;
        struct guid *gone;          /* malloc'ed; port GUIDs that were forgotten since the last known_stored() */
        uint32_t n_gone, allocated_gone;
        usec_t counted, unnoted;    /* when absence was counted last (0: never), and how much of it is not to be stored yet */
};

void known_done(struct known *k);

/* One port, of the store: ports come in any order, of two with one GUID the last counts. Returns 0, -ENOSPC or -ENOMEM. */
int known_add(struct known *k, const struct known_port *port);

/* The port with this GUID; NULL: it was never seen. Borrowed until the next change. */
const struct known_port *known_find(const struct known *k, struct guid port_guid);

/* Who was at this switch port last, of those that are not in the subnet; NULL: nobody who is known. Borrowed likewise. */
const struct known_port *known_find_at(const struct known *k, const struct subnet *subnet, struct subnet_place place);

/* "node0001 mlx5_0/1", "leaf07/0", as subnet_port_label(); without a description the GUID of the port. Allocated from a; NULL: out
 * of memory. */
const char *known_port_label(struct arena *a, const struct known_port *p);

/* What the node was called last, escaped; "": it was never seen. Borrowed likewise. */
const char *known_description(const struct known *k, struct guid node);

/* Was x there after y was gone? */
bool known_is_later(const struct known_port *x, const struct known_port *y);

/* All endports of a snapshot, but for incomplete ones, were seen at `wall` (seconds since 1970); who is absent for too long, by the
 * clock of `now`, is forgotten. Returns 1 if that is worth writing down (somebody is new, moved, gone or forgotten, what is stored
 * is a day old, or an hour of absence was counted), 0, or -ENOMEM. */
int known_learn(struct known *k, const struct subnet *subnet, usec_t now, uint64_t wall);

/* The snapshot with those that are not in it, where they were last seen, and with what is known of incomplete nodes. Only good for
 * asking who is a member of what. Returns 0 or -ENOMEM; *ret in the arena. */
int known_extend(struct arena *a, const struct known *k, const struct subnet *subnet, struct subnet **ret);
/* The same, with a port for each of these GUIDs that was never seen, neither of a port nor of a node: it has no name, no place, and
 * is NODE_UNKNOWN. */
int known_extend_named(struct arena *a, const struct known *k, const struct subnet *subnet, const struct guid *guids,
                       uint32_t n_guids, struct subnet **ret);

/* Which ports are new was reported. */
void known_reported(struct known *k);
/* All ports were stored, and what is gone was deleted. */
void known_stored(struct known *k);
/* The store was lost: every port is to be stored anew. */
void known_unstore(struct known *k);
