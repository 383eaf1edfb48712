/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Discovery: the fabric is asked by directed routes, SMP by SMP, as libibnetdisc does it, but at one instant and without
 * losses (libibnetdisc does its own I/O; it is not in the core), and with one M_Key for all. A node that does not answer is not in the picture.
 */

#include "discover.h"

#include <stdlib.h>
#include <string.h>

struct walk {
        struct sim *s;
        struct subnet_builder *builder;
        struct fabsim_place queue[FABSIM_MAX_NODES * 2];
        struct mad_route routes[FABSIM_MAX_NODES * 2];
        unsigned n;
        bool seen[FABSIM_MAX_NODES]; /* switches */
        bool answered[FABSIM_MAX_NODES];
};

static bool ask(struct sim *s, const struct mad_route *route, enum smp_attribute attribute, uint32_t modifier,
                uint8_t ret[MAD_DATA_SIZE])
{
        struct mad_request request = {
                .route = *route, .method = MAD_GET, .attribute = attribute, .modifier = modifier,
                .key = m_keys_common(s->m_keys),
        };
        struct mad_frame frame, answer;
        struct fabsim_place at;
        uint16_t status;
        unsigned hops;

        mad_request_encode(&request, 1, &frame);
        if (!fabsim_route(&s->f, &frame, &at, &hops) || !fabsim_answer(&s->f, s->now, at, &frame, &answer))
                return false;
        if (mad_check_response(&request, &answer, &status) < 0 || status != 0)
                return false;
        mad_frame_get_data(&answer, MAD_CLASS_SMP, ret);
        return true;
}

static struct mad_route route_to(const struct walk *w, const struct mad_route *directed, struct lid lid)
{
        if (w->s->use_directed_routes || lid.v == 0)
                return *directed;
        return (struct mad_route) { .lid = lid };
}

static void add_endport(struct walk *w, unsigned i, const struct node_info *ni, uint8_t number)
{
        struct sim *s = w->s;
        struct census_entry *c = &s->daemon.census.entries[world_endport_at(s, w->queue[i])];
        struct subnet_port port = { .number = number, .guid = ni->port_guid };
        uint8_t data[MAD_DATA_SIZE];
        struct port_info pi;

        if (!ask(s, &w->routes[i], SMP_ATTR_PORT_INFO, number, data))
                return;
        port_info_decode(data, &pi);
        port.lid = pi.lid;
        port.lmc = pi.lmc;
        port.state = pi.state;
        port.route = route_to(w, &w->routes[i], pi.lid);
        if (subnet_builder_add_port(w->builder, ni->node_guid, &port) < 0)
                return;
        *c = (struct census_entry) {
                .is_there = true,
                .type = ni->type,
                .is_self = w->queue[i].node == s->f.self.node && number == s->f.self.port,
                .is_sm = w->queue[i].node == s->f.sm.node && number == s->f.sm.port,
                .host = s->host_of[w->queue[i].node],
                .device = s->device_of[w->queue[i].node],
        };
        c->is_plugged = fabsim_neighbour(&s->f, w->queue[i], &c->plugged_into) &&
                        s->f.nodes[c->plugged_into.node].type == NODE_SWITCH;
        if (c->is_plugged)
                c->can_enforce = s->f.nodes[c->plugged_into.node].partition_enforcement_cap > 0 &&
                                 (s->f.nodes[c->plugged_into.node].inbound_cap ||
                                  s->f.nodes[c->plugged_into.node].outbound_cap);
}

static void add_external_port(struct walk *w, unsigned i, uint8_t number, struct fabsim_place peer)
{
        struct sim *s = w->s;
        struct subnet_port port = { .number = number };
        struct guid node_guid = s->f.nodes[w->queue[i].node].guid;
        uint8_t data[MAD_DATA_SIZE];
        struct port_info pi;

        if (!ask(s, &w->routes[i], SMP_ATTR_PORT_INFO, number, data))
                return;
        port_info_decode(data, &pi);
        port.state = pi.state;
        port.enforce_inbound = pi.enforce_inbound;
        port.enforce_outbound = pi.enforce_outbound;
        (void) subnet_builder_add_port(w->builder, node_guid, &port);
        (void) subnet_builder_add_link(w->builder, node_guid, number, s->f.nodes[peer.node].guid, peer.port);
}

static void go_on(struct walk *w, unsigned i, uint8_t exit)
{
        struct fabsim_place from = w->queue[i], to;
        struct mad_route *route = &w->routes[w->n];

        from.port = exit;
        if (!fabsim_neighbour(&w->s->f, from, &to))
                return;
        if (w->s->f.nodes[to.node].type == NODE_SWITCH) {
                if (w->seen[to.node])
                        return;
                w->seen[to.node] = true;
                to.port = 0;
        } else if (to.node == w->s->f.self.node && to.port == w->s->f.self.port) {
                return;
        }
        *route = w->routes[i];
        route->path[++route->hops] = exit;
        w->queue[w->n++] = to;
}

static void visit(struct walk *w, unsigned i)
{
        struct sim *s = w->s;
        struct switch_info si = {};
        struct subnet_node node;
        struct fabsim_place peer;
        struct node_info ni;
        uint8_t data[MAD_DATA_SIZE], description[MAD_DATA_SIZE];
        bool answered = ask(s, &w->routes[i], SMP_ATTR_NODE_INFO, 0, data) &&
                        ask(s, &w->routes[i], SMP_ATTR_NODE_DESCRIPTION, 0, description);

        if (!answered)
                return;
        w->answered[w->queue[i].node] = true;
        node_info_decode(data, &ni);
        if (ni.type == NODE_SWITCH && ask(s, &w->routes[i], SMP_ATTR_SWITCH_INFO, 0, data))
                switch_info_decode(data, &si);
        node = (struct subnet_node) {
                .guid = ni.node_guid,
                .type = ni.type,
                .num_ports = ni.num_ports,
                .partition_cap = ni.partition_cap,
                .partition_enforcement_cap = si.partition_enforcement_cap,
                .inbound_enforcement_cap = si.inbound_enforcement_cap,
                .outbound_enforcement_cap = si.outbound_enforcement_cap,
        };
        (void) subnet_builder_add_node(w->builder, &node, (char *) description, sizeof(description));
        add_endport(w, i, &ni, w->queue[i].port);
        if (ni.type != NODE_SWITCH) {
                if (i == 0)
                        go_on(w, i, s->f.self.port);
                return;
        }
        for (uint8_t p = 1; p <= ni.num_ports; p++) {
                if (fabsim_neighbour(&s->f, (struct fabsim_place) { w->queue[i].node, p }, &peer) &&
                    s->f.nodes[peer.node].type != NODE_SWITCH)
                        add_external_port(w, i, p, peer);
                go_on(w, i, p);
        }
}

int sim_discover(struct sim *s, struct arena *a, struct subnet **ret)
{
        struct walk *w = calloc(1, sizeof(*w));
        int r;

        if (!w)
                return -1;
        w->s = s;
        memset(&s->daemon.census, 0, sizeof(s->daemon.census));
        r = subnet_builder_new(a, &w->builder);
        w->queue[w->n++] = s->f.self;
        for (unsigned i = 0; r == 0 && i < w->n; i++)
                visit(w, i);
        /* a switch that keeps silent (an M_Key) is not in the picture, nor is what it has plugged in beside it */
        for (unsigned i = 0; i < s->n_endports; i++)
                if (!w->answered[s->daemon.census.entries[i].plugged_into.node])
                        s->daemon.census.entries[i].is_plugged = false;
        if (r == 0)
                r = subnet_builder_finish(w->builder, s->f.nodes[s->f.self.node].guid, s->f.self.port,
                                          s->f.nodes[s->f.sm.node].guid, s->f.sm.port, ret);
        free(w);
        return r;
}
