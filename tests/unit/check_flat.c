/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "subnet/flat.h"

static const struct guid switch_guid = { 0x100 }, host_guid = { 0x200 };

static void add_node(struct subnet_builder *b, struct guid guid, enum node_type type, const char *description)
{
        struct subnet_node node = { .guid = guid, .type = type, .num_ports = 2, .partition_cap = 64 };

        ck_assert_int_eq(subnet_builder_add_node(b, &node, description, strlen(description)), 0);
}

static void add_port(struct subnet_builder *b, struct guid node, uint8_t number, enum port_role role)
{
        struct subnet_port port = {
                .number = number, .role = role, .state = PORT_STATE_ACTIVE, .guid = { node.v + number },
                .lid = { (uint16_t) (node.v >> 8) }, .route = { .hops = 1, .path = { 0, 1 } },
        };

        ck_assert_int_eq(subnet_builder_add_port(b, node, &port), 0);
}

/* A host on a switch. */
static struct subnet *make_subnet(struct arena *a)
{
        struct subnet_builder *b;
        struct subnet *s;

        ck_assert_int_eq(subnet_builder_new(a, &b), 0);
        add_node(b, switch_guid, NODE_SWITCH, "MF0;leaf01:MQM8700/U1");
        add_node(b, host_guid, NODE_CA, "node0001 mlx5_0");
        add_port(b, switch_guid, 0, PORT_ENDPORT);
        add_port(b, switch_guid, 1, PORT_SWITCH_EXTERNAL);
        add_port(b, host_guid, 1, PORT_ENDPORT);
        ck_assert_int_eq(subnet_builder_add_link(b, switch_guid, 1, host_guid, 1), 0);
        ck_assert_int_eq(subnet_builder_finish(b, host_guid, 1, switch_guid, 0, &s), 0);
        s->conflicts = arena_new_object(a, struct subnet_conflict);
        s->conflicts[0] = (struct subnet_conflict) { host_guid, { { switch_guid, 1 }, { switch_guid, 2 } } };
        s->n_conflicts = 1;
        s->n_conflicts_all = 2;
        return s;
}

START_TEST(there_and_back)
{
        struct arena *a = arena_new();
        struct subnet *s = make_subnet(a), *t;
        const char *bytes;
        size_t n;

        ck_assert_int_eq(subnet_flatten(a, s, &bytes, &n), 0);
        ck_assert_int_eq(subnet_unflatten(a, bytes, n, &t), 0);
        ck_assert_uint_eq(t->n_nodes, s->n_nodes);
        ck_assert_uint_eq(t->n_ports, s->n_ports);
        ck_assert_uint_eq(t->n_by_name, s->n_by_name);
        ck_assert_uint_eq(t->self, s->self);
        ck_assert_uint_eq(t->sm, s->sm);
        ck_assert_mem_eq(t->ports, s->ports, s->n_ports * sizeof(*s->ports));
        ck_assert_mem_eq(t->by_name, s->by_name, s->n_by_name * sizeof(*s->by_name));
        ck_assert_uint_eq(t->n_by_port_guid, s->n_by_port_guid);
        ck_assert_ptr_ne(t->by_port_guid, s->by_port_guid);
        ck_assert_mem_eq(t->by_port_guid, s->by_port_guid, s->n_by_port_guid * sizeof(*s->by_port_guid));
        ck_assert_uint_eq(t->n_conflicts, 1);
        ck_assert_uint_eq(t->n_conflicts_all, 2);
        ck_assert_ptr_ne(t->conflicts, s->conflicts);
        ck_assert_uint_eq(t->conflicts[0].guid.v, host_guid.v);
        ck_assert_uint_eq(t->conflicts[0].places[1].node.v, switch_guid.v);
        ck_assert_uint_eq(t->conflicts[0].places[1].number, 2);
        for (uint32_t i = 0; i < s->n_nodes; i++) {
                ck_assert_uint_eq(t->nodes[i].guid.v, s->nodes[i].guid.v);
                ck_assert_uint_eq(t->nodes[i].partition_cap, s->nodes[i].partition_cap);
                ck_assert_str_eq(t->nodes[i].description, s->nodes[i].description);
                ck_assert_str_eq(t->nodes[i].name, s->nodes[i].name);
                ck_assert_str_eq(t->nodes[i].device, s->nodes[i].device);
        }
        ck_assert_uint_eq(subnet_find_endport(t, (struct guid) { 0x201 }), t->self);
        arena_free(a);
}
END_TEST

START_TEST(cut_or_longer_is_refused)
{
        struct arena *a = arena_new();
        struct subnet *s = make_subnet(a), *t = NULL;
        const char *bytes;
        char *longer;
        size_t n;

        ck_assert_int_eq(subnet_flatten(a, s, &bytes, &n), 0);
        for (size_t cut = 0; cut < n; cut++) {
                char *copy = malloc(cut + 1); /* of its own, so that a sanitizer sees a read behind its end */

                ck_assert_ptr_nonnull(copy);
                memcpy(copy, bytes, cut);
                ck_assert_int_eq(subnet_unflatten(a, copy, cut, &t), -EBADMSG);
                free(copy);
        }
        longer = arena_new_array(a, char, n + 1);
        memcpy(longer, bytes, n);
        ck_assert_int_eq(subnet_unflatten(a, longer, n + 1, &t), -EBADMSG);
        ck_assert_ptr_null(t);
        arena_free(a);
}
END_TEST

START_TEST(indexes_out_of_range_are_refused)
{
        struct arena *a = arena_new();
        struct subnet *s = make_subnet(a), *t = NULL;
        const char *bytes;
        size_t n;

        s->ports[0].node = s->n_nodes;
        ck_assert_int_eq(subnet_flatten(a, s, &bytes, &n), 0);
        ck_assert_int_eq(subnet_unflatten(a, bytes, n, &t), -EBADMSG);
        s = make_subnet(a);
        s->ports[1].neighbour = s->n_ports;
        ck_assert_int_eq(subnet_flatten(a, s, &bytes, &n), 0);
        ck_assert_int_eq(subnet_unflatten(a, bytes, n, &t), -EBADMSG);
        s = make_subnet(a);
        s->by_name[0] = s->n_nodes;
        ck_assert_int_eq(subnet_flatten(a, s, &bytes, &n), 0);
        ck_assert_int_eq(subnet_unflatten(a, bytes, n, &t), -EBADMSG);
        s = make_subnet(a);
        s->self = s->n_ports;
        ck_assert_int_eq(subnet_flatten(a, s, &bytes, &n), 0);
        ck_assert_int_eq(subnet_unflatten(a, bytes, n, &t), -EBADMSG);
        arena_free(a);
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("flat");
        TCase *tc = tcase_create("flat");
        SRunner *runner = srunner_create(suite);
        int failed;

        tcase_add_test(tc, there_and_back);
        tcase_add_test(tc, cut_or_longer_is_refused);
        tcase_add_test(tc, indexes_out_of_range_are_refused);
        suite_add_tcase(suite, tc);
        srunner_run_all(runner, CK_NORMAL);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed > 0;
}
