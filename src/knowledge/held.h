/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Held bases: which writes wait because the rule does not admit them, and which ports stand in their way.
 *
 * A write waits for each port that, if its table were certainly what the policy gives it, would not stand in the way. If that does
 * not help, the port that is written stands in its own way: its bounds are wide even after the write (its other table was not
 * read, another block was not confirmed).
 *
 * Bounded: each base keeps the first HELD_MAX writes that wait and the first HELD_MAX ports that stand in their way, and counts
 * all of them.
 */

#include "knowledge/knowledge.h"

#define HELD_MAX 16

enum held_reason {
        HELD_NEVER_READ,  /* it answers discovery, and its table was never read */
        HELD_UNANSWERED,  /* it answers discovery; its table was not read since `since` */
        HELD_UNCONFIRMED, /* a write was sent after the table was read at `since`, and not confirmed */
        HELD_SILENT,      /* its link is up, and it did not answer discovery since `since` */
        HELD_BEHIND,      /* likewise: it is behind a switch that does not answer, and did before */
        HELD_ABSENT,      /* gone since `since`; it counts until `until` */
        HELD_MOVED,       /* gone since `since`; it may be a device that is silent elsewhere, and counts as long as that is */
        HELD_FROZEN,      /* read: it is frozen, and does not hold what the policy may give it */
        HELD_EXCESS,      /* read: it has more than the policy gives it, its own change waits or failed */
        HELD_LACK,        /* likewise: less */
        HELD_EARLIER,     /* the rule admits the write, but an earlier one of the same table waits or failed */
        HELD_NOBODY,      /* a switch port, and what is plugged into it is not known */
        HELD_N_REASONS,
};

/* A table for which a write waits. */
struct held_waiting {
        struct knowledge_name name;
        uint32_t record;
        uint8_t from, to;        /* enum level: the highest it may have now, and after the write */
        bool is_filter;          /* it is the filter bits that are to change; from and to are equal then */
        enum rule_verdict rule;  /* RULE_ADMITS: see HELD_EARLIER */
};

/* A port that stands in the way, by that table of it which is not as it should be. Times are seconds since 1970; 0: never, or
 * not known. */
struct held_by {
        struct knowledge_name name;
        uint32_t record;
        enum held_reason reason;
        uint8_t policy;          /* enum level: what the policy gives the port, or a range of POLICY_... */
        uint64_t since, read_at;
        uint64_t until;          /* of HELD_ABSENT; 0: for ever */
        struct guid behind;      /* of HELD_BEHIND: the switch */
};

struct held {
        uint16_t base;
        struct held_waiting waiting[HELD_MAX];
        struct held_by by[HELD_MAX];
        uint32_t n_waiting, n_by; /* all; MIN(n, HELD_MAX) are kept */
};

/* Of a record whose table is not known for certain: by itself, not for a base. */
struct held_by held_by_record(const struct knowledge *k, uint32_t record);

struct held_list;

/* Empty. Lives in the arena; NULL: out of memory. */
struct held_list *held_list_new(struct arena *a);
/* A write of this block (of the filter bits of a leaf port) waits because of this base. The same knowledge at each call, with
 * counts that are those of the policy and no record added in between. Costs one look at each record for each base, however many
 * alike ports wait. Returns 0 or -ENOMEM. */
int held_collect(struct held_list *l, const struct knowledge *k, uint32_t record, uint16_t block,
                 const struct p_key entries[P_KEY_BLOCK_ENTRIES], uint16_t base);
int held_collect_filter(struct held_list *l, const struct knowledge *k, uint32_t record, bool inbound, bool outbound,
                        uint16_t base);
/* Ascending bases. Valid until the next collect. */
const struct held *const *held_list_items(const struct held_list *l, size_t *ret_n);
/* Ports (tables) that stand in the way, each once. */
uint32_t held_list_n_ports(const struct held_list *l);
/* "never-read", "silent", ...: a static string, also in JSON. */
const char *held_reason_to_string(enum held_reason reason);
