/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "subnet/flat.h"

#include <errno.h>
#include <string.h>

/*
 * struct subnet, nodes, ports, by_name, by_port_guid, conflicts, then three strings for each node: description, name, device. Pointers among these
 * bytes mean nothing.
 */

struct cursor {
        const char *at;
        size_t left;
};

static void append(char **at, const void *bytes, size_t n)
{
        if (n > 0)
                memcpy(*at, bytes, n);
        *at += n;
}

static void append_string(char **at, const char *s)
{
        append(at, s, strlen(s) + 1);
}

static size_t flat_size(const struct subnet *s)
{
        size_t n = sizeof(*s);

        n += s->n_nodes * sizeof(*s->nodes) + s->n_ports * sizeof(*s->ports);
        n += s->n_by_name * sizeof(*s->by_name) + s->n_by_port_guid * sizeof(*s->by_port_guid);
        n += s->n_conflicts * sizeof(*s->conflicts);
        for (uint32_t i = 0; i < s->n_nodes; i++)
                n += strlen(s->nodes[i].description) + strlen(s->nodes[i].name) + strlen(s->nodes[i].device) + 3;
        return n;
}

int subnet_flatten(struct arena *a, const struct subnet *s, const char **ret_bytes, size_t *ret_n)
{
        size_t n = flat_size(s);
        char *bytes = arena_new_array(a, char, n), *at = bytes;

        if (!bytes)
                return -ENOMEM;
        append(&at, s, sizeof(*s));
        append(&at, s->nodes, s->n_nodes * sizeof(*s->nodes));
        append(&at, s->ports, s->n_ports * sizeof(*s->ports));
        append(&at, s->by_name, s->n_by_name * sizeof(*s->by_name));
        append(&at, s->by_port_guid, s->n_by_port_guid * sizeof(*s->by_port_guid));
        append(&at, s->conflicts, s->n_conflicts * sizeof(*s->conflicts));
        for (uint32_t i = 0; i < s->n_nodes; i++) {
                append_string(&at, s->nodes[i].description);
                append_string(&at, s->nodes[i].name);
                append_string(&at, s->nodes[i].device);
        }
        *ret_bytes = bytes;
        *ret_n = n;
        return 0;
}

/* A copy of the next count * size bytes. */
static int take_array(struct arena *a, struct cursor *c, uint32_t count, size_t size, void **ret)
{
        size_t n = count * size;
        void *copy;

        if (n > c->left)
                return -EBADMSG;
        copy = arena_alloc_array(a, count, size);
        if (!copy)
                return -ENOMEM;
        if (n > 0)
                memcpy(copy, c->at, n);
        c->at += n;
        c->left -= n;
        *ret = copy;
        return 0;
}

static int take_string(struct arena *a, struct cursor *c, const char **ret)
{
        size_t n = strnlen(c->at, c->left);

        if (n == c->left)
                return -EBADMSG;
        *ret = arena_strndup(a, c->at, n);
        if (!*ret)
                return -ENOMEM;
        c->at += n + 1;
        c->left -= n + 1;
        return 0;
}

static int take_strings(struct arena *a, struct cursor *c, struct subnet_node *node)
{
        int r;

        r = take_string(a, c, &node->description);
        if (r == 0)
                r = take_string(a, c, &node->name);
        if (r == 0)
                r = take_string(a, c, &node->device);
        return r;
}

static bool is_index(uint32_t i, uint32_t n)
{
        return i == SUBNET_NONE || i < n;
}

/* Whatever is used as an index later is one. */
static bool is_consistent(const struct subnet *s)
{
        for (uint32_t i = 0; i < s->n_ports; i++)
                if (s->ports[i].node >= s->n_nodes || !is_index(s->ports[i].neighbour, s->n_ports) ||
                    s->ports[i].route.hops > MAD_MAX_HOPS)
                        return false;
        for (uint32_t i = 0; i < s->n_by_name; i++)
                if (s->by_name[i] >= s->n_nodes)
                        return false;
        for (uint32_t i = 0; i < s->n_by_port_guid; i++)
                if (s->by_port_guid[i] >= s->n_ports)
                        return false;
        return is_index(s->self, s->n_ports) && is_index(s->sm, s->n_ports);
}

int subnet_unflatten(struct arena *a, const char *bytes, size_t n, struct subnet **ret)
{
        struct cursor c = { .at = bytes, .left = n };
        struct subnet *s;
        void *copy;
        int r;

        r = take_array(a, &c, 1, sizeof(*s), &copy);
        if (r < 0)
                return r;
        s = copy;
        r = take_array(a, &c, s->n_nodes, sizeof(*s->nodes), (void **) &s->nodes);
        if (r == 0)
                r = take_array(a, &c, s->n_ports, sizeof(*s->ports), (void **) &s->ports);
        if (r == 0)
                r = take_array(a, &c, s->n_by_name, sizeof(*s->by_name), (void **) &s->by_name);
        if (r == 0)
                r = take_array(a, &c, s->n_by_port_guid, sizeof(*s->by_port_guid), (void **) &s->by_port_guid);
        if (r == 0)
                r = take_array(a, &c, s->n_conflicts, sizeof(*s->conflicts), (void **) &s->conflicts);
        for (uint32_t i = 0; r == 0 && i < s->n_nodes; i++)
                r = take_strings(a, &c, &s->nodes[i]);
        if (r < 0)
                return r;
        if (c.left > 0 || !is_consistent(s))
                return -EBADMSG;
        *ret = s;
        return 0;
}
