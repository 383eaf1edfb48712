/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What scripts/prove proves of src/knowledge/rule.c: each function fulfils its contract for every input that the contract allows,
 * and none has a run-time error.
 */

#include "knowledge/rule.h"

#include <limits.h>

/*@ predicate talk(integer x, integer y) = x != LEVEL_NONE && y != LEVEL_NONE && (x == LEVEL_FULL || y == LEVEL_FULL);

    predicate is_level(integer x) = LEVEL_NONE <= x <= LEVEL_FULL;
    predicate is_policy(integer x) = LEVEL_NONE <= x < N_POLICY_LEVELS;
    // If a policy is known only as a range: the level of the range that admits least.
    logic integer at_least(integer policy) =
        policy < N_LEVELS ? policy : policy == POLICY_FROM_LIMITED ? LEVEL_LIMITED : LEVEL_NONE;
    logic integer at_most(integer policy) =
        policy < N_LEVELS ? policy : policy == POLICY_UP_TO_LIMITED ? LEVEL_LIMITED : LEVEL_FULL;
    predicate are_bounds(struct bounds b) = is_level(b.has) && is_level(b.may);

    predicate gains(integer policy, struct bounds before, struct bounds after, integer p, integer has, integer may, boolean absent) =
        after.may > before.may && talk(after.may, may) && !talk(at_least(policy), at_least(p)) && (absent == \true || !talk(before.has, has));
    predicate loses(integer policy, struct bounds before, struct bounds after, integer p, integer has, integer may, boolean absent) =
        (after.has < before.has || after.may < before.may) && absent == \false && talk(at_most(policy), at_most(p)) && talk(before.may, may) &&
        !talk(after.has, has);
    predicate admits(integer policy, struct bounds before, struct bounds after, integer p, integer has, integer may, boolean absent) =
        !gains(policy, before, after, p, has, may, absent) && !loses(policy, before, after, p, has, may, absent);

    // The conjunction over all classes of which there are ports.
    predicate admits_class(integer policy, struct bounds before, struct bounds after, struct rule_counts *others,
                           integer p, integer h, integer m) =
        others->n[p][h][m] > 0 ==> admits(policy, before, after, p, h == N_LEVELS ? LEVEL_NONE : h, m + 1, (boolean) (h == N_LEVELS));
    // By number, in the order in which struct rule_counts has them.
    predicate admits_number(integer policy, struct bounds before, struct bounds after, struct rule_counts *others, integer i) =
        admits_class(policy, before, after, others, i / (LEVEL_FULL * (N_LEVELS + 1)), i / LEVEL_FULL % (N_LEVELS + 1), i % LEVEL_FULL);
    predicate admits_first(integer policy, struct bounds before, struct bounds after, struct rule_counts *others, integer n) =
        \forall integer i; 0 <= i < n ==> admits_number(policy, before, after, others, i);

    lemma every_class_has_a_number:
        \forall integer policy, struct bounds before, struct bounds after, struct rule_counts *others, integer p, integer h, integer m;
            0 <= p < N_POLICY_LEVELS && 0 <= h <= N_LEVELS && 0 <= m < LEVEL_FULL ==>
            (admits_class(policy, before, after, others, p, h, m) <==>
             admits_number(policy, before, after, others, (p * (N_LEVELS + 1) + h) * LEVEL_FULL + m));
*/

/*@ assigns \nothing;
    ensures \result != 0 <==> talk(x, y);
    ensures \result == 0 || \result == 1; */
static inline bool levels_talk(unsigned x, unsigned y);

/*@ requires is_level(least) && is_level(most) && least <= most;
    assigns \nothing;
    ensures is_policy(\result) && at_least(\result) == least && at_most(\result) == most; */
enum level rule_policy_between(enum level least, enum level most);

/*@ requires is_policy(policy) && (side == RULE_GAIN || side == RULE_LOSS);
    assigns \nothing;
    ensures side == RULE_GAIN ==> \result == at_least(policy);
    ensures side == RULE_LOSS ==> \result == at_most(policy); */
enum level rule_policy_for(enum rule_verdict side, enum level policy);

/*@ requires is_policy(x) && is_policy(y) && (side == RULE_GAIN || side == RULE_LOSS);
    assigns \nothing;
    ensures \result == 0 || \result == 1;
    ensures side == RULE_GAIN ==> (\result != 0 <==> talk(at_least(x), at_least(y)));
    ensures side == RULE_LOSS ==> (\result != 0 <==> talk(at_most(x), at_most(y))); */
static bool is_wanted(enum rule_verdict side, enum level x, enum level y);

/*@ requires i < N_POLICY_LEVELS * (N_LEVELS + 1) * LEVEL_FULL;
    assigns \nothing;
    ensures is_policy(\result.policy) && are_bounds(\result.bounds);
    ensures \result.policy == i / (LEVEL_FULL * (N_LEVELS + 1)) && \result.bounds.may == i % LEVEL_FULL + 1;
    ensures i / LEVEL_FULL % (N_LEVELS + 1) == N_LEVELS ==> \result.is_absent == 1 && \result.bounds.has == LEVEL_NONE;
    ensures i / LEVEL_FULL % (N_LEVELS + 1) != N_LEVELS ==>
        \result.is_absent == 0 && \result.bounds.has == i / LEVEL_FULL % (N_LEVELS + 1); */
static struct rule_class class_at(unsigned i);

/*@ requires is_policy(policy) && are_bounds(before) && are_bounds(after);
    requires \valid_read(other) && is_policy(other->policy) && are_bounds(other->bounds);
    assigns \nothing;
    ensures \result == RULE_ADMITS <==>
        admits(policy, before, after, other->policy, other->bounds.has, other->bounds.may, (boolean) (other->is_absent != 0));
    ensures \result == RULE_GAIN <==>
        gains(policy, before, after, other->policy, other->bounds.has, other->bounds.may, (boolean) (other->is_absent != 0)); */
enum rule_verdict rule_judge_pair(enum level policy, struct bounds before, struct bounds after, const struct rule_class *other);

/*@ requires is_policy(policy) && are_bounds(before) && are_bounds(after) && \valid_read(others);
    assigns \nothing;
    ensures \result == RULE_ADMITS <==>
        (\forall integer p, h, m; 0 <= p < N_POLICY_LEVELS && 0 <= h <= N_LEVELS && 0 <= m < LEVEL_FULL ==>
            admits_class(policy, before, after, others, p, h, m)); */
enum rule_verdict rule_judge(enum level policy, struct bounds before, struct bounds after, const struct rule_counts *others);

/*@ requires n > INT_MIN && \valid(counts) && \valid_read(class) && \separated(counts, class);
    requires is_policy(class->policy) && are_bounds(class->bounds) && (class->is_absent != 0 || class->bounds.has <= class->bounds.may);
    behavior nobody:
        assumes class->bounds.may == LEVEL_NONE;
        assigns \nothing;
    behavior counted:
        assumes class->bounds.may != LEVEL_NONE;
        requires 0 <= counts->n[class->policy][class->is_absent ? N_LEVELS : class->bounds.has][class->bounds.may - 1] + n <= UINT32_MAX;
        assigns counts->n[class->policy][class->is_absent ? N_LEVELS : class->bounds.has][class->bounds.may - 1];
        ensures counts->n[class->policy][class->is_absent ? N_LEVELS : class->bounds.has][class->bounds.may - 1] ==
            \old(counts->n[class->policy][class->is_absent ? N_LEVELS : class->bounds.has][class->bounds.may - 1]) + n;
    complete behaviors;
    disjoint behaviors; */
void rule_count(struct rule_counts *counts, const struct rule_class *class, int n);

#include "knowledge/rule.c"
