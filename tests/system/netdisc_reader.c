/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "netdisc_reader.h"

#include <errno.h>
#include <infiniband/ibnetdisc.h>
#include <stdlib.h>
#include <string.h>

#define MAX_UNICAST_LID 0xbfff
#define DISCOVERY_TRIES 3 /* libibnetdisc gives up if one early answer is lost */
#define MAX_LMC         7

/*
 * libibnetdisc returns a graph of nodes and ports with pointers, which may have holes if the fabric changes or answers wrongly:
 * ports that a peer names but that never answered, switches whose port 0 did not answer. Missing parts are not read; ports
 * without an answer get no LID in the snapshot, so that the survey finds them unreachable.
 */
struct reader {
        struct arena *arena;
        const ibnd_fabric_t *fabric;
        struct subnet_builder *builder;
        bool may_route_by_lid;   /* our own port has a LID and is up */
        uint8_t *lid_claims;     /* per unicast LID: the number of SMAs that claim it, up to 255 */
        struct lid sm_lid;
        struct guid sm_node;
        uint8_t sm_number;
};

static void fabric_destroy_p(ibnd_fabric_t **f)
{
        if (*f)
                ibnd_destroy_fabric(*f);
}

static bool is_switch(const ibnd_node_t *n)
{
        return n->type == NODE_SWITCH;
}

/* Port 0 of a switch, or the port of another node. NULL: not known. */
static const ibnd_port_t *get_port(const ibnd_node_t *n, int number)
{
        return n->ports && number >= 0 && number <= n->numports ? n->ports[number] : NULL;
}

static bool is_self(const struct reader *d, const ibnd_node_t *n, int number)
{
        return n == d->fabric->from_node && (is_switch(n) ? number == 0 : number == d->fabric->from_portnum);
}

static bool state_is_up(enum port_state s)
{
        return s == PORT_STATE_ARMED || s == PORT_STATE_ACTIVE;
}

/* An endport to include: the local one, or the peer of a known port. */
static bool is_endport(const struct reader *d, const ibnd_node_t *n, int number)
{
        const ibnd_port_t *p = get_port(n, number);
        struct port_info info;

        if (is_switch(n))
                return number == 0;
        if (!p || number == 0)
                return false;
        if (is_self(d, n, number))
                return true;
        port_info_decode(p->info, &info);
        return p->remoteport && p->remoteport->node && info.state != PORT_STATE_DOWN;
}

/* --- routes ---------------------------------------------------------------------------------------------------------- */

/* Several SMAs may claim the same LID, for example stale ones of a subnet that was joined to this one. A MAD to it would reach
 * any of them. */
static void claim_lids(struct reader *d, const ibnd_node_t *n)
{
        for (int number = 0; number <= n->numports; number++) {
                const ibnd_port_t *p = get_port(n, number);
                struct port_info info;

                if (!p || !is_endport(d, n, number))
                        continue;
                port_info_decode(p->info, &info);
                for (uint32_t i = 0; info.lid.v && i < 1u << MIN(info.lmc, MAX_LMC); i++)
                        if (info.lid.v + i <= MAX_UNICAST_LID && d->lid_claims[info.lid.v + i] < UINT8_MAX)
                                d->lid_claims[info.lid.v + i]++;
        }
}

/* Port 0 of a switch has no cable: it is reachable by LID if a subnet manager brought up any link of the switch. */
static bool switch_is_up(const ibnd_node_t *n)
{
        for (int number = 1; number <= n->numports; number++) {
                const ibnd_port_t *p = get_port(n, number);
                struct port_info info;

                if (!p)
                        continue;
                port_info_decode(p->info, &info);
                if (state_is_up(info.state))
                        return true;
        }
        return false;
}

static bool route_by_lid(const struct reader *d, const ibnd_node_t *n, const struct port_info *info)
{
        if (!d->may_route_by_lid || info->lid.v == 0 || info->lid.v > MAX_UNICAST_LID)
                return false;
        if (d->lid_claims[info->lid.v] != 1)
                return false;
        return is_switch(n) ? switch_is_up(n) : state_is_up(info->state);
}

/* The directed route by which libibnetdisc found a node. */
static bool route_to_node(const ibnd_node_t *n, struct mad_route *ret)
{
        const ib_dr_path_t *path = &n->path_portid.drpath;

        if (path->cnt < 0 || path->cnt > MAD_MAX_HOPS)
                return false;
        *ret = (struct mad_route) { .hops = (uint8_t) path->cnt };
        for (int i = 1; i <= path->cnt; i++)
                ret->path[i] = path->p[i];
        return true;
}

/* The route of the node may lead to another of its ports, so take the route to the peer and then its port with the cable. */
static bool route_over_peer(const struct reader *d, const ibnd_port_t *p, struct mad_route *ret)
{
        const ibnd_port_t *out = p->remoteport;
        struct mad_route route;

        if (!out || !out->node || out->portnum < 1 || out->portnum > UINT8_MAX)
                return false;
        /* no route passes through an adapter, except out of the local port */
        if (!is_switch(out->node) && !is_self(d, out->node, out->portnum))
                return false;
        if (!route_to_node(out->node, &route) || route.hops >= MAD_MAX_HOPS)
                return false;
        route.path[++route.hops] = (uint8_t) out->portnum;
        *ret = route;
        return true;
}

static bool find_route(const struct reader *d, const ibnd_node_t *n, int number, const struct port_info *info,
                       struct mad_route *ret)
{
        const ibnd_port_t *p = get_port(n, number);

        /* the kernel answers for the local port; LID-routed SMPs to it depend on the adapter */
        if (is_self(d, n, number)) {
                *ret = (struct mad_route) { .hops = 0 };
                return true;
        }
        if (route_by_lid(d, n, info)) {
                *ret = (struct mad_route) { .lid = info->lid };
                return true;
        }
        if (is_switch(n))
                return route_to_node(n, ret);
        return p && route_over_peer(d, p, ret);
}

/* --- nodes and ports ------------------------------------------------------------------------------------------------- */

static void look_for_sm(struct reader *d, const ibnd_node_t *n, int number, const struct port_info *info)
{
        uint32_t n_lids = 1u << MIN(info->lmc, MAX_LMC);

        if (d->sm_lid.v == 0 || info->lid.v == 0 || d->sm_lid.v < info->lid.v || d->sm_lid.v >= info->lid.v + n_lids)
                return;
        d->sm_node = (struct guid) { n->guid };
        d->sm_number = (uint8_t) number;
}

static int add_endport(struct reader *d, const ibnd_node_t *n, int number)
{
        const ibnd_port_t *p = get_port(n, number);
        struct subnet_port port = { .number = (uint8_t) number };
        struct node_info node_info;
        struct port_info info = { 0 };

        node_info_decode(n->info, &node_info);
        if (p)
                port_info_decode(p->info, &info);
        if (!find_route(d, n, number, &info, &port.route))
                return 0;
        port.guid = is_switch(n) || !p ? node_info.port_guid : (struct guid) { p->guid };
        port.lid = info.lid;
        port.lmc = MIN(info.lmc, (uint8_t) MAX_LMC);
        port.state = info.state;
        look_for_sm(d, n, number, &info);
        return subnet_builder_add_port(d->builder, (struct guid) { n->guid }, &port);
}

/* A switch port whose peer is not a switch. GUID, LID and route are those of port 0. */
static int add_external_port(struct reader *d, const ibnd_node_t *n, int number)
{
        const ibnd_port_t *p = get_port(n, number), *far = p ? p->remoteport : NULL;
        struct subnet_port port = { .number = (uint8_t) number };
        struct guid node_guid = { n->guid };
        struct port_info info;
        int r;

        if (!far || !far->node || is_switch(far->node) || far->portnum < 1 || far->portnum > UINT8_MAX)
                return 0;
        port_info_decode(p->info, &info);
        port.state = info.state;
        port.enforce_inbound = info.enforce_inbound;
        port.enforce_outbound = info.enforce_outbound;
        r = subnet_builder_add_port(d->builder, node_guid, &port);
        if (r < 0)
                return r;
        return subnet_builder_add_link(d->builder, node_guid, port.number, (struct guid) { far->node->guid },
                                       (uint8_t) far->portnum);
}

/* Two adapters back to back. */
static int add_direct_link(struct reader *d, const ibnd_node_t *n, int number)
{
        const ibnd_port_t *p = get_port(n, number), *far = p ? p->remoteport : NULL;

        if (!far || !far->node || is_switch(far->node) || far->portnum < 1 || far->portnum > UINT8_MAX)
                return 0;
        return subnet_builder_add_link(d->builder, (struct guid) { n->guid }, (uint8_t) number,
                                       (struct guid) { far->node->guid }, (uint8_t) far->portnum);
}

static int add_ports(struct reader *d, const ibnd_node_t *n)
{
        int r = 0;

        for (int number = 0; number <= n->numports && number <= UINT8_MAX; number++) {
                if (is_endport(d, n, number)) {
                        r = add_endport(d, n, number);
                        if (r == 0)
                                r = add_direct_link(d, n, number);
                } else if (is_switch(n))
                        r = add_external_port(d, n, number);
                if (r == -ENOMEM)
                        return r;
        }
        return 0;
}

/* Ports behind which libibnetdisc got no answer: those of switches, and the local one. */
static void find_silent_ports(const struct reader *d, const ibnd_node_t *n, uint64_t ret[4])
{
        struct port_info info;

        for (int number = 1; number <= n->numports && number <= UINT8_MAX; number++) {
                const ibnd_port_t *p = get_port(n, number);

                if (!p || p->remoteport || !(is_switch(n) || is_self(d, n, number)))
                        continue;
                port_info_decode(p->info, &info);
                if (info.link_up)
                        ret[number / 64] |= UINT64_C(1) << (number % 64);
        }
}

static int add_node(struct reader *d, const ibnd_node_t *n)
{
        struct node_info node_info;
        struct switch_info switch_info = { 0 };
        struct subnet_node node;
        int r;

        node_info_decode(n->info, &node_info);
        if (is_switch(n))
                switch_info_decode(n->switchinfo, &switch_info);
        node = (struct subnet_node) {
                .guid = { n->guid },
                .type = (enum node_type) n->type,
                .num_ports = node_info.num_ports,
                .partition_cap = node_info.partition_cap,
                .partition_enforcement_cap = switch_info.partition_enforcement_cap,
                .inbound_enforcement_cap = switch_info.inbound_enforcement_cap,
                .outbound_enforcement_cap = switch_info.outbound_enforcement_cap,
        };
        find_silent_ports(d, n, node.silent_ports);
        r = subnet_builder_add_node(d->builder, &node, n->nodedesc, sizeof(n->nodedesc));
        if (r == -EEXIST || r == -EINVAL)
                return 0; /* a second node with this GUID, or neither CA, switch nor router: ignored */
        return r < 0 ? r : add_ports(d, n);
}

/* --- all of it ------------------------------------------------------------------------------------------------------- */

/* Reads PortInfo of the local port: its LID and the LID of the master SM. */
static int look_at_self(struct reader *d)
{
        const ibnd_node_t *n = d->fabric->from_node;
        const ibnd_port_t *p = n ? get_port(n, is_switch(n) ? 0 : d->fabric->from_portnum) : NULL;
        struct port_info info;

        if (!p)
                return -ENODATA;
        port_info_decode(p->info, &info);
        d->may_route_by_lid = info.lid.v != 0 && (is_switch(n) ? switch_is_up(n) : state_is_up(info.state));
        d->sm_lid = info.sm_lid;
        return 0;
}

static int convert(struct reader *d, struct subnet **ret)
{
        const ibnd_node_t *self = d->fabric->from_node;
        struct subnet *subnet;
        int r;

        r = look_at_self(d);
        if (r < 0)
                return r;
        for (const ibnd_node_t *n = d->fabric->nodes; n; n = n->next)
                claim_lids(d, n);
        for (const ibnd_node_t *n = d->fabric->nodes; n; n = n->next) {
                r = add_node(d, n);
                if (r < 0)
                        return r;
        }
        r = subnet_builder_finish(d->builder, (struct guid) { self->guid },
                                  is_switch(self) ? 0 : (uint8_t) d->fabric->from_portnum, d->sm_node, d->sm_number,
                                  &subnet);
        if (r < 0)
                return r;
        if (subnet->self == SUBNET_NONE)
                return -ENODATA;
        subnet->sm_lid = d->sm_lid;
        *ret = subnet;
        return 0;
}

int netdisc_read(struct arena *a, const char *ca, unsigned port, struct subnet **ret)
{
        struct ibnd_config config = { .max_smps = 64, .timeout_ms = 500 };
        _cleanup_free_ uint8_t *lid_claims = calloc(MAX_UNICAST_LID + 1, 1);
        _cleanup_(fabric_destroy_p) ibnd_fabric_t *fabric = NULL;
        struct reader d = { .arena = a, .lid_claims = lid_claims };
        char name[64];
        int r;

        if (!lid_claims)
                return -ENOMEM;
        r = subnet_builder_new(a, &d.builder);
        if (r < 0)
                return r;
        (void) snprintf(name, sizeof(name), "%s", ca);
        for (int i = 0; !fabric && i < DISCOVERY_TRIES; i++)
                fabric = ibnd_discover_fabric(name, (int) port, NULL, &config);
        if (!fabric)
                return -EIO;
        d.fabric = fabric;
        return convert(&d, ret);
}
