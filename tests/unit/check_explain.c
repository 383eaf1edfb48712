/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <stdlib.h>

#include "verify/explain.h"

#define KEYS(...)                                                                                                      \
        (const struct p_key[]) { __VA_ARGS__ }, sizeof((const struct p_key[]) { __VA_ARGS__ }) / sizeof(struct p_key)

static struct explain_end make_end(struct arena *a, const struct p_key *entries, uint32_t n)
{
        struct explain_end end = {};

        ck_assert_int_eq(explain_table_make(a, entries, n, &end.table), 0);
        return end;
}

static void add_filter(struct arena *a, struct explain_end *end, const struct p_key *entries, uint32_t n)
{
        ck_assert_int_eq(explain_table_make(a, entries, n, &end->filter), 0);
        end->is_filtered = true;
}

/* Pairs of keys, each alone in its table, in both orders. */
START_TEST(test_matching_rule)
{
        static const struct {
                uint16_t a, b;
                enum explain_verdict verdict;
        } rows[] = {
                { 0x8001, 0x0001, EXPLAIN_TALK },
                { 0x8001, 0x8001, EXPLAIN_TALK },
                { 0x0001, 0x0001, EXPLAIN_BOTH_LIMITED },
                { 0x8002, 0x0001, EXPLAIN_NOTHING_COMMON },
                { 0x8002, 0x8001, EXPLAIN_NOTHING_COMMON },
                { 0x8002, 0x8002, EXPLAIN_TALK },
                { 0xffff, 0x7fff, EXPLAIN_TALK },
                { 0x7fff, 0x7fff, EXPLAIN_BOTH_LIMITED },
                { 0x0000, 0x0000, EXPLAIN_NOTHING_COMMON },
                { 0x8000, 0x8000, EXPLAIN_NOTHING_COMMON }, /* base 0 grants nothing, full bit or not */
                { 0x8000, 0x0000, EXPLAIN_NOTHING_COMMON },
        };
        _cleanup_arena_ struct arena *a = arena_new();

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct explain_end x = make_end(a, KEYS({ rows[i].a })), y = make_end(a, KEYS({ rows[i].b }));

                ck_assert_msg(explain_pair(&x, &y) == rows[i].verdict, "0x%04x with 0x%04x: %s", rows[i].a, rows[i].b,
                              explain_verdict_to_string(explain_pair(&x, &y)));
                ck_assert_int_eq(explain_pair(&y, &x), rows[i].verdict);
        }
}
END_TEST

START_TEST(test_tables)
{
        _cleanup_arena_ struct arena *a = arena_new();
        struct explain_end x = make_end(a, KEYS({ 0x7fff }, { 0 }, { 0x0010 }, { 0x8020 }, { 0x8010 }, { 0x0030 }));
        struct explain_end y = make_end(a, KEYS({ 0x7fff }, { 0x0010 }, { 0x0020 }, { 0x8040 }));
        struct explain_cursor cursor = {};
        struct explain_base base;

        ck_assert_int_eq(explain_table_membership(&x.table, 0x10), MEMBERSHIP_BOTH);
        ck_assert_int_eq(explain_table_membership(&x.table, 0x20), MEMBERSHIP_FULL);
        ck_assert_int_eq(explain_table_membership(&x.table, 0x30), MEMBERSHIP_LIMITED);
        ck_assert_int_eq(explain_table_membership(&x.table, 0x40), MEMBERSHIP_NONE);

        ck_assert(explain_next_base(&x, &y, &cursor, &base));
        ck_assert_uint_eq(base.base, 0x10);
        ck_assert_uint_eq(base.a.v, 0x8010);
        ck_assert_uint_eq(base.b.v, 0x0010);
        ck_assert_int_eq(base.verdict, EXPLAIN_TALK);
        ck_assert(explain_next_base(&x, &y, &cursor, &base));
        ck_assert_uint_eq(base.base, 0x20);
        ck_assert_int_eq(base.verdict, EXPLAIN_TALK);
        ck_assert(explain_next_base(&x, &y, &cursor, &base));
        ck_assert_uint_eq(base.base, 0x7fff);
        ck_assert_int_eq(base.verdict, EXPLAIN_BOTH_LIMITED);
        ck_assert(!explain_next_base(&x, &y, &cursor, &base));
        ck_assert_int_eq(explain_pair(&x, &y), EXPLAIN_TALK);
}
END_TEST

START_TEST(test_enforcing_ports)
{
        _cleanup_arena_ struct arena *a = arena_new();
        struct explain_end x = make_end(a, KEYS({ 0x8001 }, { 0x8002 })), y = make_end(a, KEYS({ 0x0001 }, { 0x0002 }));

        add_filter(a, &x, KEYS({ 0x8001 }));
        ck_assert_int_eq(explain_pair(&x, &y), EXPLAIN_TALK);
        add_filter(a, &x, KEYS({ 0x8003 }));
        ck_assert_int_eq(explain_pair(&x, &y), EXPLAIN_BLOCKED_A);
        ck_assert_int_eq(explain_pair(&y, &x), EXPLAIN_BLOCKED_B);
        /* one base passes the filter at A only, the other the filter at B only */
        add_filter(a, &x, KEYS({ 0x8001 }));
        add_filter(a, &y, KEYS({ 0x0002 }));
        ck_assert_int_eq(explain_pair(&x, &y), EXPLAIN_BLOCKED_A);
        x.is_filtered = false;
        ck_assert_int_eq(explain_pair(&x, &y), EXPLAIN_TALK);
}
END_TEST

START_TEST(test_unknown)
{
        _cleanup_arena_ struct arena *a = arena_new();
        struct explain_end x = make_end(a, KEYS({ 0x8001 })), y = make_end(a, KEYS({ 0x0001 })), none = {};
        struct explain_end z = make_end(a, KEYS({ 0x8002 }));

        ck_assert_int_eq(explain_pair(&x, &none), EXPLAIN_UNKNOWN);
        ck_assert_int_eq(explain_pair(&none, &x), EXPLAIN_UNKNOWN);
        x.is_filtered = true;
        ck_assert_int_eq(explain_pair(&x, &y), EXPLAIN_UNKNOWN);
        /* these two have no base in common, whatever the switch port holds */
        ck_assert_int_eq(explain_pair(&x, &z), EXPLAIN_NOTHING_COMMON);
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("explain");
        TCase *tcase = tcase_create("explain");
        SRunner *runner;
        int failed;

        tcase_add_test(tcase, test_matching_rule);
        tcase_add_test(tcase, test_tables);
        tcase_add_test(tcase, test_enforcing_ports);
        tcase_add_test(tcase, test_unknown);
        suite_add_tcase(suite, tcase);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_NORMAL);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
