/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What a policy may give the ports of one host, without a snapshot of the fabric.
 *
 * A host knows its own name, devices and GUIDs, so most lines can be resolved. Two kinds cannot: @SWITCH, because the host does not
 * know where it is plugged in; and SELF, because pkeyd may run on another host. Where such a line may decide, several memberships
 * are possible, and a table with any of them may match the policy. A table with another membership certainly differs from it.
 */

#include "policy/policy.h"

/* The bit of a membership in a set of memberships. */
#define MEMBERSHIP_BIT(m) (1u << (m))

struct possible_membership {
        uint32_t partition;       /* index into policy->partitions */
        unsigned possible;        /* set of MEMBERSHIP_BIT */
        enum membership likely;   /* the possible one if no unresolved line matches */
        const struct policy_rule *unresolved; /* a line that may decide and cannot be resolved; NULL: none */
};

struct possibilities {
        const struct policy *policy;
        /* of port p: items[p * policy->n_partitions + partition] */
        struct possible_membership *items;
};

/* host: a snapshot of this host's devices only. Its `self` is the port that SELF may select, its `sm` the port that the master SM
 * is certainly on. Two equally specific lines that disagree are an error, unless a more specific one that cannot be resolved may
 * decide; then only what such lines give is possible. Selectors without a match are not reported. Returns 0, -EBADMSG, -ENOMEM;
 * *ret lives in the arena and borrows policy. */
int policy_resolve_local(struct arena *a, const struct policy *policy, const struct subnet *host,
                         struct findings *findings, struct possibilities *ret);
