/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "knowledge_fixture.h"

#include <check.h>
#include <limits.h>
#include <string.h>

struct arena *arena;
struct knowledge *k;

void knowledge_setup(void)
{
        arena = arena_new();
        k = knowledge_new();
        ck_assert_ptr_nonnull(arena);
        ck_assert_ptr_nonnull(k);
}

void knowledge_teardown(void)
{
        k = knowledge_free(k);
        arena_free(arena);
}

uint64_t host_guid(unsigned host)
{
        return 0x100u * (host + 1);
}

void add_leaf(struct subnet_builder *b, const struct subnet_node *leaf)
{
        ck_assert_int_eq(subnet_builder_add_node(b, leaf, "leaf", 4), 0);
        ck_assert_int_eq(subnet_builder_add_port(b, leaf->guid, &(struct subnet_port) { .guid = leaf->guid }), 0);
}

static void add_switch(struct subnet_builder *b, const struct scene *s)
{
        struct subnet_node node = {
                .guid = G(SWITCH), .type = NODE_SWITCH, .partition_cap = CAPACITY, .partition_enforcement_cap = CAPACITY,
                .inbound_enforcement_cap = true, .outbound_enforcement_cap = true, .incomplete = s->incomplete,
        };

        node.silent_ports[0] = (uint64_t) (s->silent & ~s->there) << 1;
        add_leaf(b, &node);
}

static void add_host(struct subnet_builder *b, const struct scene *s, unsigned host)
{
        struct subnet_node node = { .guid = G(host_guid(host)), .type = NODE_CA, .partition_cap = CAPACITY };
        struct subnet_port port = { .number = 1, .guid = G(host_guid(host) + 1) };
        struct subnet_port leaf = {
                .number = (uint8_t) (s->moved && host == 1 ? 1 : host + 1), .enforce_inbound = s->filters >> host & 1,
                .enforce_outbound = s->outbound >> host & 1,
        };

        ck_assert_int_eq(subnet_builder_add_node(b, &node, "host", 4), 0);
        ck_assert_int_eq(subnet_builder_add_port(b, node.guid, &port), 0);
        ck_assert_int_eq(subnet_builder_add_port(b, G(SWITCH), &leaf), 0);
        ck_assert_int_eq(subnet_builder_add_link(b, node.guid, 1, G(SWITCH), leaf.number), 0);
}

struct subnet *make_subnet(const struct scene *s)
{
        struct subnet_builder *b;
        struct subnet *subnet;

        ck_assert_int_eq(subnet_builder_new(arena, &b), 0);
        add_switch(b, s);
        for (unsigned i = 0; i < HOSTS; i++)
                if (s->there >> i & 1)
                        add_host(b, s, i);
        ck_assert_int_eq(subnet_builder_finish(b, G(0), 0, G(0), 0, &subnet), 0);
        return subnet;
}

struct guid add_leaf_host(struct subnet_builder *b, struct guid leaf, unsigned host)
{
        struct subnet_node node = { .guid = G(host_guid(host)), .type = NODE_CA, .partition_cap = CAPACITY };

        ck_assert_int_eq(subnet_builder_add_node(b, &node, "host", 4), 0);
        ck_assert_int_eq(subnet_builder_add_port(b, node.guid, &(struct subnet_port) { .guid = node.guid, .number = 1 }), 0);
        ck_assert_int_eq(subnet_builder_add_port(b, leaf, &(struct subnet_port) { .number = 1 }), 0);
        ck_assert_int_eq(subnet_builder_add_link(b, node.guid, 1, leaf, 1), 0);
        return node.guid;
}

struct subnet *make_chain_of(unsigned n, unsigned hosts)
{
        static const struct subnet_place links[][3] = {
                { { { 0x20 }, 3 }, { { 0x20 }, 5 } }, { { { 0x10 }, 2 }, { { 0x10 }, 4 }, { { 0x900 }, 7 } }, { { { 0x20 }, 6 } },
        };
        static const uint64_t guids[] = { 0x10, 0x20, 0x900 };
        static const unsigned n_to_all[] = { 2, 3, 1 }, n_to_those_before[] = { 0, 2, 1 };
        static const uint64_t to_the_next[] = { 1u << 2 | 1u << 4, 1u << 6, 0 };
        struct subnet_builder *b;
        struct subnet *s;

        ck_assert_int_eq(subnet_builder_new(arena, &b), 0);
        for (unsigned i = 0; i < n; i++) {
                bool is_last = i + 1 == n;
                struct subnet_node leaf = { .guid = G(guids[i]), .type = NODE_SWITCH, .partition_cap = CAPACITY };

                leaf.n_links = (uint16_t) (is_last ? n_to_those_before[i] : n_to_all[i]);
                leaf.links = arena_new_array(arena, struct subnet_place, leaf.n_links);
                memcpy(leaf.links, links[i], leaf.n_links * sizeof(*leaf.links));
                *(is_last ? leaf.silent_ports : leaf.switch_ports) = to_the_next[i];
                add_leaf(b, &leaf);
                if (hosts >> i & 1)
                        (void) add_leaf_host(b, leaf.guid, i);
        }
        ck_assert_int_eq(subnet_builder_finish(b, G(0), 0, G(0), 0, &s), 0);
        return s;
}

struct subnet *make_chain(unsigned n)
{
        return make_chain_of(n, UINT_MAX);
}

void see_chain(struct subnet *s, usec_t now)
{
        ck_assert_int_eq(knowledge_see_subnet(k, s, now, now / USEC_PER_SEC, HOLD), 0);
}

uint32_t host_record(unsigned host)
{
        return knowledge_find(k, (struct knowledge_name) { G(host_guid(host)), 1, KNOWLEDGE_ENDPORT });
}

uint32_t leaf_record(unsigned host)
{
        return knowledge_find(k, (struct knowledge_name) { G(SWITCH), (uint8_t) (host + 1), KNOWLEDGE_LEAF });
}

uint32_t place_record(unsigned host)
{
        return knowledge_find(k, (struct knowledge_name) { G(SWITCH), (uint8_t) (host + 1), KNOWLEDGE_PLACE });
}

uint32_t port_at(const struct subnet *s, uint64_t node, uint8_t number)
{
        uint32_t n = subnet_find_node(s, G(node));

        return n == SUBNET_NONE ? NO_PORT : subnet_find_port(s, n, number);
}

struct subnet *discover(unsigned there, unsigned silent, unsigned filters, usec_t now)
{
        struct subnet *s = make_subnet(&(struct scene) { there, silent, filters, filters, false });

        ck_assert_int_eq(knowledge_see_subnet(k, s, now, now / USEC_PER_SEC, HOLD), 0);
        return s;
}

void read_table(struct subnet *s, uint32_t port, uint16_t key)
{
        struct observed *o;

        ck_assert_int_eq(observed_new(arena, s, &o), 0);
        o->tables[port].entries[0].v = key;
        o->tables[port].source = TABLE_READ;
        ck_assert_int_eq(knowledge_see_tables(k, o, 1000), 0);
}

void read_host(struct subnet *s, unsigned host, uint16_t key)
{
        read_table(s, port_at(s, host_guid(host), 1), key);
}

void read_leaf(struct subnet *s, unsigned host, uint16_t key)
{
        read_table(s, port_at(s, SWITCH, (uint8_t) (host + 1)), key);
}

void want(struct subnet *s, unsigned full)
{
        struct desired *d = arena_new_object(arena, struct desired);
        struct p_key *key = arena_new_object(arena, struct p_key);

        key->v = 0x8001;
        *d = (struct desired) { .subnet = s, .ports = arena_new_array(arena, struct desired_port, s->n_ports) };
        for (unsigned i = 0; i < HOSTS; i++) {
                uint32_t port = port_at(s, host_guid(i), 1);

                if (port != NO_PORT && full >> i & 1)
                        d->ports[port] = (struct desired_port) { key, 1 };
        }
        ck_assert_int_eq(knowledge_set_policy(k, d), 0);
}

void block_of(uint16_t key, struct p_key ret[P_KEY_BLOCK_ENTRIES])
{
        memset(ret, 0, P_KEY_BLOCK_ENTRIES * sizeof(*ret));
        ret[0].v = key;
}

void announce(uint32_t record, uint16_t number, const struct p_key block[P_KEY_BLOCK_ENTRIES])
{
        ck_assert_int_eq(knowledge_announce_block(k, record, number, block), 0);
        knowledge_stored(k);
}

void send_announced(uint32_t record, uint16_t number, const struct p_key block[P_KEY_BLOCK_ENTRIES])
{
        announce(record, number, block);
        ck_assert(knowledge_send_block(k, record, number, block));
        knowledge_withdraw(k);
}
