/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * May two endports talk, through which partition, and if not, what stands between them?
 *
 * Pure, and blind to where the tables come from: what was read from the hardware and what the policy wants are asked in
 * the same way. Two endports talk in a partition if both hold its base, at least one of them as a full member (IBA 1.5,
 * 10.9.3), and every switch port next to them that enforces partitions holds the base too.
 */

#include "ib/types.h"
#include "util/arena.h"

/* What a table says of one base. */
struct explain_level {
        uint16_t base;
        bool limited, full;
};

/* A P_Key table by base. known false: it could not be read. */
struct explain_table {
        const struct explain_level *levels; /* ascending base */
        uint32_t n_levels;
        bool known;
};

/* One of the two: its own table, and that of the switch port it is plugged into if that one enforces partitions. */
struct explain_end {
        struct explain_table table;
        bool is_filtered;
        struct explain_table filter;
};

/* From the best to the worst: of several common bases the best verdict is that of the pair. */
enum explain_verdict {
        EXPLAIN_TALK,
        EXPLAIN_UNKNOWN,        /* a table that would decide could not be read */
        EXPLAIN_BLOCKED_A,      /* they match, but the enforcing port at A lacks the base */
        EXPLAIN_BLOCKED_B,
        EXPLAIN_BOTH_LIMITED,   /* a common base, but neither is a full member */
        EXPLAIN_NOTHING_COMMON, /* no base is in both tables */
};

/* A base that both ends hold, and how it fares. */
struct explain_base {
        uint16_t base;
        struct p_key a, b; /* the strongest entry each */
        enum explain_verdict verdict;
};

/* Where a walk over the common bases is; zeroed at its start. */
struct explain_cursor {
        uint32_t a, b;
};

/* Sorts a table's entries by base; unused entries do not count. Returns 0 or -ENOMEM; the levels live in the arena. */
int explain_table_make(struct arena *a, const struct p_key *entries, uint32_t n, struct explain_table *ret);

/* The membership that a table gives in a base. */
enum membership explain_table_membership(const struct explain_table *t, uint16_t base);

/* The next base that both tables hold. False: no more. */
bool explain_next_base(const struct explain_end *a, const struct explain_end *b, struct explain_cursor *cursor,
                       struct explain_base *ret);

/* The pair as a whole. */
enum explain_verdict explain_pair(const struct explain_end *a, const struct explain_end *b);

/* "talk", "unknown", "blocked-a", "blocked-b", "both-limited", "no-common-partition"; a static string. */
const char *explain_verdict_to_string(enum explain_verdict v);
