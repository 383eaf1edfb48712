/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The rule evaluated port by port, without counts; and random knowledge. For use with knowledge_fixture.h. */

#include "knowledge_fixture.h"

#define BASES 3 /* 1, 2 and 3 */

/* A random number less than n, from the seed. */
extern uint64_t seed;
unsigned any(unsigned n);

/* A write of one block of a table, or of its filter (block BLOCKS). */
struct write {
        uint32_t record;
        unsigned block;
        const struct p_key *entries;
        bool filters[N_DIRECTIONS];
};

/* The bounds of a port (not a leaf port); w NULL: without a write. */
struct bounds naive_bounds(uint32_t port, uint16_t base, enum filter_model m, enum direction d);
/* The bounds of the port around a write whose port is known, in each world: what the rest of the table holds, whether the leaf port
 * filters. Returns how many there are. */
struct naive_step {
        struct bounds before, after;
};
unsigned naive_steps(const struct write *w, uint16_t base, enum filter_model m, enum direction d, struct naive_step ret[6]);
enum level naive_policy(const struct knowledge_record *p, uint16_t base);
bool naive_admits(const struct write *w, uint16_t base);

void any_block(struct p_key ret[P_KEY_BLOCK_ENTRIES]);
void any_policy(struct subnet *s);
void any_reads(struct subnet *s);
/* A block that can be written, because it was read. */
uint32_t any_record(void);
/* A random event: a block or a filter is sent or read, or a vouch. */
void any_event(void);
struct subnet *any_subnet(void);
