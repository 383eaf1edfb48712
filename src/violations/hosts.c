/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who is behind each port of a snapshot, for the violation table. */
#include <errno.h>
#include <string.h>

#include "util/arena.h"
#include "violations/violation_table.h"

static struct violation_port port_at(const struct subnet *s, uint32_t port)
{
        return (struct violation_port) { .node_guid = subnet_port_node(s, &s->ports[port])->guid,
                                         .number = s->ports[port].number };
}

/* A node that did not answer everything keeps the name that it had. */
static bool is_known_better(const struct violations *v, struct violation_port port, const struct subnet *s, uint32_t endport)
{
        const struct port_samples *p = counter_samples_find(&v->samples, port);

        return subnet_port_is_incomplete(s, &s->ports[endport]) && p && p->host &&
               p->host->host.guid.v == s->ports[endport].guid.v;
}

/* What is known of one port of a host need not be true of the others. */
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
        const struct subnet_node *node = subnet_port_node(s, p), *leaf_switch;
        uint32_t leaf = subnet_leaf_port(s, endport);
        char name[SUBNET_NAME_SIZE], switch_name[SUBNET_NAME_SIZE];

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
        leaf_switch = subnet_port_node(s, &s->ports[leaf]);
        ret->switch_name = arena_strdup(a, subnet_node_name(leaf_switch, switch_name));
        ret->switch_port = s->ports[leaf].number;
        ret->at_switch = subnet_port_label(a, s, leaf);
        return ret->switch_name && ret->at_switch ? 0 : -ENOMEM;
}

static void keep_switch(const struct violations *v, struct violation_port port, struct violation_host *host)
{
        const struct port_samples *p = counter_samples_find(&v->samples, port);

        if (!p || !p->host || p->host->host.guid.v != host->guid.v)
                return;
        host->at_switch = p->host->host.at_switch;
        host->switch_name = p->host->host.switch_name;
        host->switch_port = p->host->host.switch_port;
}

static int set_host(struct violations *v, struct arena *a, const struct subnet *s, uint32_t port, uint32_t endport)
{
        struct violation_host host;
        int r;

        if (is_known_better(v, port_at(s, port), s, endport))
                return 0;
        r = violation_host_open(a, s, endport, &host);
        if (r < 0)
                return r;
        if (!host.at_switch) /* the switch did not answer; it is no news of the host */
                keep_switch(v, port_at(s, port), &host);
        return violations_set_host(v, port_at(s, port), &host);
}

static bool is_own_port(const struct port_samples *p)
{
        return p->host && violation_port_equal(p->port, violation_host_port(&p->host->host));
}

/* Those where no host is plugged in, as far as the snapshot goes. What an adapter counted is its own, wherever it was. */
static void doubt_empty(struct violations *v, const struct subnet *s)
{
        for (uint32_t i = 0; i < v->samples.n; i++) {
                struct port_samples *p = &v->samples.ports[i];
                uint32_t port = subnet_find_port_of(s, p->port.node_guid, p->port.number);

                if (is_own_port(p))
                        continue;
                if (port == SUBNET_NONE ||
                    (s->ports[port].role == PORT_SWITCH_EXTERNAL && s->ports[port].peer == SUBNET_NONE))
                        counter_samples_doubt(p);
        }
}

int violations_set_subnet(struct violations *v, const struct subnet *subnet)
{
        _cleanup_arena_ struct arena *a = arena_new();
        int r = a ? 0 : -ENOMEM;

        for (uint32_t i = 0; i < subnet->n_ports && r == 0; i++) {
                const struct subnet_port *p = &subnet->ports[i];
                uint32_t endport = p->role == PORT_SWITCH_EXTERNAL ? p->peer : i;

                if (endport != SUBNET_NONE)
                        r = set_host(v, a, subnet, i, endport);
        }
        doubt_empty(v, subnet);
        return r;
}
