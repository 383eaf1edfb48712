/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "knowledge/rule.h"

#include <assert.h>

#define ABSENT    N_LEVELS /* in place of bounds.has */
#define N_CLASSES (N_POLICY_LEVELS * (N_LEVELS + 1) * LEVEL_FULL)

enum level rule_policy_between(enum level least, enum level most)
{
        if (least == most)
                return least;
        if (most == LEVEL_LIMITED)
                return POLICY_UP_TO_LIMITED;
        return least == LEVEL_LIMITED ? POLICY_FROM_LIMITED : POLICY_UNKNOWN;
}

enum level rule_policy_for(enum rule_verdict side, enum level policy)
{
        if (policy < N_LEVELS)
                return policy;
        if (side == RULE_GAIN)
                return policy == POLICY_FROM_LIMITED ? LEVEL_LIMITED : LEVEL_NONE;
        return policy == POLICY_UP_TO_LIMITED ? LEVEL_LIMITED : LEVEL_FULL;
}

/* Whether the policy lets them communicate, as far as it is known. */
static bool is_wanted(enum rule_verdict side, enum level x, enum level y)
{
        return levels_talk(rule_policy_for(side, x), rule_policy_for(side, y));
}

enum rule_verdict rule_judge_pair(enum level policy, struct bounds before, struct bounds after, const struct rule_class *other)
{
        bool present = !other->is_absent, can_lower = after.has < before.has || after.may < before.may;

        if (after.may > before.may && !is_wanted(RULE_GAIN, policy, other->policy) && levels_talk(after.may, other->bounds.may) &&
            !(present && levels_talk(before.has, other->bounds.has)))
                return RULE_GAIN;
        if (can_lower && is_wanted(RULE_LOSS, policy, other->policy) && present && levels_talk(before.may, other->bounds.may) &&
            !levels_talk(after.has, other->bounds.has))
                return RULE_LOSS;
        return RULE_ADMITS;
}

/* Class `i` of N_CLASSES, in the order of struct rule_counts. */
static struct rule_class class_at(unsigned i)
{
        unsigned has = i / LEVEL_FULL % (N_LEVELS + 1);

        return (struct rule_class) {
                .policy = (uint8_t) (i / LEVEL_FULL / (N_LEVELS + 1)),
                .bounds = { .has = (uint8_t) (has == ABSENT ? LEVEL_NONE : has), .may = (uint8_t) (i % LEVEL_FULL + 1) },
                .is_absent = has == ABSENT,
        };
}

enum rule_verdict rule_judge(enum level policy, struct bounds before, struct bounds after, const struct rule_counts *others)
{
        enum rule_verdict verdict = RULE_ADMITS;

        /*@ loop invariant 0 <= i <= N_CLASSES;
            loop invariant verdict == RULE_ADMITS ==> admits_first(policy, before, after, others, i);
            loop invariant verdict != RULE_ADMITS ==> !admits_first(policy, before, after, others, i);
            loop assigns i, verdict;
            loop variant N_CLASSES - i; */
        for (unsigned i = 0; i < N_CLASSES; i++) {
                const struct rule_class class = class_at(i);

                if (verdict == RULE_ADMITS && others->n[class.policy][i / LEVEL_FULL % (N_LEVELS + 1)][i % LEVEL_FULL] > 0)
                        verdict = rule_judge_pair(policy, before, after, &class);
        }
        return verdict;
}

void rule_count(struct rule_counts *counts, const struct rule_class *class, int n)
{
        unsigned has = class->is_absent ? ABSENT : class->bounds.has, may = class->bounds.may;
        uint32_t *count;

        assert(class->policy < N_POLICY_LEVELS && has <= ABSENT && may < N_LEVELS && (class->is_absent || has <= may));
        if (may == LEVEL_NONE)
                return;
        count = &counts->n[class->policy][has][may - 1];
        assert(n >= 0 || *count >= (uint32_t) -n);
        *count = n < 0 ? *count - (uint32_t) -n : *count + (uint32_t) n;
}
