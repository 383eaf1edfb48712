/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "knowledge_fixture.h"

#define BASES 3 /* 1, 2 and 3 */

static uint64_t seed;

static unsigned any(unsigned n)
{
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (unsigned) (seed >> 33) % n;
}

/* May this host's table be given one entry of base 1 (or none)? */
static enum rule_verdict judge(unsigned host, uint16_t key)
{
        struct p_key block[P_KEY_BLOCK_ENTRIES];

        block_of(key, block);
        return knowledge_judge_block(k, host_record(host), 0, block, 1);
}

static void send_block(uint32_t record, uint16_t key)
{
        struct p_key block[P_KEY_BLOCK_ENTRIES];

        block_of(key, block);
        ck_assert_int_eq(knowledge_send_block(k, record, 0, block), 0);
}

static void see_block(uint32_t record, uint16_t key)
{
        struct p_key block[P_KEY_BLOCK_ENTRIES];

        block_of(key, block);
        knowledge_see_block(k, record, 0, block);
}

static void check_bounds(struct bounds b, unsigned has, unsigned may)
{
        ck_assert_uint_eq(b.has, has);
        ck_assert_uint_eq(b.may, may);
}

/* --- bounds -------------------------------------------------------------------------------------------------------------- */

START_TEST(never_read_may_hold_anything)
{
        struct subnet *s = discover(ALL, 0, 0, 0);

        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
        read_host(s, 0, 0x0001);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_LIMITED, LEVEL_LIMITED);
        check_bounds(knowledge_port_bounds(k, host_record(0), 2), LEVEL_NONE, LEVEL_NONE);
        check_bounds(knowledge_port_bounds(k, host_record(1), 2), LEVEL_NONE, LEVEL_FULL);
}
END_TEST

START_TEST(writes_are_not_certain_until_read)
{
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_host(s, 0, 0x8001);
        send_block(host_record(0), 0);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
        send_block(host_record(0), 0x8002);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
        check_bounds(knowledge_port_bounds(k, host_record(0), 2), LEVEL_NONE, LEVEL_FULL);
        see_block(host_record(0), 0x8002);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_NONE);
        check_bounds(knowledge_port_bounds(k, host_record(0), 2), LEVEL_FULL, LEVEL_FULL);
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->n_writes, 0);
}
END_TEST

/* What was announced is not sent yet: a read says nothing of it. */
START_TEST(announced_blocks_stay)
{
        struct subnet *s = discover(ALL, 0, 0, 0);
        struct p_key block[P_KEY_BLOCK_ENTRIES];

        read_host(s, 0, 0);
        block_of(0x8001, block);
        ck_assert_int_eq(knowledge_announce_block(k, host_record(0), 0, block), 0);
        see_block(host_record(0), 0x0002);
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->n_writes, 1);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_NONE);
        send_block(host_record(0), 0x8001);
        ck_assert_uint_eq(knowledge_get(k, host_record(0))->n_writes, 1);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
}
END_TEST

/* What was read before this discovery is what it may hold, not what it has. */
START_TEST(old_reads_are_not_certain)
{
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_host(s, 0, 0x8001);
        discover(ALL, 0, 0, MINUTE);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
        check_bounds(knowledge_port_bounds(k, host_record(0), 2), LEVEL_NONE, LEVEL_NONE);
}
END_TEST

/* What is written behind the end of a table is in no table. */
START_TEST(entries_behind_the_end)
{
        struct p_key block[P_KEY_BLOCK_ENTRIES] = {};
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_host(s, 0, 0);
        block[CAPACITY - P_KEY_BLOCK_ENTRIES].v = 0x8001;
        ck_assert_int_eq(knowledge_send_block(k, host_record(0), 1, block), 0);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_NONE);
        block[CAPACITY - P_KEY_BLOCK_ENTRIES - 1].v = 0x8001;
        ck_assert_int_eq(knowledge_send_block(k, host_record(0), 1, block), 0);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
}
END_TEST

START_TEST(table_of_another_size)
{
        struct subnet *s = discover(ALL, 0, 0, 0);
        struct subnet_node *node;

        read_host(s, 0, 0x8001);
        s = make_subnet(&(struct scene) { ALL, 0, 0, 0, false });
        node = &s->nodes[subnet_find_node(s, G(host_guid(0)))];
        node->partition_cap = 2 * CAPACITY;
        ck_assert_int_eq(knowledge_see_subnet(k, s, 1, 0, HOLD), 0);
        check_bounds(knowledge_port_bounds(k, host_record(0), 2), LEVEL_NONE, LEVEL_FULL);
}
END_TEST

/* --- filters -------------------------------------------------------------------------------------------------------------- */

START_TEST(mute_behind_a_closed_filter_holds_nothing)
{
        struct subnet *s = discover(ALL, 0, 1, 0);

        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
        read_leaf(s, 0, 0x8002);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_NONE);
        check_bounds(knowledge_port_bounds(k, host_record(0), 2), LEVEL_NONE, LEVEL_FULL);
        knowledge_send_filter(k, leaf_record(0));
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
        knowledge_see_filter(k, leaf_record(0), true, true);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_NONE);
        knowledge_see_filter(k, leaf_record(0), false, false);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
}
END_TEST

START_TEST(filter_of_a_switch_that_is_incomplete)
{
        struct subnet *s = make_subnet(&(struct scene) { ALL, 0, ALL, ALL, true });

        ck_assert_int_eq(knowledge_see_subnet(k, s, 0, 0, HOLD), 0);
        read_leaf(s, 0, 0);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
}
END_TEST

/* An absent port may come back elsewhere. */
START_TEST(filter_does_not_hold_the_absent)
{
        struct subnet *s = discover(ALL, 0, 1, 0);

        read_host(s, 0, 0x8001);
        read_leaf(s, 0, 0);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_NONE);
        discover(ALL & ~1u, 0, 1, MINUTE);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
}
END_TEST

/* --- who is there ---------------------------------------------------------------------------------------------------------- */

START_TEST(silent_ports_keep_their_record)
{
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_host(s, 0, 0x8001);
        discover(ALL & ~1u, 1, 0, 100 * HOLD);
        ck_assert_int_eq(knowledge_get(k, host_record(0))->presence, KNOWLEDGE_SILENT);
        ck_assert_uint_eq(place_record(0), KNOWLEDGE_NONE);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
        check_bounds(knowledge_port_bounds(k, host_record(0), 2), LEVEL_NONE, LEVEL_NONE);
}
END_TEST

START_TEST(silent_and_never_seen)
{
        discover(ALL & ~1u, 1, 0, 0);
        ck_assert_uint_ne(place_record(0), KNOWLEDGE_NONE);
        check_bounds(knowledge_port_bounds(k, place_record(0), 7), LEVEL_NONE, LEVEL_FULL);
        /* it is discovered: from now on it has a name */
        discover(ALL, 0, 0, 1);
        check_bounds(knowledge_port_bounds(k, place_record(0), 7), LEVEL_NONE, LEVEL_NONE);
        /* it was unplugged instead */
        discover(ALL & ~2u, 2, 0, 2);
        discover(ALL & ~2u, 0, 0, 3);
        check_bounds(knowledge_port_bounds(k, host_record(1), 7), LEVEL_NONE, LEVEL_FULL);
}
END_TEST

START_TEST(absent_for_some_time)
{
        struct subnet *s = discover(ALL, 0, 0, 5);

        read_host(s, 0, 0x8001);
        discover(ALL & ~1u, 0, 0, 5 + HOLD - 1);
        ck_assert_int_eq(knowledge_get(k, host_record(0))->presence, KNOWLEDGE_ABSENT);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
        s = discover(ALL & ~1u, 0, 0, 5 + HOLD);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_NONE);
        ck_assert_int_eq(knowledge_see_subnet(k, s, 100 * HOLD, 0, USEC_INFINITY), 0);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
        /* it is back, and holds what it held until it is read */
        s = discover(ALL, 0, 0, 200 * HOLD);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
        read_host(s, 0, 0);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_NONE);
}
END_TEST

/* Longer than it holds anything up. What it holds when it is back is what it held. */
START_TEST(back_after_a_long_time)
{
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_host(s, 0, 0x8001);
        discover(ALL & ~1u, 0, 0, HOLD);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_NONE);
        discover(ALL, 0, 0, HOLD + 1);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
}
END_TEST

START_TEST(vouches_end)
{
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_host(s, 0, 0x8001);
        knowledge_vouch(k, host_record(0));
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_NONE);
        /* still there, still mute */
        s = discover(ALL, 0, 0, 1);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_NONE);
        /* gone, and back */
        discover(ALL & ~1u, 0, 0, 2);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_NONE);
        s = discover(ALL, 0, 0, 3);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_NONE, LEVEL_FULL);
        knowledge_vouch(k, host_record(0));
        read_host(s, 0, 0x0001);
        check_bounds(knowledge_port_bounds(k, host_record(0), 1), LEVEL_LIMITED, LEVEL_LIMITED);
}
END_TEST

START_TEST(recalled_is_assumed)
{
        struct subnet *s = discover(ALL, 0, 0, 0);
        uint32_t first = port_at(s, host_guid(0), 1), second = port_at(s, host_guid(1), 1);
        struct observed *o;

        read_host(s, 0, 0x8001);
        s = discover(ALL, 0, 0, 1);
        ck_assert_int_eq(observed_new(arena, s, &o), 0);
        o->tables[second].source = TABLE_READ;
        knowledge_recall(k, o);
        ck_assert_int_eq(o->tables[first].source, TABLE_ASSUMED);
        ck_assert_uint_eq(o->tables[first].entries[0].v, 0x8001);
        ck_assert_int_eq(o->tables[second].source, TABLE_READ);
        ck_assert_int_eq(o->tables[port_at(s, host_guid(2), 1)].source, TABLE_UNKNOWN);
}
END_TEST

/* --- the rule -------------------------------------------------------------------------------------------------------------- */

/* A held base 1 and does not answer; the policy gives it to B and C. */
START_TEST(mute_port_holds_a_base)
{
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_host(s, 0, 0x8001);
        s = discover(ALL, 0, 0, 1);
        read_host(s, 1, 0x8001);
        read_host(s, 2, 0);
        read_host(s, 3, 0);
        read_table(s, port_at(s, SWITCH, 0), 0);
        want(s, 6);
        ck_assert_int_eq(judge(2, 0x8001), RULE_GAIN);
        ck_assert_int_eq(judge(3, 0x8001), RULE_GAIN);
        ck_assert_int_eq(judge(1, 0), RULE_ADMITS);
        knowledge_vouch(k, host_record(0));
        ck_assert_int_eq(judge(2, 0x8001), RULE_ADMITS);
        see_block(host_record(2), 0x8001);
        ck_assert_int_eq(judge(1, 0), RULE_LOSS);
}
END_TEST

START_TEST(never_read_port_holds_every_base)
{
        struct subnet *s = discover(ALL, 0, 0, 0);

        for (unsigned i = 1; i < HOSTS; i++)
                read_host(s, i, 0);
        read_table(s, port_at(s, SWITCH, 0), 0);
        want(s, 6);
        ck_assert_int_eq(judge(2, 0x8001), RULE_GAIN);
        read_host(s, 0, 0);
        want(s, 6);
        ck_assert_int_eq(judge(2, 0x8001), RULE_ADMITS);
}
END_TEST

/* Who is known as a member of the same partition holds nothing up, read or not. */
START_TEST(members_hold_nothing_up)
{
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_host(s, 0, 0x8001);
        read_host(s, 3, 0);
        read_table(s, port_at(s, SWITCH, 0), 0);
        s = discover(ALL, 0, 0, 1);
        read_host(s, 2, 0);
        read_host(s, 1, 0);
        want(s, 7);
        ck_assert_int_eq(judge(2, 0x8001), RULE_ADMITS);
        want(s, 6);
        ck_assert_int_eq(judge(2, 0x8001), RULE_GAIN);
}
END_TEST

/* A filter may not be opened for what a mute host may hold, nor closed over what it uses. */
START_TEST(filters_are_judged)
{
        struct subnet *s = discover(ALL, 0, 1, 0);
        uint16_t base;

        for (unsigned i = 1; i < HOSTS; i++)
                read_host(s, i, 0);
        read_table(s, port_at(s, SWITCH, 0), 0);
        read_leaf(s, 0, 0);
        read_host(s, 1, 0x8001);
        want(s, 2);
        ck_assert_int_eq(knowledge_judge_filter(k, leaf_record(0), false, false, &base), RULE_GAIN);
        ck_assert_uint_eq(base, 1);
        ck_assert_int_eq(knowledge_judge_filter(k, leaf_record(0), true, true, &base), RULE_ADMITS);
        want(s, 3);
        ck_assert_int_eq(knowledge_judge_filter(k, leaf_record(0), false, false, &base), RULE_ADMITS);
        read_host(s, 0, 0x8001);
        knowledge_see_filter(k, leaf_record(0), false, false);
        want(s, 3);
        ck_assert_int_eq(knowledge_judge_filter(k, leaf_record(0), true, true, &base), RULE_LOSS);
        read_leaf(s, 0, 0x8001);
        want(s, 3);
        ck_assert_int_eq(knowledge_judge_filter(k, leaf_record(0), true, true, &base), RULE_ADMITS);
}
END_TEST

START_TEST(more_than_the_policy_gives)
{
        struct p_key block[P_KEY_BLOCK_ENTRIES];
        struct subnet *s = discover(ALL, 0, 0, 0);

        read_host(s, 0, 0);
        read_host(s, 1, 0x0001);
        read_leaf(s, 0, 0);
        want(s, 1);
        block_of(0x8001, block);
        ck_assert(!knowledge_exceeds_policy(k, host_record(0), 0, block, 1));
        ck_assert(!knowledge_exceeds_policy(k, leaf_record(0), 0, block, 1));
        ck_assert(knowledge_exceeds_policy(k, host_record(1), 0, block, 1));
        block_of(0x0001, block);
        ck_assert(!knowledge_exceeds_policy(k, host_record(1), 0, block, 1)); /* it has that already */
        block_of(0x8002, block);
        ck_assert(knowledge_exceeds_policy(k, host_record(0), 0, block, 2));
}
END_TEST

/* Nothing is behind a leaf port that is known: what it would change is not known. */
START_TEST(leaf_of_nobody)
{
        struct p_key block[P_KEY_BLOCK_ENTRIES] = {};
        struct subnet *s = discover(ALL, 0, 1, 0);

        read_leaf(s, 0, 0x8001);
        s = discover(ALL & ~1u, 0, 0, 1);
        want(s, 0);
        ck_assert_int_eq(knowledge_judge_block(k, leaf_record(0), 0, block, 1), RULE_GAIN);
}
END_TEST

/* --- counts, against each port by itself ------------------------------------------------------------------------------------ */

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

/* One block of one table, or its filter (block BLOCKS), as it would be. */
struct write {
        uint32_t record;
        unsigned block;
        const struct p_key *entries;
        bool filters[N_DIRECTIONS];
};

static struct bounds others_bounds(uint32_t port, uint16_t base, enum filter_model m, enum direction d)
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

static enum level wanted(const struct knowledge_record *p, uint16_t base)
{
        return p->policy ? level(p->policy->wanted, p->policy->n_wanted, base) : 0;
}

static bool is_admitted_by_each(uint32_t q, uint16_t base, struct bounds before, struct bounds after, enum filter_model m,
                                enum direction d)
{
        for (uint32_t p = 0; p < knowledge_n_records(k); p++) {
                const struct knowledge_record *other = knowledge_get(k, p);
                const struct rule_class class = {
                        .policy = wanted(other, base), .bounds = others_bounds(p, base, m, d == SENDS ? RECEIVES : SENDS),
                        .is_absent = other->presence == KNOWLEDGE_ABSENT,
                };

                if (p != q && other->name.kind != KNOWLEDGE_LEAF &&
                    rule_judge_pair(wanted(knowledge_get(k, q), base), before, after, &class) != RULE_ADMITS)
                        return false;
        }
        return true;
}

/* In each world: what the rest of the table holds, whether the leaf port filters. */
static bool is_admitted_in(const struct write *w, uint16_t base, enum filter_model m, enum direction d)
{
        const struct knowledge_record *r = knowledge_get(k, w->record), *leaf;
        uint32_t q = r->name.kind == KNOWLEDGE_LEAF ? r->other_end : w->record;
        struct bounds rest = table_bounds(r, base, w->block);

        if (q == KNOWLEDGE_NONE)
                return false;
        leaf = knowledge_get(k, q)->other_end == KNOWLEDGE_NONE ? NULL : knowledge_get(k, knowledge_get(k, q)->other_end);
        for (unsigned i = 0; i < 6; i++) {
                bool on = i % 2, then = w->block == BLOCKS ? w->filters[d] : on;
                unsigned level = i / 2;

                if (level < rest.has || level > rest.may || (!leaf && on) || (leaf && !leaf->filters_unsure && leaf->filters[d] != on))
                        continue;
                if (!is_admitted_by_each(q, base, port_around(q, base, m, w, level, on, false),
                                         port_around(q, base, m, w, level, then, true), m, d))
                        return false;
        }
        return true;
}

static bool is_admitted(const struct write *w, uint16_t base)
{
        for (unsigned i = 0; i < 4; i++)
                if (!is_admitted_in(w, base, i & 1 ? FILTER_BY_LEVEL : FILTER_BY_BASE, i & 2 ? SENDS : RECEIVES))
                        return false;
        return true;
}

static struct p_key any_key(void)
{
        return (struct p_key) { (uint16_t) (any(3) ? 0 : (any(2) << 15 | any(BASES + 1))) };
}

static void any_block(struct p_key ret[P_KEY_BLOCK_ENTRIES])
{
        for (unsigned i = 0; i < P_KEY_BLOCK_ENTRIES; i++)
                ret[i] = any(8) ? (struct p_key) {} : any_key();
}

static void any_policy(struct subnet *s)
{
        struct desired *d = arena_new_object(arena, struct desired);

        *d = (struct desired) { .subnet = s, .ports = arena_new_array(arena, struct desired_port, s->n_ports) };
        for (uint32_t i = 0; i < s->n_ports; i++) {
                struct p_key *keys = arena_new_array(arena, struct p_key, 2 * BASES);
                uint32_t n = 0;

                for (uint16_t base = 1; s->ports[i].role == PORT_ENDPORT && base <= BASES; base++) {
                        unsigned membership = any(4);

                        if (membership & 1)
                                keys[n++].v = base;
                        if (membership & 2)
                                keys[n++].v = 0x8000 | base;
                }
                d->ports[i] = (struct desired_port) { keys, n };
        }
        ck_assert_int_eq(knowledge_set_policy(k, d), 0);
}

static void any_reads(struct subnet *s)
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

/* Any that can be written: it was read. */
static uint32_t any_record(void)
{
        for (;;) {
                uint32_t i = any(knowledge_n_records(k));

                if (knowledge_get(k, i)->entries)
                        return i;
        }
}

static void any_event(void)
{
        struct p_key block[P_KEY_BLOCK_ENTRIES];
        uint32_t record = any_record();

        any_block(block);
        switch (any(8)) {
        case 0:
        case 1:
        case 2:
                ck_assert_int_eq(knowledge_send_block(k, record, (uint16_t) any(BLOCKS), block), 0);
                break;
        case 3:
        case 4:
                knowledge_see_block(k, record, (uint16_t) any(BLOCKS), block);
                break;
        case 5:
        case 6:
                knowledge_vouch(k, any(knowledge_n_records(k)));
                break;
        case 7:
                record = leaf_record(any(HOSTS));
                if (record != KNOWLEDGE_NONE && any(2))
                        knowledge_send_filter(k, record);
                else if (record != KNOWLEDGE_NONE)
                        knowledge_see_filter(k, record, any(2), any(2));
                break;
        }
}

static void compare_judgements(void)
{
        struct p_key block[P_KEY_BLOCK_ENTRIES];
        struct write w = { .record = any_record(), .block = any(BLOCKS), .entries = block, .filters = { any(2), any(2) } };
        uint16_t base = (uint16_t) (1 + any(BASES + 1)), found;

        any_block(block);
        ck_assert_int_eq(knowledge_judge_block(k, w.record, (uint16_t) w.block, block, base) == RULE_ADMITS, is_admitted(&w, base));
        w.record = leaf_record(any(HOSTS));
        w.block = BLOCKS;
        if (w.record == KNOWLEDGE_NONE)
                return;
        for (base = 1; base <= BASES + 1 && is_admitted(&w, base); base++)
                ;
        ck_assert_int_eq(knowledge_judge_filter(k, w.record, w.filters[SENDS], w.filters[RECEIVES], &found) == RULE_ADMITS, base > BASES + 1);
        if (base <= BASES + 1)
                ck_assert(!is_admitted(&w, found));
}

START_TEST(counts_are_those_of_all_ports)
{
        seed = (uint64_t) _i;
        for (usec_t now = 0; now < 40 * MINUTE; now += MINUTE) {
                struct subnet *s = make_subnet(&(struct scene) { any(2) ? ALL : any(ALL + 1), any(ALL + 1), any(ALL + 1), any(ALL + 1), any(8) == 0 });

                ck_assert_int_eq(knowledge_see_subnet(k, s, now, 0, HOLD), 0);

                for (unsigned read = 0; read < 2; read++) {
                        any_reads(s);
                        any_policy(s);
                        for (unsigned i = 0; i < 20; i++) {
                                compare_judgements();
                                any_event();
                        }
                }
        }
}
END_TEST

int main(void)
{
        TCase *bounds = tcase_create("bounds"), *presence = tcase_create("presence"), *rule = tcase_create("rule");
        Suite *s = suite_create("knowledge");
        SRunner *sr;
        int failed;

        tcase_add_checked_fixture(bounds, knowledge_setup, knowledge_teardown);
        tcase_add_test(bounds, never_read_may_hold_anything);
        tcase_add_test(bounds, writes_are_not_certain_until_read);
        tcase_add_test(bounds, announced_blocks_stay);
        tcase_add_test(bounds, old_reads_are_not_certain);
        tcase_add_test(bounds, entries_behind_the_end);
        tcase_add_test(bounds, table_of_another_size);
        tcase_add_test(bounds, mute_behind_a_closed_filter_holds_nothing);
        tcase_add_test(bounds, filter_of_a_switch_that_is_incomplete);
        tcase_add_test(bounds, filter_does_not_hold_the_absent);
        tcase_add_checked_fixture(presence, knowledge_setup, knowledge_teardown);
        tcase_add_test(presence, silent_ports_keep_their_record);
        tcase_add_test(presence, silent_and_never_seen);
        tcase_add_test(presence, absent_for_some_time);
        tcase_add_test(presence, back_after_a_long_time);
        tcase_add_test(presence, vouches_end);
        tcase_add_test(presence, recalled_is_assumed);
        tcase_add_checked_fixture(rule, knowledge_setup, knowledge_teardown);
        tcase_add_test(rule, mute_port_holds_a_base);
        tcase_add_test(rule, never_read_port_holds_every_base);
        tcase_add_test(rule, members_hold_nothing_up);
        tcase_add_test(rule, filters_are_judged);
        tcase_add_test(rule, leaf_of_nobody);
        tcase_add_test(rule, more_than_the_policy_gives);
        tcase_add_loop_test(rule, counts_are_those_of_all_ports, 0, 12);
        suite_add_tcase(s, bounds);
        suite_add_tcase(s, presence);
        suite_add_tcase(s, rule);
        sr = srunner_create(s);
        srunner_run_all(sr, CK_NORMAL);
        failed = srunner_ntests_failed(sr);
        srunner_free(sr);
        return failed ? 1 : 0;
}
