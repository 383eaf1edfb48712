/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fake_fabric.h"

#include <check.h>
#include <infiniband/mad.h>
#include <string.h>

#define LEAF_GUID UINT64_C(0x1000)
#define HOST_GUID UINT64_C(0x2000)
#define PORT_GUID UINT64_C(0x2100)

static void add_hosts(struct fake_fabric *f, struct subnet_builder *b, bool with_leaf)
{
        struct subnet_node leaf = {
                .guid = { LEAF_GUID },
                .type = NODE_SWITCH,
                .num_ports = 36,
                .partition_cap = FAKE_CAPACITY,
                .partition_enforcement_cap = with_leaf ? FAKE_CAPACITY : 0,
                .inbound_enforcement_cap = with_leaf,
                .outbound_enforcement_cap = with_leaf,
        };
        struct subnet_port port;
        char name[32];
        unsigned i;

        ck_assert_int_eq(subnet_builder_add_node(b, &leaf, "leaf", 4), 0);
        for (i = 0; i < f->n_hosts; i++) {
                struct subnet_node host = {
                        .guid = { HOST_GUID + i }, .type = NODE_CA, .num_ports = 1, .partition_cap = FAKE_CAPACITY,
                };
                int n = snprintf(name, sizeof(name), "node%u mlx5_0", i);

                ck_assert_int_eq(subnet_builder_add_node(b, &host, name, (size_t) n), 0);
                port = (struct subnet_port) {
                        .number = 1, .role = PORT_ENDPORT, .state = PORT_STATE_ACTIVE, .guid = { PORT_GUID + i },
                        .lid = { (uint16_t) (10 + i) }, .route = { .lid = { (uint16_t) (10 + i) } },
                };
                ck_assert_int_eq(subnet_builder_add_port(b, host.guid, &port), 0);
                port = (struct subnet_port) {
                        .number = (uint8_t) (i + 1), .role = PORT_SWITCH_EXTERNAL, .state = PORT_STATE_ACTIVE,
                        .guid = { LEAF_GUID }, .lid = { 1 }, .route = { .lid = { 1 } },
                        .enforce_inbound = with_leaf, .enforce_outbound = with_leaf,
                };
                ck_assert_int_eq(subnet_builder_add_port(b, leaf.guid, &port), 0);
                ck_assert_int_eq(subnet_builder_add_link(b, leaf.guid, (uint8_t) (i + 1), host.guid, 1), 0);
        }
}

void fake_fabric_init(struct fake_fabric *f, struct arena *a, unsigned n_hosts, bool with_leaf)
{
        struct subnet_builder *b;
        uint32_t i;

        memset(f, 0, sizeof(*f));
        f->arena = a;
        f->n_hosts = n_hosts;
        ck_assert_int_eq(subnet_builder_new(a, &b), 0);
        add_hosts(f, b, with_leaf);
        ck_assert_int_eq(subnet_builder_finish(b, (struct guid) { HOST_GUID }, 1, (struct guid) { 0 }, 0, &f->subnet), 0);
        ck_assert_uint_eq(f->subnet->n_ports, 2 * n_hosts);
        for (i = 0; i < f->subnet->n_ports; i++) {
                const struct subnet_port *p = &f->subnet->ports[i];

                if (p->role == PORT_ENDPORT)
                        f->host[f->subnet->nodes[p->node].guid.v - HOST_GUID] = i;
                else
                        f->leaf[p->number - 1] = i;
                f->enforce_inbound[i] = p->enforce_inbound;
                f->enforce_outbound[i] = p->enforce_outbound;
        }
        f->owns = (struct base_range) { 1, 0x7fff };
        f->partitions[0] = (struct policy_partition) { .name = "default", .base = P_KEY_DEFAULT_BASE };
        for (i = 1; i < ELEMENTS(f->partitions); i++)
                f->partitions[i] = (struct policy_partition) { .name = "p", .base = FAKE_BASE(i) };
        f->policy = (struct policy) {
                .file = "test", .owns = &f->owns, .n_owns = 1, .partitions = f->partitions,
                .n_partitions = ELEMENTS(f->partitions),
        };
}

static void put_entry(struct fake_fabric *f, uint32_t port, struct p_key key)
{
        unsigned i;

        for (i = 0; i < FAKE_CAPACITY; i++)
                if (!p_key_is_used(f->tables[port][i])) {
                        f->tables[port][i] = key;
                        return;
                }
        ck_abort_msg("table full");
}

void fake_fabric_put(struct fake_fabric *f, uint32_t port, uint16_t base, enum membership membership)
{
        if (membership_has_limited(membership))
                put_entry(f, port, p_key_make(base, false));
        if (membership_has_full(membership))
                put_entry(f, port, p_key_make(base, true));
}

static uint32_t want(struct p_key *list, uint32_t n, uint16_t base, enum membership m)
{
        if (membership_has_limited(m))
                list[n++] = p_key_make(base, false);
        if (membership_has_full(m))
                list[n++] = p_key_make(base, true);
        return n;
}

void fake_fabric_desire(struct fake_fabric *f, struct arena *a, enum membership membership[][4], unsigned n_partitions,
                        struct desired *ret)
{
        struct p_key *list;
        uint32_t n;
        unsigned h, p;

        *ret = (struct desired) {
                .policy = &f->policy,
                .subnet = f->subnet,
                .ports = arena_new_array(a, struct desired_port, f->subnet->n_ports),
                .index0_base = P_KEY_DEFAULT_BASE,
        };
        for (h = 0; h < f->n_hosts; h++) {
                list = arena_new_array(a, struct p_key, 16);
                n = 0;
                for (p = 1; p < n_partitions; p++)
                        n = want(list, n, f->partitions[p].base, membership[h][p]);
                n = want(list, n, P_KEY_DEFAULT_BASE, membership[h][0]);
                ret->ports[f->host[h]] = (struct desired_port) { list, n };
                if (!subnet_port_can_enforce(f->subnet, &f->subnet->ports[f->leaf[h]]))
                        continue;
                list = arena_new_array(a, struct p_key, 16);
                n = 0;
                for (p = 1; p < n_partitions; p++)
                        n = want(list, n, f->partitions[p].base,
                                 membership[h][p] == MEMBERSHIP_BOTH ? MEMBERSHIP_FULL : membership[h][p]);
                n = want(list, n, P_KEY_DEFAULT_BASE,
                         membership[h][0] == MEMBERSHIP_BOTH ? MEMBERSHIP_FULL : membership[h][0]);
                ret->ports[f->leaf[h]] = (struct desired_port) { list, n };
        }
}

struct observed *fake_fabric_observe(struct fake_fabric *f, struct arena *a)
{
        struct observed *o;
        uint32_t i;

        if (observed_new(a, f->subnet, &o) < 0) /* ck_assert writes to a pipe each time it is passed */
                ck_abort_msg("out of memory");
        for (i = 0; i < f->subnet->n_ports; i++) {
                if (!o->tables[i].entries)
                        continue;
                memcpy(o->tables[i].entries, f->tables[i], o->tables[i].capacity * sizeof(struct p_key));
                o->tables[i].source = TABLE_READ;
                o->tables[i].enforce_inbound = f->enforce_inbound[i];
                o->tables[i].enforce_outbound = f->enforce_outbound[i];
        }
        return o;
}

static int level(const struct p_key *table, uint16_t base)
{
        uint16_t limited = base, full = base | P_KEY_FULL_BIT;
        int l = 0;
        unsigned i;

        for (i = 0; i < FAKE_CAPACITY; i++) {
                if (table[i].v == full)
                        return 2;
                if (table[i].v == limited)
                        l = 1;
        }
        return l;
}

int fake_fabric_level(const struct fake_fabric *f, unsigned x, uint16_t base, bool strict)
{
        uint32_t leaf = f->leaf[x];
        int l = level(f->tables[f->host[x]], base), at_leaf;

        if (l == 0 || (!f->enforce_inbound[leaf] && !f->enforce_outbound[leaf]))
                return l;
        at_leaf = level(f->tables[leaf], base);
        if (strict)
                return MIN(l, at_leaf);
        return at_leaf ? l : 0;
}

uint32_t fake_fabric_port_of(const struct fake_fabric *f, const struct mad_request *request)
{
        uint16_t lid = request->route.lid.v;
        unsigned n;

        if (lid >= 10 && lid < 10 + f->n_hosts)
                return f->host[lid - 10];
        n = request->attribute == SMP_ATTR_PORT_INFO ? request->modifier : request->modifier >> 16;
        if (lid == 1 && n == 0 && request->attribute != SMP_ATTR_P_KEY_TABLE && request->method == MAD_GET)
                return f->leaf[0]; /* of port 0, which has no table here */
        return lid == 1 && n >= 1 && n <= f->n_hosts ? f->leaf[n - 1] : SUBNET_NONE;
}

bool fake_fabric_answer(struct fake_fabric *f, const struct mad_request *request, struct mad_result *ret)
{
        uint32_t port = fake_fabric_port_of(f, request);
        struct p_key block[P_KEY_BLOCK_ENTRIES];
        unsigned first = (request->modifier & 0xffff) * P_KEY_BLOCK_ENTRIES;
        struct port_info pi;

        if (port == SUBNET_NONE)
                return false;
        *ret = (struct mad_result) { .cookie = request->cookie, .outcome = MAD_ANSWERED };
        if (request->method == MAD_SET)
                f->sets++;
        else
                f->gets++;
        if (request->attribute == SMP_ATTR_NODE_INFO) {
                const struct subnet_node *node = &f->subnet->nodes[f->subnet->ports[port].node];

                f->gets--;
                f->asked_who++;
                mad_set_field(ret->data, 0, IB_NODE_TYPE_F, node->type);
                mad_set_field(ret->data, 0, IB_NODE_NPORTS_F, node->num_ports);
                mad_set_field64(ret->data, 0, IB_NODE_GUID_F, node->guid.v);
                mad_set_field(ret->data, 0, IB_NODE_LOCAL_PORT_F, 1);
                return true;
        }
        if (request->attribute == SMP_ATTR_PORT_INFO) {
                if (request->method == MAD_SET) {
                        port_info_decode(request->data, &pi);
                        f->enforce_inbound[port] = pi.enforce_inbound;
                        f->enforce_outbound[port] = pi.enforce_outbound;
                }
                port_info_set_enforcement(ret->data, f->enforce_inbound[port], f->enforce_outbound[port]);
                mad_set_field(ret->data, 0, IB_PORT_MKEY_VIOL_F, f->m_key_violations);
                return true;
        }
        if (first >= FAKE_CAPACITY)
                ck_abort_msg("no block %u", request->modifier & 0xffff);
        if (request->method == MAD_SET) {
                p_key_block_decode(request->data, block);
                memcpy(&f->tables[port][first], block, sizeof(block));
        }
        memcpy(block, &f->tables[port][first], sizeof(block));
        p_key_block_encode(block, ret->data);
        return true;
}

/* --- the wire ---------------------------------------------------------------------------------------------------------- */

void fake_wire_init(struct fake_wire *w, const struct observed *observed, const struct desired *desired,
                    const struct policy *policy)
{
        *w = (struct fake_wire) { .knowledge = knowledge_new(), .gate = gate_new() };
        ck_assert_ptr_nonnull(w->knowledge);
        ck_assert_ptr_nonnull(w->gate);
        ck_assert_int_eq(knowledge_see_subnet(w->knowledge, observed->subnet, 0, 0, 0), 0);
        ck_assert_int_eq(knowledge_see_tables(w->knowledge, observed, 0), 0);
        for (uint32_t i = 0; i < observed->subnet->n_ports; i++)
                if (observed->subnet->ports[i].role == PORT_SWITCH_EXTERNAL && observed->tables[i].entries)
                        knowledge_see_filter(w->knowledge, knowledge_find_port(w->knowledge, observed->subnet, i),
                                             observed->tables[i].enforce_inbound, observed->tables[i].enforce_outbound);
        ck_assert_int_eq(knowledge_set_policy(w->knowledge, desired), 0);
        gate_open(w->gate, w->knowledge, policy);
}

void fake_wire_done(struct fake_wire *w)
{
        w->gate = gate_free(w->gate);
        w->knowledge = knowledge_free(w->knowledge);
}

bool fake_wire_send(struct fake_wire *w, const struct mad_request *request)
{
        struct mad_frame frame;

        mad_request_encode(request, 1, &frame);
        return gate_admit(w->gate, &frame);
}

void fake_wire_end(struct fake_wire *w, const struct mad_request *request, struct mad_result *result)
{
        result->cookie = request->cookie;
        result->mgmt_class = request->mgmt_class;
        result->attribute = request->attribute;
        result->modifier = request->modifier;
        result->route = request->route;
        gate_see(w->gate, result);
}
