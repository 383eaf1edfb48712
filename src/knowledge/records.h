/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The inside of knowledge: of no interest outside of this folder.
 *
 *     knowledge.c  what was seen: records change
 *     counts.c     the bounds that follow from them, the counts for each base, the rule
 *     memory.c     records to the store, and back
 *
 * counts.c reads records and changes none.
 */

#include "knowledge/knowledge.h"
#include "util/hash_index.h"
#include "util/vector.h"

/* Of one base. A wild port may hold anything, so it is counted in n_wild instead, except at the bases that the policy gives it. */
struct base_counts {
        uint16_t base;
        uint32_t mark;                 /* that of struct counts: this base was met already */
        struct rule_counts counts[N_FILTER_MODELS][N_DIRECTIONS];
        uint32_t n_wild_listed[N_DIRECTIONS][2]; /* wild ports that are in counts; [1]: absent ones */
};

struct counts {
        bool valid;                    /* they are those of the records and of the policy */
        struct base_counts *bases;
        size_t n, allocated;
        struct hash_index index;       /* of bases */
        uint32_t n_wild[N_DIRECTIONS][2];
        uint32_t mark;                 /* of the port whose bases are gone through */
        bool out_of_memory;
};

struct knowledge {
        struct knowledge_record *records;
        size_t n, allocated;
        struct hash_index index;       /* of records, by name */
        struct counts counts;
};

/* The record of this name, a new one if there is none. Returns 0 or -ENOMEM. */
int knowledge_ensure_record(struct knowledge *k, struct knowledge_name name, uint32_t *ret);
/* Nothing is known of this table any more. */
void knowledge_forget_read(struct knowledge_record *r);

/* The endport (or place) whose level this table has a part in; KNOWLEDGE_NONE: none is known. */
uint32_t knowledge_port_of(const struct knowledge *k, uint32_t record);

/* Counts every port anew. Returns 0 or -ENOMEM. */
int knowledge_counts_rebuild(struct knowledge *k);
void knowledge_counts_done(struct counts *c);
/* Adds the port of this table to the counts at these bases, or takes it away (sign -1), by its bounds of now. */
void knowledge_counts_change(struct knowledge *k, uint32_t record, const uint16_t *bases, size_t n, int sign);
/* The same at all bases. */
void knowledge_counts_change_all(struct knowledge *k, uint32_t record, int sign);
/* The port of this table may hold anything, at any base that is not listed, as far as it sends or receives. */
bool knowledge_counts_is_wild(const struct knowledge *k, uint32_t record, enum direction direction);
