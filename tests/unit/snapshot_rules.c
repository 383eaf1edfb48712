/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "snapshot_rules.h"

#include <string.h>

/* Printable ASCII; a backslash begins \xNN. */
static bool is_escaped(const char *s)
{
        for (; *s; s++)
                if (*s < 0x20 || *s > 0x7e || (*s == '\\' && s[1] != 'x'))
                        return false;
        return true;
}

static const char *links_broken(const struct subnet *s, const struct subnet_node *n)
{
        uint32_t n_ports = 0;

        for (unsigned number = 1; number <= UINT8_MAX; number++)
                n_ports += n->type == NODE_SWITCH && subnet_port_leads_to_switch(n, (uint8_t) number);
        for (uint16_t i = 0; i < n->n_links; i++) {
                uint32_t far = subnet_find_node(s, n->links[i].node);

                if (far == SUBNET_NONE || s->nodes[far].type != NODE_SWITCH || n->links[i].number == 0)
                        return "a switch is plugged into ports of switches";
        }
        return n->n_links == n_ports ? NULL : "each port that leads to a switch has one link, and no node but a switch has any";
}

static const char *node_broken(const struct subnet *s, uint32_t i)
{
        const struct subnet_node *n = &s->nodes[i];

        if (n->guid.v == 0)
                return "a node has a GUID";
        if (i > 0 && s->nodes[i - 1].guid.v >= n->guid.v)
                return "nodes ascend by GUID, each once";
        if (n->type != NODE_CA && n->type != NODE_SWITCH && n->type != NODE_ROUTER)
                return "a node is a CA, a switch or a router";
        if (!is_escaped(n->description) || !is_escaped(n->name) || !is_escaped(n->device))
                return "texts are escaped";
        for (unsigned number = 0; number <= UINT8_MAX; number++)
                if (subnet_port_is_silent(n, (uint8_t) number) && (number == 0 || number > n->num_ports))
                        return "silent ports are ports";
        if (n->type != NODE_SWITCH && n->partition_enforcement_cap != 0)
                return "a switch enforces partitions";
        return links_broken(s, n);
}

static const char *peer_broken(const struct subnet *s, uint32_t i)
{
        const struct subnet_port *p = &s->ports[i], *q;

        if (p->peer == SUBNET_NONE)
                return p->role == PORT_SWITCH_EXTERNAL ? "an external port has an endport beside it" : NULL;
        if (p->peer >= s->n_ports || p->peer == i)
                return "a peer is another port";
        q = &s->ports[p->peer];
        if (q->peer != i)
                return "peers are mutual";
        if (p->number == 0 || q->number == 0)
                return "port 0 has no cable";
        if (p->role == PORT_SWITCH_EXTERNAL && q->role == PORT_SWITCH_EXTERNAL)
                return "a cable between switches is not in it";
        if (subnet_port_is_silent(subnet_port_node(s, p), p->number))
                return "a port that leads to a node is not silent";
        return NULL;
}

static const char *route_broken(const struct subnet_port *p)
{
        if (p->route.hops > MAD_MAX_HOPS)
                return "a route has no more hops than there can be";
        if (p->route.lid.v > LID_MAX_UNICAST || (p->route.lid.v && p->route.lid.v != p->lid.v))
                return "a port is reached by its own unicast LID";
        for (unsigned hop = 1; p->route.lid.v == 0 && hop <= p->route.hops; hop++)
                if (p->route.path[hop] == 0)
                        return "no route leaves through port 0";
        return p->lmc > 7 ? "an LMC has three bits" : NULL;
}

/* One destination for each SMA: all ports of a switch have one, any other port has its own. */
static const char *destination_broken(const struct subnet *s, uint32_t i)
{
        const struct subnet_port *p = &s->ports[i], *before = p - 1;
        bool same_agent;

        if (i == 0)
                return NULL;
        same_agent = before->node == p->node && p->role == PORT_SWITCH_EXTERNAL;
        if (same_agent ? before->destination != p->destination : before->destination >= p->destination)
                return "each SMA has its own destination";
        return NULL;
}

static const char *port_broken(const struct subnet *s, uint32_t i)
{
        const struct subnet_port *p = &s->ports[i];
        const char *broken;
        bool is_switch;

        if (p->node >= s->n_nodes)
                return "a port has a node";
        is_switch = s->nodes[p->node].type == NODE_SWITCH;
        if (i > 0 && (p[-1].node > p->node || (p[-1].node == p->node && p[-1].number >= p->number)))
                return "ports ascend by node and number, each once";
        if ((p->role == PORT_ENDPORT) != (is_switch ? p->number == 0 : p->number > 0))
                return "an endport is port 0 of a switch, or a port of another node";
        if (p->number > s->nodes[p->node].num_ports)
                return "a node has no more ports than it says";
        if (p->guid.v == 0)
                return "a port has a GUID";
        broken = route_broken(p) ?: peer_broken(s, i);
        return broken ?: destination_broken(s, i);
}

static const char *names_broken(const struct subnet *s)
{
        uint32_t n_named = 0;

        for (uint32_t i = 0; i < s->n_nodes; i++)
                n_named += s->nodes[i].name[0] != '\0';
        if (s->n_by_name != n_named)
                return "every name is in the index of names";
        for (uint32_t i = 0; i < s->n_by_name; i++) {
                if (s->by_name[i] >= s->n_nodes)
                        return "the index of names names nodes";
                if (i > 0 && strcmp(s->nodes[s->by_name[i - 1]].name, s->nodes[s->by_name[i]].name) > 0)
                        return "names ascend";
        }
        return NULL;
}

static const char *guids_broken(const struct subnet *s)
{
        uint32_t n_endports = 0;

        for (uint32_t i = 0; i < s->n_ports; i++)
                n_endports += s->ports[i].role == PORT_ENDPORT;
        if (s->n_by_port_guid != n_endports)
                return "every endport is in the index of GUIDs";
        for (uint32_t i = 0; i < s->n_by_port_guid; i++) {
                if (s->by_port_guid[i] >= s->n_ports || s->ports[s->by_port_guid[i]].role != PORT_ENDPORT)
                        return "the index of GUIDs names endports";
                if (i > 0 && s->ports[s->by_port_guid[i - 1]].guid.v >= s->ports[s->by_port_guid[i]].guid.v)
                        return "port GUIDs ascend, each once";
        }
        return NULL;
}

static const char *whole_broken(const struct subnet *s)
{
        if (s->self >= s->n_ports || s->ports[s->self].role != PORT_ENDPORT)
                return "the local port is in it";
        if (s->ports[s->self].route.lid.v != 0 || s->ports[s->self].route.hops != 0)
                return "the local port is reached by no hops";
        if (s->sm != SUBNET_NONE && (s->sm >= s->n_ports || s->ports[s->sm].role != PORT_ENDPORT || s->sm_lid.v == 0))
                return "the SM is at an endport, and has a LID";
        if (s->n_conflicts > SUBNET_MAX_CONFLICTS || s->n_conflicts > s->n_conflicts_all)
                return "no more conflicts are listed than there are";
        for (uint32_t i = 0; i < s->n_conflicts; i++)
                if (s->conflicts[i].guid.v == 0 || s->conflicts[i].places[1].node.v == 0)
                        return "a conflict names a GUID, and where it was found again";
        return NULL;
}

const char *snapshot_rules_broken(const struct subnet *s)
{
        const char *broken = NULL;

        for (uint32_t i = 0; !broken && i < s->n_nodes; i++)
                broken = node_broken(s, i);
        for (uint32_t i = 0; !broken && i < s->n_ports; i++)
                broken = port_broken(s, i);
        broken = broken ?: names_broken(s);
        broken = broken ?: guids_broken(s);
        return broken ?: whole_broken(s);
}
