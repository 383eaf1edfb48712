/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Held bases: which writes wait because the rule does not admit them, and which ports block them.
 *
 * A port blocks a write if the rule would admit the write as soon as the table of that port certainly matches the policy. If that
 * would not help, the port that is written blocks the write itself: its bounds are wide even after the write (its other table was
 * not read, or another block is not confirmed).
 *
 * Bounded: each base keeps the first HELD_MAX writes that wait and the first HELD_MAX ports that block them, and counts all of
 * them.
 */

#include "knowledge/knowledge.h"

#define HELD_MAX 16

enum held_reason {
        HELD_NEVER_READ,     /* it answers discovery, but its table was never read */
        HELD_UNANSWERED,     /* it answers discovery, but its table was not read since `since` */
        HELD_UNCONFIRMED,    /* a write was sent after the table was read at `since`, and not confirmed */
        HELD_SILENT,         /* its link is up, but it did not answer discovery since `since` */
        HELD_SILENT_SWITCH,  /* as HELD_SILENT, and it is behind a switch that stopped answering */
        HELD_ABSENT,         /* absent since `since`; it counts until `until` */
        HELD_MAYBE_SILENT,   /* absent since `since`; it may be a device that is silent elsewhere: it counts as long as that is */
        HELD_FROZEN,         /* read: it is frozen, and does not hold what the policy may give it */
        HELD_EXCESS,         /* read: it has more than the policy gives it; its own change waits or failed */
        HELD_LACK,           /* read: it has less than the policy gives it; its own change waits or failed */
        HELD_EARLIER,        /* the rule admits the write, but an earlier write of the same table waits or failed */
        HELD_UNKNOWN_DEVICE, /* a switch port, and the device behind it is not known */
        HELD_N_REASONS,
};

/* A table for which a write waits. */
struct held_waiting {
        struct knowledge_name name;
        uint32_t record;
        uint8_t from, to;        /* enum level: the highest it may have now, and after the write */
        bool is_filter;          /* the write is of the filter bits; from and to are equal */
        enum rule_verdict rule;  /* RULE_ADMITS: see HELD_EARLIER */
};

/* A port that blocks a write, with the one of its tables that does not certainly match the policy. Times are seconds since 1970; 0:
 * never, or not known. */
struct held_by {
        struct knowledge_name name;
        uint32_t record;
        enum held_reason reason;
        uint8_t policy;          /* enum level: what the policy gives the port, or a range of POLICY_... */
        uint64_t since, read_at;
        uint64_t until;          /* of HELD_ABSENT; 0: without end */
        struct guid behind;      /* of HELD_SILENT_SWITCH: that switch */
};

struct held {
        uint16_t base;
        struct held_waiting waiting[HELD_MAX];
        struct held_by by[HELD_MAX];
        uint32_t n_waiting, n_by; /* of all; MIN(n, HELD_MAX) are kept */
};

/* Why the table of this record is not known for certain, independent of a base. */
struct held_by held_by_record(const struct knowledge *k, uint32_t record);

/* Sets only `base` and `by`: all ports that may hold the base, in place of those that block a write. */
void held_find_holders(const struct knowledge *k, uint16_t base, struct held *ret);

struct held_list;

/* Returns an empty list in the arena; NULL: out of memory. */
struct held_list *held_list_new(struct arena *a);
/* Adds a write of this block (or of the filter bits of a leaf port) that waits because of this base. Each call needs the same
 * knowledge, with counts that match the policy and no record added in between. It visits each record once for each base, however
 * many similar ports wait. Returns 0 or -ENOMEM. */
int held_collect(struct held_list *l, const struct knowledge *k, uint32_t record, uint16_t block,
                 const struct p_key entries[P_KEY_BLOCK_ENTRIES], uint16_t base);
int held_collect_filter(struct held_list *l, const struct knowledge *k, uint32_t record, bool inbound, bool outbound,
                        uint16_t base);
/* The held bases, ascending. Valid until the next collect. l NULL: none. */
const struct held *const *held_list_items(const struct held_list *l, size_t *ret_n);
/* The number of different ports (tables) that block a write. */
uint32_t held_list_n_ports(const struct held_list *l);
/* "never-read", "silent", ...: a static string, also in JSON. */
const char *held_reason_to_string(enum held_reason reason);
