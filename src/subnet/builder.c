/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "subnet/subnet.h"
#include "util/hash_index.h"
#include "util/vector.h"

/*
 * Until finish, ports refer to their node by the order in which nodes were added. An index finds a node by its GUID; a set of 256
 * bits has the ports that a node has already.
 */

static_assert(HASH_INDEX_NONE == SUBNET_NONE, "HASH_INDEX_FIND() is SUBNET_NONE if there is no such node");

struct builder_node {
        struct subnet_node node;
        uint64_t has_port[4];
};

struct builder_link {
        struct guid node[2];
        uint8_t number[2];
};

struct subnet_builder {
        struct arena *arena;
        struct builder_node *nodes;
        struct subnet_port *ports;
        struct builder_link *links;
        uint32_t n_nodes, n_ports, n_links;
        uint32_t size_nodes, size_ports, size_links;
        struct hash_index by_guid; /* of nodes */
};

/* The node with this GUID, or SUBNET_NONE. */
static uint32_t find_node(const struct subnet_builder *b, struct guid guid)
{
        return HASH_INDEX_FIND(i, &b->by_guid, hash_mix(0, guid.v), b->nodes[i].node.guid.v == guid.v);
}

int subnet_builder_reserve(struct subnet_builder *b, uint32_t n_nodes, uint32_t n_ports, uint32_t n_links)
{
        return VECTOR_RESERVE(b->arena, b->nodes, b->n_nodes, b->size_nodes, n_nodes) ?:
               VECTOR_RESERVE(b->arena, b->ports, b->n_ports, b->size_ports, n_ports) ?:
               VECTOR_RESERVE(b->arena, b->links, b->n_links, b->size_links, n_links) ?: hash_index_reserve(&b->by_guid, n_nodes);
}

int subnet_builder_new(struct arena *a, struct subnet_builder **ret)
{
        struct subnet_builder *b = arena_new_object(a, struct subnet_builder);

        if (!b)
                return -ENOMEM;
        b->arena = a;
        b->by_guid.arena = a;
        *ret = b;
        return 0;
}

/* description: escaped, in the arena; NULL: out of memory. */
static int add_node(struct subnet_builder *b, const struct subnet_node *node, const char *description)
{
        struct builder_node new = { .node = *node };

        if ((unsigned) node->type > NODE_ROUTER)
                return -EINVAL;
        if (find_node(b, node->guid) != SUBNET_NONE)
                return -EEXIST;
        new.node.description = description;
        if (!description || node_description_split(b->arena, description, &new.node.name, &new.node.device) < 0)
                return -ENOMEM;
        if (node->type == NODE_SWITCH)
                new.node.device = ""; /* the second word of a switch is the name of its vendor */

        if (hash_index_reserve(&b->by_guid, b->n_nodes + 1) < 0 ||
            VECTOR_ADD(b->arena, b->nodes, b->n_nodes, b->size_nodes, new) < 0)
                return -ENOMEM;
        hash_index_add(&b->by_guid, b->n_nodes - 1, hash_mix(0, node->guid.v));
        return 0;
}

int subnet_builder_add_node(struct subnet_builder *b, const struct subnet_node *node, const char *raw_description, size_t raw_size)
{
        return add_node(b, node, node_description_escape(b->arena, raw_description, raw_size));
}

int subnet_builder_add_described(struct subnet_builder *b, const struct subnet_node *node, const char *description)
{
        return add_node(b, node, arena_strdup(b->arena, description));
}

int subnet_builder_add_port(struct subnet_builder *b, struct guid node_guid, const struct subnet_port *port)
{
        uint32_t node = find_node(b, node_guid);
        uint64_t bit = UINT64_C(1) << (port->number % 64);
        struct builder_node *n;
        struct subnet_port *p;

        if (node == SUBNET_NONE)
                return -ENOENT;
        n = &b->nodes[node];
        if (port->number == 0 && n->node.type != NODE_SWITCH)
                return -EINVAL;
        if (n->has_port[port->number / 64] & bit)
                return -EEXIST;
        if (VECTOR_ADD(b->arena, b->ports, b->n_ports, b->size_ports, *port) < 0)
                return -ENOMEM;
        n->has_port[port->number / 64] |= bit;
        p = &b->ports[b->n_ports - 1];
        p->node = node;
        p->peer = SUBNET_NONE;
        p->role = n->node.type == NODE_SWITCH && port->number > 0 ? PORT_SWITCH_EXTERNAL : PORT_ENDPORT;
        return 0;
}

int subnet_builder_add_link(struct subnet_builder *b, struct guid node_a, uint8_t number_a, struct guid node_b, uint8_t number_b)
{
        return VECTOR_ADD(b->arena, b->links, b->n_links, b->size_links,
                          (struct builder_link) { { node_a, node_b }, { number_a, number_b } });
}

DEFINE_COMPARE(compare_nodes, struct subnet_node, ORDER(a->guid.v, b->guid.v))

DEFINE_COMPARE(compare_ports, struct subnet_port, ORDER(a->node, b->node) ?: ORDER(a->number, b->number))

static int compare_names(const void *a, const void *b, void *userdata)
{
        const struct subnet *s = userdata;
        const uint32_t *i = a, *k = b;
        const struct subnet_node *x = &s->nodes[*i], *y = &s->nodes[*k];
        bool are_switches = x->type == NODE_SWITCH;
        int r = strcmp(x->name, y->name) ?: ORDER(are_switches, y->type == NODE_SWITCH);

        r = r ?: (are_switches ? strcmp(subnet_node_board(x), subnet_node_board(y)) : strcmp(x->device, y->device));
        return r ?: ORDER(x->type, y->type) ?: ORDER(*i, *k);
}

static int compare_port_guids(const void *a, const void *b, void *userdata)
{
        const struct subnet *s = userdata;
        const uint32_t *x = a, *y = b;

        return ORDER(s->ports[*x].guid.v, s->ports[*y].guid.v) ?: ORDER(*x, *y);
}

static int sort_nodes(struct subnet_builder *b, struct subnet *s)
{
        s->nodes = arena_new_array(b->arena, struct subnet_node, b->n_nodes);
        if (!s->nodes)
                return -ENOMEM;
        for (uint32_t i = 0; i < b->n_nodes; i++)
                s->nodes[i] = b->nodes[i].node;
        s->n_nodes = b->n_nodes;
        qsort(s->nodes, s->n_nodes, sizeof(*s->nodes), compare_nodes);
        return 0;
}

static void sort_ports(struct subnet_builder *b, struct subnet *s)
{
        for (uint32_t i = 0; i < b->n_ports; i++)
                b->ports[i].node = subnet_find_node(s, b->nodes[b->ports[i].node].node.guid);
        s->ports = b->ports;
        s->n_ports = b->n_ports;
        SORT(s->ports, s->n_ports, compare_ports);
}

static uint32_t find_cable_end(const struct subnet *s, struct guid node_guid, uint8_t number)
{
        return number == 0 ? SUBNET_NONE : subnet_find_port_of(s, node_guid, number);
}

/* A port has one cable: of links that contradict each other the first counts. */
static void resolve_links(const struct subnet_builder *b, struct subnet *s)
{
        for (uint32_t i = 0; i < b->n_links; i++) {
                const struct builder_link *l = &b->links[i];
                uint32_t x = find_cable_end(s, l->node[0], l->number[0]);
                uint32_t y = find_cable_end(s, l->node[1], l->number[1]);

                if (x == SUBNET_NONE || y == SUBNET_NONE || x == y || s->ports[x].peer != SUBNET_NONE ||
                    s->ports[y].peer != SUBNET_NONE)
                        continue;
                s->ports[x].peer = y;
                s->ports[y].peer = x;
        }
}

static bool port_matters(const struct subnet *s, const struct subnet_port *p)
{
        return p->role == PORT_ENDPORT || (p->peer != SUBNET_NONE && s->ports[p->peer].role == PORT_ENDPORT);
}

static int drop_other_ports(struct arena *a, struct subnet *s)
{
        uint32_t *moved = arena_new_array(a, uint32_t, s->n_ports), n = 0;

        if (!moved)
                return -ENOMEM;
        for (uint32_t i = 0; i < s->n_ports; i++)
                moved[i] = port_matters(s, &s->ports[i]) ? n++ : SUBNET_NONE;
        for (uint32_t i = 0; i < s->n_ports; i++) {
                struct subnet_port *p = &s->ports[i];

                if (moved[i] == SUBNET_NONE)
                        continue;
                if (p->peer != SUBNET_NONE)
                        p->peer = moved[p->peer];
                s->ports[moved[i]] = *p;
        }
        s->n_ports = n;
        return 0;
}

/* Numbers the SMAs, and copies to the external ports of a switch what only its port 0 has. */
static void finish_ports(struct subnet *s)
{
        const struct subnet_port *port0 = NULL;
        uint32_t destination = 0;

        for (uint32_t i = 0; i < s->n_ports; i++) {
                struct subnet_port *p = &s->ports[i];
                bool same_node = i > 0 && p[-1].node == p->node;

                if (!same_node)
                        port0 = NULL;
                if (i > 0 && (!same_node || p->role == PORT_ENDPORT))
                        destination++;
                p->destination = destination;

                if (p->number == 0)
                        port0 = p;
                if (p->role != PORT_SWITCH_EXTERNAL || !port0)
                        continue;
                p->guid = port0->guid;
                if (p->lid.v == 0) {
                        p->lid = port0->lid;
                        p->lmc = port0->lmc;
                }
                if (p->route.lid.v == 0 && p->route.hops == 0)
                        p->route = port0->route;
        }
}

static int index_names(struct arena *a, struct subnet *s)
{
        s->by_name = arena_new_array(a, uint32_t, s->n_nodes);
        s->n_by_name = 0;
        if (!s->by_name)
                return -ENOMEM;
        for (uint32_t i = 0; i < s->n_nodes; i++)
                if (s->nodes[i].name[0])
                        s->by_name[s->n_by_name++] = i;
        if (s->n_by_name > 0)
                qsort_r(s->by_name, s->n_by_name, sizeof(*s->by_name), compare_names, s);
        return 0;
}

static int index_port_guids(struct arena *a, struct subnet *s)
{
        s->by_port_guid = arena_new_array(a, uint32_t, s->n_ports);
        if (!s->by_port_guid)
                return -ENOMEM;
        for (uint32_t i = 0; i < s->n_ports; i++)
                if (s->ports[i].role == PORT_ENDPORT)
                        s->by_port_guid[s->n_by_port_guid++] = i;
        if (s->n_by_port_guid > 0)
                qsort_r(s->by_port_guid, s->n_by_port_guid, sizeof(*s->by_port_guid), compare_port_guids, s);
        return 0;
}

static uint32_t find_named_endport(const struct subnet *s, struct guid node_guid, uint8_t number)
{
        uint32_t port = node_guid.v ? subnet_find_port_of(s, node_guid, number) : SUBNET_NONE;

        return port != SUBNET_NONE && s->ports[port].role == PORT_ENDPORT ? port : SUBNET_NONE;
}

int subnet_builder_finish(struct subnet_builder *b, struct guid self_node, uint8_t self_number, struct guid sm_node,
                          uint8_t sm_number, struct subnet **ret)
{
        struct subnet *s = arena_new_object(b->arena, struct subnet);

        if (!s || sort_nodes(b, s) < 0)
                return -ENOMEM;
        sort_ports(b, s);
        resolve_links(b, s);
        if (drop_other_ports(b->arena, s) < 0)
                return -ENOMEM;
        finish_ports(s);
        if (index_names(b->arena, s) < 0 || index_port_guids(b->arena, s) < 0)
                return -ENOMEM;
        s->self = find_named_endport(s, self_node, self_number);
        s->sm = find_named_endport(s, sm_node, sm_number);
        *ret = s;
        return 0;
}

int subnet_with_names(struct arena *a, const struct subnet *s, const struct subnet_name *names, struct subnet **ret)
{
        struct subnet *copy = arena_new_object(a, struct subnet);

        if (!copy)
                return -ENOMEM;
        *copy = *s;
        copy->nodes = arena_new_array(a, struct subnet_node, s->n_nodes);
        if (!copy->nodes)
                return -ENOMEM;
        for (uint32_t i = 0; i < s->n_nodes; i++) {
                struct subnet_node *node = &copy->nodes[i];

                *node = s->nodes[i];
                if (!names[i].description)
                        continue;
                node->description = names[i].description;
                node->name = names[i].name;
                node->device = names[i].device;
        }
        *ret = copy;
        return index_names(a, copy);
}

/* --- parts ---------------------------------------------------------------------------------------------------------- */

/* The index in the part of the port with this index; SUBNET_NONE: it is not in the part. */
static uint32_t find_in_part(const uint32_t *ports, uint32_t n, uint32_t port)
{
        uint32_t i = port == SUBNET_NONE ? n : LOWER_BOUND(item, ports, n, *item < port);

        return i < n && ports[i] == port ? i : SUBNET_NONE;
}

/* Ports are in the order of their nodes. */
static void copy_ports(const struct subnet *s, const uint32_t *ports, uint32_t n, struct subnet *part)
{
        for (uint32_t i = 0; i < n; i++) {
                struct subnet_port *p = &part->ports[i];

                *p = s->ports[ports[i]];
                if (i == 0 || p->node != s->ports[ports[i - 1]].node)
                        part->nodes[part->n_nodes++] = s->nodes[p->node];
                p->destination = i == 0 ? 0 : p[-1].destination + (p->destination != s->ports[ports[i - 1]].destination);
                p->node = part->n_nodes - 1;
                p->peer = find_in_part(ports, n, p->peer);
        }
        part->n_ports = n;
}

int subnet_part(struct arena *a, const struct subnet *s, const uint32_t *ports, uint32_t n, struct subnet **ret)
{
        struct subnet *part = arena_new_object(a, struct subnet);

        if (!part)
                return -ENOMEM;
        *part = (struct subnet) {
                .nodes = arena_new_array(a, struct subnet_node, n), .ports = arena_new_array(a, struct subnet_port, n),
                .self = find_in_part(ports, n, s->self), .sm = find_in_part(ports, n, s->sm), .sm_lid = s->sm_lid,
        };
        if (!part->nodes || !part->ports)
                return -ENOMEM;
        copy_ports(s, ports, n, part);
        *ret = part;
        return index_port_guids(a, part);
}
