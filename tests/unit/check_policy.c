/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy_fixture.h"

#include "../golden/policy_print.h"
#include "policy/policy_keys.h"
#include "policy/selector.h"
#include "util/file_report.h"

static const char example[] =
        "version: 1\n"
        "strict: true\n"
        "owns: [0x7fff, 0x0001-0x0fff]\n"
        "groups:\n"
        "  storage: oss[01-04],mds01\n"
        "  compute: node[0001-1024]\n"
        "  admin:\n"
        "    - head1\n"
        "    - 0x0002c903000e0b72\n"
        "  servers: [storage, admin]\n"
        "partitions:\n"
        "  lustre:\n"
        "    pkey: 0x0010\n"
        "    index0: true\n"
        "    members:\n"
        "      servers: full\n"
        "      compute: limited\n"
        "      node0007: none\n"
        "      \"@leaf07/1-18,20, head2\": both\n"
        "  default:\n"
        "    pkey: 0x7fff\n"
        "    members:\n"
        "      ALL: limited\n"
        "      SELF: full\n";

START_TEST(reading)
{
        const struct policy *p = parse(example);
        const struct policy_partition *lustre;

        ck_assert_uint_eq(findings.n, 0);
        ck_assert(p->strict);
        ck_assert_str_eq(p->file, "p.yaml");
        ck_assert_uint_eq(p->n_partitions, 2);
        ck_assert_str_eq(p->partitions[0].name, "default"); /* first, wherever it is in the file */
        ck_assert_uint_eq(p->partitions[0].base, 0x7fff);
        ck_assert_uint_eq(p->partitions[0].where.line, 20);
        lustre = &p->partitions[1];
        ck_assert_str_eq(lustre->name, "lustre");
        ck_assert_uint_eq(lustre->base, 0x0010);
        ck_assert(lustre->index0);
        ck_assert_uint_eq(lustre->where.line, 12);
        ck_assert_uint_eq(lustre->where.column, 3);
        ck_assert_uint_eq(lustre->n_rules, 4);
        ck_assert_str_eq(lustre->rules[2].text, "node0007");
        ck_assert_uint_eq(lustre->rules[2].where.line, 18);
        ck_assert_uint_eq(lustre->rules[2].where.column, 7);
        ck_assert_str_eq(lustre->rules[2].source_line, "      node0007: none");
        ck_assert_int_eq(lustre->rules[2].membership, MEMBERSHIP_NONE);
        ck_assert_int_eq(lustre->rules[3].membership, MEMBERSHIP_BOTH);
        ck_assert_uint_eq(p->n_groups, 4);
}
END_TEST

START_TEST(membership_by_default)
{
        static const struct { const char *members; enum membership expected; } cases[] = {
                { "{}", MEMBERSHIP_LIMITED },
                { "{node1: full, ALL_SWITCHES: full}", MEMBERSHIP_LIMITED },
                { "{ALL: full}", MEMBERSHIP_FULL },
                { "{node1: limited, ALL: full}", MEMBERSHIP_FULL },
                { "{ALL: full, ALL_CAS: limited}", MEMBERSHIP_LIMITED },
                { "{ALL: limited, 'node1, ALL_CAS': full}", MEMBERSHIP_FULL },
        };

        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                const char *text = arena_printf(arena, "version: 1\npartitions: {default: {pkey: 0x7fff, members: %s}}\n", cases[i].members);

                ck_assert_msg(policy_default_membership(parse(text)) == cases[i].expected, "%s", text);
        }
        ck_assert_int_eq(policy_default_membership(parse("version: 1\npartitions: {}\n")), MEMBERSHIP_LIMITED);
        ck_assert_int_eq(policy_default_membership(parse("version: 1\nowns: [0x0001-0x7ffe]\npartitions: {}\n")), MEMBERSHIP_NONE);
}
END_TEST

START_TEST(asking)
{
        const struct policy *p = parse(example);

        ck_assert_int_eq(policy_find_base(p, 0x7fff), 0);
        ck_assert_int_eq(policy_find_base(p, 0x0010), 1);
        ck_assert_int_eq(policy_find_base(p, 0x0011), -1);
        ck_assert_uint_eq(policy_index0_partition(p), 1);
        ck_assert_uint_eq(policy_index0_partition(parse("version: 1\npartitions: {}\n")), 0);
        ck_assert(policy_owns(p, 0x7fff));
        ck_assert(policy_owns(p, 0x0001));
        ck_assert(policy_owns(p, 0x0fff));
        ck_assert(!policy_owns(p, 0x1000));
        ck_assert(!policy_owns(p, 0x7ffe));
}
END_TEST

START_TEST(asking_for_pools)
{
        const struct policy *p = parse("version: 1\nowns: 0x0001-0x0fff\npools:\n  a: {pkeys: [0x0040, 0x0020-0x002f], ports: n1}\n"
                                       "  b:\n    pkeys: 0x0050\n    ports: \"n2,n3\"\n    lease: 90s\npartitions: {p: {pkey: 0x0010, members: {}}}\n");
        const struct policy_pool *a = policy_find_pool(p, "a"), *b = policy_find_pool(p, "b");

        ck_assert_ptr_eq(a, &p->pools[0]);
        ck_assert_ptr_eq(b, &p->pools[1]);
        ck_assert_ptr_null(policy_find_pool(p, "p"));
        ck_assert_uint_eq(b->where.line, 5);
        ck_assert_uint_eq(b->where.column, 3);
        ck_assert_str_eq(b->ports_text, "n2,n3");
        ck_assert_uint_eq(b->longest, 90);
        ck_assert_uint_eq(a->ranges[0].first, 0x20);
        ck_assert_ptr_eq(policy_pool_of_base(p, 0x0020), a);
        ck_assert_ptr_eq(policy_pool_of_base(p, 0x002f), a);
        ck_assert_ptr_eq(policy_pool_of_base(p, 0x0040), a);
        ck_assert_ptr_eq(policy_pool_of_base(p, 0x0050), b);
        ck_assert_ptr_null(policy_pool_of_base(p, 0x001f));
        ck_assert_ptr_null(policy_pool_of_base(p, 0x0030));
        ck_assert_ptr_null(policy_pool_of_base(p, 0x0010));
}
END_TEST

/* Entries of leases that ended must go, also with `unmanaged: keep`. */
START_TEST(managing)
{
        const struct policy *p = parse("version: 1\nowns: 0x0001-0x0fff\npools: {a: {pkeys: 0x0020-0x002f, ports: n1}}\n"
                                       "partitions: {p: {pkey: 0x0010, members: {}}}\n");

        for (int keeps = 0; keeps < 2; keeps++) {
                ck_assert(policy_manages(p, keeps, 0x0010));
                ck_assert(policy_manages(p, keeps, 0x0020));
                ck_assert(policy_manages(p, keeps, 0x002f));
                ck_assert(policy_manages(p, keeps, 0x0030) == !keeps);
                ck_assert(!policy_manages(p, keeps, 0x1000));
                ck_assert(!policy_manages(p, keeps, P_KEY_DEFAULT_BASE));
        }
}
END_TEST

static const char *many_pools(unsigned n)
{
        const char *all = "";

        for (unsigned i = 1; i <= n; i++)
                all = arena_printf(arena, "%s  p%u: {pkeys: 0x%04x, ports: n1}\n", all, i, i);
        return arena_printf(arena, "version: 1\npartitions: {}\npools:\n%s", all);
}

static const char *many_names(unsigned n)
{
        const char *all = "";

        for (unsigned i = 0; i < n; i++)
                all = arena_printf(arena, "%s%sn%u", all, i > 0 ? ", " : "", i);
        return arena_printf(arena, "version: 1\npartitions: {}\npools: {a: {pkeys: 0x0010, ports: n1, allow: [%s]}}\n", all);
}

START_TEST(limits_of_pools)
{
        ck_assert_uint_eq(parse(many_pools(1024))->n_pools, 1024);
        ck_assert_uint_eq(parse(many_names(64))->pools[0].n_allow, 64);
        refuse(many_pools(1025));
        expect_text(only(FINDING_POLICY_POOL)->text, "pools: too many pools: 1025 (accepted: at most 1024)");
}
END_TEST

START_TEST(names_of_a_pool_are_limited)
{
        refuse(many_names(65));
        expect_text(only(FINDING_POLICY_POOL)->text, "pools.a.allow: too many names: 65 (accepted: at most 64)");
}
END_TEST

/* A pool that contains many partitions names only some of them. */
START_TEST(many_are_taken)
{
        const char *all = "";

        for (unsigned i = 1; i < 100; i++)
                all = arena_printf(arena, "%s  p%u: {pkey: 0x%04x, members: {}}\n", all, i, i);
        refuse(arena_printf(arena, "version: 1\npools: {a: {pkeys: 0x0001-0x1000, ports: n1}}\npartitions:\n%s", all));
        ck_assert_uint_eq(findings.n, 16);
        expect_text(findings.items[0].text, "pools.a.pkeys: 0x0001 is already the P_Key of partition 'p1'");
        expect_text(findings.items[0].hint, "line 4 gives it to 'p1'");
}
END_TEST

/* The most specific candidate first; of equally specific ones that of the first line. */
START_TEST(candidates)
{
        static const struct {
                const char *text;
                uint32_t rule;
        } expected[] = { { "0x1", 2 }, { "node1", 0 }, { "node2", 1 }, { "ALL_CAS", 2 }, { "ALL", 0 } };
        const struct policy *p = parse("version: 1\npartitions:\n  a:\n    pkey: 0x0001\n    members:\n"
                                       "      ALL,node1: limited\n      node2: limited\n      ALL_CAS,0x1: limited\n");
        const struct policy_partition *a = &p->partitions[1];

        ck_assert_uint_eq(p->partitions[0].n_candidates, 0);
        ck_assert_uint_eq(a->n_candidates, ELEMENTS(expected));
        for (size_t i = 0; i < ELEMENTS(expected); i++) {
                ck_assert_str_eq(a->candidates[i].selector->text, expected[i].text);
                ck_assert_uint_eq(a->candidates[i].rule, expected[i].rule);
        }
}
END_TEST

START_TEST(default_partition_is_made_up)
{
        const struct policy *p = parse("version: 1\npartitions:\n  a:\n    pkey: 0x0001\n    members: {}\n");

        ck_assert_uint_eq(p->n_partitions, 2);
        ck_assert_str_eq(p->partitions[0].name, "default");
        ck_assert_uint_eq(p->partitions[0].base, P_KEY_DEFAULT_BASE);
        ck_assert_uint_eq(p->partitions[0].where.line, 0);
        ck_assert_uint_eq(p->partitions[0].n_rules, 0);
        ck_assert_uint_eq(p->n_owns, 1);
        ck_assert_uint_eq(p->owns[0].first, 0x0001);
        ck_assert_uint_eq(p->owns[0].last, 0x7fff);
}
END_TEST

/* ---- selectors ------------------------------------------------------------------------------------------------ */

static const struct {
        const char *text;
        enum selector_kind kind;
        enum specificity specificity;
} forms[] = {
        { "ALL", SELECTOR_ALL, SPECIFICITY_ALL },
        { "ALL_CAS", SELECTOR_TYPE, SPECIFICITY_TYPE },
        { "ALL_SWITCHES", SELECTOR_TYPE, SPECIFICITY_TYPE },
        { "ALL_ROUTERS", SELECTOR_TYPE, SPECIFICITY_TYPE },
        { "storage", SELECTOR_GROUP, SPECIFICITY_GROUP },
        { "node1", SELECTOR_HOST, SPECIFICITY_HOST },
        { "node[1-4]", SELECTOR_HOST, SPECIFICITY_HOST },
        { "*", SELECTOR_HOST, SPECIFICITY_HOST },
        { "@leaf", SELECTOR_SWITCH, SPECIFICITY_HOST },
        { "@storage", SELECTOR_SWITCH, SPECIFICITY_HOST },
        { "@0xab", SELECTOR_SWITCH, SPECIFICITY_HOST },
        { "node1/mlx5_0", SELECTOR_HOST, SPECIFICITY_DEVICE },
        { "node1/mlx5_0/1", SELECTOR_HOST, SPECIFICITY_DEVICE_PORT },
        { "@leaf/1", SELECTOR_SWITCH, SPECIFICITY_SWITCH_PORT },
        { "@leaf/1,3,5-7", SELECTOR_SWITCH, SPECIFICITY_SWITCH_PORT },
        { "@0xab/254", SELECTOR_SWITCH, SPECIFICITY_SWITCH_PORT },
        { "0x1", SELECTOR_GUID, SPECIFICITY_GUID },
        { "0xFFFFffffFFFFffff", SELECTOR_GUID, SPECIFICITY_GUID },
        { "SELF", SELECTOR_SELF, SPECIFICITY_GUID },
};

static struct selector **parse_list(const char *text, uint32_t *ret_n)
{
        static struct report report;
        struct selector_reader reader = { .arena = arena, .report = &report };
        struct selector_source source = { .text = text };
        struct selector **selectors = NULL;

        report_init(&report, &findings);
        reader.policy = parse("version: 1\ngroups: {storage: oss1}\npartitions: {}\n");
        ck_assert_msg(selector_parse_list(&reader, &source, &selectors, ret_n) == 0, "%s", print_findings());
        return selectors;
}

START_TEST(selector_forms)
{
        uint32_t n = 0;
        struct selector **s = parse_list(forms[_i].text, &n);

        ck_assert_uint_eq(n, 1);
        ck_assert_int_eq(s[0]->kind, forms[_i].kind);
        ck_assert_int_eq(s[0]->specificity, forms[_i].specificity);
        ck_assert_str_eq(s[0]->text, forms[_i].text);
}
END_TEST

START_TEST(selector_lists)
{
        uint32_t n = 0;
        struct selector **s = parse_list("oss[01-04,07],mds01, @leaf07/1,3, 5-7 ,node30,@leaf08,9", &n);

        ck_assert_uint_eq(n, 6);
        ck_assert_str_eq(s[0]->text, "oss[01-04,07]");
        ck_assert_str_eq(s[1]->text, "mds01");
        ck_assert_str_eq(s[2]->text, "@leaf07/1,3,5-7");
        ck_assert(selector_has_port(s[2], 1) && !selector_has_port(s[2], 2) && selector_has_port(s[2], 3));
        ck_assert(selector_has_port(s[2], 5) && selector_has_port(s[2], 7) && !selector_has_port(s[2], 8));
        ck_assert_str_eq(s[3]->text, "node30");
        ck_assert_str_eq(s[4]->text, "@leaf08"); /* without ports, so that a host follows */
        ck_assert_str_eq(s[5]->text, "9");
        ck_assert_int_eq(s[5]->kind, SELECTOR_HOST);
}
END_TEST

START_TEST(selector_columns)
{
        refuse(with_members("      node1,\"\n"));
        findings_done(&findings);
        findings = (struct findings) { .arena = arena };
        refuse(with_members("      node1, 0x10z: full\n"));
        ck_assert_uint_eq(only(FINDING_POLICY_GUID)->where.column, 7 + 7 + 4);
        findings_done(&findings);
        findings = (struct findings) { .arena = arena };
        refuse(with_members("      \"node1, 0x10z\": full\n"));
        ck_assert_uint_eq(only(FINDING_POLICY_GUID)->where.column, 8 + 7 + 4);
}
END_TEST

/* ---- limits --------------------------------------------------------------------------------------------------- */

START_TEST(file_too_large)
{
        size_t n = POLICY_MAX_FILE_SIZE + 1;
        _cleanup_free_ char *bytes = malloc(n);
        struct policy *policy = NULL;

        memset(bytes, '#', n);
        ck_assert_int_eq(policy_parse(arena, "p.yaml", bytes, n, &findings, &policy), -EBADMSG);
        expect_text(only(FINDING_FILE_TOO_LARGE)->text, "16777217 bytes (accepted: up to 16 MiB)");
        findings_done(&findings);
        findings = (struct findings) { .arena = arena };
        ck_assert_int_eq(policy_parse(arena, "p.yaml", bytes, n - 1, &findings, &policy), -EBADMSG);
        only(FINDING_YAML_EMPTY); /* it is one comment */
}
END_TEST

static char *repeat(const char *head, const char *item, size_t times, const char *tail)
{
        size_t n = strlen(item), i;
        char *s = malloc(strlen(head) + n * times + strlen(tail) + 1), *p = s;

        ck_assert_ptr_nonnull(s);
        p = stpcpy(p, head);
        for (i = 0; i < times; i++)
                p = stpcpy(p, item);
        (void) stpcpy(p, tail);
        return s;
}

START_TEST(too_many_values)
{
        _cleanup_free_ char *yaml = repeat("version: 1\ngroups:\n  a: [x", ",x", 1000100, "]\npartitions: {}\n");

        refuse(yaml);
        expect_text(only(FINDING_FILE_TOO_LARGE)->text, "more than 1000000 values");
}
END_TEST

START_TEST(too_many_selectors_in_a_line)
{
        _cleanup_free_ char *yaml = repeat("version: 1\ngroups:\n  a: \"x", ",x", 4096, "\"\npartitions: {}\n");

        refuse(yaml);
        expect_text(only(FINDING_POLICY_SELECTOR)->text, "groups.a: 4097 selectors in one line (accepted: up to 4096)");
}
END_TEST

START_TEST(too_many_selectors)
{
        _cleanup_free_ char *line = repeat("    - \"x", ",x", 4095, "\"\n");
        _cleanup_free_ char *yaml = repeat("version: 1\ngroups:\n  a:\n", line, 300, "partitions: {}\n");

        refuse(yaml);
        expect_text(findings.items[0].text, "more than 1000000 selectors");
}
END_TEST

/* A file full of mistakes is refused with a limited number of findings. */
START_TEST(too_many_findings)
{
        _cleanup_free_ char *yaml = repeat("version: 1\ngroups:\n  a:\n", "    - bad$\n", 5000, "partitions: {}\n");

        refuse(yaml);
        ck_assert_uint_eq(findings.n, REPORT_MAX + 1);
        expect_text(only(FINDING_VALUE_INVALID)->text, "4000 more findings (4000 of them errors)");
        ck_assert_int_eq(only(FINDING_VALUE_INVALID)->severity, FINDING_ERROR);
}
END_TEST

/* An error counts even if it is dropped, and whatever follows it. */
START_TEST(codes_of_errors)
{
        struct report report;

        report_init(&report, &findings);
        for (size_t i = 0; i < REPORT_MAX; i++)
                report_add(&report, FINDING_WARNING, FINDING_SELECTOR_NO_MATCH, NULL, "matches nothing");
        report_add(&report, FINDING_ERROR, FINDING_POLICY_AMBIGUOUS, NULL, "disagree");
        report_add(&report, FINDING_NOTE, FINDING_POLICY_AMBIGUOUS, NULL, "agree");
        ck_assert_uint_eq(findings.n, REPORT_MAX);
        for (enum finding_code code = 0; code < FINDING_CODE_MAX; code++)
                ck_assert_int_eq(report.has_error[code], code == FINDING_POLICY_AMBIGUOUS);
}
END_TEST

/* Deep brackets and long keys take time in proportion to their length. */
START_TEST(pathological)
{
        _cleanup_free_ char *brackets = repeat("a: ", "[", 1000000, "");
        _cleanup_free_ char *braces = repeat("", "{a: ", 300000, "");
        _cleanup_free_ char *key = repeat("? ", "x", 5000000, "\n: y\n");
        _cleanup_free_ char *dashes = repeat("", "- ", 1000000, "x\n");

        refuse(brackets);
        refuse(braces);
        refuse(key);
        refuse(dashes);
}
END_TEST

START_TEST(findings_outlive_the_policy)
{
        struct arena *gone = arena_new();
        struct policy *policy = NULL;
        const char *yaml = with_members("      node1: ful\n");
        char *copy = strdup(yaml), *name = strdup("p.yaml");

        ck_assert_int_eq(policy_parse(gone, name, copy, strlen(copy), &findings, &policy), -EBADMSG);
        arena_free(gone);
        free(copy);
        free(name);
        expect_text(print_findings(), "p.yaml:6:14: error: partitions.p.members: 'ful' is not a membership");
        expect_text(print_findings(), "    6 |       node1: ful\n");
}
END_TEST

START_TEST(findings_are_sorted)
{
        size_t i;

        refuse("version: 7\npartitions:\n  b:\n    pkey: 0x7fff\n    members: {x: none}\n  a:\n    pkey: 3\n    mmbers: {}\n"
               "groups: 7\nowns: []\nstrict: x\n");
        for (i = 1; i < findings.n; i++)
                ck_assert_uint_ge(findings.items[i].where.line, findings.items[i - 1].where.line);
        ck_assert_uint_ge(findings.n, 7);
}
END_TEST

/* ---- the normal form ------------------------------------------------------------------------------------------ */

static bool same_selectors(struct selector *const *a, uint32_t n, struct selector *const *b, uint32_t m)
{
        struct text s = {}, t = {};
        uint32_t i;
        bool same;

        for (i = 0; i < n; i++)
                selector_print(&s, a[i]);
        for (i = 0; i < m; i++)
                selector_print(&t, b[i]);
        same = n == m && strcmp(s.bytes ? s.bytes : "", t.bytes ? t.bytes : "") == 0;
        text_done(&s);
        text_done(&t);
        return same;
}

static const struct policy_rule *find_rule(const struct policy_partition *p, const struct policy_rule *like)
{
        uint32_t i;

        for (i = 0; i < p->n_rules; i++)
                if (same_selectors(p->rules[i].selectors, p->rules[i].n_selectors, like->selectors, like->n_selectors))
                        return &p->rules[i];
        return NULL;
}

/* Compares two policies line by line, not by their normal forms. */
static void compare_policies(const struct policy *a, const struct policy *b)
{
        uint32_t i, k;

        ck_assert_int_eq(a->strict, b->strict);
        ck_assert_uint_eq(a->n_owns, b->n_owns);
        ck_assert_mem_eq(a->owns, b->owns, a->n_owns * sizeof(*a->owns));
        ck_assert_uint_eq(a->n_groups, b->n_groups);
        for (i = 0; i < a->n_groups; i++) {
                ck_assert_str_eq(a->groups[i].name, b->groups[i].name);
                ck_assert_uint_eq(a->groups[i].n_selectors, b->groups[i].n_selectors);
        }
        ck_assert_uint_eq(a->n_pools, b->n_pools);
        for (i = 0; i < a->n_pools; i++) {
                ck_assert_str_eq(a->pools[i].name, b->pools[i].name);
                ck_assert_uint_eq(a->pools[i].longest, b->pools[i].longest);
                ck_assert_uint_eq(a->pools[i].rest, b->pools[i].rest);
                ck_assert_int_eq(a->pools[i].membership, b->pools[i].membership);
                ck_assert_int_eq(a->pools[i].index0, b->pools[i].index0);
                ck_assert_uint_eq(a->pools[i].n_ranges, b->pools[i].n_ranges);
                ck_assert_uint_eq(a->pools[i].n_ports, b->pools[i].n_ports);
                ck_assert_uint_eq(a->pools[i].n_allow, b->pools[i].n_allow);
        }
        ck_assert_uint_eq(a->n_partitions, b->n_partitions);
        for (i = 0; i < a->n_partitions; i++) {
                const struct policy_partition *p = &a->partitions[i], *q;

                ck_assert_int_ge(policy_find_base(b, p->base), 0);
                q = &b->partitions[policy_find_base(b, p->base)];
                ck_assert_str_eq(p->name, q->name);
                ck_assert_int_eq(p->index0, q->index0);
                ck_assert_uint_eq(p->n_rules, q->n_rules);
                for (k = 0; k < p->n_rules; k++) {
                        const struct policy_rule *rule = find_rule(q, &p->rules[k]);

                        ck_assert_ptr_nonnull(rule);
                        ck_assert_int_eq(rule->membership, p->rules[k].membership);
                }
        }
}

static const char *const round_trips[] = {
        example,
        "version: 1\npartitions: {}\n",
        "version: 1\nowns: 0x0001-0x000f\npartitions: {}\n",
        "version: 1\npools: {a: {pkeys: 0x10, ports: n1}, b: {pkeys: [0x20-0x2f, 0x40], ports: \"n[1-3],0x1\", lease: unlimited,\n"
        "    rest: 0s, index0: true, membership: limited, allow: [x, y]}}\npartitions: {}\n",
        "version: 1\ngroups: {e: [], n: [\"null\", \"*x\", \"?\", \"@a\"]}\npartitions:\n  p:\n    pkey: 0x1\n    members:\n"
        "      \"null\": full\n      \"*\": none\n      \"0x1,@0x2/3,4,a\": both\n      \"1,2\": limited\n",
        "version: 1\npartitions:\n  mgmt:\n    pkey: 0x7fff\n    index0: true\n    members: {ALL: both}\n",
};

START_TEST(round_trip)
{
        const struct policy *p = parse(round_trips[_i]), *q;
        const char *printed = policy_print(arena, p);

        ck_assert_ptr_nonnull(printed);
        q = parse(printed);
        compare_policies(p, q);
        ck_assert_str_eq(policy_print(arena, q), printed);
}
END_TEST

START_TEST(round_trip_of_long_lines)
{
        _cleanup_free_ char *yaml = repeat(with_members("      ? \"x"), ",0x1a2b", 800, "\"\n      : full\n");
        const struct policy *p = parse(yaml), *q = parse(policy_print(arena, p));

        compare_policies(p, q);
}
END_TEST

START_TEST(order_does_not_show)
{
        const char *a = "version: 1\npartitions:\n  a:\n    pkey: 0x0001\n    members: {x: full, y: none, ALL: limited}\n"
                        "  b:\n    members: {}\n    pkey: 0x0002\n";
        const char *b = "partitions:\n  b:\n    pkey: 0x2\n    members: {}\n  a:\n    members: {ALL: limited, y: none, "
                        "x: full}\n    pkey: 0x1\nversion: 1\nstrict: false\nowns: [0x0001-0x7fff]\n";

        ck_assert_str_eq(policy_print(arena, parse(a)), policy_print(arena, parse(b)));
}
END_TEST

START_TEST(keys_are_those_of_the_parser)
{
        size_t i;

        refuse("x: 1\n");
        for (i = 0; i < ELEMENTS(policy_keys); i++)
                expect_text(only(FINDING_KEY_UNKNOWN)->text, policy_keys[i]);
}
END_TEST

static void add_limits(TCase *c)
{
        tcase_add_test(c, file_too_large);
        tcase_add_test(c, too_many_values);
        tcase_add_test(c, too_many_selectors_in_a_line);
        tcase_add_test(c, too_many_selectors);
        tcase_add_test(c, too_many_findings);
        tcase_add_test(c, codes_of_errors);
        tcase_add_test(c, pathological);
}

int main(void)
{
        Suite *suite = suite_create("policy");
        TCase *c = tcase_create("policy");
        SRunner *runner;
        int failed;

        tcase_add_checked_fixture(c, setup, teardown);
        tcase_set_timeout(c, 120);
        tcase_add_test(c, reading);
        tcase_add_test(c, membership_by_default);
        tcase_add_test(c, asking);
        tcase_add_test(c, asking_for_pools);
        tcase_add_test(c, managing);
        tcase_add_test(c, limits_of_pools);
        tcase_add_test(c, names_of_a_pool_are_limited);
        tcase_add_test(c, many_are_taken);
        tcase_add_test(c, candidates);
        tcase_add_test(c, default_partition_is_made_up);
        tcase_add_loop_test(c, selector_forms, 0, ELEMENTS(forms));
        tcase_add_test(c, selector_lists);
        tcase_add_test(c, selector_columns);
        add_limits(c);
        tcase_add_test(c, findings_outlive_the_policy);
        tcase_add_test(c, findings_are_sorted);
        tcase_add_loop_test(c, round_trip, 0, ELEMENTS(round_trips));
        tcase_add_test(c, round_trip_of_long_lines);
        tcase_add_test(c, order_does_not_show);
        tcase_add_test(c, keys_are_those_of_the_parser);
        suite_add_tcase(suite, c);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
