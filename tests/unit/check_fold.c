/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <string.h>

#include "arena_fixture.h"
#include "subnet/fold.h"

#define G(x) ((struct guid) { (x) })

#define assert_folded(wanted, ...)                                                                 \
        do {                                                                                       \
                const char *names[] = { __VA_ARGS__ };                                             \
                                                                                                   \
                ck_assert_str_eq(fold_names(arena, names, sizeof(names) / sizeof(*names)), wanted); \
        } while (false)

START_TEST(numbers_become_ranges)
{
        assert_folded("node[0001-0003,0005]", "node0003", "node0001", "node0005", "node0002");
        assert_folded("n[1-2]-ib", "n2-ib", "n1-ib");
        assert_folded("node[1-3]", "node3", "node1", "node2", "node1");
        assert_folded("node7", "node7");
        assert_folded("login,node[1-2]", "node2", "login", "node1");
        assert_folded("", );
}
END_TEST

/* Names that no range would spell in the same way are not folded. */
START_TEST(width_is_kept)
{
        assert_folded("node[9-10]", "node10", "node9");
        assert_folded("node[09-10]", "node10", "node09");
        assert_folded("node[9,010]", "node010", "node9");
        assert_folded("node[1,01]", "node01", "node1");
        assert_folded("node[99-100]", "node100", "node99");
        assert_folded("node[099-100]", "node100", "node099");
}
END_TEST

/* Only the last number of a name is folded into a range. */
START_TEST(what_stands_around_the_number)
{
        assert_folded("r1n[1-2],r2n1", "r2n1", "r1n2", "r1n1");
        assert_folded("n1,n1x", "n1x", "n1");
        assert_folded("a,a1", "a1", "a");
        assert_folded("n1234567890123456789", "n1234567890123456789"); /* too long for a number */
}
END_TEST

/* One host with two adapters of one and two ports, one with a single port, two without a name, two switches of a director. */
static struct subnet *make_subnet(void)
{
        static const struct {
                uint64_t guid;
                enum node_type type;
                unsigned n_ports;
                const char *description;
        } nodes[] = {
                { 0x10, NODE_CA, 1, "node1 mlx5_0" },
                { 0x20, NODE_CA, 2, "node1 mlx5_1" },
                { 0x30, NODE_CA, 1, "node2 mlx5_0" },
                { 0x40, NODE_SWITCH, 0, "MF0;core:MCS8500/L01/U1" },
                { 0x50, NODE_SWITCH, 0, "MF0;core:MCS8500/L02/U1" },
        };
        struct subnet_builder *b;
        struct subnet *s;

        ck_assert_int_eq(subnet_builder_new(arena, &b), 0);
        for (unsigned i = 0; i < sizeof(nodes) / sizeof(*nodes); i++) {
                struct subnet_node node = { .guid = G(nodes[i].guid), .type = nodes[i].type, .partition_cap = 32 };
                uint8_t number = nodes[i].type == NODE_SWITCH ? 0 : 1;

                ck_assert_int_eq(subnet_builder_add_node(b, &node, nodes[i].description, strlen(nodes[i].description)), 0);
                for (; number <= nodes[i].n_ports; number++) {
                        struct subnet_port port = { .number = number, .guid = G(nodes[i].guid + number) };

                        ck_assert_int_eq(subnet_builder_add_port(b, G(nodes[i].guid), &port), 0);
                }
        }
        ck_assert_int_eq(subnet_builder_finish(b, G(0), 0, G(0), 0, &s), 0);
        return s;
}

/* The ports with these GUIDs. */
static const char *fold(const struct subnet *s, unsigned n, const uint64_t *guids)
{
        uint32_t ports[8];

        ck_assert_uint_le(n, 8);
        for (unsigned i = 0; i < n; i++) {
                ports[i] = 0;
                while (ports[i] < s->n_ports && s->ports[ports[i]].guid.v != guids[i])
                        ports[i]++;
                ck_assert_uint_lt(ports[i], s->n_ports);
        }
        return fold_ports(arena, s, ports, n);
}

#define FOLD(s, ...) fold(s, sizeof((uint64_t[]) { __VA_ARGS__ }) / sizeof(uint64_t), (uint64_t[]) { __VA_ARGS__ })

/* A host name selects all endports of the host. If only some of them are meant, each is named. */
START_TEST(a_name_is_the_whole_host)
{
        const struct subnet *s = make_subnet();

        ck_assert_str_eq(FOLD(s, 0x11, 0x21, 0x22, 0x31), "node[1-2]");
        ck_assert_str_eq(FOLD(s, 0x21, 0x11, 0x31), "node2,node1/mlx5_0/1,node1/mlx5_1/1");
        ck_assert_str_eq(FOLD(s, 0x22, 0x21), "node1/mlx5_1/[1-2]");
        ck_assert_str_eq(FOLD(s, 0x31), "node2");
}
END_TEST

/* The same names one by one. */
START_TEST(labels_are_not_folded)
{
        const struct subnet *s = make_subnet();
        uint32_t ports[8], n = 0, n_labels;
        const char **labels;

        for (uint32_t p = 0; p < s->n_ports; p++)
                if (s->ports[p].guid.v != 0x22)
                        ports[n++] = p;
        ck_assert_uint_eq(n, 5);
        labels = fold_labels(arena, s, ports, n, &n_labels);
        ck_assert_uint_eq(n_labels, 5);
        ck_assert_str_eq(labels[0], "core:L01/U1");
        ck_assert_str_eq(labels[2], "node1/mlx5_0/1");
        ck_assert_str_eq(labels[3], "node1/mlx5_1/1");
        ck_assert_str_eq(labels[4], "node2");
        ports[n++] = subnet_find_endport(s, G(0x22)); /* now all of node1 */
        labels = fold_labels(arena, s, ports, n, &n_labels);
        ck_assert_uint_eq(n_labels, 4);
        ck_assert_str_eq(labels[2], "node1");
        ck_assert_str_eq(labels[3], "node2");
}
END_TEST

START_TEST(the_switches_of_a_director)
{
        const struct subnet *s = make_subnet();

        ck_assert_str_eq(FOLD(s, 0x40), "core:L01/U1");
        ck_assert_str_eq(FOLD(s, 0x50, 0x40), "core:L01/U1,core:L02/U1");
}
END_TEST

START_TEST(a_list_is_cut_after_a_name)
{
        static const struct { const char *list; size_t max; const char *cut; } lists[] = {
                { "node[1-3],oss1", 14, "node[1-3],oss1" },
                { "node[1-3],oss1", 13, "node[1-3],..." },
                { "a,node[01,03,05]-ib,b", 15, "a,node[01,03]-ib,..." },
                { "a,node[01,03,05]-ib,b", 10, "a,node[01]-ib,..." },
                { "a,node[01,03,05]-ib,b", 8, "a,..." },
                { "node[1,3]/1,oss/[1,3]", 20, "node[1,3]/1,oss/[1],..." },
        };

        for (size_t i = 0; i < ELEMENTS(lists); i++)
                ck_assert_str_eq(fold_cut(arena, lists[i].list, lists[i].max), lists[i].cut);
}
END_TEST

int main(void)
{
        Suite *s = suite_create("fold");
        TCase *t = tcase_create("fold");
        SRunner *r;
        int n;

        tcase_add_checked_fixture(t, setup, teardown);
        tcase_add_test(t, numbers_become_ranges);
        tcase_add_test(t, width_is_kept);
        tcase_add_test(t, what_stands_around_the_number);
        tcase_add_test(t, a_name_is_the_whole_host);
        tcase_add_test(t, labels_are_not_folded);
        tcase_add_test(t, the_switches_of_a_director);
        tcase_add_test(t, a_list_is_cut_after_a_name);
        suite_add_tcase(s, t);
        r = srunner_create(s);
        srunner_run_all(r, CK_NORMAL);
        n = srunner_ntests_failed(r);
        srunner_free(r);
        return n > 0;
}
