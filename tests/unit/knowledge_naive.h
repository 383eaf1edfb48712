/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The rule by looking at each port by itself, without counts; and any knowledge, by chance. Beside knowledge_fixture.h. */

#include "knowledge_fixture.h"

#define BASES 3 /* 1, 2 and 3 */

/* Less than n, from the seed. */
extern uint64_t seed;
unsigned any(unsigned n);

/* One block of one table, or its filter (block BLOCKS), as it would be. */
struct write {
        uint32_t record;
        unsigned block;
        const struct p_key *entries;
        bool filters[N_DIRECTIONS];
};

/* Of a port (no leaf port); w NULL: as it is. */
struct bounds naive_bounds(uint32_t port, uint16_t base, enum filter_model m, enum direction d, const struct write *w);
/* The same, but what the table of `least` holds at least counts as what it may hold. */
struct bounds naive_least_bounds(uint32_t port, uint16_t base, enum filter_model m, enum direction d, const struct write *w,
                                 const struct write *least);
enum level naive_policy(const struct knowledge_record *p, uint16_t base);
bool naive_admits(const struct write *w, uint16_t base);

void any_block(struct p_key ret[P_KEY_BLOCK_ENTRIES]);
void any_policy(struct subnet *s);
void any_reads(struct subnet *s);
/* One that can be written: it was read. */
uint32_t any_record(void);
/* A block is sent or seen, a filter, or a vouch. */
void any_event(void);
struct subnet *any_subnet(void);
