/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "opensm/opensm_conf.h"
#include "opensm/partitions_file.h"
#include "partitions_find.h"
#include "policy_fixture.h"

static const struct partitions_file_member two[] = {
        { { 0x100 }, MEMBERSHIP_FULL, "node1 mlx5_0/1" },
        { { 0x200 }, MEMBERSHIP_LIMITED, NULL },
};
static const struct partitions_file_member three[] = { { { 0x100 }, MEMBERSHIP_BOTH, "x\ny;" } };

static const char *render(const struct partitions_file_partition *partitions, uint32_t n, bool both, size_t *ret_n)
{
        struct partitions_file file = { .partitions = partitions, .n_partitions = n, .generation = 41, .phase = "3 open" };
        const char *bytes = NULL;

        ck_assert_int_eq(partitions_file_render(arena, &file, both, &findings, &bytes, ret_n), 0);
        ck_assert_uint_eq(strlen(bytes), *ret_n);
        return bytes;
}

START_TEST(test_render)
{
        const struct partitions_file_partition partitions[] = {
                { .name = "default", .base = 0x7fff, .members = two, .n_members = 2 },
                { .name = "a,b:c", .base = 0x10, .index0 = true, .members = three, .n_members = 1 },
                { .name = "", .base = 0x11, .members = two, .n_members = 1 },
                { .name = "empty", .base = 0x12 },
        };
        size_t n;
        const char *bytes = render(partitions, ELEMENTS(partitions), true, &n);

        expect_text(bytes, "# pkeyd generation 41 phase 3 open sum ");
        expect_text(bytes,
                    "\ndefault=0x7fff,indx0:\n    0x0000000000000100=full, # node1 mlx5_0/1\n    0x0000000000000200=limited;\n");
        expect_text(bytes, "\nabc=0x0010,indx0:\n    0x0000000000000100=both; # x?y;\n");
        expect_text(bytes, "\np0011=0x0011:\n");
        ck_assert_ptr_null(strstr(bytes, "empty"));
}
END_TEST

/* The full entry keeps index 0; with `indx0` the limited one would get it. */
START_TEST(test_render_both_of_the_default)
{
        const struct partitions_file_member members[] = {
                { { 0x100 }, MEMBERSHIP_BOTH, NULL }, { { 0x200 }, MEMBERSHIP_LIMITED, NULL }, { { 0x300 }, MEMBERSHIP_BOTH, NULL },
        };
        struct partitions_file_partition p = { .name = "default", .base = 0x7fff, .members = members, .n_members = 3 };
        size_t n;

        expect_text(render(&p, 1, true, &n), "\ndefault=0x7fff,indx0:\n    0x0000000000000200=limited;\n"
                                             "default=0x7fff:\n    0x0000000000000100=both,\n    0x0000000000000300=both;\n");
        p.n_members = 1;
        expect_text(render(&p, 1, true, &n), "\ndefault=0x7fff,indx0:\n    NONE;\n"
                                             "default=0x7fff:\n    0x0000000000000100=both;\n");
}
END_TEST

/* SELF takes precedence over limited members, not over members with both entries. */
START_TEST(test_render_self)
{
        const struct partitions_file_member members[] = {
                { { 0x100 }, MEMBERSHIP_BOTH, NULL }, { { 0x200 }, MEMBERSHIP_LIMITED, NULL },
        };
        const struct partitions_file_partition partitions[] = {
                { .name = "default", .base = 0x7fff, .members = members, .n_members = 2 },
                { .name = "p", .base = 0x10, .members = two, .n_members = 1 },
        };
        struct partitions_file file = { .partitions = partitions, .n_partitions = 2, .released = true, .self_full = true };
        const char *bytes;
        size_t n;

        ck_assert_int_eq(partitions_file_render(arena, &file, true, &findings, &bytes, &n), 0);
        ck_assert_str_eq(strchr(bytes, '\n'), "\n\ndefault=0x7fff,indx0:\n    0x0000000000000200=limited,\n    SELF=full;\n"
                                              "default=0x7fff:\n    0x0000000000000100=both;\n"
                                              "\np=0x0010:\n    0x0000000000000100=full; # node1 mlx5_0/1\n");
}
END_TEST

/* Members that differ from their partition about index 0 have a definition of their own. Multicast groups belong to the first. */
START_TEST(test_render_members_apart)
{
        const struct partitions_file_member members[] = {
                { { 0x100 }, MEMBERSHIP_FULL, NULL, true }, { { 0x200 }, MEMBERSHIP_LIMITED, NULL },
                { { 0x300 }, MEMBERSHIP_BOTH, NULL, true },
        };
        struct ipoib ipoib = { .broadcast = multicast_ipoib_default() };
        struct partitions_file_partition p = { .name = "p", .base = 0x10, .members = members, .n_members = 3 };
        size_t n;

        expect_text(render(&p, 1, true, &n), "\np=0x0010,indx0:\n    0x0000000000000100=full,\n    0x0000000000000300=both;\n"
                                             "p=0x0010:\n    0x0000000000000200=limited;\n");
        p.index0 = true;
        p.ipoib = &ipoib;
        expect_text(render(&p, 1, true, &n), "\np=0x0010,indx0,ipoib,mtu=4,rate=3,sl=0,scope=2,Q_Key=0xb1b,TClass=0,FlowLabel=0:\n"
                                             "    0x0000000000000200=limited;\n"
                                             "p=0x0010:\n    0x0000000000000100=full,\n    0x0000000000000300=both;\n");
        p.n_members = 1;
        expect_text(render(&p, 1, true, &n), "\np=0x0010,ipoib,");
        p = (struct partitions_file_partition) { .name = "p", .base = 0x10, .sl = 3, .members = members, .n_members = 2 };
        expect_text(render(&p, 1, true, &n), "\np=0x0010,indx0,sl=3:\n    0x0000000000000100=full;\n"
                                             "p=0x0010,sl=3:\n    0x0000000000000200=limited;\n");
}
END_TEST

/* OpenSM reads what was rendered. */
static void read_again(const char *bytes, const struct ipoib *wanted)
{
        const struct partitions_conf_partition *p;
        struct partitions_conf *c = NULL;

        ck_assert_int_eq(partitions_conf_parse(arena, OPENSM_NUMBERS_UNKNOWN, "p.conf", bytes, strlen(bytes), &findings, &c), 0);
        ck_assert_msg(findings.n == 0, "%s", print_findings());
        p = find_partition(c, 0x10);
        ck_assert(p && p->has_broadcast && p->ipoib->n_groups == wanted->n_groups);
        ck_assert(multicast_equal(&p->ipoib->broadcast, &wanted->broadcast));
        for (uint32_t i = 0; i < wanted->n_groups; i++) {
                ck_assert_mem_eq(&p->ipoib->groups[i].mgid, &wanted->groups[i].mgid, sizeof(struct mgid));
                ck_assert(multicast_equal(&p->ipoib->groups[i].parameters, &wanted->groups[i].parameters));
        }
}

START_TEST(test_render_ipoib)
{
        struct multicast_group group = { .parameters = { .mtu = 5, .rate = 16, .scopes = 1u << 5, .tclass = 7 } };
        struct ipoib ipoib = { .broadcast = multicast_ipoib_default(), .groups = &group, .n_groups = 1 };
        struct partitions_file_partition p = { .name = "ib", .base = 0x10, .ipoib = &ipoib, .members = two, .n_members = 1 };
        size_t n;

        ck_assert_int_eq(mgid_parse("ff12::16", &group.mgid), 0);
        expect_text(render(&p, 1, false, &n),
                    "ib=0x0010,ipoib,mtu=4,rate=3,sl=0,scope=2,Q_Key=0xb1b,TClass=0,FlowLabel=0:\n"
                    "    0x0000000000000100=full; # node1 mlx5_0/1\n"
                    "ib=0x0010,mtu=4,rate=3,sl=0:\n"
                    "    mgid=ff12::16,mtu=5,rate=16,sl=0,scope=5,Q_Key=0x0,TClass=7,FlowLabel=0\n"
                    "    NONE;\n");
        read_again(render(&p, 1, false, &n), &ipoib);
}
END_TEST

START_TEST(test_both_needs_the_option)
{
        struct partitions_file_partition p = { .name = "p", .base = 0x10, .members = three, .n_members = 1 };
        struct partitions_file file = { .partitions = &p, .n_partitions = 1 };
        const char *bytes;
        size_t n;

        ck_assert_int_eq(partitions_file_render(arena, &file, false, &findings, &bytes, &n), -EBADMSG);
        expect_text(only(FINDING_OPENSM_BOTH)->text, "full and a limited member of p (0x0010), but OpenSM makes it a full member only");
        expect_text(only(FINDING_OPENSM_BOTH)->hint, "allow_both_pkeys TRUE");
}
END_TEST

START_TEST(test_recognize)
{
        struct partitions_file_partition p = { .name = "p", .base = 0x10, .members = two, .n_members = 2 };
        struct partitions_file last = { .partitions = &p, .n_partitions = 1, .generation = 41 };
        bool is_phase = false;
        size_t n, i;
        const char *bytes = render(&p, 1, false, &n);
        char *copy = arena_strndup(arena, bytes, n);

        ck_assert_int_eq(partitions_file_recognize(bytes, n, NULL, &is_phase), PARTITIONS_FILE_INTACT);
        ck_assert(is_phase);
        /* truncated, or any byte changed: never intact */
        for (i = 0; i < n; i++) {
                ck_assert_int_ne(partitions_file_recognize(bytes, i, NULL, NULL), PARTITIONS_FILE_INTACT);
                copy[i] ^= 1;
                ck_assert_int_ne(partitions_file_recognize(copy, n, NULL, NULL), PARTITIONS_FILE_INTACT);
                copy[i] ^= 1;
        }
        ck_assert_int_eq(partitions_file_recognize(bytes, n - 1, NULL, &is_phase), PARTITIONS_FILE_EDITED);
        ck_assert(!is_phase);
        copy[3] = 'w';
        ck_assert_int_eq(partitions_file_recognize(copy, n, NULL, NULL), PARTITIONS_FILE_EDITED);
        ck_assert_int_eq(partitions_file_recognize("", 0, NULL, NULL), PARTITIONS_FILE_FOREIGN);
        ck_assert_int_eq(partitions_file_recognize("Default=0x7fff:ALL=full;\n", 25, NULL, NULL), PARTITIONS_FILE_FOREIGN);
        ck_assert_int_eq(partitions_file_render(arena, &last, false, &findings, &bytes, &n), 0);
        ck_assert_int_eq(partitions_file_recognize(bytes, n, NULL, &is_phase), PARTITIONS_FILE_INTACT);
        ck_assert(!is_phase);
}
END_TEST

/* Each fabric of a host has a file of its own. */
START_TEST(test_recognize_fabric)
{
        static const char *const fabrics[] = { NULL, "a", "ab", "storage" };
        struct partitions_file file = { .generation = 41, .phase = "3 open" };
        bool is_phase;
        const char *bytes;
        size_t n;

        for (size_t i = 0; i < ELEMENTS(fabrics); i++) {
                file.fabric = fabrics[i];
                ck_assert_int_eq(partitions_file_render(arena, &file, false, &findings, &bytes, &n), 0);
                for (size_t k = 0; k < ELEMENTS(fabrics); k++) {
                        ck_assert_int_eq(partitions_file_recognize(bytes, n, fabrics[k], &is_phase),
                                         i == k ? PARTITIONS_FILE_INTACT : PARTITIONS_FILE_OTHER);
                        ck_assert_int_eq(is_phase, i == k);
                        ck_assert_int_eq(partitions_file_recognize(bytes, n - 1, fabrics[k], NULL), PARTITIONS_FILE_EDITED);
                }
        }
}
END_TEST

/* From a policy and a fabric: names, index 0 and IPoIB of the policy, every endport, default first. */
START_TEST(test_from_desired)
{
        const struct policy *policy = parse("version: 1\npartitions:\n  p:\n    pkey: 0x0010\n    index0: true\n"
                                            "    ipoib: {mtu: 4096, rate: 2.5, sl: 4}\n    members:\n      node1: both\n");
        struct subnet_node node = { .guid = { 0x100 }, .type = NODE_CA, .num_ports = 1 };
        struct subnet_port port = { .number = 1, .guid = { 0x101 } };
        struct partitions_file_port *ports;
        struct partitions_file file;
        struct memberships *m;
        struct desired *d;
        struct subnet_builder *b;
        struct subnet *subnet;
        uint32_t n_ports;

        ck_assert_int_eq(subnet_builder_new(arena, &b), 0);
        ck_assert_int_eq(subnet_builder_add_node(b, &node, "node1 mlx5_0", 12), 0);
        ck_assert_int_eq(subnet_builder_add_port(b, node.guid, &port), 0);
        ck_assert_int_eq(subnet_builder_finish(b, (struct guid) {}, 0, (struct guid) {}, 0, &subnet), 0);
        ck_assert_int_eq(policy_resolve(arena, policy, subnet, &findings, &m), 0);
        ck_assert_int_eq(desired_compute(arena, m, &d), 0);
        ck_assert_int_eq(partitions_file_collect(arena, d->subnet, d->ports, &ports, &n_ports), 0);
        ck_assert_int_eq(partitions_file_from_ports(arena, d->policy, NULL, ports, n_ports, &file), 0);
        ck_assert_uint_eq(file.n_partitions, 2);
        ck_assert_uint_eq(file.partitions[0].base, 0x7fff);
        ck_assert_int_eq(file.partitions[0].members[0].membership, MEMBERSHIP_LIMITED);
        ck_assert_str_eq(file.partitions[1].name, "p");
        ck_assert(file.partitions[1].index0);
        ck_assert_uint_eq(file.partitions[1].n_members, 1);
        ck_assert_int_eq(file.partitions[1].members[0].membership, MEMBERSHIP_BOTH);
        ck_assert_str_eq(file.partitions[1].members[0].label, "node1 mlx5_0/1");
        ck_assert_uint_eq(file.partitions[1].ipoib->broadcast.mtu, 5);
        ck_assert_uint_eq(file.partitions[1].ipoib->broadcast.rate, 2);
        ck_assert_uint_eq(file.partitions[1].sl, 4);
}
END_TEST

/* OpenSM keeps the SL of the last definition. */
START_TEST(test_sl_of_others)
{
        static const char text[] = "a=0x10,sl=3: 0x100=full;\nb=0x11,sl=2: 0x100=full;\nb=0x11: 0x200=full;\nc=0x12,ipoib,sl=5: ALL;\n";
        static const struct p_key keys[] = { { 0x8010 }, { 0x8011 }, { 0x8012 } };
        const struct partitions_file_port port = { { 0x100 }, NULL, keys, 3 };
        struct partitions_conf *conf;
        struct partitions_file file;

        ck_assert_int_eq(partitions_conf_parse(arena, OPENSM_NUMBERS_UNKNOWN, "p.conf", text, strlen(text), &findings, &conf), 0);
        ck_assert_int_eq(partitions_file_from_ports(arena, NULL, conf, &port, 1, &file), 0);
        ck_assert_uint_eq(file.partitions[0].sl, 3);
        ck_assert_uint_eq(file.partitions[1].sl, 0);
        ck_assert_uint_eq(file.partitions[2].sl, 5);
}
END_TEST

/* A lease takes index 0 of its members from the partition that has it otherwise. */
START_TEST(test_index0_of_a_lease)
{
        struct policy *policy = (struct policy *) parse("version: 1\npartitions:\n  every:\n    pkey: 0x0011\n    index0: true\n    members: {}\n"
                                                        "  lease:\n    pkey: 0x0010\n    members:\n      0x100: full\n      0x300: limited\n");
        static const struct p_key both[] = { { 0x8010 }, { 0x8011 }, { 0xffff } }, other[] = { { 0x0010 }, { 0x8011 } };
        const struct partitions_file_port ports[] = {
                { { 0x100 }, NULL, both, 3 }, { { 0x200 }, NULL, both, 3 }, { { 0x300 }, NULL, other, 2 },
        };
        struct partitions_file file;

        policy->partitions[policy_find_base(policy, 0x10)].rules[0].index0 = true;
        ck_assert_int_eq(partitions_file_from_ports(arena, policy, NULL, ports, 3, &file), 0);
        ck_assert_uint_eq(file.n_partitions, 3);
        for (uint32_t i = 0; i < 2; i++)
                ck_assert(!file.partitions[0].members[i].inverts_index0);
        for (uint32_t i = 0; i < 3; i++) {
                ck_assert(file.partitions[1].members[i].inverts_index0 == (i == 0));
                ck_assert(file.partitions[2].members[i].inverts_index0 == (i == 0));
        }
        ck_assert(!file.partitions[1].index0 && file.partitions[2].index0);
}
END_TEST

START_TEST(test_same_file)
{
        static const struct {
                const char *x, *y;
                bool is_same;
        } cases[] = {
                {"/etc/opensm/a.conf", "/etc/opensm/a.conf", true}, {"/etc//opensm/./a.conf", "//etc/opensm/a.conf", true},
                {"/etc/opensm/.", "/etc/opensm", true}, {"./a", "a", true}, {"/a", "a", false}, {"/a", "/a/b", false},
                {"/a.conf", "/a.con", false}, {"/.a", "/a", false}, {"/a/..", "/a", false}, {"", "/a", false}, {"/ab/c", "/a/bc", false},
        };

        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                ck_assert_msg(opensm_conf_is_same_file(cases[i].x, cases[i].y) == cases[i].is_same, "case %zu", i);
                ck_assert_msg(opensm_conf_is_same_file(cases[i].y, cases[i].x) == cases[i].is_same, "case %zu turned around", i);
        }
}
END_TEST

START_TEST(test_opensm_conf)
{
        static const char text[] = "# comment\nallow_both_pkeys TRUE\n qos\ttrue\nm_key 0xdeadbeef\nm_key_protection_level 2\n"
                                   "partition_config_file \"/a b\" # x\nno_such_option 5\nsa_key 2\npart_enforce in\n"
                                   "keep_pkey_indexes FALSE\nm_key bad\nm_key_protection_level 4\n"
                                   "part_enforce inbound\nkeep_pkey_indexes 1\nsa_key 0b10\n";
        static const char *const warnings[] = {
                "qos: 'true' is read as FALSE", "m_key: its value is not a number", "m_key_protection_level: '4' is not",
                "part_enforce: 'inbound' is read as both", "keep_pkey_indexes: '1' is read as FALSE",
                "sa_key: its value is a binary number",
        };
        struct opensm_conf c;

        ck_assert_int_eq(opensm_conf_parse(arena, "opensm.conf", text, strlen(text), &findings, &c), 0);
        ck_assert(c.allow_both_pkeys);
        ck_assert_str_eq(c.partition_config_file, "/a b");
        ck_assert_uint_eq(findings.n, ELEMENTS(warnings));
        for (size_t i = 0; i < ELEMENTS(warnings); i++) {
                ck_assert_int_eq(findings.items[i].code, FINDING_OPENSM_CONF);
                expect_text(findings.items[i].text, warnings[i]);
        }
        ck_assert_uint_eq(findings.items[0].where.line, 3);
        ck_assert_ptr_null(strstr(findings.items[1].text, "bad"));
        ck_assert_int_eq(opensm_conf_parse(arena, "opensm.conf", NULL, 0, &findings, &c), 0);
        ck_assert(!c.allow_both_pkeys);
        ck_assert_int_eq(opensm_conf_parse(arena, "opensm.conf", "partition_config_file (null)\n", 29, &findings, &c), 0);
        ck_assert_ptr_null(c.partition_config_file); /* OpenSM prints this for none */
}
END_TEST

static size_t check_file(const char *read, const char *path, const char *written)
{
        struct opensm_conf c = { .partition_config_file = read };
        size_t before = findings.n;

        opensm_conf_check_file(&c, path, written, &findings);
        return findings.n - before;
}

START_TEST(test_file_that_opensm_reads)
{
        const struct finding *last;

        ck_assert_uint_eq(check_file("/a", "opensm.conf", "/a"), 0);
        ck_assert_uint_eq(check_file("/b", "opensm.conf", "/a"), 1);
        last = &findings.items[findings.n - 1];
        ck_assert_int_eq(last->severity, FINDING_ERROR);
        expect_text(last->text, "partition_config_file is /b");
        ck_assert_uint_eq(check_file(NULL, "opensm.conf", "/a"), 1);
        last = &findings.items[findings.n - 1];
        ck_assert_int_eq(last->severity, FINDING_WARNING);
        expect_text(last->text, "OpenSM reads /etc/opensm/partitions.conf unless it is started with -P");
        expect_text(last->hint, "'partition_config_file /a'");
        ck_assert_uint_eq(check_file(NULL, "opensm.conf", "/etc/opensm/partitions.conf"), 0);
        ck_assert_uint_eq(check_file(NULL, NULL, "/a"), 0);
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("partitions_file");
        TCase *c = tcase_create("all");
        SRunner *runner;
        int failed;

        tcase_add_checked_fixture(c, setup, teardown);
        tcase_add_test(c, test_render);
        tcase_add_test(c, test_render_both_of_the_default);
        tcase_add_test(c, test_sl_of_others);
        tcase_add_test(c, test_render_self);
        tcase_add_test(c, test_render_members_apart);
        tcase_add_test(c, test_index0_of_a_lease);
        tcase_add_test(c, test_render_ipoib);
        tcase_add_test(c, test_both_needs_the_option);
        tcase_add_test(c, test_recognize);
        tcase_add_test(c, test_recognize_fabric);
        tcase_add_test(c, test_from_desired);
        tcase_add_test(c, test_same_file);
        tcase_add_test(c, test_opensm_conf);
        tcase_add_test(c, test_file_that_opensm_reads);
        suite_add_tcase(suite, c);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_NORMAL);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
