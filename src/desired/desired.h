/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * desired/: memberships x fabric -> the P_Keys that each table should hold.
 *
 * An endport should hold one entry for each of its partitions, or two where it is `both`. An enforcing port should hold the
 * entries of its peer, but only the full one where the peer has both. The result is a set of P_Keys for each port. The planner
 * chooses their indexes, which depend on what the table holds.
 *
 * This folder does not know what the tables hold now.
 */

#include "policy/policy.h"

struct desired_port {
        const struct p_key *wanted; /* ascending base, the limited before the full entry */
        uint32_t n_wanted;
        /* For the rule, of a frozen port (policy/freeze.h): the policy may give it from `wanted`, the least, up to `most`. */
        const struct desired_port *most; /* NULL: the policy gives exactly `wanted` */
        bool most_is_held;               /* the policy may also give what the table holds: what it gave before is not known */
        uint16_t index0_base;            /* of a lease whose entry belongs at index 0 of this port; 0: that of `struct desired` */
};

struct desired {
        const struct policy *policy; /* borrows */
        const struct subnet *subnet; /* borrows */
        struct desired_port *ports;  /* same index as subnet->ports; empty for ports that are not managed */
        uint16_t index0_base;        /* its entry belongs at index 0, but for ports with one of their own */
        const enum freeze *frozen;   /* of each port (policy/freeze.h); NULL: none is frozen */
};

/* The base whose entry belongs at index 0 of this endport if it is a member; 0: none. */
static inline uint16_t desired_index0_base(const struct desired *desired, uint32_t port)
{
        return desired->ports[port].index0_base ?: desired->index0_base;
}

/* Returns 0 or -ENOMEM; *ret lives in the arena and borrows what memberships borrows. */
int desired_compute(struct arena *a, const struct memberships *memberships, struct desired **ret);

/* The entries of a leaf port, whose peer is this endport: of two of one base only the full one, because that also lets through what
 * the limited one does. Returns 0 or -ENOMEM; *ret lives in the arena. */
int desired_of_leaf(struct arena *a, const struct desired_port *peer, struct desired_port *ret);

/* The entries that an endport should hold under every reading of contested lines. Returns 0 or -ENOMEM; *ret lives in the arena. */
int desired_certain(struct arena *a, const struct memberships *memberships, uint32_t port, struct desired_port *ret);
