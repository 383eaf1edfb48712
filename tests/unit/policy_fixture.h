/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Fixture of the tests of src/policy: arena and findings (findings_fixture.h), a small fabric, queries of findings. */

#include <check.h>
#include <errno.h>
#include <string.h>

#include "findings_fixture.h"
#include "policy/policy.h"

static inline const char *print_findings(void)
{
        const char *all = "";
        size_t i;

        for (i = 0; i < findings.n && i < 5; i++)
                all = arena_printf(arena, "%s%s", all, finding_format(arena, &findings.items[i]));
        return all;
}

/* The only finding of this code; fails if there is none or more than one. */
static inline const struct finding *only(enum finding_code code)
{
        const struct finding *found = NULL;
        size_t i;

        for (i = 0; i < findings.n; i++) {
                if (findings.items[i].code != code)
                        continue;
                ck_assert_msg(!found, "more than one %s:\n%s", finding_code_to_string(code), print_findings());
                found = &findings.items[i];
        }
        ck_assert_msg(found != NULL, "no %s in:\n%s", finding_code_to_string(code), print_findings());
        return found;
}

static inline void expect_text(const char *text, const char *part)
{
        ck_assert_msg(text && strstr(text, part), "'%s' is not in '%s'", part, text ? text : "(none)");
}

static inline struct policy *parse(const char *yaml)
{
        struct policy *policy = NULL;
        int r = policy_parse(arena, "p.yaml", yaml, strlen(yaml), &findings, &policy);

        ck_assert_msg(r == 0 && policy, "%d\n%s", r, print_findings());
        return policy;
}

static inline void refuse(const char *yaml)
{
        struct policy *policy = NULL;

        ck_assert_int_eq(policy_parse(arena, "p.yaml", yaml, strlen(yaml), &findings, &policy), -EBADMSG);
        ck_assert_ptr_null(policy);
        ck_assert(findings_refuse(&findings));
}

/* One partition "p" with these lines. */
static inline const char *with_members(const char *lines)
{
        return arena_printf(arena, "version: 1\npartitions:\n  p:\n    pkey: 0x0010\n    members:\n%s", lines);
}

/* ---- a fabric ------------------------------------------------------------------------------------------------- */

struct fixture_cable {
        uint64_t ca;
        const char *description;
        unsigned n_ports; /* port i is connected to port `number` + i - 1 of the switch */
        uint64_t sw;
        uint8_t number;
};

static inline void fixture_node(struct subnet_builder *b, uint64_t guid, enum node_type type, uint8_t n_ports,
                                const char *description)
{
        struct subnet_node node = { .guid = { guid }, .type = type, .num_ports = n_ports, .partition_cap = 128 };
        struct subnet_port port = { .number = 0, .guid = { guid } };

        ck_assert_int_eq(subnet_builder_add_node(b, &node, description, strlen(description)), 0);
        if (type == NODE_SWITCH)
                ck_assert_int_eq(subnet_builder_add_port(b, node.guid, &port), 0);
}

static inline void fixture_plug(struct subnet_builder *b, const struct fixture_cable *c)
{
        unsigned i;

        for (i = 1; i <= c->n_ports; i++) {
                struct subnet_port port = { .number = (uint8_t) i, .guid = { c->ca + i }, .state = PORT_STATE_ACTIVE };
                struct subnet_port external = { .number = (uint8_t) (c->number + i - 1), .guid = { c->sw } };

                ck_assert_int_eq(subnet_builder_add_port(b, (struct guid) { c->ca }, &port), 0);
                ck_assert_int_eq(subnet_builder_add_port(b, (struct guid) { c->sw }, &external), 0);
                ck_assert_int_eq(subnet_builder_add_link(b, (struct guid) { c->ca }, port.number,
                                                         (struct guid) { c->sw }, external.number), 0);
        }
}

/*
 * leaf01 (0x1000, 36 ports): 1 node0001 mlx5_0; 2, 3 node0002 mlx5_0 (two ports); 4 oss01 mlx5_0; 5 head1 mlx5_0 (SELF);
 *                            6 sm1 mlx5_0 (the master SM)
 * leaf02 (0x2000, 36 ports): 1 node0003 mlx5_0; 2 node0003 mlx5_1; 3 router rt1; 4 "twin mlx5_0"; 5 "twin mlx5_0";
 *                            6 an Aggregation Node
 * twins (0x3000, 0x4000): two switches with the name "spine", without hosts; 0x5000: leaf03, one host oss02
 */
static inline struct subnet *fixture_subnet(void)
{
        static const struct fixture_cable cables[] = {
                { 0x100, "node0001 mlx5_0", 1, 0x1000, 1 }, { 0x200, "node0002 mlx5_0", 2, 0x1000, 2 },
                { 0x300, "oss01 mlx5_0", 1, 0x1000, 4 },    { 0x400, "head1 mlx5_0", 1, 0x1000, 5 },
                { 0x500, "sm1 mlx5_0", 1, 0x1000, 6 },      { 0x600, "node0003 mlx5_0", 1, 0x2000, 1 },
                { 0x700, "node0003 mlx5_1", 1, 0x2000, 2 }, { 0x900, "twin mlx5_0", 1, 0x2000, 4 },
                { 0xa00, "twin mlx5_0", 1, 0x2000, 5 },     { 0xb00, "Mellanox Technologies Aggregation Node", 1, 0x2000, 6 },
                { 0xc00, "oss02 mlx5_0", 1, 0x5000, 7 },
        };
        static const struct fixture_cable router = { 0x800, "rt1 rt", 1, 0x2000, 3 };
        struct subnet_builder *b;
        struct subnet *subnet;
        size_t i;

        ck_assert_int_eq(subnet_builder_new(arena, &b), 0);
        fixture_node(b, 0x1000, NODE_SWITCH, 36, "leaf01 switch");
        fixture_node(b, 0x2000, NODE_SWITCH, 36, "MF0;leaf02:MQM8700/U1");
        fixture_node(b, 0x3000, NODE_SWITCH, 36, "spine switch");
        fixture_node(b, 0x4000, NODE_SWITCH, 36, "spine switch");
        fixture_node(b, 0x5000, NODE_SWITCH, 36, "leaf03 switch");
        fixture_node(b, 0x800, NODE_ROUTER, 2, router.description);
        fixture_plug(b, &router);
        for (i = 0; i < ELEMENTS(cables); i++) {
                fixture_node(b, cables[i].ca, NODE_CA, (uint8_t) cables[i].n_ports, cables[i].description);
                fixture_plug(b, &cables[i]);
        }
        ck_assert_int_eq(subnet_builder_finish(b, (struct guid) { 0x400 }, 1, (struct guid) { 0x500 }, 1, &subnet), 0);
        return subnet;
}

static inline uint32_t fixture_port(const struct subnet *s, uint64_t guid)
{
        uint32_t port = subnet_find_endport(s, (struct guid) { guid });

        ck_assert_uint_ne(port, SUBNET_NONE);
        return port;
}
