/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <string.h>

#include "verify/verify.h"

#define G(x) ((struct guid) { (x) })
#define N(a) ((uint32_t) ELEMENTS(a))

/*
 * A switch that can enforce and a host on its port 1. Ports: 0 the switch's port 0, 1 its external port, 2 the host.
 * The policy has the default partition and 0x0010. Unless a test sets them, the desired entries are those of the tables.
 */
enum { SWITCH, EXTERNAL, HOST };

static struct arena *arena;
static struct observed *observed;
static struct desired desired;
static struct policy policy;
static struct plan_options options;
static struct base_range owns[2];
static struct policy_partition partitions[2];
static const struct verification *result;

static const struct p_key nothing_special[] = { { 0x7fff } };

static struct subnet *make_subnet(void)
{
        struct subnet_node leaf = { .guid = G(0x10), .type = NODE_SWITCH, .partition_cap = 8,
                                    .partition_enforcement_cap = 4, .inbound_enforcement_cap = true,
                                    .outbound_enforcement_cap = true };
        struct subnet_node host = { .guid = G(0x20), .type = NODE_CA, .partition_cap = 8 };
        struct subnet_port p0 = { .number = 0 }, p1 = { .number = 1, .enforce_inbound = true, .enforce_outbound = true };
        struct subnet_builder *b;
        struct subnet *s;

        ck_assert_int_eq(subnet_builder_new(arena, &b), 0);
        ck_assert_int_eq(subnet_builder_add_node(b, &leaf, "leaf", 4), 0);
        ck_assert_int_eq(subnet_builder_add_node(b, &host, "host", 4), 0);
        ck_assert_int_eq(subnet_builder_add_port(b, leaf.guid, &p0), 0);
        ck_assert_int_eq(subnet_builder_add_port(b, leaf.guid, &p1), 0);
        p1 = (struct subnet_port) { .number = 1, .guid = G(0x21) };
        ck_assert_int_eq(subnet_builder_add_port(b, host.guid, &p1), 0);
        ck_assert_int_eq(subnet_builder_add_link(b, leaf.guid, 1, host.guid, 1), 0);
        ck_assert_int_eq(subnet_builder_finish(b, host.guid, 1, G(0), 0, &s), 0);
        ck_assert_uint_eq(s->n_ports, 3);
        return s;
}

static void hold(uint32_t port, const struct p_key *keys, uint32_t n)
{
        struct observed_table *t = &observed->tables[port];

        ck_assert_uint_le(n, t->capacity);
        memset(t->entries, 0, t->capacity * sizeof(*t->entries));
        memcpy(t->entries, keys, n * sizeof(*keys));
        t->source = TABLE_READ;
}

static void want(uint32_t port, const struct p_key *keys, uint32_t n)
{
        desired.ports[port] = (struct desired_port) { keys, n };
}

static void setup(void)
{
        struct subnet *s;

        arena = arena_new();
        s = make_subnet();
        ck_assert_int_eq(observed_new(arena, s, &observed), 0);
        owns[0] = (struct base_range) { 0x0001, 0x7fff };
        memset(partitions, 0, sizeof(partitions));
        partitions[0].base = P_KEY_DEFAULT_BASE;
        partitions[1].base = 0x0010;
        policy = (struct policy) { .owns = owns, .n_owns = 1, .partitions = partitions, .n_partitions = 2 };
        desired = (struct desired) { .policy = &policy, .subnet = s, .index0_base = P_KEY_DEFAULT_BASE };
        desired.ports = arena_new_array(arena, struct desired_port, s->n_ports);
        options = (struct plan_options) { 0 };
        for (uint32_t i = 0; i < s->n_ports; i++) {
                hold(i, nothing_special, N(nothing_special));
                want(i, nothing_special, N(nothing_special));
        }
}

static void teardown(void)
{
        arena_free(arena);
}

static void verify(void)
{
        struct verification *v = NULL;

        ck_assert_int_eq(verify_compare(arena, &desired, observed, &options, &v), 0);
        ck_assert_uint_eq(v->n_ports, 3);
        result = v;
}

static void assert_equal(void)
{
        verify();
        ck_assert_uint_eq(result->n_differ, 0);
        ck_assert_uint_eq(result->n_unreachable, 0);
}

static void assert_keys(const struct p_key *keys, uint32_t n, const uint16_t *expected, uint32_t n_expected)
{
        ck_assert_uint_eq(n, n_expected);
        for (uint32_t i = 0; i < n; i++)
                ck_assert_uint_eq(keys[i].v, expected[i]);
}

/* Expects that only this port differs, and only by these entries. */
#define assert_differs(p, missing_keys, unexpected_keys)                                                               \
        do {                                                                                                           \
                const uint16_t m[] = missing_keys, u[] = unexpected_keys;                                              \
                verify();                                                                                              \
                ck_assert_uint_eq(result->n_differ, 1);                                                                \
                ck_assert_uint_eq(result->differ[0].port, p);                                                          \
                ck_assert_int_eq(result->differ[0].source, SOURCE_SMP);                                                \
                ck_assert(!result->differ[0].enforcement_differs);                                                     \
                assert_keys(result->differ[0].missing, result->differ[0].n_missing, m, N(m));                          \
                assert_keys(result->differ[0].unexpected, result->differ[0].n_unexpected, u, N(u));                    \
        } while (0)
#define KEYS(...) { __VA_ARGS__ }

/* The entries and the filter of a frozen port are not compared; other ports are. */
START_TEST(frozen_is_not_compared)
{
        enum freeze frozen[3] = { [HOST] = FREEZE_NAME, [EXTERNAL] = FREEZE_NAME };

        want(HOST, NULL, 0);
        want(EXTERNAL, NULL, 0);
        observed->tables[EXTERNAL].enforcement_doubted = true;
        verify();
        ck_assert_uint_eq(result->n_differ, 2);
        desired.frozen = frozen;
        verify();
        ck_assert_uint_eq(result->n_differ, 0);
        ck_assert_ptr_eq(result->frozen, frozen);
        want(SWITCH, NULL, 0);
        verify();
        ck_assert_uint_eq(result->n_differ, 1);
}
END_TEST

START_TEST(all_equal)
{
        assert_equal();
}
END_TEST

START_TEST(index_does_not_matter)
{
        const struct p_key there[] = { { 0 }, { 0x8010 }, { 0x8000 }, { 0x7fff } };
        const struct p_key wanted[] = { { 0x8010 }, { 0x7fff } };

        hold(HOST, there, N(there));
        want(HOST, wanted, N(wanted));
        assert_equal();
}
END_TEST

START_TEST(missing)
{
        const struct p_key wanted[] = { { 0x0010 }, { 0x8010 }, { 0x7fff } };

        want(HOST, wanted, N(wanted));
        assert_differs(HOST, KEYS(0x0010, 0x8010), KEYS());
}
END_TEST

START_TEST(unexpected)
{
        const struct p_key there[] = { { 0x7fff }, { 0x8123 }, { 0x0044 }, { 0x8010 } };

        hold(HOST, there, N(there));
        assert_differs(HOST, KEYS(), KEYS(0x8010, 0x0044, 0x8123));
}
END_TEST

START_TEST(other_membership)
{
        const struct p_key there[] = { { 0x7fff }, { 0x0010 } }, wanted[] = { { 0x8010 }, { 0x7fff } };

        hold(HOST, there, N(there));
        want(HOST, wanted, N(wanted));
        assert_differs(HOST, KEYS(0x8010), KEYS(0x0010));
}
END_TEST

START_TEST(both_needs_both)
{
        const struct p_key there[] = { { 0x7fff }, { 0x0010 }, { 0x8010 } };
        const struct p_key both[] = { { 0x0010 }, { 0x8010 }, { 0x7fff } }, full[] = { { 0x8010 }, { 0x7fff } };

        hold(HOST, there, N(there));
        want(HOST, both, N(both));
        assert_equal();
        want(HOST, full, N(full));
        assert_differs(HOST, KEYS(), KEYS(0x0010));
}
END_TEST

START_TEST(second_entry_is_unexpected)
{
        const struct p_key there[] = { { 0x7fff }, { 0x8010 }, { 0x7fff }, { 0x8010 }, { 0x8010 } };
        const struct p_key wanted[] = { { 0x8010 }, { 0x7fff } };

        hold(HOST, there, N(there));
        want(HOST, wanted, N(wanted));
        assert_differs(HOST, KEYS(), KEYS(0x8010, 0x8010, 0x7fff));
}
END_TEST

START_TEST(keep_what_no_partition_has)
{
        const struct p_key there[] = { { 0x7fff }, { 0x8123 }, { 0x0010 } };

        hold(HOST, there, N(there));
        options.unmanaged = UNMANAGED_KEEP;
        /* 0x0010 is a partition of the policy, but not of this host */
        assert_differs(HOST, KEYS(), KEYS(0x0010));
        options.unmanaged = UNMANAGED_REMOVE;
        assert_differs(HOST, KEYS(), KEYS(0x0010, 0x8123));
}
END_TEST

START_TEST(what_is_not_owned_is_not_looked_at)
{
        const struct p_key there[] = { { 0x8123 }, { 0x0010 } }, wanted[] = { { 0x8010 }, { 0x7fff } };

        owns[0] = (struct base_range) { 0x0001, 0x00ff };
        hold(HOST, there, N(there));
        want(HOST, wanted, N(wanted));
        assert_differs(HOST, KEYS(0x8010), KEYS(0x0010));
}
END_TEST

START_TEST(unreachable)
{
        observed->tables[HOST].source = TABLE_UNKNOWN;
        observed->tables[SWITCH].source = TABLE_ASSUMED;
        verify();
        ck_assert_uint_eq(result->n_differ, 0);
        ck_assert_uint_eq(result->n_unreachable, 2);
        ck_assert_uint_eq(result->unreachable[0], SWITCH);
        ck_assert_uint_eq(result->unreachable[1], HOST);
}
END_TEST

static void assert_enforcement_differs(bool inbound, bool outbound, bool differs)
{
        observed->tables[EXTERNAL].enforce_inbound = inbound;
        observed->tables[EXTERNAL].enforce_outbound = outbound;
        verify();
        ck_assert_uint_eq(result->n_differ, differs ? 1 : 0);
        if (differs) {
                ck_assert_uint_eq(result->differ[0].port, EXTERNAL);
                ck_assert(result->differ[0].enforcement_differs);
                ck_assert_uint_eq(result->differ[0].n_missing + result->differ[0].n_unexpected, 0);
        }
}

START_TEST(enforcement)
{
        static const bool wanted[][2] = { [ENFORCEMENT_BOTH] = { true, true },
                                          [ENFORCEMENT_IN] = { true, false },
                                          [ENFORCEMENT_OUT] = { false, true },
                                          [ENFORCEMENT_OFF] = { false, false } };

        for (int e = ENFORCEMENT_BOTH; e <= ENFORCEMENT_OFF; e++)
                for (int bits = 0; bits < 4; bits++) {
                        options.enforcement = (enum settings_enforcement) e;
                        assert_enforcement_differs(bits & 1, bits & 2,
                                                   (bool) (bits & 1) != wanted[e][0] ||
                                                           (bool) (bits & 2) != wanted[e][1]);
                }
}
END_TEST

START_TEST(enforcement_only_where_the_switch_can)
{
        desired.subnet->nodes[desired.subnet->ports[EXTERNAL].node].outbound_enforcement_cap = false;
        assert_enforcement_differs(true, false, false);
        assert_enforcement_differs(false, false, true);
}
END_TEST

static const struct p_key five[] = { { 1 }, { 2 }, { 3 }, { 4 }, { 0x7fff } };

START_TEST(overflow_is_let_off)
{
        hold(HOST, five, N(five));
        want(HOST, five, N(five));
        want(EXTERNAL, five, N(five));
        options.enforcement_overflow = OVERFLOW_DISABLE;
        assert_enforcement_differs(false, false, false);
        assert_enforcement_differs(true, false, true);
        /* an endport is always compared */
        want(SWITCH, five, N(five));
        verify();
        ck_assert_uint_eq(result->n_differ, 2);
        ck_assert_uint_eq(result->differ[0].port, SWITCH);
        ck_assert_uint_eq(result->differ[0].n_missing, 4);
}
END_TEST

START_TEST(overflow_with_entries_that_stay)
{
        const struct p_key there[] = { { 0x7001 }, { 0x7002 }, { 0x7003 } }, wanted[] = { { 0x0010 }, { 0x0011 } };

        owns[0] = (struct base_range) { 0x0001, 0x00ff };
        hold(EXTERNAL, there, N(there));
        want(EXTERNAL, wanted, N(wanted));
        options.enforcement = ENFORCEMENT_OFF;
        assert_enforcement_differs(false, false, false);
}
END_TEST

START_TEST(overflow_without_leave)
{
        hold(HOST, five, N(five));
        want(HOST, five, N(five));
        want(EXTERNAL, five, N(five));
        assert_differs(EXTERNAL, KEYS(1, 2, 3, 4), KEYS());
}
END_TEST

START_TEST(enforcement_that_would_cut_off)
{
        const struct p_key foreign[] = { { 0x7fff }, { 0xf001 } }, limited[] = { { 0x7fff }, { 0x7001 } };

        /* the host holds an entry that pkeyd may not write, and the switch port lacks it: the bits stay as they are */
        owns[0] = (struct base_range) { 0x7fff, 0x7fff };
        hold(HOST, foreign, N(foreign));
        assert_enforcement_differs(false, true, false);
        hold(EXTERNAL, limited, N(limited));
        assert_enforcement_differs(false, false, false);
        /* now the switch port holds it, too */
        hold(EXTERNAL, foreign, N(foreign));
        assert_enforcement_differs(false, false, true);
        hold(HOST, limited, N(limited));
        assert_enforcement_differs(false, false, true);
        /* enforcement: off turns it off in any case */
        hold(HOST, foreign, N(foreign));
        hold(EXTERNAL, nothing_special, N(nothing_special));
        options.enforcement = ENFORCEMENT_OFF;
        assert_enforcement_differs(true, true, true);
}
END_TEST

START_TEST(words)
{
        ck_assert_str_eq(discrepancy_source_to_string(SOURCE_SMP), "smp");
        ck_assert_str_eq(discrepancy_source_to_string(SOURCE_KERNEL), "kernel");
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("verify");
        TCase *t = tcase_create("verify");
        SRunner *runner;
        int failed;

        tcase_add_checked_fixture(t, setup, teardown);
        tcase_add_test(t, all_equal);
        tcase_add_test(t, frozen_is_not_compared);
        tcase_add_test(t, index_does_not_matter);
        tcase_add_test(t, missing);
        tcase_add_test(t, unexpected);
        tcase_add_test(t, other_membership);
        tcase_add_test(t, both_needs_both);
        tcase_add_test(t, second_entry_is_unexpected);
        tcase_add_test(t, keep_what_no_partition_has);
        tcase_add_test(t, what_is_not_owned_is_not_looked_at);
        tcase_add_test(t, unreachable);
        tcase_add_test(t, enforcement);
        tcase_add_test(t, enforcement_only_where_the_switch_can);
        tcase_add_test(t, overflow_is_let_off);
        tcase_add_test(t, overflow_with_entries_that_stay);
        tcase_add_test(t, overflow_without_leave);
        tcase_add_test(t, enforcement_that_would_cut_off);
        tcase_add_test(t, words);
        suite_add_tcase(suite, t);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
