/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy_fixture.h"
#include "verify/verbs_tables.h"

#define K(...) ((const struct p_key[]) { __VA_ARGS__ })
#define N(k)   ((uint32_t) ELEMENTS(k))

static const struct plan_options options;

/* ---- the SMA's table and the kernel's ------------------------------------------------------------------------- */

static const struct kernel_difference *differences;
static uint32_t n_differences;

static void compare(const struct p_key *sma, uint32_t n_sma, const struct p_key *kernel, uint32_t n_kernel)
{
        struct discrepancy d = {};

        ck_assert_int_eq(verbs_tables_compare(arena, sma, n_sma, kernel, n_kernel, &d), 0);
        differences = d.kernel;
        n_differences = d.n_kernel;
}

static void expect(uint32_t i, enum kernel_difference_kind kind, uint16_t key, int sma_index, int kernel_index)
{
        ck_assert_uint_lt(i, n_differences);
        ck_assert_int_eq(differences[i].kind, kind);
        ck_assert_uint_eq(differences[i].key.v, key);
        if (sma_index >= 0)
                ck_assert_int_eq(differences[i].sma_index, sma_index);
        if (kernel_index >= 0)
                ck_assert_int_eq(differences[i].kernel_index, kernel_index);
}

START_TEST(equal_tables)
{
        const struct p_key a[] = { { 0xffff }, { 0x0010 }, { 0 }, { 0 } }, b[] = { { 0xffff }, { 0x0010 }, { 0x8000 } };

        compare(a, N(a), b, N(b));
        ck_assert_uint_eq(n_differences, 0);
        compare(a, 0, b, 0);
        ck_assert_uint_eq(n_differences, 0);
}
END_TEST

START_TEST(kernel_lags)
{
        const struct p_key sma[] = { { 0xffff }, { 0x8010 } }, kernel[] = { { 0xffff }, { 0 } };

        compare(sma, N(sma), kernel, N(kernel));
        ck_assert_uint_eq(n_differences, 1);
        expect(0, KERNEL_LACKS, 0x8010, 1, -1);
        compare(kernel, N(kernel), sma, N(sma));
        ck_assert_uint_eq(n_differences, 1);
        expect(0, KERNEL_ONLY, 0x8010, -1, 1);
}
END_TEST

START_TEST(index_moved)
{
        const struct p_key sma[] = { { 0xffff }, { 0x8010 }, { 0 }, { 0x0011 } };
        const struct p_key kernel[] = { { 0xffff }, { 0 }, { 0x8010 }, { 0x8011 } };

        compare(sma, N(sma), kernel, N(kernel));
        ck_assert_uint_eq(n_differences, 3);
        expect(0, KERNEL_MOVED, 0x8010, 1, 2);
        /* an entry with another membership is another entry */
        expect(1, KERNEL_LACKS, 0x0011, 3, -1);
        expect(2, KERNEL_ONLY, 0x8011, -1, 3);
}
END_TEST

START_TEST(twice_in_one_of_them)
{
        const struct p_key sma[] = { { 0xffff }, { 0x8010 }, { 0x8010 } }, kernel[] = { { 0xffff }, { 0x8010 }, { 0 } };

        compare(sma, N(sma), kernel, N(kernel));
        ck_assert_uint_eq(n_differences, 1);
        expect(0, KERNEL_LACKS, 0x8010, 2, -1);
}
END_TEST

START_TEST(kernel_table_is_shorter)
{
        const struct p_key sma[] = { { 0xffff }, { 0 }, { 0x8010 } }, kernel[] = { { 0xffff } };

        compare(sma, N(sma), kernel, N(kernel));
        ck_assert_uint_eq(n_differences, 1);
        expect(0, KERNEL_LACKS, 0x8010, 2, -1);
}
END_TEST

/* ---- policy, SMA and kernel ----------------------------------------------------------------------------------- */

static struct verification three(const struct p_key *sma, uint32_t n_sma, const struct p_key *kernel, uint32_t n_kernel)
{
        struct policy *policy = parse(with_members("      oss01: full\n"));
        const struct subnet *s = fixture_subnet();
        struct kernel_table table = { fixture_port(s, 0x301), kernel, n_kernel };
        struct memberships *memberships;
        struct observed *observed;
        struct verification v = {};
        struct desired *desired;

        ck_assert_int_eq(policy_resolve(arena, policy, s, &findings, &memberships), 0);
        ck_assert_int_eq(desired_compute(arena, memberships, &desired), 0);
        ck_assert_int_eq(observed_new(arena, s, &observed), 0);
        if (n_sma > 0) {
                memcpy(observed->tables[table.port].entries, sma, n_sma * sizeof(*sma));
                observed->tables[table.port].source = TABLE_READ;
        }
        ck_assert_int_eq(verbs_tables_verify(arena, desired, observed, &options, &table, 1, &v), 0);
        if (v.n_differ > 0) {
                ck_assert_uint_eq(v.n_differ, 1);
                ck_assert_uint_eq(v.differ[0].port, table.port);
                ck_assert_int_eq(v.differ[0].source, SOURCE_KERNEL);
        }
        return v;
}

static const struct p_key right[] = { { 0x7fff }, { 0x8010 } }, poor[] = { { 0x7fff } },
                          rich[] = { { 0x7fff }, { 0x8010 }, { 0x8123 } }, moved[] = { { 0x8010 }, { 0x7fff } };

START_TEST(all_agree)
{
        ck_assert_uint_eq(three(right, N(right), right, N(right)).n_differ, 0);
}
END_TEST

START_TEST(kernel_not_yet)
{
        struct verification v = three(right, N(right), poor, N(poor));

        ck_assert_uint_eq(v.n_differ, 1);
        ck_assert_uint_eq(v.differ[0].n_missing, 1);
        ck_assert_uint_eq(v.differ[0].missing[0].v, 0x8010);
        ck_assert_uint_eq(v.differ[0].n_unexpected, 0);
        ck_assert_uint_eq(v.differ[0].n_kernel, 1);
        ck_assert_int_eq(v.differ[0].kernel[0].kind, KERNEL_LACKS);
}
END_TEST

START_TEST(kernel_has_more)
{
        struct verification v = three(right, N(right), rich, N(rich));

        ck_assert_uint_eq(v.n_differ, 1);
        ck_assert_uint_eq(v.differ[0].n_unexpected, 1);
        ck_assert_uint_eq(v.differ[0].unexpected[0].v, 0x8123);
        ck_assert_int_eq(v.differ[0].kernel[0].kind, KERNEL_ONLY);
}
END_TEST

START_TEST(as_the_policy_says_but_moved)
{
        struct verification v = three(right, N(right), moved, N(moved));

        ck_assert_uint_eq(v.n_differ, 1);
        ck_assert_uint_eq(v.differ[0].n_missing + v.differ[0].n_unexpected, 0);
        ck_assert_uint_eq(v.differ[0].n_kernel, 2);
        ck_assert_int_eq(v.differ[0].kernel[0].kind, KERNEL_MOVED);
        ck_assert_int_eq(v.differ[0].kernel[1].kind, KERNEL_MOVED);
}
END_TEST

START_TEST(sma_was_not_read)
{
        struct verification v = three(NULL, 0, poor, N(poor));

        ck_assert_uint_eq(v.n_differ, 1);
        ck_assert_uint_eq(v.differ[0].n_missing, 1);
        ck_assert_uint_eq(v.differ[0].n_kernel, 0);
}
END_TEST

/* Both tables have the same unexpected entry: the kernel's table differs from the policy, but not from the SMA's. */
START_TEST(both_are_wrong)
{
        struct verification v = three(rich, N(rich), rich, N(rich));

        ck_assert_uint_eq(v.n_differ, 1);
        ck_assert_uint_eq(v.differ[0].n_unexpected, 1);
        ck_assert_uint_eq(v.differ[0].n_kernel, 0);
}
END_TEST

/* ---- this host alone ------------------------------------------------------------------------------------------ */

enum { NOBODY, SELF, SM };

/* node7 with mlx5_0, whose port 1 may be SELF or the master SM's port. */
static const struct subnet *host(int role)
{
        struct subnet_node node = { .guid = { 0x700 }, .type = NODE_CA, .num_ports = 1, .partition_cap = 8 };
        struct subnet_port port = { .number = 1, .guid = { 0x701 }, .state = PORT_STATE_ACTIVE };
        struct guid none = {};
        struct subnet_builder *b;
        struct subnet *s;

        ck_assert_int_eq(subnet_builder_new(arena, &b), 0);
        ck_assert_int_eq(subnet_builder_add_node(b, &node, "node7 mlx5_0", 12), 0);
        ck_assert_int_eq(subnet_builder_add_port(b, node.guid, &port), 0);
        ck_assert_int_eq(subnet_builder_finish(b, role == SELF ? node.guid : none, 1, role == SM ? node.guid : none, 1, &s),
                         0);
        return s;
}

static struct possible_membership possible_in(const char *yaml, int role, uint32_t partition)
{
        struct possibilities p;
        int r = policy_resolve_local(arena, parse(yaml), host(role), &findings, &p);

        ck_assert_msg(r == 0, "%d\n%s", r, print_findings());
        ck_assert_uint_eq(p.items[partition].partition, partition);
        return p.items[partition];
}

#define NONE    MEMBERSHIP_BIT(MEMBERSHIP_NONE)
#define LIMITED MEMBERSHIP_BIT(MEMBERSHIP_LIMITED)
#define FULL    MEMBERSHIP_BIT(MEMBERSHIP_FULL)
#define BOTH    MEMBERSHIP_BIT(MEMBERSHIP_BOTH)

static const struct {
        const char *lines;
        int role;
        unsigned possible;
        enum membership likely;
} cases[] = {
        { "      node7: full\n", NOBODY, FULL, MEMBERSHIP_FULL },
        { "      node8: full\n", NOBODY, NONE, MEMBERSHIP_NONE },
        { "      node[1-9]: limited\n      node7/mlx5_0: both\n", NOBODY, BOTH, MEMBERSHIP_BOTH },
        { "      0x701: full\n", NOBODY, FULL, MEMBERSHIP_FULL },
        { "      0x700: limited\n", NOBODY, LIMITED, MEMBERSHIP_LIMITED },
        { "      ALL: limited\n      node7: none\n", NOBODY, NONE, MEMBERSHIP_NONE },
        { "      ALL_SWITCHES: full\n", NOBODY, NONE, MEMBERSHIP_NONE },
        /* resolving it needs the fabric */
        { "      \"@leaf1\": full\n", NOBODY, FULL | NONE, MEMBERSHIP_NONE },
        { "      \"@leaf1/3\": full\n      node7: limited\n", NOBODY, FULL | LIMITED, MEMBERSHIP_LIMITED },
        { "      \"@leaf1/3\": full\n      0x701: limited\n", NOBODY, LIMITED, MEMBERSHIP_LIMITED },
        { "      \"@leaf1/3\": full\n      \"@leaf2\": both\n      ALL: limited\n", NOBODY, FULL | BOTH | LIMITED,
          MEMBERSHIP_LIMITED },
        /* equally specific: if it matched, the policy would be refused */
        { "      \"@leaf1\": full\n      node7: limited\n", NOBODY, LIMITED, MEMBERSHIP_LIMITED },
        /* equally specific lines that disagree: one that needs the fabric decides, or the policy would be refused */
        { "      node7: full\n      node[6-7]: limited\n      \"@leaf1/3\": none\n", NOBODY, NONE, MEMBERSHIP_NONE },
        { "      node7: full\n      node[6-7]: none\n      \"@leaf1/3\": limited\n      \"@leaf2/4\": both\n", NOBODY,
          LIMITED | BOTH, MEMBERSHIP_BOTH },
        { "      near: full\n", NOBODY, FULL | NONE, MEMBERSHIP_NONE },
        { "      ours: full\n", NOBODY, FULL, MEMBERSHIP_FULL },
        { "      nested: full\n      ALL: limited\n", NOBODY, FULL | LIMITED, MEMBERSHIP_LIMITED },
        { "      SELF: full\n", NOBODY, NONE, MEMBERSHIP_NONE },
        { "      SELF: full\n", SELF, FULL | NONE, MEMBERSHIP_NONE },
        { "      SELF: full\n      node7: limited\n", SELF, FULL | LIMITED, MEMBERSHIP_LIMITED },
};

START_TEST(possible)
{
        const char *yaml = arena_printf(arena,
                                        "version: 1\ngroups:\n  near: '@leaf1/1'\n  ours: \"node7,@leaf9\"\n  nested: near\n"
                                        "partitions:\n  p:\n    pkey: 0x0010\n    members:\n%s", cases[_i].lines);
        struct possible_membership got = possible_in(yaml, cases[_i].role, 1);

        ck_assert_msg(got.possible == cases[_i].possible && got.likely == cases[_i].likely, "%s: got 0x%x, %s",
                      cases[_i].lines, got.possible, membership_to_string(got.likely));
        ck_assert_uint_eq(findings.n, 0);
}
END_TEST

START_TEST(default_partition)
{
        const char *plain = "version: 1\npartitions: {}\n", *both = "version: 1\npartitions:\n  default:\n    pkey: 0x7fff\n    members:\n"
                                                    "      node7: both\n";

        ck_assert_uint_eq(possible_in(plain, NOBODY, 0).possible, LIMITED);
        ck_assert_uint_eq(possible_in(plain, SELF, 0).possible, LIMITED | FULL);
        ck_assert_uint_eq(possible_in(plain, SM, 0).possible, FULL);
        ck_assert_int_eq(possible_in(plain, SM, 0).likely, MEMBERSHIP_FULL);
        ck_assert_uint_eq(possible_in(both, SELF, 0).possible, BOTH);
        ck_assert_uint_eq(possible_in(both, SM, 0).possible, BOTH);
}
END_TEST

START_TEST(lines_disagree)
{
        struct possibilities p;
        struct policy *policy = parse(with_members("      0x700: full\n      0x701: limited\n"));

        ck_assert_int_eq(policy_resolve_local(arena, policy, host(NOBODY), &findings, &p), -EBADMSG);
        expect_text(only(FINDING_POLICY_AMBIGUOUS)->text, "0x701");
        expect_text(only(FINDING_POLICY_AMBIGUOUS)->hint, "remove it from one of the two lines");
        /* nor does a less specific line decide */
        policy = parse(with_members("      0x700: full\n      0x701: limited\n      \"@leaf1/3\": none\n"));
        ck_assert_int_eq(policy_resolve_local(arena, policy, host(NOBODY), &findings, &p), -EBADMSG);
}
END_TEST

/* Selectors of other hosts are not reported, even with `strict`. */
START_TEST(strict_policy)
{
        struct possibilities p;
        struct policy *policy = parse("version: 1\nstrict: true\npartitions:\n  p:\n    pkey: 0x0010\n    members:\n"
                                      "      node[1-5]: full\n      '@leaf1': full\n");

        ck_assert_int_eq(policy_resolve_local(arena, policy, host(NOBODY), &findings, &p), 0);
        ck_assert_uint_eq(findings.n, 0);
}
END_TEST

static struct local_verification local_of(const char *yaml, const struct p_key *keys, uint32_t n)
{
        struct kernel_table table = { 0, keys, n };
        struct local_verification ret;
        struct possibilities p;

        ck_assert_int_eq(policy_resolve_local(arena, parse(yaml), host(NOBODY), &findings, &p), 0);
        ck_assert_int_eq(verbs_tables_verify_local(arena, &p, &options, &table, 1, &ret), 0);
        ck_assert_uint_eq(ret.v->n_ports, 1);
        return ret;
}

static struct local_verification local(const char *lines, const struct p_key *keys, uint32_t n)
{
        return local_of(with_members(lines), keys, n);
}

START_TEST(local_equal_and_not)
{
        struct local_verification lv = local("      node7: full\n", right, N(right));

        ck_assert_uint_eq(lv.v->n_differ, 0);
        ck_assert_uint_eq(lv.n_undecided, 0);
        lv = local("      node7: full\n", poor, N(poor));
        ck_assert_uint_eq(lv.v->n_differ, 1);
        ck_assert_int_eq(lv.v->differ[0].source, SOURCE_KERNEL);
        ck_assert_uint_eq(lv.v->differ[0].missing[0].v, 0x8010);
        lv = local("      node7: full\n", rich, N(rich));
        ck_assert_uint_eq(lv.v->n_differ, 1);
        ck_assert_uint_eq(lv.v->differ[0].unexpected[0].v, 0x8123);
}
END_TEST

/* This host does not know the leases: a P_Key of a pool may be in its table, and need not. */
START_TEST(local_lease)
{
        const char *with = arena_printf(arena, "%spools:\n  jobs: {pkeys: 0x0123, ports: node7, allow: root}\n",
                                        with_members("      node7: full\n"));

        ck_assert_uint_eq(local_of(with, rich, N(rich)).v->n_differ, 0);
        ck_assert_uint_eq(local_of(with, right, N(right)).v->n_differ, 0);
}
END_TEST

START_TEST(local_undecided)
{
        static const struct p_key limited[] = { { 0x7fff }, { 0x0010 } };
        const char *lines = "      '@leaf1': full\n";
        struct local_verification lv = local(lines, right, N(right));

        ck_assert_uint_eq(lv.v->n_differ, 0);
        ck_assert_uint_eq(lv.n_undecided, 1);
        ck_assert_int_eq(lv.undecided[0].found, MEMBERSHIP_FULL);
        ck_assert_ptr_nonnull(lv.undecided[0].unresolved);
        lv = local(lines, poor, N(poor));
        ck_assert_uint_eq(lv.v->n_differ, 0);
        ck_assert_uint_eq(lv.n_undecided, 1);
        /* possible neither with nor without that line */
        lv = local(lines, limited, N(limited));
        ck_assert_uint_eq(lv.v->n_differ, 1);
        ck_assert_uint_eq(lv.n_undecided, 0);
        ck_assert_uint_eq(lv.v->differ[0].unexpected[0].v, 0x0010);
}
END_TEST

START_TEST(words)
{
        ck_assert_str_eq(kernel_difference_kind_to_string(KERNEL_LACKS), "lacks");
        ck_assert_str_eq(kernel_difference_kind_to_string(KERNEL_ONLY), "only");
        ck_assert_str_eq(kernel_difference_kind_to_string(KERNEL_MOVED), "moved");
}
END_TEST

int main(void)
{
        Suite *s = suite_create("kernel");
        TCase *c = tcase_create("kernel");
        SRunner *runner;
        int failed;

        tcase_add_checked_fixture(c, setup, teardown);
        tcase_add_test(c, equal_tables);
        tcase_add_test(c, kernel_lags);
        tcase_add_test(c, index_moved);
        tcase_add_test(c, twice_in_one_of_them);
        tcase_add_test(c, kernel_table_is_shorter);
        tcase_add_test(c, all_agree);
        tcase_add_test(c, kernel_not_yet);
        tcase_add_test(c, kernel_has_more);
        tcase_add_test(c, as_the_policy_says_but_moved);
        tcase_add_test(c, sma_was_not_read);
        tcase_add_test(c, both_are_wrong);
        tcase_add_loop_test(c, possible, 0, (int) ELEMENTS(cases));
        tcase_add_test(c, default_partition);
        tcase_add_test(c, lines_disagree);
        tcase_add_test(c, strict_policy);
        tcase_add_test(c, local_equal_and_not);
        tcase_add_test(c, local_lease);
        tcase_add_test(c, local_undecided);
        tcase_add_test(c, words);
        suite_add_tcase(s, c);
        runner = srunner_create(s);
        srunner_run_all(runner, CK_NORMAL);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed > 0;
}
