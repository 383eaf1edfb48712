/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How the policy names the ports of a partitions.conf. Whether it means the same is tested against OpenSM, in
 * tests/system/test_import.py. */

#include <stdlib.h>

#include "import/import.h"
#include "policy_fixture.h"
#include "util/text.h"

#define HEAD "Default=0x7fff : ALL=limited, SELF=full ;\n"

static uint16_t filter_capacity; /* of leaf01; 0: it cannot enforce */
static const struct known *known;

static const char *import(const char *text, bool with_fabric)
{
        struct subnet *s = with_fabric ? fixture_subnet() : NULL;
        struct partitions_conf *conf;
        const char *yaml;

        if (s) {
                struct subnet_node *leaf = &s->nodes[subnet_find_node(s, (struct guid) { 0x1000 })];

                leaf->partition_enforcement_cap = filter_capacity;
                leaf->inbound_enforcement_cap = filter_capacity > 0;
        }

        ck_assert_int_eq(partitions_conf_parse(arena, OPENSM_NUMBERS_UNKNOWN, "partitions.conf", text, strlen(text), &findings,
                                               &conf), 0);
        ck_assert_int_eq(import_convert(arena, conf, s, known, true, &findings, &yaml), 0);
        return yaml;
}

/* A host by its name if all of its ports are members, else by device; then, by GUID and with their comments, ports that no name
 * selects alone, or that are not in the fabric. */
START_TEST(names)
{
        const char *yaml = import(HEAD "a=0x0010 :\n 0xdead=full, # lost\n 0x901=full, # one of two\n 0x601=full,\n"
                                       " 0x202=full, 0x101=full, 0x201=full ;\n", true);

        expect_text(yaml, "  a:\n    pkey: 0x0010\n    members:\n"
                          "      node[0001-0002]: full\n"
                          "      node0003/mlx5_0: full\n"
                          "      0x0000000000000901: full # one of two\n"
                          "      0x000000000000dead: full # lost\n");
        expect_text(only(FINDING_IMPORT_GUID)->text, "no port of this fabric has the GUID 0x000000000000dead");
}
END_TEST

/* A name and device that two adapters have freezes their ports: they stay GUIDs. */
START_TEST(twins)
{
        const char *yaml = import(HEAD "a=0x0010 : 0x101=full, 0x901=full, 0xa01=full ;\n", true);

        expect_text(yaml, "    members:\n      node0001: full\n      0x0000000000000901: full\n      0x0000000000000a01: full\n");
}
END_TEST

/* The check does not rely on the names. */
START_TEST(frozen_members)
{
        static const char text[] = HEAD "a=0x0010 : 0x901=full, 0xa01=full ;\n", *const lines[] = { "0x901,0xa01", "twin" };
        struct import_partition partitions[2] = {};
        struct import im = { .arena = arena, .subnet = fixture_subnet(), .partitions = partitions, .n_partitions = 2 };
        struct partitions_conf *conf;

        report_init(&im.report, &findings);
        ck_assert_int_eq(partitions_conf_parse(arena, OPENSM_NUMBERS_UNKNOWN, "partitions.conf", text, strlen(text), &findings,
                                               &conf), 0);
        for (unsigned i = 0; i < 2; i++)
                partitions[i] = (struct import_partition) { .source = &conf->partitions[i], .name = i > 0 ? "a" : "default" };
        for (unsigned i = 0; i < 2; i++) {
                ck_assert_uint_eq(findings.n_errors, 0);
                ck_assert_int_eq(import_check(&im, arena_printf(arena, "version: 1\npartitions:\n  a:\n    pkey: 0x0010\n    members:\n"
                                                                       "      %s: full\n", lines[i])), 0);
        }
        ck_assert_uint_eq(findings.n_errors, 2); /* all endports are members of the default partition */
        expect_text(findings.items[findings.n - 1].text,
                    "a: OpenSM gives twin mlx5_0/1 membership full, this policy freezes it (and other ports)");
}
END_TEST

/* The name of a host stands for its ports that are down, too. */
START_TEST(ports_that_are_down)
{
        struct known_port rail = { { 0x1100 }, { 0x1101 }, NODE_CA, 1, "node0001 mlx5_1" };
        const struct known seen = { .ports = &rail, .n = 1 };
        const char *yaml;

        known = &seen;
        yaml = import(HEAD "a=0x0010 : 0x101=full ;\nb=0x0020 : 0x101=full, 0x1101=full ;\nc=0x0030 : 0x1101=limited ;\n", true);
        known = NULL;
        expect_text(yaml, "  a:\n    pkey: 0x0010\n    members:\n      node0001/mlx5_0: full\n");
        expect_text(yaml, "  b:\n    pkey: 0x0020\n    members:\n      node0001: full\n");
        expect_text(yaml, "  c:\n    pkey: 0x0030\n    members:\n      node0001/mlx5_1: limited\n");
        for (size_t i = 0; i < findings.n; i++)
                ck_assert_int_ne(findings.items[i].code, FINDING_IMPORT_GUID);
}
END_TEST

START_TEST(without_fabric)
{
        expect_text(import(HEAD "a=0x0010 : 0x202=limited, 0x101=full, 0x201=limited ;\n", false),
                    "    members:\n"
                    "      0x0000000000000201: limited\n"
                    "      0x0000000000000202: limited\n"
                    "      0x0000000000000101: full\n");
}
END_TEST

/* Equal sets become a group, and so does a long set. */
START_TEST(groups)
{
        const char *yaml = import(HEAD "a=0x0010 : 0x101=full, 0x201=full, 0x202=full ;\n"
                                       "b=0x0020 : 0x101=limited, 0x202=limited, 0x201=limited ;\n"
                                       "c=0x0030 : 0xd1=full, 0xd2=full, 0xd3=full, 0xd4=full, 0xd5=full ;\n"
                                       "d=0x0040 : 0x101=full ;\n", true);

        expect_text(yaml, "\ngroups:\n  a:\n    - node[0001-0002]\n  c:\n    - 0x00000000000000d1\n");
        expect_text(yaml, "  a:\n    pkey: 0x0010\n    members:\n      a: full\n");
        expect_text(yaml, "  b:\n    pkey: 0x0020\n    members:\n      a: limited\n");
        expect_text(yaml, "  c:\n    pkey: 0x0030\n    members:\n      c: full\n");
        expect_text(yaml, "  d:\n    pkey: 0x0040\n    members:\n      node0001: full\n");
}
END_TEST

/* A policy without index0 has the default partition at index 0. */
START_TEST(index0_of_the_default)
{
        const char *yaml = import("Default=0x7fff,indx0 : ALL=limited, SELF=full ;\na=0x0010,indx0 : 0x101=full ;\n", true);

        for (size_t i = 0; i < findings.n; i++)
                ck_assert_int_ne(findings.items[i].code, FINDING_IMPORT_INDEX0);
        expect_text(yaml, "  a:\n    pkey: 0x0010\n    index0: true\n");
        ck_assert_ptr_eq(strstr(yaml, "index0"), strstr(strstr(yaml, "  a:"), "index0")); /* nowhere before */
}
END_TEST

/* In any language; each character that a policy refuses becomes a '?'. */
START_TEST(comments)
{
        const char *yaml = import(HEAD "# Gr\xc3\xbc\xc3\x9f""e \xe8\x8a\x82 \xfc \xe2\x80\xae \x01\n"
                                       "a=0x0010 : 0x101=full ;\n", true);

        expect_text(yaml, "# Gr\xc3\xbc\xc3\x9f""e \xe8\x8a\x82 ? ? ?\n");
}
END_TEST

/* Tables that the planner would refuse. */
START_TEST(too_many_partitions)
{
        _cleanup_text_ struct text conf = {};
        struct subnet *s = fixture_subnet();
        uint32_t port = subnet_find_endport(s, (struct guid) { 0x101 });
        uint16_t capacity = subnet_port_capacity(s, &s->ports[port]);

        ck_assert_uint_gt(capacity, 1);
        text_add(&conf, HEAD);
        for (unsigned i = 1; i < capacity; i++)
                text_add(&conf, "p%u=0x%04x : 0x101=full ;\n", i, i);
        (void) import(conf.bytes, true);
        for (size_t i = 0; i < findings.n; i++)
                ck_assert_int_ne(findings.items[i].code, FINDING_PLAN_CAPACITY);
        text_add(&conf, "q=0x7000 : 0x101=full ;\n");
        (void) import(conf.bytes, true);
        expect_text(only(FINDING_PLAN_CAPACITY)->text, "pkeyd will refuse this policy");
}
END_TEST

/* The same for a leaf port, which needs one entry for each partition. */
START_TEST(too_many_partitions_for_the_switch)
{
        const char *text = HEAD "a=0x0010 : 0x101=full ;\nb=0x0020,both : 0x101=both ;\nc=0x0030 : 0x901=full ;\n";

        filter_capacity = 3;
        (void) import(text, true);
        for (size_t i = 0; i < findings.n; i++)
                ck_assert_int_ne(findings.items[i].code, FINDING_PLAN_CAPACITY);
        filter_capacity = 2;
        (void) import(text, true);
        filter_capacity = 0;
        expect_text(only(FINDING_PLAN_CAPACITY)->text, "leaf01/1: its P_Key table holds 2 entries and would need 3");
        expect_text(only(FINDING_PLAN_CAPACITY)->hint, "enforcement_overflow: disable");
}
END_TEST

int main(void)
{
        Suite *s = suite_create("import");
        TCase *t = tcase_create("import");
        SRunner *r;
        int n_failed;

        tcase_add_checked_fixture(t, setup, teardown);
        tcase_add_test(t, names);
        tcase_add_test(t, twins);
        tcase_add_test(t, frozen_members);
        tcase_add_test(t, ports_that_are_down);
        tcase_add_test(t, without_fabric);
        tcase_add_test(t, groups);
        tcase_add_test(t, index0_of_the_default);
        tcase_add_test(t, comments);
        tcase_add_test(t, too_many_partitions);
        tcase_add_test(t, too_many_partitions_for_the_switch);
        suite_add_tcase(s, t);
        r = srunner_create(s);
        srunner_run_all(r, CK_ENV);
        n_failed = srunner_ntests_failed(r);
        srunner_free(r);
        return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
