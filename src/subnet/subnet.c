/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <assert.h>
#include <string.h>

#include "subnet/subnet.h"

uint16_t subnet_port_capacity(const struct subnet *s, const struct subnet_port *p)
{
        const struct subnet_node *n = subnet_port_node(s, p);

        return p->role == PORT_ENDPORT ? n->partition_cap : n->partition_enforcement_cap;
}

bool subnet_port_can_enforce(const struct subnet *s, const struct subnet_port *p)
{
        const struct subnet_node *n = subnet_port_node(s, p);

        return p->role == PORT_SWITCH_EXTERNAL && n->partition_enforcement_cap > 0 &&
               (n->inbound_enforcement_cap || n->outbound_enforcement_cap);
}

bool subnet_port_is_managed(const struct subnet *s, const struct subnet_port *p)
{
        return p->role == PORT_ENDPORT || subnet_port_can_enforce(s, p);
}

const struct subnet_node *subnet_port_incomplete_node(const struct subnet *s, const struct subnet_port *p)
{
        const struct subnet_node *own = subnet_port_node(s, p);
        const struct subnet_node *other = p->peer == SUBNET_NONE ? NULL : subnet_port_node(s, &s->ports[p->peer]);

        if (own->incomplete)
                return own;
        return other && other->incomplete ? other : NULL;
}

bool subnet_port_is_incomplete(const struct subnet *s, const struct subnet_port *p)
{
        return subnet_port_incomplete_node(s, p) != NULL;
}

bool subnet_port_is_behind_unknown(const struct subnet *s, const struct subnet_port *p)
{
        return p->role == PORT_ENDPORT && p->peer == SUBNET_NONE && subnet_port_node(s, p)->type != NODE_SWITCH;
}

bool subnet_port_has_sma(const struct subnet *s, const struct subnet_port *p, const struct node_info *info)
{
        const struct subnet_node *node = subnet_port_node(s, p);

        return info->node_guid.v == node->guid.v && (node->type == NODE_SWITCH || info->local_port == p->number);
}

uint32_t subnet_find_node(const struct subnet *s, struct guid guid)
{
        const struct subnet_node *found = FIND_SORTED(node, s->nodes, s->n_nodes, ORDER(node->guid.v, guid.v));

        return found ? (uint32_t) (found - s->nodes) : SUBNET_NONE;
}

uint32_t subnet_find_endport(const struct subnet *s, struct guid port_guid)
{
        uint32_t i = LOWER_BOUND(port, s->by_port_guid, s->n_by_port_guid, s->ports[*port].guid.v < port_guid.v);

        if (i == s->n_by_port_guid || s->ports[s->by_port_guid[i]].guid.v != port_guid.v)
                return SUBNET_NONE;
        return s->by_port_guid[i];
}

bool subnet_lacks_endport(const struct subnet *s, const struct subnet_port *p)
{
        return p->role == PORT_ENDPORT && p->guid.v != 0 && subnet_find_endport(s, p->guid) == SUBNET_NONE;
}

uint32_t subnet_find_port(const struct subnet *s, uint32_t node, uint8_t number)
{
        uint32_t i = LOWER_BOUND(p, s->ports, s->n_ports, p->node < node || (p->node == node && p->number < number));

        assert(node < s->n_nodes);
        return i < s->n_ports && s->ports[i].node == node && s->ports[i].number == number ? i : SUBNET_NONE;
}

uint32_t subnet_find_port_of(const struct subnet *s, struct guid node_guid, uint8_t number)
{
        uint32_t node = subnet_find_node(s, node_guid);

        return node == SUBNET_NONE ? SUBNET_NONE : subnet_find_port(s, node, number);
}

uint32_t subnet_next_name(const struct subnet *s, uint32_t from, const char *name)
{
        uint32_t low = from, high = s->n_by_name;

        assert(from <= s->n_by_name);
        for (uint32_t step = 1; step <= high - low; step *= 2) {
                if (strcmp(s->nodes[s->by_name[low + step - 1]].name, name) < 0)
                        low += step;
                else
                        high = low + step - 1;
        }
        return low + LOWER_BOUND(node, s->by_name + low, high - low, strcmp(s->nodes[*node].name, name) < 0);
}

uint32_t subnet_leaf_port(const struct subnet *s, uint32_t endport)
{
        uint32_t peer;

        assert(endport < s->n_ports);
        peer = s->ports[endport].peer;
        return peer != SUBNET_NONE && s->ports[peer].role == PORT_SWITCH_EXTERNAL ? peer : SUBNET_NONE;
}

bool subnet_node_has_external(const struct subnet *s, uint32_t node, uint8_t number)
{
        return node != SUBNET_NONE && s->nodes[node].type == NODE_SWITCH && number != 0;
}

uint32_t subnet_first_name(const struct subnet *s, const char *name)
{
        return subnet_next_name(s, 0, name);
}

bool subnet_has_name(const struct subnet *s, const char *name)
{
        uint32_t i = subnet_first_name(s, name);

        return i < s->n_by_name && strcmp(subnet_named_node(s, i)->name, name) == 0;
}

bool subnet_is_twin(const struct subnet *s, uint32_t i)
{
        const struct subnet_node *x = subnet_named_node(s, i), *y = i > 0 ? subnet_named_node(s, i - 1) : NULL;

        return y && x->type == NODE_CA && y->type == NODE_CA && x->device[0] && strcmp(x->name, y->name) == 0 &&
               strcmp(x->device, y->device) == 0;
}

bool subnet_is_board(const char *text)
{
        for (;; text++) {
                size_t letters = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"), digits = strspn(text + letters, "0123456789");

                if (letters == 0 || digits == 0)
                        return false;
                text += letters + digits;
                if (*text != '/')
                        return *text == '\0';
        }
}

const char *subnet_node_board(const struct subnet_node *n)
{
        const char *model = strncmp(n->description, "MF", 2) == 0 && n->name[0] ? strchr(n->description, ':') : NULL;
        const char *slash = model ? strchr(model, '/') : NULL;

        return slash && subnet_is_board(slash + 1) ? slash + 1 : SUBNET_FIRST_BOARD;
}

const char *subnet_node_name(const struct subnet_node *n, char buf[SUBNET_NAME_SIZE])
{
        const char *board = subnet_node_board(n);

        if (strcmp(board, SUBNET_FIRST_BOARD) == 0)
                return n->name[0] ? n->name : n->description;
        (void) snprintf(buf, SUBNET_NAME_SIZE, "%s:%s", n->name, board);
        return buf;
}

const char *subnet_node_label(struct arena *a, const struct subnet_node *n)
{
        if (strcmp(subnet_node_board(n), SUBNET_FIRST_BOARD) != 0)
                return arena_printf(a, "%s:%s", n->name, subnet_node_board(n));
        if (n->name[0] && n->device[0])
                return arena_printf(a, "%s %s", n->name, n->device);
        if (n->name[0] || n->description[0])
                return n->name[0] ? n->name : n->description;
        return arena_printf(a, "0x%016" PRIx64, n->guid.v);
}

const char *subnet_port_label(struct arena *a, const struct subnet *s, uint32_t port)
{
        const struct subnet_port *p = &s->ports[port];
        const char *node;

        assert(port < s->n_ports);
        if (subnet_port_node(s, p)->type == NODE_UNKNOWN)
                return "a port that was never seen";
        node = subnet_node_label(a, subnet_port_node(s, p));
        return node ? arena_printf(a, "%s/%u", node, p->number) : NULL;
}

bool subnet_label_is_of(const char *label, const char *name)
{
        size_t n = strlen(name);

        return label && strncmp(label, name, n) == 0 && strchr(" /:", label[n]);
}

const char *subnet_place_label(struct arena *a, const struct subnet *s, struct subnet_place place)
{
        uint32_t i = subnet_find_node(s, place.node);
        const char *node;

        if (place.node.v == 0)
                return "this host's own port";
        if (i == SUBNET_NONE)
                return arena_printf(a, "the device at 0x%016" PRIx64 "/%u", place.node.v, place.number);
        node = subnet_node_label(a, &s->nodes[i]);
        return node ? arena_printf(a, "the device at %s/%u", node, place.number) : NULL;
}

uint32_t subnet_node_count_silent(const struct subnet_node *n)
{
        uint32_t count = 0;

        for (size_t i = 0; i < ELEMENTS(n->silent_ports); i++)
                count += (uint32_t) __builtin_popcountll(n->silent_ports[i]);
        return count;
}

uint32_t subnet_count_silent(const struct subnet *s)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < s->n_nodes; i++)
                n += subnet_node_count_silent(&s->nodes[i]);
        return n;
}

bool subnet_has_link(const struct subnet *s, struct subnet_place a, struct subnet_place b)
{
        uint32_t node = subnet_find_node(s, a.node);
        const struct subnet_node *n = node == SUBNET_NONE ? NULL : &s->nodes[node];
        uint32_t link = 0;

        if (!n || !subnet_port_leads_to_switch(n, a.number))
                return false;
        for (uint8_t i = 0; i < a.number; i++)
                link += subnet_port_leads_to_switch(n, i);
        return link < n->n_links && n->links[link].node.v == b.node.v && n->links[link].number == b.number;
}

const struct subnet_conflict *subnet_find_conflict(const struct subnet *s, struct guid node, uint8_t number)
{
        uint32_t n = subnet_find_node(s, node);

        for (uint32_t i = 0; n != SUBNET_NONE && subnet_port_is_silent(&s->nodes[n], number) && i < s->n_conflicts; i++)
                if (s->conflicts[i].places[1].node.v == node.v && s->conflicts[i].places[1].number == number)
                        return &s->conflicts[i];
        return NULL;
}
