/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Can two endports talk, in which partition, and if not, why not?
 *
 * Two endports can talk in a partition if both hold its base, at least one of them as a full member (IBA 1.5, 10.9.3), and each
 * switch port that one of them is plugged into holds the base, too, if it enforces partitions. The functions are pure: they judge
 * tables as read from the hardware and tables as desired by the policy in the same way.
 */

#include "ib/types.h"
#include "util/arena.h"

/* The membership that a table gives in one base. */
struct explain_level {
        uint16_t base;
        enum membership membership;
};

/* A P_Key table by base. known: false if it could not be read. */
struct explain_table {
        const struct explain_level *levels; /* ascending base */
        uint32_t n_levels;
        bool known;
};

/* One of the two endports: its table and, if the switch port that it is plugged into enforces partitions, the table of that
 * port. */
struct explain_end {
        struct explain_table table;
        bool is_filtered;
        struct explain_table filter;
};

/* From the best to the worst. The verdict for a pair is the best one of its common bases. */
enum explain_verdict {
        EXPLAIN_TALK,
        EXPLAIN_UNKNOWN,        /* a table that decides could not be read */
        EXPLAIN_BLOCKED_A,      /* they match, but the enforcing port at A lacks the base */
        EXPLAIN_BLOCKED_B,      /* ... at B ... */
        EXPLAIN_BOTH_LIMITED,   /* a common base, but neither is a full member */
        EXPLAIN_NOTHING_COMMON, /* no base is in both tables */
};

/* A base that both ends hold, with its verdict. */
struct explain_base {
        uint16_t base;
        struct p_key a, b; /* the entry of each end, the full one if it has both */
        enum explain_verdict verdict;
};

/* A position in the common bases; zero for the first one. */
struct explain_cursor {
        uint32_t a, b;
};

/* Makes a table from n entries in any order; ignores unused ones. Returns 0 or -ENOMEM; the levels live in the arena. */
int explain_table_make(struct arena *a, const struct p_key *entries, uint32_t n, struct explain_table *ret);

/* The membership that a table gives in a base. */
enum membership explain_table_membership(const struct explain_table *t, uint16_t base);

/* Finds the next base that both tables hold. Returns false if there are no more. */
bool explain_next_base(const struct explain_end *a, const struct explain_end *b, struct explain_cursor *cursor,
                       struct explain_base *ret);

/* The verdict for the pair. */
enum explain_verdict explain_pair(const struct explain_end *a, const struct explain_end *b);

/* "talk", "unknown", "blocked-a", "blocked-b", "both-limited", "no-common-partition"; a static string. */
const char *explain_verdict_to_string(enum explain_verdict v);
