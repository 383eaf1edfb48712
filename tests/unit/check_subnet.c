/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "subnet/subnet.h"

#define G(x) ((struct guid) { (x) })

static struct arena *arena;
static struct subnet_builder *builder;

static void setup(void)
{
        arena = arena_new();
        ck_assert_ptr_nonnull(arena);
        ck_assert_int_eq(subnet_builder_new(arena, &builder), 0);
}

static void teardown(void)
{
        arena_free(arena);
}

static int add_node(uint64_t guid, enum node_type type, const char *description)
{
        struct subnet_node node = { .guid = G(guid), .type = type, .partition_cap = 64,
                                    .partition_enforcement_cap = 32, .inbound_enforcement_cap = true };

        return subnet_builder_add_node(builder, &node, description, strlen(description));
}

static int add_port(uint64_t node, uint8_t number, uint64_t guid, uint16_t lid)
{
        struct subnet_port port = { .number = number, .guid = G(guid), .lid = { lid }, .route = { .lid = { lid } } };

        return subnet_builder_add_port(builder, G(node), &port);
}

static void link_ports(uint64_t a, uint8_t p, uint64_t b, uint8_t q)
{
        ck_assert_int_eq(subnet_builder_add_link(builder, G(a), p, G(b), q), 0);
}

static const struct subnet *finish(void)
{
        struct subnet *s = NULL;

        ck_assert_int_eq(subnet_builder_finish(builder, G(0), 0, G(0), 0, &s), 0);
        return s;
}

static uint32_t port_at(const struct subnet *s, uint64_t node, uint8_t number)
{
        uint32_t n = subnet_find_node(s, G(node));

        ck_assert_uint_ne(n, SUBNET_NONE);
        return subnet_find_port(s, n, number);
}

/* Two switches with a cable between them, a host with two ports (one on each), a router, a host with one port. */
static void build_fabric(void)
{
        ck_assert_int_eq(add_node(0x20, NODE_SWITCH, "MF0;leaf02:MQM8700/U1"), 0);
        ck_assert_int_eq(add_node(0x90, NODE_CA, "node0002 mlx5_0"), 0);
        ck_assert_int_eq(add_node(0x10, NODE_SWITCH, "leaf01 something"), 0);
        ck_assert_int_eq(add_node(0x50, NODE_CA, "node0001 mlx5_0"), 0);
        ck_assert_int_eq(add_node(0x60, NODE_ROUTER, "router1 rt0"), 0);

        ck_assert_int_eq(add_port(0x20, 2, 0, 0), 0);
        ck_assert_int_eq(add_port(0x20, 1, 0, 0), 0);
        ck_assert_int_eq(add_port(0x20, 9, 0, 0), 0);
        ck_assert_int_eq(add_port(0x20, 0, 0x21, 2), 0);
        ck_assert_int_eq(add_port(0x10, 0, 0x11, 1), 0);
        ck_assert_int_eq(add_port(0x10, 1, 0, 0), 0);
        ck_assert_int_eq(add_port(0x10, 9, 0, 0), 0);
        ck_assert_int_eq(add_port(0x50, 2, 0x52, 6), 0);
        ck_assert_int_eq(add_port(0x50, 1, 0x51, 5), 0);
        ck_assert_int_eq(add_port(0x60, 1, 0x61, 7), 0);
        ck_assert_int_eq(add_port(0x90, 1, 0x91, 9), 0);

        link_ports(0x10, 1, 0x50, 1);
        link_ports(0x50, 1, 0x10, 1); /* told from the other side, too */
        link_ports(0x50, 2, 0x20, 1);
        link_ports(0x60, 1, 0x20, 2);
        link_ports(0x10, 9, 0x20, 9);
}

START_TEST(sorted_and_linked)
{
        const struct subnet *s;
        uint32_t leaf, host;

        build_fabric();
        s = finish();
        ck_assert_uint_eq(s->n_nodes, 5);
        for (uint32_t i = 1; i < s->n_nodes; i++)
                ck_assert_uint_lt(s->nodes[i - 1].guid.v, s->nodes[i].guid.v);
        for (uint32_t i = 1; i < s->n_ports; i++)
                ck_assert(s->ports[i - 1].node < s->ports[i].node ||
                          (s->ports[i - 1].node == s->ports[i].node && s->ports[i - 1].number < s->ports[i].number));
        /* 2 port 0s, 3 external ports, 4 endports; the cable between switches matters to nobody */
        ck_assert_uint_eq(s->n_ports, 9);
        ck_assert_uint_eq(port_at(s, 0x10, 9), SUBNET_NONE);

        leaf = port_at(s, 0x20, 1);
        host = port_at(s, 0x50, 2);
        ck_assert_int_eq(s->ports[leaf].role, PORT_SWITCH_EXTERNAL);
        ck_assert_int_eq(s->ports[host].role, PORT_ENDPORT);
        ck_assert_uint_eq(s->ports[leaf].peer, host);
        ck_assert_uint_eq(s->ports[host].peer, leaf);
        ck_assert_uint_eq(s->ports[port_at(s, 0x60, 1)].peer, port_at(s, 0x20, 2));
        ck_assert_uint_eq(s->ports[port_at(s, 0x90, 1)].peer, SUBNET_NONE);
        ck_assert_uint_eq(s->ports[port_at(s, 0x20, 0)].peer, SUBNET_NONE);
}
END_TEST

START_TEST(external_ports_are_their_switch)
{
        const struct subnet *s;
        const struct subnet_port *p;

        build_fabric();
        s = finish();
        p = &s->ports[port_at(s, 0x20, 2)];
        ck_assert_uint_eq(p->guid.v, 0x21);
        ck_assert_uint_eq(p->lid.v, 2);
        ck_assert_uint_eq(p->route.lid.v, 2);
        ck_assert_uint_eq(p->destination, s->ports[port_at(s, 0x20, 0)].destination);
        ck_assert_uint_eq(p->destination, s->ports[port_at(s, 0x20, 1)].destination);
        /* the SMA that answers at a LID: each port of an adapter is one */
        ck_assert_uint_ne(s->ports[port_at(s, 0x50, 1)].destination, s->ports[port_at(s, 0x50, 2)].destination);
        ck_assert_uint_ne(s->ports[port_at(s, 0x10, 0)].destination, p->destination);
        ck_assert_uint_eq(subnet_find_endport(s, G(0x21)), port_at(s, 0x20, 0));
}
END_TEST

START_TEST(found_by_guid_and_name)
{
        const struct subnet *s;
        uint32_t i;

        build_fabric();
        s = finish();
        ck_assert_uint_eq(subnet_find_endport(s, G(0x52)), port_at(s, 0x50, 2));
        ck_assert_uint_eq(subnet_find_endport(s, G(0x53)), SUBNET_NONE);
        ck_assert_uint_eq(subnet_find_endport(s, G(UINT64_MAX)), SUBNET_NONE);
        ck_assert_uint_eq(subnet_find_node(s, G(0x11)), SUBNET_NONE);
        ck_assert_uint_eq(subnet_find_node(s, G(UINT64_MAX)), SUBNET_NONE);
        ck_assert_uint_eq(s->n_by_name, 5);
        i = subnet_first_name(s, "node0002");
        ck_assert_str_eq(s->nodes[s->by_name[i]].name, "node0002");
        ck_assert_uint_eq(subnet_first_name(s, "node00015"), i);
        ck_assert_uint_eq(subnet_first_name(s, ""), 0);
        ck_assert_uint_eq(subnet_first_name(s, "zzz"), s->n_by_name);
        ck_assert_str_eq(subnet_port_label(arena, s, port_at(s, 0x50, 2)), "node0001 mlx5_0/2");
        ck_assert_str_eq(subnet_port_label(arena, s, port_at(s, 0x20, 1)), "leaf02/1");
        ck_assert_str_eq(subnet_port_label(arena, s, port_at(s, 0x10, 0)), "leaf01/0");
}
END_TEST

START_TEST(self_and_sm)
{
        struct subnet *s = NULL;

        build_fabric();
        ck_assert_int_eq(subnet_builder_finish(builder, G(0x50), 2, G(0x20), 0, &s), 0);
        ck_assert_uint_eq(s->self, port_at(s, 0x50, 2));
        ck_assert_uint_eq(s->sm, port_at(s, 0x20, 0));
}
END_TEST

START_TEST(self_is_an_endport_or_nothing)
{
        struct subnet *s = NULL;

        build_fabric();
        ck_assert_int_eq(subnet_builder_finish(builder, G(0x20), 1, G(0x77), 1, &s), 0);
        ck_assert_uint_eq(s->self, SUBNET_NONE);
        ck_assert_uint_eq(s->sm, SUBNET_NONE);
}
END_TEST

START_TEST(capacity_and_enforcement)
{
        const struct subnet *s;
        struct subnet_node weak = { .guid = G(0x30), .type = NODE_SWITCH, .partition_cap = 8,
                                    .partition_enforcement_cap = 16 };

        build_fabric();
        ck_assert_int_eq(subnet_builder_add_node(builder, &weak, "weak", 4), 0);
        ck_assert_int_eq(add_port(0x30, 0, 0x31, 3), 0);
        ck_assert_int_eq(add_port(0x30, 4, 0, 0), 0);
        link_ports(0x30, 4, 0x90, 1);
        s = finish();
        ck_assert_uint_eq(subnet_port_capacity(s, &s->ports[port_at(s, 0x20, 0)]), 64);
        ck_assert_uint_eq(subnet_port_capacity(s, &s->ports[port_at(s, 0x20, 1)]), 32);
        ck_assert(subnet_port_can_enforce(s, &s->ports[port_at(s, 0x20, 1)]));
        ck_assert(!subnet_port_can_enforce(s, &s->ports[port_at(s, 0x20, 0)]));
        ck_assert(subnet_port_is_managed(s, &s->ports[port_at(s, 0x20, 0)]));
        /* a table but neither capability bit */
        ck_assert_uint_eq(subnet_port_capacity(s, &s->ports[port_at(s, 0x30, 4)]), 16);
        ck_assert(!subnet_port_can_enforce(s, &s->ports[port_at(s, 0x30, 4)]));
        ck_assert(!subnet_port_is_managed(s, &s->ports[port_at(s, 0x30, 4)]));
}
END_TEST

START_TEST(back_to_back)
{
        const struct subnet *s;

        ck_assert_int_eq(add_node(2, NODE_CA, "b"), 0);
        ck_assert_int_eq(add_node(1, NODE_CA, "a"), 0);
        ck_assert_int_eq(add_port(1, 1, 11, 1), 0);
        ck_assert_int_eq(add_port(2, 1, 21, 2), 0);
        link_ports(1, 1, 2, 1);
        s = finish();
        ck_assert_uint_eq(s->n_ports, 2);
        ck_assert_uint_eq(s->ports[0].peer, 1);
        ck_assert_uint_eq(s->ports[1].peer, 0);
}
END_TEST

START_TEST(nothing_at_all)
{
        const struct subnet *s = finish();

        ck_assert_uint_eq(s->n_nodes, 0);
        ck_assert_uint_eq(s->n_ports, 0);
        ck_assert_uint_eq(subnet_find_node(s, G(1)), SUBNET_NONE);
        ck_assert_uint_eq(subnet_find_endport(s, G(1)), SUBNET_NONE);
        ck_assert_uint_eq(subnet_first_name(s, "a"), 0);
}
END_TEST

START_TEST(refuses_what_is_twice_or_unknown)
{
        ck_assert_int_eq(add_node(1, NODE_CA, "a"), 0);
        ck_assert_int_eq(add_node(1, NODE_SWITCH, "b"), -EEXIST);
        ck_assert_int_eq(add_node(2, (enum node_type) 7, "c"), -EINVAL);
        ck_assert_int_eq(add_port(1, 1, 11, 1), 0);
        ck_assert_int_eq(add_port(1, 1, 12, 1), -EEXIST);
        ck_assert_int_eq(add_port(1, 0, 12, 1), -EINVAL);
        ck_assert_int_eq(add_port(1, 255, 13, 1), 0);
        ck_assert_int_eq(add_port(3, 1, 12, 1), -ENOENT);
        ck_assert_uint_eq(finish()->n_ports, 2);
}
END_TEST

START_TEST(contradictory_links)
{
        const struct subnet *s;

        build_fabric();
        link_ports(0x10, 1, 0x90, 1);  /* 0x10/1 has a cable to 0x50/1 */
        link_ports(0x90, 1, 0x90, 1);  /* to itself */
        link_ports(0x90, 1, 0x77, 1);  /* no such node */
        link_ports(0x90, 1, 0x10, 77); /* no such port */
        link_ports(0x90, 1, 0x20, 0);  /* port 0 has no cable */
        s = finish();
        ck_assert_uint_eq(s->ports[port_at(s, 0x10, 1)].peer, port_at(s, 0x50, 1));
        ck_assert_uint_eq(s->ports[port_at(s, 0x90, 1)].peer, SUBNET_NONE);
        for (uint32_t i = 0; i < s->n_ports; i++)
                if (s->ports[i].peer != SUBNET_NONE)
                        ck_assert_uint_eq(s->ports[s->ports[i].peer].peer, i);
}
END_TEST

static void add_3000_nodes(void)
{
        for (uint64_t i = 0; i < 3000; i++) {
                /* an order that is none */
                ck_assert_int_eq(add_node(1 + (i * 1009) % 3000, NODE_CA, "same name"), 0);
                ck_assert_int_eq(add_port(1 + (i * 1009) % 3000, 1, 100000 - i, 0), 0);
        }
}

START_TEST(many_nodes)
{
        const struct subnet *s;

        add_3000_nodes();
        ck_assert_int_eq(add_node(17, NODE_CA, "again"), -EEXIST);
        s = finish();
        ck_assert_uint_eq(s->n_nodes, 3000);
        for (uint32_t i = 0; i < s->n_nodes; i++) {
                ck_assert_uint_eq(subnet_find_node(s, G(i + 1)), i);
                ck_assert_uint_eq(subnet_find_endport(s, s->ports[i].guid), i);
                ck_assert_uint_eq(s->by_name[i], i);
        }
}
END_TEST

/* Reserved arrays do not grow. A builder that was promised too little still grows. */
START_TEST(reserved)
{
        size_t grown, at_once;

        add_3000_nodes();
        grown = arena_size(arena);
        teardown();
        setup();
        ck_assert_int_eq(subnet_builder_reserve(builder, 3000, 3000, 0), 0);
        at_once = arena_size(arena);
        ck_assert_uint_ge(at_once, 3000 * (sizeof(struct subnet_node) + sizeof(struct subnet_port)));
        add_3000_nodes();
        ck_assert_uint_lt(arena_size(arena) - at_once, 3000 * 100); /* names */
        ck_assert_uint_lt(arena_size(arena), grown);
        ck_assert_int_eq(subnet_builder_reserve(builder, 10, 10, 10), 0);
        ck_assert_int_eq(add_node(5000, NODE_CA, "one more"), 0);
        ck_assert_int_eq(add_port(5000, 1, 5000, 0), 0);
        ck_assert_uint_eq(finish()->n_ports, 3001);
}
END_TEST

/* From every index to every name, and to names between them: the same as a linear search. */
START_TEST(next_name)
{
        const struct subnet *s;
        uint32_t from, i, k;

        for (i = 0; i < 70; i++)
                ck_assert_int_eq(add_node(1 + i, NODE_CA, arena_printf(arena, "n%02u", 2 * (i / 2))), 0);
        s = finish();
        for (i = 0; i <= 71; i++) {
                const char *name = arena_printf(arena, "n%02u", i);

                for (from = 0; from <= s->n_by_name; from++) {
                        for (k = from; k < s->n_by_name && strcmp(s->nodes[s->by_name[k]].name, name) < 0;)
                                k++;
                        ck_assert_uint_eq(subnet_next_name(s, from, name), k);
                }
        }
        ck_assert_uint_eq(subnet_next_name(s, 3, ""), 3);
}
END_TEST

static const struct {
        const char *raw;
        size_t size;
        const char *description, *name, *device;
} descriptions[] = {
        { "node0001 mlx5_0", 15, "node0001 mlx5_0", "node0001", "mlx5_0" },
        { "ai400x-157 HCA-1  ", 18, "ai400x-157 HCA-1", "ai400x-157", "HCA-1" },
        { "lonely", 6, "lonely", "lonely", "" },
        { "", 0, "", "", "" },
        { "   ", 3, "", "", "" },
        { "  x\ty z", 7, "  x\\x09y z", "x", "y" },
        { "MF0;SLG04-16:MQM8700/U1", 23, "MF0;SLG04-16:MQM8700/U1", "SLG04-16", "" },
        { "MF12;director:CS7500/L03/U1", 27, "MF12;director:CS7500/L03/U1", "director", "" },
        { "MF0;:MQM8700/U1", 15, "MF0;:MQM8700/U1", "", "" },
        { "MF0;no colon", 12, "MF0;no colon", "MF0;no", "colon" },
        { "MF;a:b", 6, "MF;a:b", "MF;a:b", "" },
        { "Mellanox Technologies Aggregation Node", 38, "Mellanox Technologies Aggregation Node", "", "" },
        { "Quantum Mellanox Technologies", 29, "Quantum Mellanox Technologies", "Quantum", "Mellanox" },
        { "a\0b", 3, "a", "a", "" },
        { "a \0\0", 4, "a", "a", "" },
        { "\0a", 2, "", "", "" },
        { "x\\y \x1b[31m", 9, "x\\x5cy \\x1b[31m", "x\\x5cy", "\\x1b[31m" },
        { "\xc3\xa9 \x7f", 4, "\\xc3\\xa9 \\x7f", "\\xc3\\xa9", "\\x7f" },
        { "a\nb\r\n", 5, "a\\x0ab", "a", "b" },
};

START_TEST(boards)
{
        static const struct {
                const char *raw, *board, *label;
        } cases[] = {
                { "MF0;director:CS8500/L20/U2", "L20/U2", "director:L20/U2" },
                { "MF12;director:CS7500/S03/U1", "S03/U1", "director:S03/U1" },
                { "MF0;twochip:MQM9700/U2", "U2", "twochip:U2" },
                { "MF0;leaf:MQM8700/U1", "U1", "leaf" },
                { "MF0;leaf:MQM8700", "U1", "leaf" },
                { "MF0;leaf:MQM8700/", "U1", "leaf" },
                { "MF0;leaf:MQM8700/l20/U2", "U1", "leaf" },
                { "MF0;leaf:MQM8700/L20/U2 x", "U1", "leaf" },
                { "MF0;:CS8500/L20/U2", "U1", "MF0;:CS8500/L20/U2" },
                { "leaf:x/L20/U2", "U1", "leaf:x/L20/U2" },
                { "", "U1", "0x0000000000000007" },
        };
        char buf[SUBNET_NAME_SIZE];

        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct subnet_node n = { .guid = G(7), .type = NODE_SWITCH };
                const char *device;

                n.description = node_description_escape(arena, cases[i].raw, strlen(cases[i].raw));
                ck_assert_int_eq(0, node_description_split(arena, n.description, &n.name, &device));
                n.device = "";
                ck_assert_str_eq(subnet_node_board(&n), cases[i].board);
                ck_assert_str_eq(subnet_node_label(arena, &n), cases[i].label);
                if (*cases[i].raw)
                        ck_assert_str_eq(subnet_node_name(&n, buf), cases[i].label);
        }
        ck_assert(subnet_label_is_of("director:L20/U2/5", "director:L20/U2"));
        ck_assert(subnet_label_is_of("director:L20/U2/5", "director:L20/U2/5"));
        ck_assert(subnet_label_is_of("director:L20/U2/5", "director"));
        ck_assert(subnet_label_is_of("node0001 mlx5_0/1", "node0001"));
        ck_assert(!subnet_label_is_of("node0001 mlx5_0/1", "node000"));
        ck_assert(!subnet_label_is_of("node0001 mlx5_0/1", "node0001 mlx5_0/1/1"));
        ck_assert(!subnet_label_is_of(NULL, "node0001"));
        ck_assert(subnet_is_board("L20/U2"));
        ck_assert(!subnet_is_board(""));
        ck_assert(!subnet_is_board("L20/"));
        ck_assert(!subnet_is_board("/L20"));
        ck_assert(!subnet_is_board("L/U2"));
        ck_assert(!subnet_is_board("20"));
}
END_TEST

START_TEST(description_split)
{
        const char *description, *name, *device;

        description = node_description_escape(arena, descriptions[_i].raw, descriptions[_i].size);
        ck_assert_int_eq(node_description_split(arena, description, &name, &device), 0);
        ck_assert_str_eq(description, descriptions[_i].description);
        ck_assert_str_eq(name, descriptions[_i].name);
        ck_assert_str_eq(device, descriptions[_i].device);
}
END_TEST

START_TEST(description_is_bounded)
{
        const char *description, *name, *device;
        char raw[300];

        memset(raw, 0xff, sizeof(raw));
        description = node_description_escape(arena, raw, sizeof(raw));
        ck_assert_int_eq(node_description_split(arena, description, &name, &device), 0);
        ck_assert_uint_eq(strlen(description), 4 * NODE_DESCRIPTION_SIZE);
        ck_assert_str_eq(description, name);
        for (const char *p = description; *p; p++)
                ck_assert(*p >= 0x20 && *p <= 0x7e);
}
END_TEST

START_TEST(switches_have_no_device)
{
        const struct subnet *s;

        ck_assert_int_eq(add_node(1, NODE_SWITCH, "Quantum Mellanox Technologies"), 0);
        ck_assert_int_eq(add_node(2, NODE_CA, "Mellanox Technologies Aggregation Node"), 0);
        ck_assert_int_eq(add_node(3, NODE_CA, ""), 0);
        ck_assert_int_eq(add_port(2, 1, 21, 0), 0);
        ck_assert_int_eq(add_port(3, 1, 31, 0), 0);
        s = finish();
        ck_assert_str_eq(s->nodes[0].device, "");
        ck_assert_uint_eq(s->n_by_name, 1);
        ck_assert_str_eq(subnet_port_label(arena, s, 0), "Mellanox Technologies Aggregation Node/1");
        ck_assert_str_eq(subnet_port_label(arena, s, 1), "0x0000000000000003/1");
}
END_TEST

START_TEST(silent_links_are_counted)
{
        struct subnet_node node = { .guid = G(1), .type = NODE_SWITCH, .silent_ports = { 1 << 3, 0, 0, 1ULL << 63 | 1 } };
        const struct subnet *s;

        ck_assert_int_eq(subnet_builder_add_node(builder, &node, "leaf", 4), 0);
        node.guid = G(2);
        node.silent_ports[0] = 1 << 5 | 1 << 6;
        ck_assert_int_eq(subnet_builder_add_node(builder, &node, "spine", 5), 0);
        s = finish();
        ck_assert_uint_eq(subnet_count_silent(s), 3 + 4);
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("subnet");
        TCase *t = tcase_create("subnet");
        SRunner *runner;
        int failed;

        tcase_add_checked_fixture(t, setup, teardown);
        tcase_add_test(t, sorted_and_linked);
        tcase_add_test(t, external_ports_are_their_switch);
        tcase_add_test(t, found_by_guid_and_name);
        tcase_add_test(t, self_and_sm);
        tcase_add_test(t, self_is_an_endport_or_nothing);
        tcase_add_test(t, capacity_and_enforcement);
        tcase_add_test(t, back_to_back);
        tcase_add_test(t, nothing_at_all);
        tcase_add_test(t, refuses_what_is_twice_or_unknown);
        tcase_add_test(t, contradictory_links);
        tcase_add_test(t, many_nodes);
        tcase_add_test(t, reserved);
        tcase_add_test(t, next_name);
        tcase_add_test(t, boards);
        tcase_add_loop_test(t, description_split, 0, (int) ELEMENTS(descriptions));
        tcase_add_test(t, description_is_bounded);
        tcase_add_test(t, switches_have_no_device);
        tcase_add_test(t, silent_links_are_counted);
        suite_add_tcase(suite, t);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
