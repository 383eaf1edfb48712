/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "verify/explain.h"

#include <errno.h>
#include <string.h>

#include "util/macros.h"

int explain_table_make(struct arena *a, const struct p_key *entries, uint32_t n, struct explain_table *ret)
{
        struct explain_level *levels = arena_new_array(a, struct explain_level, p_keys_count(entries, n));
        _cleanup_free_ struct p_key *keys = calloc(MAX(n, 1u), sizeof(*keys));
        uint32_t n_levels = 0;

        if (!levels || !keys)
                return -ENOMEM;
        if (n > 0)
                memcpy(keys, entries, n * sizeof(*keys));
        n = p_keys_sort(keys, n);
        for (uint32_t i = 0; i < n; i++) {
                if (i == 0 || !p_key_same_partition(keys[i - 1], keys[i]))
                        levels[n_levels++] = (struct explain_level) { p_key_base(keys[i]), MEMBERSHIP_NONE };
                levels[n_levels - 1].membership |= p_key_membership(keys[i]);
        }
        *ret = (struct explain_table) { .levels = levels, .n_levels = n_levels, .known = true };
        return 0;
}

enum membership explain_table_membership(const struct explain_table *t, uint16_t base)
{
        uint32_t i = LOWER_BOUND(level, t->levels, t->n_levels, level->base < base);

        return i < t->n_levels && t->levels[i].base == base ? t->levels[i].membership : MEMBERSHIP_NONE;
}

static bool filter_is_unknown(const struct explain_end *end)
{
        return end->is_filtered && !end->filter.known;
}

static bool filter_lacks(const struct explain_end *end, uint16_t base)
{
        return end->is_filtered && end->filter.known && explain_table_membership(&end->filter, base) == MEMBERSHIP_NONE;
}

/* The verdict for one base that both ends hold. */
static enum explain_verdict judge(const struct explain_end *a, const struct explain_end *b, struct p_key key_a, struct p_key key_b)
{
        /* 1. the matching rule */
        if (!p_key_may_talk(key_a, key_b))
                return EXPLAIN_BOTH_LIMITED;
        /* 2. a filter that is known to lack the base */
        if (filter_lacks(a, p_key_base(key_a)))
                return EXPLAIN_BLOCKED_A;
        if (filter_lacks(b, p_key_base(key_b)))
                return EXPLAIN_BLOCKED_B;
        /* 3. a filter that may lack it */
        if (filter_is_unknown(a) || filter_is_unknown(b))
                return EXPLAIN_UNKNOWN;
        return EXPLAIN_TALK;
}

bool explain_next_base(const struct explain_end *a, const struct explain_end *b, struct explain_cursor *cursor,
                       struct explain_base *ret)
{
        while (cursor->a < a->table.n_levels && cursor->b < b->table.n_levels) {
                const struct explain_level *la = &a->table.levels[cursor->a], *lb = &b->table.levels[cursor->b];

                if (la->base < lb->base) {
                        cursor->a++;
                } else if (la->base > lb->base) {
                        cursor->b++;
                } else {
                        cursor->a++;
                        cursor->b++;
                        ret->base = la->base;
                        ret->a = p_key_make(la->base, membership_has_full(la->membership));
                        ret->b = p_key_make(lb->base, membership_has_full(lb->membership));
                        ret->verdict = judge(a, b, ret->a, ret->b);
                        return true;
                }
        }
        return false;
}

enum explain_verdict explain_pair(const struct explain_end *a, const struct explain_end *b)
{
        enum explain_verdict best = EXPLAIN_NOTHING_COMMON;
        struct explain_cursor cursor = {};
        struct explain_base base;

        if (!a->table.known || !b->table.known)
                return EXPLAIN_UNKNOWN;
        while (best != EXPLAIN_TALK && explain_next_base(a, b, &cursor, &base))
                if (base.verdict < best)
                        best = base.verdict;
        return best;
}

DEFINE_WORDS(explain_verdict_to_string, enum explain_verdict, "?",
             [EXPLAIN_TALK] = "talk", [EXPLAIN_UNKNOWN] = "unknown", [EXPLAIN_BLOCKED_A] = "blocked-a",
             [EXPLAIN_BLOCKED_B] = "blocked-b", [EXPLAIN_BOTH_LIMITED] = "both-limited",
             [EXPLAIN_NOTHING_COMMON] = "no-common-partition")
