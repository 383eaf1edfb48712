/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "knowledge_naive.h"

#include <check.h>

uint64_t seed;

unsigned any(unsigned n)
{
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (unsigned) (seed >> 33) % n;
}

/* --- the rule, port by port --------------------------------------------------------------------------------------------------- */

static unsigned level(const struct p_key *entries, unsigned n, uint16_t base)
{
        unsigned l = 0;

        for (unsigned i = 0; i < n; i++)
                if (p_key_base(entries[i]) == base)
                        l = MAX(l, 1u + p_key_is_full(entries[i]));
        return l;
}

/* What a block may hold: as it was read, or as one of its writes has it. */
static struct bounds block_bounds(const struct knowledge_record *r, unsigned block, uint16_t base)
{
        unsigned n = MIN(32u, CAPACITY - 32u * block), low = level(r->entries + 32u * block, n, base), high = low;

        for (size_t i = 0; i < r->n_writes; i++)
                if (r->writes[i].block == block) {
                        low = MIN(low, level(r->writes[i].entries, n, base));
                        high = MAX(high, level(r->writes[i].entries, n, base));
                }
        return (struct bounds) { (uint8_t) low, (uint8_t) high };
}

/* All blocks but one. */
static struct bounds table_bounds(const struct knowledge_record *r, uint16_t base, unsigned but)
{
        struct bounds all = {};

        if (r->vouched)
                return all;
        if (!r->entries)
                return (struct bounds) { 0, 2 };
        for (unsigned i = 0; i < BLOCKS; i++)
                if (i != but) {
                        all.has = MAX(all.has, block_bounds(r, i, base).has);
                        all.may = MAX(all.may, block_bounds(r, i, base).may);
                }
        return (struct bounds) { r->fresh ? all.has : 0, all.may };
}

struct bounds naive_bounds(uint32_t port, uint16_t base, enum filter_model m, enum direction d)
{
        const struct knowledge_record *p = knowledge_get(k, port), *leaf;
        struct bounds host = table_bounds(p, base, BLOCKS), through;

        if (p->presence == KNOWLEDGE_ABSENT)
                return (struct bounds) { 0, p->expired ? 0 : host.may };
        if (p->other_end == KNOWLEDGE_NONE)
                return host;
        leaf = knowledge_get(k, p->other_end);
        through = bounds_behind_filter(m, host, table_bounds(leaf, base, BLOCKS));
        if (leaf->filters_unsure)
                return (struct bounds) { through.has, host.may };
        return leaf->filters[d] ? through : host;
}

/* Where all but the block that is written comes to `rest`. */
static struct bounds table_around(uint32_t record, uint16_t base, const struct write *w, unsigned rest, bool after)
{
        const struct knowledge_record *r = knowledge_get(k, record);
        struct bounds block = { (uint8_t) rest, (uint8_t) rest };
        unsigned to;

        if (w->record == record && w->block == BLOCKS)
                return block;
        if (w->record != record || !r->entries || r->vouched)
                return table_bounds(r, base, BLOCKS);
        to = level(w->entries, MIN(32u, CAPACITY - 32u * w->block), base);
        block = after ? (struct bounds) { (uint8_t) to, (uint8_t) to } : block_bounds(r, w->block, base);
        return (struct bounds) { (uint8_t) (r->fresh ? MAX(block.has, rest) : 0), (uint8_t) MAX(block.may, rest) };
}

static struct bounds port_around(uint32_t port, uint16_t base, enum filter_model m, const struct write *w, unsigned rest, bool on,
                                 bool after)
{
        struct bounds host = table_around(port, base, w, rest, after);

        if (!on)
                return host;
        return bounds_behind_filter(m, host, table_around(knowledge_get(k, port)->other_end, base, w, rest, after));
}

enum level naive_policy(const struct knowledge_record *p, uint16_t base)
{
        static const enum level ranges[N_LEVELS][N_LEVELS] = {
                { LEVEL_NONE, POLICY_UP_TO_LIMITED, POLICY_UNKNOWN },
                { LEVEL_LIMITED, LEVEL_LIMITED, POLICY_FROM_LIMITED },
                { LEVEL_FULL, LEVEL_FULL, LEVEL_FULL },
        };
        const struct desired_port *gives = p->policy;
        unsigned least, most;

        if (!gives)
                return POLICY_UNKNOWN;
        least = most = level(gives->wanted, gives->n_wanted, base);
        if (gives->most)
                most = level(gives->most->wanted, gives->most->n_wanted, base);
        if (gives->most && gives->most_is_held)
                most = MAX(most, table_bounds(p, base, BLOCKS).may);
        return ranges[least][most];
}

static bool is_admitted_by_each(uint32_t q, uint16_t base, struct bounds before, struct bounds after, enum filter_model m,
                                enum direction d)
{
        for (uint32_t p = 0; p < knowledge_n_records(k); p++) {
                const struct knowledge_record *other = knowledge_get(k, p);
                const struct rule_class class = {
                        .policy = naive_policy(other, base), .bounds = naive_bounds(p, base, m, d == SENDS ? RECEIVES : SENDS),
                        .is_absent = other->presence == KNOWLEDGE_ABSENT && !other->may_be_silent && !other->may_be_back,
                };

                if (p != q && other->name.kind != KNOWLEDGE_LEAF &&
                    rule_judge_pair(naive_policy(knowledge_get(k, q), base), before, after, &class) != RULE_ADMITS)
                        return false;
        }
        return true;
}

unsigned naive_steps(const struct write *w, uint16_t base, enum filter_model m, enum direction d, struct naive_step ret[6])
{
        const struct knowledge_record *r = knowledge_get(k, w->record), *leaf;
        uint32_t q = r->name.kind == KNOWLEDGE_LEAF ? r->other_end : w->record;
        struct bounds rest = table_bounds(r, base, w->block);
        unsigned n = 0;

        leaf = knowledge_get(k, q)->other_end == KNOWLEDGE_NONE ? NULL : knowledge_get(k, knowledge_get(k, q)->other_end);
        for (unsigned i = 0; i < 6; i++) {
                bool on = i % 2, then = w->block == BLOCKS ? w->filters[d] : on;
                unsigned level = i / 2;

                if (level < rest.has || level > rest.may || (!leaf && on) ||
                    (leaf && !leaf->filters_unsure && leaf->filters[d] != on))
                        continue;
                ret[n++] = (struct naive_step) {
                        port_around(q, base, m, w, level, on, false), port_around(q, base, m, w, level, then, true),
                };
        }
        return n;
}

static bool is_admitted_in(const struct write *w, uint16_t base, enum filter_model m, enum direction d)
{
        const struct knowledge_record *r = knowledge_get(k, w->record);
        uint32_t q = r->name.kind == KNOWLEDGE_LEAF ? r->other_end : w->record;
        struct naive_step steps[6];
        unsigned n;

        if (q == KNOWLEDGE_NONE)
                return false;
        n = naive_steps(w, base, m, d, steps);
        for (unsigned i = 0; i < n; i++)
                if (!is_admitted_by_each(q, base, steps[i].before, steps[i].after, m, d))
                        return false;
        return true;
}

bool naive_admits(const struct write *w, uint16_t base)
{
        for (unsigned i = 0; i < 4; i++)
                if (!is_admitted_in(w, base, i & 1 ? FILTER_BY_LEVEL : FILTER_BY_BASE, i & 2 ? SENDS : RECEIVES))
                        return false;
        return true;
}

/* --- any knowledge ------------------------------------------------------------------------------------------------------------ */

static struct p_key any_key(void)
{
        return (struct p_key) { (uint16_t) (any(3) ? 0 : (any(2) << 15 | any(BASES + 1))) };
}

void any_block(struct p_key ret[P_KEY_BLOCK_ENTRIES])
{
        for (unsigned i = 0; i < P_KEY_BLOCK_ENTRIES; i++)
                ret[i] = any(8) ? (struct p_key) {} : any_key();
}

static struct desired_port any_keys(void)
{
        struct p_key *keys = arena_new_array(arena, struct p_key, 2 * BASES);
        uint32_t n = 0;

        for (uint16_t base = 1; base <= BASES; base++) {
                unsigned membership = any(4);

                if (membership & 1)
                        keys[n++].v = base;
                if (membership & 2)
                        keys[n++].v = 0x8000 | base;
        }
        return (struct desired_port) { keys, n };
}

/* Of some ports only what it gives at least is known, and what at most, or that it may be what the table holds. */
void any_policy(struct subnet *s)
{
        struct desired *d = arena_new_object(arena, struct desired);

        *d = (struct desired) { .subnet = s, .ports = arena_new_array(arena, struct desired_port, s->n_ports) };
        for (uint32_t i = 0; i < s->n_ports; i++) {
                struct desired_port *most = arena_new_object(arena, struct desired_port);

                if (s->ports[i].role != PORT_ENDPORT)
                        continue;
                d->ports[i] = any_keys();
                *most = any_keys();
                if (any(3) == 0)
                        d->ports[i].most = most;
                d->ports[i].most_is_held = any(2);
        }
        ck_assert_int_eq(knowledge_set_policy(k, d), 0);
}

void any_reads(struct subnet *s)
{
        struct observed *o;

        ck_assert_int_eq(observed_new(arena, s, &o), 0);
        for (uint32_t i = 0; i < s->n_ports; i++) {
                struct observed_table *t = &o->tables[i];

                if (!t->entries || any(3) == 0)
                        continue;
                t->source = TABLE_READ;
                for (unsigned e = 0; e < t->capacity; e++)
                        t->entries[e] = any(8) ? (struct p_key) {} : any_key();
        }
        ck_assert_int_eq(knowledge_see_tables(k, o, 7), 0);
}

uint32_t any_record(void)
{
        for (;;) {
                uint32_t i = any(knowledge_n_records(k));

                if (knowledge_get(k, i)->entries)
                        return i;
        }
}

static void retract_any(uint32_t record)
{
        const struct knowledge_record *r = knowledge_get(k, record);
        struct knowledge_write w;
        size_t n = r->n_writes;

        if (n == 0)
                return;
        w = r->writes[any((unsigned) n)];
        knowledge_retract_block(k, record, w.block, w.entries);
        ck_assert_uint_eq(r->n_writes, n - 1);
}

void any_event(void)
{
        struct p_key block[P_KEY_BLOCK_ENTRIES];
        uint32_t record = any_record();

        any_block(block);
        switch (any(11)) {
        case 0:
        case 1:
        case 2:
                send_announced(record, (uint16_t) any(BLOCKS), block);
                break;
        case 3:
        case 4:
                knowledge_see_block(k, record, (uint16_t) any(BLOCKS), block);
                break;
        case 5:
        case 6:
                ck_assert_int_eq(knowledge_vouch(k, any(knowledge_n_records(k)), "root", 77), 0);
                break;
        case 7:
                record = leaf_record(any(HOSTS));
                if (record != KNOWLEDGE_NONE && any(2))
                        knowledge_doubt_filter(k, record);
                else if (record != KNOWLEDGE_NONE)
                        knowledge_see_filter(k, record, any(2), any(2));
                break;
        case 8:
                ck_assert_int_eq(knowledge_expect_block(k, record, (uint16_t) any(BLOCKS), block), 0);
                break;
        case 9:
                retract_any(record);
                break;
        case 10:
                knowledge_doubt(k, record);
                break;
        }
}

struct subnet *any_subnet(void)
{
        return make_subnet(&(struct scene) { any(2) ? ALL : any(ALL + 1), any(ALL + 1), any(ALL + 1), any(ALL + 1), any(8) == 0 });
}
