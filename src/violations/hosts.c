/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "violations/hosts.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

struct shared_host {
        struct violation_host host; /* first: a pointer to it is one to the whole */
        uint32_t n_refs;
        char strings[];
};

const struct violation_host *violation_host_copy(const struct violation_host *host)
{
        struct violation_host copy = *host;
        const char **strings[] = { &copy.label, &copy.name, &copy.node, &copy.device, &copy.at_switch, &copy.switch_name };
        struct shared_host *h;
        size_t size = sizeof(*h);
        char *end;

        for (size_t i = 0; i < ELEMENTS(strings); i++)
                size += *strings[i] ? strlen(*strings[i]) + 1 : 0;
        h = calloc(1, size);
        if (!h)
                return NULL;
        end = h->strings;
        for (size_t i = 0; i < ELEMENTS(strings); i++)
                if (*strings[i]) {
                        const char *from = *strings[i];

                        *strings[i] = end;
                        end = stpcpy(end, from) + 1;
                }
        h->host = copy;
        h->n_refs = 1;
        return &h->host;
}

const struct violation_host *violation_host_ref(const struct violation_host *copy)
{
        struct shared_host *h = (struct shared_host *) copy;

        if (h)
                h->n_refs++;
        return copy;
}

const struct violation_host *violation_host_unref(const struct violation_host *copy)
{
        struct shared_host *h = (struct shared_host *) copy;

        assert(!h || h->n_refs > 0);
        if (h && --h->n_refs == 0)
                free(h);
        return NULL;
}

int violation_compare_hosts(const struct violation_host *a, const struct violation_host *b)
{
        if (!a || !b)
                return ORDER(!!a, !!b);
        return ORDER(a->guid.v, b->guid.v) ?: strcmp(a->label ?: "", b->label ?: "") ?:
               strcmp(a->at_switch ?: "", b->at_switch ?: "");
}

/* Returns whether this is the only port of its host: what is known of one port need not be true of another one. */
static bool is_only_port(const struct subnet *s, uint32_t port)
{
        const struct subnet_port *p = &s->ports[port];
        const struct subnet_node *node = subnet_port_node(s, p);
        uint32_t i = subnet_first_name(s, node->name);

        if (i + 1 < s->n_by_name && strcmp(s->nodes[s->by_name[i + 1]].name, node->name) == 0)
                return false; /* another adapter */
        if (node->type == NODE_SWITCH)
                return true;
        return (port == 0 || p[-1].node != p->node) && (port + 1 == s->n_ports || p[1].node != p->node);
}

int violation_host_open(struct arena *a, const struct subnet *s, uint32_t endport, struct violation_host *ret)
{
        const struct subnet_port *p = &s->ports[endport];
        const struct subnet_node *node = subnet_port_node(s, p);
        uint32_t leaf = subnet_leaf_port(s, endport);
        char name[SUBNET_NAME_SIZE];

        *ret = (struct violation_host) {
                .node_guid = node->guid, .guid = p->guid, .lid = p->lid, .number = p->number,
                .label = subnet_port_label(a, s, endport), .node = arena_strdup(a, subnet_node_name(node, name)),
                .device = node->device,
        };
        if (!ret->label || !ret->node)
                return -ENOMEM;
        ret->name = node->name[0] && is_only_port(s, endport) ? node->name : ret->label;
        if (leaf == SUBNET_NONE)
                return 0;
        node = subnet_port_node(s, &s->ports[leaf]);
        ret->switch_name = arena_strdup(a, subnet_node_name(node, name));
        ret->switch_port = s->ports[leaf].number;
        ret->at_switch = subnet_port_label(a, s, leaf);
        return ret->switch_name && ret->at_switch ? 0 : -ENOMEM;
}
