/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The rule that decides whether a write may be sent, for one base.
 *
 * A port's level in a base is what its P_Key table gives it there (limited and full entry together count as full). Two ports
 * can talk if both have a level and at least one is full. What pkeyd knows of a port are bounds: the level that it certainly
 * has, and the highest that it may have. The policy gives each port a level, too. (Of a port that is frozen, or was never
 * discovered completely, that is known as a range only. The lowest of it counts for a gain, the highest for a loss: nobody may come
 * to talk with the port whom the policy may not let, and nobody may be cut off from it whom the policy may let talk with it. Behind
 * a filter of one direction a port has a
 * level for what it sends and one for what it receives: what one sends is judged against what the others receive.)
 *
 *     gain  A write that can raise a port's level is admitted only if every port with which it may then come to talk is one
 *           with which the policy lets it talk, or one with which it certainly talks already.
 *     loss  A write that can lower a port's level is admitted only if every port with which it may be talking, and with which
 *           the policy lets it talk, can certainly talk with it afterwards. A port that is not there talks with nobody.
 *
 * Then no order of admitted writes breaks a promise: who may talk before and after a change of policy may talk all the way
 * through, and who may talk neither before nor after never may (proven by brute force for small cases; tests/unit/check_rule.c
 * does it again). The rule sees the other ports only as numbers: how many there are of each class. So it takes the same time on
 * every fabric.
 */

#include "ib/types.h"
#include "util/cleanup.h"

enum level {
        LEVEL_NONE,
        LEVEL_LIMITED,
        LEVEL_FULL,
        N_LEVELS,
        /* of a policy only, where it is not known exactly what it gives a port: */
        POLICY_UNKNOWN = N_LEVELS, /* none for a gain, full for a loss */
        POLICY_UP_TO_LIMITED,      /* none for a gain, limited for a loss */
        POLICY_FROM_LIMITED,       /* limited for a gain, full for a loss */
        N_POLICY_LEVELS,
};

/* What is known of a port's level in one base: has <= the level <= may. */
struct bounds {
        uint8_t has, may; /* enum level */
};

/* What the rule has to know of another port. */
struct rule_class {
        uint8_t policy;       /* enum level: what the policy gives it, or a range of POLICY_... */
        struct bounds bounds;
        bool is_absent;       /* it may hold bounds.may, and talks with nobody now */
};

/* How many ports there are of each class, for one base. A port that certainly has no level is in none. */
struct rule_counts {
        uint32_t n[N_POLICY_LEVELS][N_LEVELS + 1][LEVEL_FULL]; /* by policy; by bounds.has, the last: absent; by bounds.may - 1 */
};

static inline bool levels_talk(unsigned x, unsigned y)
{
        return x != LEVEL_NONE && y != LEVEL_NONE && (x == LEVEL_FULL || y == LEVEL_FULL);
}

/* Switches differ in what a filter with a limited entry lets through of a full member: all of it, for the bases are equal, or only
 * what a limited member may send. A write has to be admitted for both. */
enum filter_model {
        FILTER_BY_LEVEL, /* the lower one of both levels counts */
        FILTER_BY_BASE,  /* any entry of the base lets through everything */
        N_FILTER_MODELS,
};

/* A filter may be on in one direction only (IBA 1.5, 14.2.5.6: PartitionEnforcementInbound, Outbound; inbound is what the host
 * sends). Two ports talk if each of them can send to the other. */
enum direction {
        SENDS,
        RECEIVES,
        N_DIRECTIONS,
};

/* The bounds of a host's level behind a filter with such a table. */
static inline struct bounds bounds_behind_filter(enum filter_model model, struct bounds host, struct bounds filter)
{
        if (model == FILTER_BY_LEVEL)
                return (struct bounds) { MIN(host.has, filter.has), MIN(host.may, filter.may) };
        return (struct bounds) { filter.has ? host.has : LEVEL_NONE, filter.may ? host.may : LEVEL_NONE };
}

/* Which rule stands in the way of a write. */
enum rule_verdict {
        RULE_ADMITS,
        RULE_GAIN, /* it could let ports talk that may not */
        RULE_LOSS, /* it could cut ports off that may talk */
};

/* The policy of a port to which it gives at least the one level and at most the other (least <= most). */
enum level rule_policy_between(enum level least, enum level most);
/* What the policy counts for on this side of the rule: of a range what admits the least. */
enum level rule_policy_for(enum rule_verdict side, enum level policy);

/* Judges a write by one other port: policy is what the policy gives the port that is written, before and after are its bounds
 * around the write. */
enum rule_verdict rule_judge_pair(enum level policy, struct bounds before, struct bounds after, const struct rule_class *other);

/* Judges a write by all other ports: the counts without the port that is written. */
enum rule_verdict rule_judge(enum level policy, struct bounds before, struct bounds after, const struct rule_counts *others);

/* Adds `n` ports (or takes -n away) of a class. */
void rule_count(struct rule_counts *counts, const struct rule_class *class, int n);
