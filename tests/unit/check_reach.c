/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a change of tables changes in who can talk to whom, compared with all pairs, one by one. */

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "../fabsim/prng.h"
#include "reach/matrix.h"
#include "reach/reach_text.h"
#include "verify/explain.h"

#define MAX_HOSTS 24
#define CAPACITY  6
#define MAX_PORTS (2 * MAX_HOSTS + 1)

static struct arena *arena;
static struct subnet *subnet;
static uint32_t host[MAX_HOSTS], leaf[MAX_HOSTS];
static unsigned n_hosts;
static struct p_key tables[2][MAX_PORTS][CAPACITY];
static struct reach_table sides[2][MAX_PORTS]; /* before, after */

static void begin(unsigned n)
{
        struct subnet_node node = { .guid.v = 0x1000, .type = NODE_SWITCH, .num_ports = MAX_HOSTS };
        struct subnet_builder *b;

        arena = arena_new();
        n_hosts = n;
        ck_assert_int_eq(subnet_builder_new(arena, &b), 0);
        ck_assert_int_eq(subnet_builder_add_node(b, &node, "leaf", 4), 0);
        ck_assert_int_eq(subnet_builder_add_port(b, node.guid, &(struct subnet_port) { .guid = node.guid }), 0);
        for (unsigned h = 0; h < n; h++) {
                struct guid guid = { 0x2000 + h };
                char name[16];

                snprintf(name, sizeof(name), "h%02u hca", h);
                node = (struct subnet_node) { .guid = guid, .type = NODE_CA, .num_ports = 1 };
                ck_assert_int_eq(subnet_builder_add_node(b, &node, name, strlen(name)), 0);
                ck_assert_int_eq(subnet_builder_add_port(b, guid, &(struct subnet_port) { .number = 1, .guid = guid }), 0);
                ck_assert_int_eq(subnet_builder_add_port(b, (struct guid) { 0x1000 },
                                                         &(struct subnet_port) { .number = (uint8_t) (h + 1) }), 0);
                ck_assert_int_eq(subnet_builder_add_link(b, (struct guid) { 0x1000 }, (uint8_t) (h + 1), guid, 1), 0);
        }
        ck_assert_int_eq(subnet_builder_finish(b, (struct guid) { 0 }, 0, (struct guid) { 0 }, 0, &subnet), 0);
        ck_assert_uint_le(subnet->n_ports, MAX_PORTS);
        memset(tables, 0, sizeof(tables));
        for (uint32_t p = 0; p < subnet->n_ports; p++)
                for (unsigned side = 0; side < 2; side++)
                        sides[side][p] = (struct reach_table) { .entries = tables[side][p], .capacity = CAPACITY };
        for (unsigned h = 0; h < n; h++) {
                host[h] = subnet_find_port_of(subnet, (struct guid) { 0x2000 + h }, 1);
                leaf[h] = subnet_leaf_port(subnet, host[h]);
                ck_assert_uint_ne(leaf[h], SUBNET_NONE);
        }
}

static void end(void)
{
        arena = arena_free(arena);
}

/* Adds P_Keys (up to a 0) to the table of a host. */
static void put(unsigned side, unsigned h, const uint16_t *keys)
{
        struct p_key *table = tables[side][host[h]];

        for (; *keys; keys++) {
                unsigned i = 0;

                while (table[i].v)
                        ck_assert_uint_lt(++i, CAPACITY);
                table[i].v = *keys;
        }
}
#define PUT(side, h, ...) put((side), (h), (const uint16_t[]) { __VA_ARGS__, 0 })

static struct reach_changes compare(void)
{
        struct reach_changes ret;

        ck_assert_int_eq(reach_compare(arena, subnet, sides[0], sides[1], &ret), 0);
        return ret;
}

/* --- one by one ------------------------------------------------------------------------------------------------------ */

static struct explain_end end_of(unsigned side, uint32_t port)
{
        uint32_t p = subnet_leaf_port(subnet, port);
        struct explain_end end = {};

        if (sides[side][port].entries)
                ck_assert_int_eq(explain_table_make(arena, sides[side][port].entries, CAPACITY, &end.table), 0);
        end.is_filtered = p != SUBNET_NONE && sides[side][p].enforces;
        if (end.is_filtered && sides[side][p].entries)
                ck_assert_int_eq(explain_table_make(arena, sides[side][p].entries, CAPACITY, &end.filter), 0);
        return end;
}

static struct explain_end ends[2][MAX_PORTS];

static void make_ends(void)
{
        for (uint32_t p = 0; p < subnet->n_ports; p++)
                for (unsigned side = 0; side < 2; side++)
                        ends[side][p] = end_of(side, p);
}

static bool is_judged(uint32_t port)
{
        if (subnet->ports[port].role != PORT_ENDPORT)
                return false;
        for (unsigned side = 0; side < 2; side++)
                if (!ends[side][port].table.known || (ends[side][port].is_filtered && !ends[side][port].filter.known))
                        return false;
        return true;
}

/* The bases through which two ports can talk, as bits. */
static uint32_t bases_of(unsigned side, uint32_t x, uint32_t y)
{
        struct explain_cursor cursor = {};
        struct explain_base base;
        uint32_t bits = 0;

        while (explain_next_base(&ends[side][x], &ends[side][y], &cursor, &base))
                if (base.verdict == EXPLAIN_TALK)
                        bits |= 1U << base.base;
        return bits;
}

/* What the result says of a pair: bits of bases, or 0. Each pair may be listed once. */
static uint32_t listed[MAX_PORTS][MAX_PORTS];
static bool listed_gained[MAX_PORTS][MAX_PORTS];

static void list_pair(uint32_t x, uint32_t y, const struct reach_others *o)
{
        uint32_t low = MIN(x, y), high = MAX(x, y);

        ck_assert_msg(listed[low][high] == 0, "ports %u and %u are listed twice", low, high);
        listed_gained[low][high] = o->gained;
        for (uint32_t i = 0; i < o->n_bases; i++) {
                ck_assert(i == 0 || o->bases[i] > o->bases[i - 1]);
                listed[low][high] |= 1U << o->bases[i];
        }
}

static bool has_port(const uint32_t *ports, uint32_t n, uint32_t port)
{
        for (uint32_t i = 0; i < n; i++)
                if (ports[i] == port)
                        return true;
        return false;
}

/* A pair of which both are on both sides is meant once. */
static void list_others(const struct reach_line *line, const struct reach_others *o)
{
        for (uint32_t i = 0; i < line->n_ports; i++)
                for (uint32_t k = 0; k < o->n_ports; k++) {
                        uint32_t x = line->ports[i], y = o->ports[k];
                        bool both_ways = has_port(o->ports, o->n_ports, x) && has_port(line->ports, line->n_ports, y);

                        if (x != y && !(both_ways && x > y))
                                list_pair(x, y, o);
                }
}

static void list_all(const struct reach_changes *r)
{
        memset(listed, 0, sizeof(listed));
        for (uint32_t i = 0; i < r->n_lines; i++) {
                ck_assert_uint_gt(r->lines[i].n_others, 0);
                for (uint32_t k = 0; k < r->lines[i].n_others; k++)
                        list_others(&r->lines[i], &r->lines[i].others[k]);
        }
}

static void expect_as_one_by_one(const struct reach_changes *r)
{
        uint64_t n_lost = 0, n_gained = 0;

        list_all(r);
        make_ends();
        for (uint32_t x = 0; x < subnet->n_ports; x++)
                for (uint32_t y = x + 1; y < subnet->n_ports; y++) {
                        bool judged = is_judged(x) && is_judged(y);
                        uint32_t before = judged ? bases_of(0, x, y) : 0, after = judged ? bases_of(1, x, y) : 0;

                        if (!before == !after) {
                                ck_assert_msg(listed[x][y] == 0, "ports %u and %u", x, y);
                                continue;
                        }
                        n_lost += before != 0;
                        n_gained += after != 0;
                        ck_assert_msg(listed[x][y] == (before | after), "ports %u and %u: 0x%x instead of 0x%x", x, y,
                                      listed[x][y], before | after);
                        ck_assert(listed_gained[x][y] == (after != 0));
                }
        ck_assert_uint_eq(r->n_lost, n_lost);
        ck_assert_uint_eq(r->n_gained, n_gained);
        ck_assert(!r->truncated);
}

static void randomize(struct prng *p)
{
        unsigned n_kinds = 1 + prng_below(p, 6);
        struct p_key kinds[6][CAPACITY];

        for (unsigned k = 0; k < n_kinds; k++)
                for (unsigned i = 0; i < CAPACITY; i++)
                        kinds[k][i].v = prng_below(p, 2) ? 0 : (uint16_t) (prng_below(p, 6) | (prng_below(p, 3) ? 0 : 0x8000));
        for (unsigned h = 0; h < n_hosts; h++) {
                memcpy(tables[0][host[h]], kinds[prng_below(p, n_kinds)], sizeof(kinds[0]));
                memcpy(tables[1][host[h]], prng_below(p, 3) ? tables[0][host[h]] : kinds[prng_below(p, n_kinds)], sizeof(kinds[0]));
                for (unsigned side = 0; side < 2; side++) {
                        sides[side][leaf[h]].enforces = prng_below(p, 4) == 0;
                        memcpy(tables[side][leaf[h]], kinds[prng_below(p, n_kinds)], sizeof(kinds[0]));
                        if (prng_below(p, 20) == 0)
                                sides[side][prng_below(p, 2) ? leaf[h] : host[h]].entries = NULL;
                }
        }
}

START_TEST(random_tables)
{
        struct prng p = { (uint64_t) _i };

        for (unsigned round = 0; round < 40; round++) {
                struct reach_changes r;

                begin(2 + prng_below(&p, MAX_HOSTS - 1));
                randomize(&p);
                r = compare();
                expect_as_one_by_one(&r);
                end();
        }
}
END_TEST

/* --- lines ----------------------------------------------------------------------------------------------------------- */

static void expect_ports(const uint32_t *ports, uint32_t n, unsigned first, unsigned last)
{
        ck_assert_uint_eq(n, last - first + 1);
        for (unsigned h = first; h <= last; h++)
                ck_assert_uint_eq(ports[h - first], host[h]);
}

static void expect_others(const struct reach_line *line, unsigned i, bool gained, uint16_t base, unsigned first, unsigned last)
{
        const struct reach_others *o = &line->others[i];

        ck_assert_uint_lt(i, line->n_others);
        ck_assert(o->gained == gained);
        ck_assert_uint_eq(o->n_bases, 1);
        ck_assert_uint_eq(o->bases[0], base);
        expect_ports(o->ports, o->n_ports, first, last);
}

START_TEST(a_host_moves)
{
        struct reach_changes r;

        begin(8);
        for (unsigned h = 0; h < 8; h++) {
                PUT(0, h, 0x0009, h < 4 ? 0x8001 : 0x8002);
                PUT(1, h, 0x0009, h < 3 ? 0x8001 : 0x8002);
        }
        r = compare();
        ck_assert_uint_eq(r.n_lines, 1);
        expect_ports(r.lines[0].ports, r.lines[0].n_ports, 3, 3);
        ck_assert_uint_eq(r.lines[0].n_others, 2);
        expect_others(&r.lines[0], 0, false, 1, 0, 2);
        expect_others(&r.lines[0], 1, true, 2, 4, 7);
        ck_assert_uint_eq(r.n_lost, 3);
        ck_assert_uint_eq(r.n_gained, 4);
        end();
}
END_TEST

/* Hosts of different tenants lose the same partition: one line. */
START_TEST(a_partition_is_closed)
{
        struct reach_changes r;

        begin(6);
        for (unsigned h = 0; h < 6; h++) {
                PUT(0, h, 0x8009, (uint16_t) (0x8001 + h / 2));
                PUT(1, h, 0x0009, (uint16_t) (0x8001 + h / 2));
        }
        r = compare();
        expect_as_one_by_one(&r);
        ck_assert_uint_eq(r.n_lost, 12); /* pairs of different tenants */
        end();

        begin(6);
        for (unsigned h = 0; h < 6; h++) {
                PUT(0, h, 0x8009, (uint16_t) (1 + h));
                PUT(1, h, 0x0009, (uint16_t) (1 + h));
        }
        r = compare();
        ck_assert_uint_eq(r.n_lines, 1);
        expect_ports(r.lines[0].ports, r.lines[0].n_ports, 0, 5);
        ck_assert_uint_eq(r.lines[0].n_others, 1);
        expect_others(&r.lines[0], 0, false, 9, 0, 5);
        ck_assert_uint_eq(r.n_lost, 15);
        end();
}
END_TEST

/* A raised or redundant entry changes nothing for a pair that could talk before. */
START_TEST(nothing_changes)
{
        struct reach_changes r;

        begin(3);
        for (unsigned h = 0; h < 3; h++) {
                PUT(0, h, 0x8001, 0x0002);
                PUT(1, h, 0x8001, h == 0 ? 0x8002 : 0x0003);
        }
        r = compare();
        ck_assert_uint_eq(r.n_lines + r.n_lost + r.n_gained, 0);
        end();
}
END_TEST

/* The table of a leaf port that enforces is part of it. */
START_TEST(a_leaf_port_decides)
{
        struct reach_changes r;

        begin(3);
        for (unsigned side = 0; side < 2; side++)
                for (unsigned h = 0; h < 3; h++)
                        PUT(side, h, 0x8001);
        sides[1][leaf[2]].enforces = true;
        r = compare();
        ck_assert_uint_eq(r.n_lines, 1);
        expect_ports(r.lines[0].ports, r.lines[0].n_ports, 2, 2);
        expect_others(&r.lines[0], 0, false, 1, 0, 1);
        sides[1][leaf[2]].entries = NULL;
        r = compare();
        ck_assert_uint_eq(r.n_lines, 0);
        ck_assert_uint_eq(r.n_unknown, 1);
        end();
}
END_TEST

/* --- words ----------------------------------------------------------------------------------------------------------- */

static void expect_words(const struct reach_changes *r, unsigned i, const char *words)
{
        const char *text = reach_describe(arena, subnet, &(struct reach_names) {}, &r->lines[i]);

        ck_assert_uint_lt(i, r->n_lines);
        ck_assert_pstr_eq(text, words);
}

START_TEST(words)
{
        _cleanup_findings_ struct findings findings = {};
        const struct reach_names names = {};
        struct reach_line lines[REACH_MAX_SHOWN + 2];
        struct reach_changes r;

        begin(8);
        for (unsigned h = 0; h < 8; h++) {
                PUT(0, h, h < 4 ? 0x8001 : 0x8002);
                PUT(1, h, h < 3 ? 0x8001 : 0x8002);
        }
        r = compare();
        expect_words(&r, 0, "h03: no longer with h[00-02] (0x0001); now with h[04-07] (0x0002)");
        ck_assert_str_eq(reach_summarize(arena, &r), "3 pairs of ports lost, 4 gained; nothing else changes");
        findings.arena = arena;
        reach_report(subnet, &names, &r, &findings);
        ck_assert_uint_eq(findings.n, 2);
        ck_assert_int_eq(findings.items[0].code, FINDING_PLAN_REACH);
        ck_assert_int_eq(findings.items[0].severity, FINDING_NOTE);
        ck_assert_str_eq(findings.items[0].text, "who can talk to whom: 3 pairs of ports lost, 4 gained; nothing else changes");
        for (unsigned i = 0; i < ELEMENTS(lines); i++)
                lines[i] = r.lines[0];
        r.lines = lines;
        r.n_lines = ELEMENTS(lines);
        reach_report(subnet, &names, &r, &findings);
        ck_assert_uint_eq(findings.n, 2 + 1 + REACH_MAX_SHOWN + 1);
        ck_assert_str_eq(findings.items[findings.n - 1].text, "and 2 more like these, which are not logged");
        end();

        begin(4);
        for (unsigned h = 0; h < 4; h++) {
                PUT(0, h, 0x8009, h == 3 ? 0x8001 : 0x0002);
                PUT(1, h, 0x0009, h == 3 ? 0x8003 : h == 2 ? 0x8003 : 0x0002);
        }
        r = compare();
        expect_words(&r, 0, "h[00-01]: no longer with each other and h[02-03] (0x0009)");
        end();
}
END_TEST

/* --- matrix ---------------------------------------------------------------------------------------------------------- */

#define MAX_SETS 5

/* Each set has each host with the same probability; sets overlap. */
static void make_sets(struct prng *p, struct reach_set sets[MAX_SETS], uint32_t ports[MAX_SETS][MAX_HOSTS])
{
        for (unsigned i = 0; i < MAX_SETS; i++) {
                unsigned permille = prng_below(p, 1000);

                sets[i] = (struct reach_set) { .ports = ports[i] };
                for (unsigned h = 0; h < n_hosts; h++)
                        if (prng_permille(p, permille))
                                ports[i][sets[i].n++] = host[h];
        }
}

/* Of all pairs of endports of two sets: the bases through which one of them can talk, and those through which all can. */
static void ways_of(const struct reach_set *x, const struct reach_set *y, uint32_t *ret_some, uint32_t *ret_all)
{
        *ret_some = 0;
        *ret_all = UINT32_MAX;
        for (uint32_t i = 0; i < x->n; i++)
                for (uint32_t k = 0; k < y->n; k++) {
                        uint32_t bases = 0;

                        if (x->ports[i] == y->ports[k])
                                continue;
                        if (is_judged(x->ports[i]) && is_judged(y->ports[k]))
                                bases = bases_of(1, x->ports[i], y->ports[k]);
                        *ret_some |= bases;
                        *ret_all &= bases;
                }
}

static void expect_cell(const struct reach_cell *cell, const struct reach_set *x, const struct reach_set *y)
{
        uint32_t some, all, listed_some = 0, listed_all = 0;

        ways_of(x, y, &some, &all);
        for (uint32_t i = 0; i < cell->n; i++) {
                ck_assert(i == 0 || cell->ways[i].base > cell->ways[i - 1].base);
                listed_some |= 1U << cell->ways[i].base;
                listed_all |= (uint32_t) cell->ways[i].all << cell->ways[i].base;
        }
        ck_assert_uint_eq(listed_some, some);
        ck_assert_uint_eq(listed_all, all & some);
}

START_TEST(random_matrix)
{
        struct prng p = { (uint64_t) _i };

        for (unsigned round = 0; round < 40; round++) {
                uint32_t ports[MAX_SETS][MAX_HOSTS];
                struct reach_set sets[MAX_SETS];
                const struct reach_cell *cells;

                begin(1 + prng_below(&p, MAX_HOSTS));
                randomize(&p);
                memcpy(sides[0], sides[1], sizeof(sides[0])); /* a port is judged if it is known after */
                make_ends();
                make_sets(&p, sets, ports);
                ck_assert_int_eq(reach_matrix(arena, subnet, sides[1], sets, MAX_SETS, &cells), 0);
                for (unsigned i = 0; i < MAX_SETS; i++)
                        for (unsigned k = 0; k < MAX_SETS; k++)
                                expect_cell(&cells[i * MAX_SETS + k], &sets[i], &sets[k]);
                end();
        }
}
END_TEST

/* The base of a P_Key as a bit, or all of them: those that a host can use. */
static uint32_t levels_of(uint32_t port, bool full)
{
        const struct explain_end *end = &ends[1][port];
        uint32_t bits = 0;

        for (uint32_t i = 0; i < end->table.n_levels; i++) {
                uint16_t base = end->table.levels[i].base;
                bool is_full = explain_table_membership(&end->table, base) != MEMBERSHIP_LIMITED;
                bool passes = !end->is_filtered || explain_table_membership(&end->filter, base) != MEMBERSHIP_NONE;

                bits |= (uint32_t) (passes && is_full == full) << base;
        }
        return bits;
}

static void expect_kind(const struct reach_kind *kind, const struct reach_set sets[MAX_SETS], uint32_t port)
{
        uint32_t bits[2] = {}, in = 0;

        for (uint32_t i = 0; i < kind->n_keys; i++) {
                ck_assert(i == 0 || p_key_base(kind->keys[i]) > p_key_base(kind->keys[i - 1]));
                bits[p_key_is_full(kind->keys[i])] |= 1U << p_key_base(kind->keys[i]);
        }
        for (uint32_t i = 0; i < kind->n_sets; i++)
                in |= 1U << kind->sets[i];
        ck_assert_uint_eq(bits[0], levels_of(port, false));
        ck_assert_uint_eq(bits[1], levels_of(port, true));
        for (uint32_t i = 0; i < MAX_SETS; i++)
                ck_assert_int_eq(in >> i & 1, has_port(sets[i].ports, sets[i].n, port));
}

static bool are_alike(const struct reach_kind *a, const struct reach_kind *b)
{
        return a->n_keys == b->n_keys && a->n_sets == b->n_sets &&
               (a->n_keys == 0 || memcmp(a->keys, b->keys, a->n_keys * sizeof(*a->keys)) == 0) &&
               (a->n_sets == 0 || memcmp(a->sets, b->sets, a->n_sets * sizeof(*a->sets)) == 0);
}

/* Each port that is judged is in one kind, which describes it; no two kinds are alike. */
static void expect_kinds(const struct reach_kind *kinds, uint32_t n, const struct reach_set sets[MAX_SETS])
{
        unsigned n_listed[MAX_PORTS] = {};

        for (uint32_t i = 0; i < n; i++) {
                ck_assert(i == 0 || kinds[i].ports[0] > kinds[i - 1].ports[0]);
                for (uint32_t k = 0; k < kinds[i].n_ports; k++) {
                        expect_kind(&kinds[i], sets, kinds[i].ports[k]);
                        n_listed[kinds[i].ports[k]]++;
                }
                for (uint32_t k = 0; k < i; k++)
                        ck_assert(!are_alike(&kinds[i], &kinds[k]));
        }
        for (uint32_t p = 0; p < subnet->n_ports; p++)
                ck_assert_uint_eq(n_listed[p], is_judged(p));
}

START_TEST(random_kinds)
{
        struct prng p = { (uint64_t) _i };

        for (unsigned round = 0; round < 40; round++) {
                uint32_t ports[MAX_SETS][MAX_HOSTS], n;
                struct reach_set sets[MAX_SETS];
                struct reach_kind *kinds;

                begin(1 + prng_below(&p, MAX_HOSTS));
                randomize(&p);
                memcpy(sides[0], sides[1], sizeof(sides[0]));
                make_ends();
                make_sets(&p, sets, ports);
                ck_assert_int_eq(reach_kinds(arena, subnet, sides[1], sets, MAX_SETS, &kinds, &n), 0);
                expect_kinds(kinds, n, sets);
                end();
        }
}
END_TEST

/* Ports of a set have the same memberships, and no two sets have. */
START_TEST(sets_of_equal_ports)
{
        const struct reach_set from = { host, 5 };
        struct reach_set *sets;
        uint32_t n;

        begin(6);
        PUT(1, 0, 0x8001, 0x0002);
        PUT(1, 1, 0x0001);
        PUT(1, 2, 0x0002, 0x8001, 0x0001);
        PUT(1, 4, 0x8001);
        PUT(1, 5, 0x8001, 0x0002);
        sides[1][host[4]].entries = NULL;
        ck_assert_int_eq(reach_split(arena, subnet, sides[1], &from, &sets, &n), 0);
        ck_assert_uint_eq(n, 3);
        ck_assert_uint_eq(sets[0].n, 2); /* not host 5, which is not in `from` */
        ck_assert_uint_eq(sets[0].ports[0], host[0]);
        ck_assert_uint_eq(sets[0].ports[1], host[2]);
        expect_ports(sets[1].ports, sets[1].n, 1, 1);
        expect_ports(sets[2].ports, sets[2].n, 3, 3);
        end();
}
END_TEST

int main(void)
{
        Suite *s = suite_create("reach");
        TCase *t = tcase_create("reach");
        SRunner *r;
        int n_failed;

        tcase_add_loop_test(t, random_tables, 0, 20);
        tcase_add_loop_test(t, random_matrix, 0, 5);
        tcase_add_loop_test(t, random_kinds, 0, 5);
        tcase_add_test(t, words);
        tcase_add_test(t, sets_of_equal_ports);
        tcase_add_test(t, a_host_moves);
        tcase_add_test(t, a_partition_is_closed);
        tcase_add_test(t, nothing_changes);
        tcase_add_test(t, a_leaf_port_decides);
        suite_add_tcase(s, t);
        r = srunner_create(s);
        srunner_run_all(r, CK_ENV);
        n_failed = srunner_ntests_failed(r);
        srunner_free(r);
        return n_failed > 0;
}
