/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The rule decides whether a write may be sent, for one base.
 *
 * A port's level in a base is what its P_Key table gives it there (a limited and a full entry together count as full). Two ports
 * can communicate if both have a level and at least one is full. pkeyd knows bounds of a port's level: what the port certainly has,
 * and the most it may have. The policy gives each port a level, too. For a port that is frozen, or was never discovered completely,
 * only a range of that level is known: its lowest value counts for a gain, its highest for a loss. So no port can begin to
 * communicate with it that the policy may not allow, and none is cut off from it that the policy may allow. Behind a filter of one
 * direction a port has one level for what it sends and one for what it receives; what one port sends is judged against what the
 * others receive.
 *
 *     gain  A write that can raise a port's level is admitted only if, for every port with which it may then communicate, the
 *           policy allows that, or the two certainly communicate already.
 *     loss  A write that can lower a port's level is admitted only if every port that may communicate with it, and may by the
 *           policy, certainly can afterwards. An absent port communicates with no other port.
 *
 * Then no order of admitted writes breaks a promise: two ports that may communicate before and after a change of the policy may do
 * so all the time, and two ports that may do so neither before nor after never may. A search of all small cases proves this
 * (tests/unit/check_rule.c repeats it). The rule sees the other ports only as a number for each class, so it takes the same time
 * on every fabric.
 */

#include "ib/types.h"
#include "util/macros.h"

/* What is known of a port's level in one base: has <= the level <= may. */
struct bounds {
        uint8_t has, may; /* enum level */
};

/* What the rule needs to know of another port. */
struct rule_class {
        uint8_t policy;       /* enum level: what the policy gives it, or a range of POLICY_... */
        struct bounds bounds;
        bool is_absent;       /* it may hold bounds.may, but communicates with no other port now */
};

/* The number of ports of each class, for one base. A port that certainly has no level is not counted. */
struct rule_counts {
        uint32_t n[N_POLICY_LEVELS][N_LEVELS + 1][LEVEL_FULL]; /* by policy; by bounds.has, or N_LEVELS for absent ports; by
                                                                * bounds.may - 1 */
};

/* Switches differ in what a filter with a limited entry passes of a full member: all of it, because the bases are equal, or only
 * what a limited member may send. A write has to be admitted for both models. */
enum filter_model {
        FILTER_BY_LEVEL, /* the lower of both levels counts */
        FILTER_BY_BASE,  /* any entry of the base passes everything */
        N_FILTER_MODELS,
};

/* A filter may be on in one direction only (IBA 1.5, 14.2.5.6: PartitionEnforcementInbound, Outbound; inbound is what the host
 * sends). Two ports communicate if each can send to the other. */
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

/* Which part of the rule does not admit a write. */
enum rule_verdict {
        RULE_ADMITS,
        RULE_GAIN, /* ports that must not communicate could */
        RULE_LOSS, /* ports that may communicate could be cut off */
};

/* The policy of a port that gets at least the one level and at most the other (least <= most). */
enum level rule_policy_between(enum level least, enum level most);
/* The level that a policy counts for on this side of the rule: of a range the one that admits least. */
enum level rule_policy_for(enum rule_verdict side, enum level policy);

/* Judges a write against one other port. `policy` is what the policy gives the port that is written; `before` and `after` are its
 * bounds around the write. */
enum rule_verdict rule_judge_pair(enum level policy, struct bounds before, struct bounds after, const struct rule_class *other);

/* Judges a write against all other ports: the counts without the port that is written. */
enum rule_verdict rule_judge(enum level policy, struct bounds before, struct bounds after, const struct rule_counts *others);

/* Adds `n` ports of a class; subtracts if n is negative. */
void rule_count(struct rule_counts *counts, const struct rule_class *class, int n);
