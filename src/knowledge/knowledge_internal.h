/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Private to knowledge/. Each file uses only those above it:
 *
 *     bounds.c         the bounds that follow from records, with a write or without it
 *     counts.c         the counts for each base, the rule
 *     knowledge.c      records, and what the policy gives each port
 *     presence.c       records change by a discovery: which ports are present, silent or absent
 *     tables.c         records change by reads and writes of tables
 *     held.c           which ports block a write
 *     table_records.c  records to the store, and back
 *
 * bounds.c, counts.c and held.c do not change records.
 */

#include "knowledge/knowledge.h"
#include "util/hash_index.h"
#include "util/vector.h"

struct wild_counts {
        uint32_t n[N_DIRECTIONS][2][2]; /* [][1]: absent ports; [][][1]: those to which the policy may give anything */
};

/* The counts of one base. A wild port (one that may hold anything) is counted in `wild` instead, except at the bases that the
 * policy gives it. */
struct base_counts {
        uint16_t base;
        uint32_t mark;                 /* equal to that of struct counts: this base was visited already */
        struct rule_counts counts[N_FILTER_MODELS][N_DIRECTIONS];
        struct wild_counts listed;     /* wild ports that are in counts */
};

struct counts {
        bool valid;                    /* they match the records and the policy */
        struct base_counts *bases;
        size_t n, allocated;
        struct hash_index index;       /* of bases */
        struct wild_counts wild;
        uint32_t mark;                 /* of the port whose bases are visited */
        bool out_of_memory;
};

struct knowledge {
        struct knowledge_record *records;
        size_t n, allocated;
        struct hash_index index;       /* of records, by name */
        struct counts counts;
        usec_t now, absent_hold;       /* `now` and `wall` are the time of the last discovery; 0: there was none */
        uint64_t wall;
        usec_t doubt_at;               /* after this time absent ports may be back; USEC_INFINITY: never, or they count as back */
        bool is_stored;                /* the time of the last discovery is in the store */
};

/* Finds the record with this name, or adds it. Returns 0 or -ENOMEM. */
int knowledge_ensure_record(struct knowledge *k, struct knowledge_name name, uint32_t *ret);
/* To be called when all records are restored: the last discovery found each port as its record states, also those records that
 * were stored before. `now`: by the clock of this boot; USEC_INFINITY: the discovery was in another boot. */
void knowledge_confirm_presence(struct knowledge *k, usec_t now, uint64_t wall);
/* Drops what is known of the entries of this table. */
void knowledge_forget_read(struct knowledge_record *r);
/* Sets the size of the table. If it was another one, this is another table, and what is known of its entries is dropped. */
void knowledge_set_capacity(struct knowledge_record *r, uint16_t capacity);
/* The name of the record of this port. */
struct knowledge_name knowledge_name_of(const struct subnet *s, const struct subnet_port *p);

/* The endport (or place) whose level depends on this table; KNOWLEDGE_NONE: none is known. */
uint32_t knowledge_port_of(const struct knowledge *k, uint32_t record);

/* --- bounds ----------------------------------------------------------------------------------------------------------- */

#define KNOWLEDGE_ANYTHING ((struct bounds) { LEVEL_NONE, LEVEL_FULL })

/* A write of one table: of a block, or of the filter bits of a leaf port. */
struct knowledge_change {
        uint32_t record;
        const struct knowledge_write *write; /* NULL: of the filter bits */
        bool filters[N_DIRECTIONS];
};

/* Bounds of a port depend on the model of a switch and on the direction. */
struct knowledge_view {
        enum filter_model model;
        enum direction direction;
};

struct knowledge_write knowledge_make_write(uint16_t block, const struct p_key entries[P_KEY_BLOCK_ENTRIES]);
/* The bounds of a table in a base after a change. */
struct bounds knowledge_table_after(const struct knowledge *k, uint32_t record, uint16_t base,
                                    const struct knowledge_change *change);

/* The bounds of the port before and after a change, in one possible world. */
struct knowledge_step {
        struct bounds before, after;
};

#define KNOWLEDGE_MAX_STEPS (2 * N_LEVELS)

/* Evaluates a change in each possible world: what the change leaves as it is and is not known for certain takes each value that it
 * may have. Bounds over all worlds together would hide that a change raises a level in one world if another world has that level
 * without it. Every step has to be admitted. Returns their number, at least one. The port of the table must be known. */
unsigned knowledge_steps(const struct knowledge *k, uint16_t base, const struct knowledge_change *change,
                         struct knowledge_view view, struct knowledge_step ret[KNOWLEDGE_MAX_STEPS]);
/* What the policy gives the port of this record, which is not a leaf port; or a range of POLICY_... */
enum level knowledge_policy_level(const struct knowledge_record *p, uint16_t base);
struct rule_class knowledge_class_of(const struct knowledge *k, uint32_t port, uint16_t base, struct knowledge_view view);

/* --- counts ------------------------------------------------------------------------------------------------------------ */

/* Counts all ports anew. Returns 0 or -ENOMEM. */
int knowledge_counts_rebuild(struct knowledge *k);
void knowledge_counts_done(struct counts *c);
/* Adds the port of this table to the counts at these bases (sign 1) or subtracts it (sign -1), by its bounds of now. */
void knowledge_counts_change(struct knowledge *k, uint32_t record, const uint16_t *bases, size_t n, int sign);
/* The same at all bases. */
void knowledge_counts_change_all(struct knowledge *k, uint32_t record, int sign);
/* True if the port of this table may hold anything in this direction, at every base that is not listed. */
bool knowledge_counts_is_wild(const struct knowledge *k, uint32_t record, enum direction direction);
