/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What a policy can mean for the ports of one host when nothing is known of the fabric.
 *
 * A host knows its own names, devices and GUIDs, so most lines can be resolved. Not those that say where it is plugged in
 * (@SWITCH), and SELF only as far as the snapshot has one: the port that pkeyd would work through if it runs here. Where
 * such a line could decide, more than one membership is possible, and each of them is as the policy says. What is not
 * possible is a difference, for sure.
 */

#include "policy/policy.h"

/* Bit of a membership in a set of them. */
#define MEMBERSHIP_BIT(m) (1u << (m))

struct possible_membership {
        uint32_t partition;       /* index into policy->partitions */
        unsigned possible;        /* set of MEMBERSHIP_BIT */
        enum membership likely;   /* the one of them that needs no line which cannot be resolved */
        const struct policy_rule *unresolved; /* such a line that could decide; NULL: there is none */
};

struct possibilities {
        const struct policy *policy;
        const struct subnet *host;
        /* of port p: items[p * policy->n_partitions + partition] */
        struct possible_membership *items;
};

/* host: a snapshot of nothing but this host's devices. Its `self` is where SELF may be, its `sm` where the master SM is for
 * sure. Nothing is said of selectors without a match; two equally specific lines that disagree are an error. Returns 0,
 * -EBADMSG, -ENOMEM; *ret lives in the arena. */
int policy_resolve_local(struct arena *a, const struct policy *policy, const struct subnet *host,
                         struct findings *findings, struct possibilities *ret);
