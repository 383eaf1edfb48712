/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "knowledge/rule.h"

#include <assert.h>

#define ABSENT N_LEVELS /* in place of bounds.has */

enum level rule_policy_for(enum rule_verdict side, enum level policy)
{
        if (policy != POLICY_UNKNOWN)
                return policy;
        return side == RULE_GAIN ? LEVEL_NONE : LEVEL_FULL;
}

/* Does the policy let them talk, as far as is known? */
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

static struct rule_class class_at(unsigned policy, unsigned has, unsigned may)
{
        return (struct rule_class) {
                .policy = (uint8_t) policy,
                .bounds = { .has = has == ABSENT ? LEVEL_NONE : (uint8_t) has, .may = (uint8_t) may },
                .is_absent = has == ABSENT,
        };
}

enum rule_verdict rule_judge(enum level policy, struct bounds before, struct bounds after, const struct rule_counts *others)
{
        enum rule_verdict verdict = RULE_ADMITS;

        for (unsigned p = 0; p < N_POLICY_LEVELS; p++)
                for (unsigned has = 0; has <= ABSENT; has++)
                        for (unsigned may = LEVEL_LIMITED; verdict == RULE_ADMITS && may <= LEVEL_FULL; may++) {
                                const struct rule_class class = class_at(p, has, may);

                                if (others->n[p][has][may - 1] > 0)
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
        *count += (uint32_t) n;
}
