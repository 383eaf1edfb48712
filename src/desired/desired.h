/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * desired/: memberships x fabric -> what every P_Key table should hold.
 *
 * For an endport: one entry per partition it is a member of, two where it is both. For an enforcing port: the union of
 * what its peer has, where both memberships of a base are there the full one only. What is wanted is a set of
 * P_Keys; at which index each of them stands depends on what is in the table already, and is the planner's matter.
 *
 * This folder refuses to know what the tables hold now.
 */

#include "policy/policy.h"

struct desired_port {
        const struct p_key *wanted; /* ascending base, the limited before the full entry */
        uint32_t n_wanted;
        /* of a frozen port, for the rule (policy/freeze.h): `wanted` is the least that the policy may give it, and this the most */
        const struct desired_port *most; /* NULL: it gives exactly what is wanted */
        bool most_is_held;               /* it may have given what the table holds, too: what it was before is not known */
};

struct desired {
        const struct policy *policy; /* borrows */
        const struct subnet *subnet; /* borrows */
        struct desired_port *ports;  /* same index as subnet->ports; ports that are not managed want nothing */
        uint16_t index0_base;        /* whose entry belongs at index 0 */
        const enum freeze *frozen;   /* of each port; NULL: none is. See policy/freeze.h */
};

/* Returns 0 or -ENOMEM; *ret lives in the arena and borrows what memberships borrows. */
int desired_compute(struct arena *a, const struct memberships *memberships, struct desired **ret);

/* What an endport should have whichever of the lines that are contested mean it. Returns 0 or -ENOMEM; in the arena. */
int desired_certain(struct arena *a, const struct memberships *memberships, uint32_t port, struct desired_port *ret);
