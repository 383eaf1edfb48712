/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Any bytes as partitions.yaml. Either they are refused with findings, or the normal form of the policy is a policy with the same
 * normal form and the same memberships in a small fabric.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../golden/policy_print.h"
#include "policy/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void require(bool condition)
{
        if (!condition)
                abort();
}

static void add_host(struct subnet_builder *b, uint64_t guid, const char *description, uint8_t switch_port)
{
        struct subnet_node node = { .guid = { guid }, .type = NODE_CA, .num_ports = 1, .partition_cap = 64 };
        struct subnet_port port = { .number = 1, .guid = { guid + 1 } };
        struct subnet_port external = { .number = switch_port, .guid = { 0x10 } };

        require(subnet_builder_add_node(b, &node, description, strlen(description)) == 0);
        require(subnet_builder_add_port(b, node.guid, &port) == 0);
        require(subnet_builder_add_port(b, (struct guid) { 0x10 }, &external) == 0);
        require(subnet_builder_add_link(b, node.guid, 1, (struct guid) { 0x10 }, switch_port) == 0);
}

static struct subnet *build_subnet(struct arena *a)
{
        struct subnet_node leaf = { .guid = { 0x10 }, .type = NODE_SWITCH, .num_ports = 36, .partition_cap = 8 };
        struct subnet_port zero = { .number = 0, .guid = { 0x10 } };
        struct subnet_builder *b;
        struct subnet *subnet;

        require(subnet_builder_new(a, &b) == 0);
        require(subnet_builder_add_node(b, &leaf, "leaf07", 6) == 0);
        require(subnet_builder_add_port(b, leaf.guid, &zero) == 0);
        add_host(b, 0x100, "node1 mlx5_0", 1);
        add_host(b, 0x200, "node2 mlx5_0", 2);
        add_host(b, 0x300, "node0007 mlx5_0", 3);
        add_host(b, 0x400, "oss01 mlx5_0", 4);
        add_host(b, 0x500, "head1 mlx5_0", 5);
        add_host(b, 0x600, "head1 mlx5_0", 6);
        require(subnet_builder_finish(b, (struct guid) { 0x500 }, 1, (struct guid) { 0x100 }, 1, &subnet) == 0);
        return subnet;
}

static struct policy *parse(struct arena *a, const char *bytes, size_t n)
{
        struct policy *policy = NULL;
        struct findings findings = { .arena = a };
        size_t i;
        int r;

        r = policy_parse(a, "partitions.yaml", bytes, n, &findings, &policy);
        require(r == 0 || r == -EBADMSG);
        require((r == 0) == (policy != NULL) && (r == 0) != findings_refuse(&findings));
        for (i = 0; i < findings.n; i++)
                require(finding_format(a, &findings.items[i]) != NULL);
        findings_done(&findings);
        return policy;
}

static struct memberships *resolve(struct arena *a, const struct policy *policy, const struct subnet *subnet)
{
        struct memberships *m = NULL;
        struct findings findings = { .arena = a };
        int r;

        r = policy_resolve(a, policy, subnet, &findings, &m);
        require(r == 0 || r == -EBADMSG);
        require((r == 0) == (m != NULL) && (r == 0) != findings_refuse(&findings));
        findings_done(&findings);
        return m;
}

/* The membership of a port in the partition with this base. */
static enum membership membership_of(const struct memberships *m, uint32_t port, uint16_t base)
{
        uint32_t i;

        for (i = m->first[port]; i < m->first[port + 1]; i++)
                if (m->policy->partitions[m->items[i].partition].base == base)
                        return m->items[i].membership;
        return MEMBERSHIP_NONE;
}

static void compare(const struct memberships *x, const struct memberships *y)
{
        uint32_t port, i;

        require((x == NULL) == (y == NULL));
        for (port = 0; x && port < x->subnet->n_ports; port++) {
                require(x->first[port + 1] - x->first[port] == y->first[port + 1] - y->first[port]);
                for (i = x->first[port]; i < x->first[port + 1]; i++)
                        require(membership_of(y, port, x->policy->partitions[x->items[i].partition].base) ==
                                x->items[i].membership);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        struct arena *a = arena_new();
        const struct policy *policy, *again;
        const struct subnet *subnet;
        const char *printed;

        require(a != NULL);
        policy = parse(a, (const char *) data, n);
        if (policy) {
                printed = policy_print(a, policy);
                require(printed != NULL);
                again = parse(a, printed, strlen(printed));
                require(again != NULL);
                require(strcmp(policy_print(a, again), printed) == 0);
                subnet = build_subnet(a);
                compare(resolve(a, policy, subnet), resolve(a, again, subnet));
        }
        arena_free(a);
        return 0;
}
