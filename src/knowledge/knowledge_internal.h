/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The inside of knowledge: of no interest outside of this folder.
 *
 *     knowledge.c  what was seen: records change
 *     bounds.c     the bounds that follow from them, with a write or without it
 *     counts.c     the counts for each base, the rule
 *     held.c       which ports stand in the way of a write
 *     memory.c     records to the store, and back
 *
 * bounds.c, counts.c and held.c read records and change none.
 */

#include "knowledge/knowledge.h"
#include "util/hash_index.h"
#include "util/vector.h"

struct wild_counts {
        uint32_t n[N_DIRECTIONS][2][2]; /* [][1]: absent ones; [][][1]: those to which the policy may give anything */
};

/* Of one base. A wild port may hold anything, so it is counted in `wild` instead, except at the bases that the policy gives it. */
struct base_counts {
        uint16_t base;
        uint32_t mark;                 /* that of struct counts: this base was met already */
        struct rule_counts counts[N_FILTER_MODELS][N_DIRECTIONS];
        struct wild_counts listed;     /* wild ports that are in counts */
};

struct counts {
        bool valid;                    /* they are those of the records and of the policy */
        struct base_counts *bases;
        size_t n, allocated;
        struct hash_index index;       /* of bases */
        struct wild_counts wild;
        uint32_t mark;                 /* of the port whose bases are gone through */
        bool out_of_memory;
};

struct knowledge {
        struct knowledge_record *records;
        size_t n, allocated;
        struct hash_index index;       /* of records, by name */
        struct counts counts;
        usec_t now, absent_hold;       /* the time of the last discovery, as is wall; 0: there was none */
        uint64_t wall;
        bool is_stored;                /* when that was */
};

/* The record of this name, a new one if there is none. Returns 0 or -ENOMEM. */
int knowledge_ensure_record(struct knowledge *k, struct knowledge_name name, uint32_t *ret);
/* All records were restored, and a discovery since then changed nothing: who was there was there. `now`: by the clock
 * of this boot; USEC_INFINITY: it was in another one. */
void knowledge_was_discovered(struct knowledge *k, usec_t now, uint64_t wall);
/* Nothing is known of this table any more. */
void knowledge_forget_read(struct knowledge_record *r);

/* The endport (or place) whose level this table has a part in; KNOWLEDGE_NONE: none is known. */
uint32_t knowledge_port_of(const struct knowledge *k, uint32_t record);

/* --- bounds ----------------------------------------------------------------------------------------------------------- */

#define KNOWLEDGE_ANYTHING ((struct bounds) { LEVEL_NONE, LEVEL_FULL })

/* A write of one table: of a block, or of the filter bits of a leaf port. */
struct knowledge_change {
        uint32_t record;
        const struct knowledge_write *write; /* NULL: the filter */
        bool filters[N_DIRECTIONS];
};

/* One way to look at a port: in one model of a switch, and in one direction. */
struct knowledge_view {
        enum filter_model model;
        enum direction direction;
};

struct knowledge_write knowledge_make_write(uint16_t block, const struct p_key entries[P_KEY_BLOCK_ENTRIES]);
/* The bounds of a table in a base after a change. */
struct bounds knowledge_table_after(const struct knowledge *k, uint32_t record, uint16_t base,
                                    const struct knowledge_change *change);

/* The bounds of the port around a change, in one world that may be the real one. */
struct knowledge_step {
        struct bounds before, after;
};

#define KNOWLEDGE_MAX_STEPS (2 * N_LEVELS)

/* A change in each world that may be the real one: what it leaves as it is, and is not known for certain, is settled in each way
 * that it may be. Bounds over all worlds would not show what it raises in one, where another reaches as high without it. Every one
 * of them has to be admitted. Returns how many there are, at least one. The port of the table must be known. */
unsigned knowledge_steps(const struct knowledge *k, uint16_t base, const struct knowledge_change *change,
                         struct knowledge_view view, struct knowledge_step ret[KNOWLEDGE_MAX_STEPS]);
/* What the policy gives the port of this record (no leaf port), or a range of POLICY_... */
enum level knowledge_policy_level(const struct knowledge_record *p, uint16_t base);
struct rule_class knowledge_class_of(const struct knowledge *k, uint32_t port, uint16_t base, struct knowledge_view view);

/* --- counts ------------------------------------------------------------------------------------------------------------ */

/* Counts every port anew. Returns 0 or -ENOMEM. */
int knowledge_counts_rebuild(struct knowledge *k);
void knowledge_counts_done(struct counts *c);
/* Adds the port of this table to the counts at these bases, or takes it away (sign -1), by its bounds of now. */
void knowledge_counts_change(struct knowledge *k, uint32_t record, const uint16_t *bases, size_t n, int sign);
/* The same at all bases. */
void knowledge_counts_change_all(struct knowledge *k, uint32_t record, int sign);
/* The port of this table may hold anything, at any base that is not listed, as far as it sends or receives. */
bool knowledge_counts_is_wild(const struct knowledge *k, uint32_t record, enum direction direction);
