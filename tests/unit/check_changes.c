/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The changes of a plan, by partition. */

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "fake_fabric.h"
#include "verify/changes.h"
#include "reconcile.h"

#define TENANT 0x0101
#define LINES  "version: 1\npartitions:\n  default:\n    pkey: 0x7fff\n    members:\n      ALL: full\n" \
               "  tenant:\n    pkey: 0x0101\n    members:\n"

static struct arena *arena;
static struct fake_fabric fabric;
static struct findings findings;

static void begin(bool with_leaf)
{
        arena = arena_new();
        ck_assert_ptr_nonnull(arena);
        findings = (struct findings) { .arena = arena };
        fake_fabric_init(&fabric, arena, 5, with_leaf);
        fabric.subnet->sm = fabric.host[0];
        for (unsigned h = 0; h < 5; h++)
                fake_fabric_put(&fabric, fabric.host[h], P_KEY_DEFAULT_BASE, MEMBERSHIP_FULL);
}

static void end(void)
{
        findings_done(&findings);
        arena_free(arena);
}

static void compute(const char *members, struct changes *ret)
{
        const char *text = arena_printf(arena, "%s%s", LINES, members);
        struct plan_options options = { .enforcement = ENFORCEMENT_BOTH };
        struct observed *observed = fake_fabric_observe(&fabric, arena);
        struct reconciled decision;
        struct policy *policy;

        ck_assert_int_eq(policy_parse(arena, "p.yaml", text, strlen(text), &findings, &policy), 0);
        ck_assert_int_eq(reconcile(arena, policy, observed, NULL, &options, &findings, &decision), 0);
        ck_assert_int_eq(changes_compute(arena, decision.plan, observed, ret), 0);
}

static void expect_base(const struct changes *changes, uint32_t i, uint16_t base, enum membership before,
                        enum membership after, char mark, uint32_t port)
{
        const struct change *c = &changes->items[i];

        ck_assert_uint_lt(i, changes->n);
        ck_assert_uint_eq(c->base, base);
        ck_assert_int_eq(c->before, before);
        ck_assert_int_eq(c->after, after);
        ck_assert_int_eq(change_mark(c), mark);
        ck_assert_uint_ge(c->n_ports, 1);
        ck_assert_uint_eq(c->ports[0], port);
}

static void expect(const struct changes *changes, uint32_t i, enum membership before, enum membership after, char mark,
                   uint32_t port)
{
        expect_base(changes, i, TENANT, before, after, mark, port);
}

/* Each host changes in another way. The default partition does not change and is not listed. */
START_TEST(every_way)
{
        const uint32_t *host = fabric.host;
        struct changes changes;

        begin(false);
        fake_fabric_put(&fabric, host[1], TENANT, MEMBERSHIP_FULL);
        fake_fabric_put(&fabric, host[2], TENANT, MEMBERSHIP_LIMITED);
        fake_fabric_put(&fabric, host[3], TENANT, MEMBERSHIP_FULL);
        fake_fabric_put(&fabric, host[4], TENANT, MEMBERSHIP_FULL);
        compute("      node0: full\n      node2: full\n      node3: both\n      node4: limited\n", &changes);
        ck_assert_uint_eq(changes.n, 5);
        expect(&changes, 0, MEMBERSHIP_FULL, MEMBERSHIP_BOTH, '~', host[3]);
        expect(&changes, 1, MEMBERSHIP_NONE, MEMBERSHIP_FULL, '+', host[0]);
        expect(&changes, 2, MEMBERSHIP_LIMITED, MEMBERSHIP_FULL, '^', host[2]);
        expect(&changes, 3, MEMBERSHIP_FULL, MEMBERSHIP_LIMITED, 'v', host[4]);
        expect(&changes, 4, MEMBERSHIP_FULL, MEMBERSHIP_NONE, '-', host[1]);
        ck_assert_uint_eq(changes.n_enforcing_ports, 0);
        end();
}
END_TEST

START_TEST(together)
{
        const uint32_t *host = fabric.host;
        struct changes changes;

        begin(true);
        compute("      node[1-3]: full\n", &changes);
        ck_assert_uint_eq(changes.n, 1);
        expect(&changes, 0, MEMBERSHIP_NONE, MEMBERSHIP_FULL, '+', host[1]);
        ck_assert_uint_eq(changes.items[0].n_ports, 3);
        ck_assert_uint_eq(changes.items[0].ports[2], host[3]);
        ck_assert_uint_eq(changes.n_enforcing_ports, 5);
        end();
}
END_TEST

/* A change in the highest base, that of the default partition. */
START_TEST(last_base)
{
        const uint32_t *host = fabric.host;
        struct changes changes;

        begin(false);
        memset(fabric.tables[host[1]], 0, sizeof(fabric.tables[host[1]]));
        fake_fabric_put(&fabric, host[2], P_KEY_DEFAULT_BASE, MEMBERSHIP_LIMITED);
        compute("      node0: none\n", &changes);
        ck_assert_uint_eq(changes.n, 2);
        expect_base(&changes, 0, P_KEY_DEFAULT_BASE, MEMBERSHIP_NONE, MEMBERSHIP_FULL, '+', host[1]);
        expect_base(&changes, 1, P_KEY_DEFAULT_BASE, MEMBERSHIP_BOTH, MEMBERSHIP_FULL, '~', host[2]);
        end();
}
END_TEST

START_TEST(nothing)
{
        struct changes changes;

        begin(false);
        fake_fabric_put(&fabric, fabric.host[1], TENANT, MEMBERSHIP_BOTH);
        compute("      node1: both\n", &changes);
        ck_assert_uint_eq(changes.n, 0);
        end();
}
END_TEST

int main(void)
{
        Suite *s = suite_create("changes");
        TCase *t = tcase_create("changes");
        SRunner *r;
        int n_failed;

        tcase_add_test(t, every_way);
        tcase_add_test(t, together);
        tcase_add_test(t, last_base);
        tcase_add_test(t, nothing);
        suite_add_tcase(s, t);
        r = srunner_create(s);
        srunner_run_all(r, CK_ENV);
        n_failed = srunner_ntests_failed(r);
        srunner_free(r);
        return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
