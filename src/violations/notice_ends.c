/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "violations/notice_ends.h"

#include <errno.h>

#define LMC_MASK 7

struct lid_map {
        uint32_t ports[LID_MAX_UNICAST + 1]; /* index + 1; 0: no port */
};

struct lid_map *lid_map_new(struct arena *a, const struct subnet *s)
{
        struct lid_map *m = arena_new_object(a, struct lid_map);

        for (uint32_t i = 0; m && i < s->n_ports; i++) {
                const struct subnet_port *p = &s->ports[i];
                uint32_t end = MIN(p->lid.v + (1u << (p->lmc & LMC_MASK)), LID_MAX_UNICAST + 1u);

                if (p->role != PORT_ENDPORT || p->lid.v == 0)
                        continue;
                for (uint32_t lid = p->lid.v; lid < end; lid++)
                        m->ports[lid] = m->ports[lid] == 0 ? i + 1 : LID_SEVERAL + 1;
        }
        return m;
}

uint32_t lid_map_find(const struct lid_map *m, struct lid lid)
{
        return lid_is_unicast(lid) && m->ports[lid.v] > 0 ? m->ports[lid.v] - 1 : SUBNET_NONE;
}

/* --- the port of a notice ------------------------------------------------------------------------------------------- */

struct violation_port violation_port_of_notice(const struct subnet *subnet, const struct lid_map *lids, const struct notice *notice)
{
        bool at_switch = notice->trap == NOTICE_SWITCH_P_KEY && notice->has_switch_port;
        struct violation_port port = {};
        uint32_t i;

        if (!subnet || !lids)
                return port;
        i = lid_map_find(lids, at_switch ? notice->switch_lid : notice->issuer);
        if (i == SUBNET_NONE || i == LID_SEVERAL)
                return port;
        port.node_guid = subnet_port_node(subnet, &subnet->ports[i])->guid;
        port.number = at_switch ? notice->switch_port : subnet->ports[i].number;
        return port;
}

/* --- the ends -------------------------------------------------------------------------------------------------------- */

struct finder {
        struct arena *arena;
        const struct subnet *subnet; /* NULL: nothing is known of the fabric */
        const struct lid_map *lids;
        uint32_t plugged_in; /* into the switch port that refused the packet; SUBNET_NONE: nothing, or it was no switch port */
};

/* "multicast LID 0xc003 (MGID ff12:401b:8101:0:0:0:ffff:ffff)" */
static const char *label_of_group(const struct finder *f, struct lid lid, const struct gid *gid)
{
        unsigned w[8];

        if (!gid)
                return arena_printf(f->arena, "multicast LID 0x%04x", (unsigned) lid.v);
        for (unsigned i = 0; i < ELEMENTS(w); i++)
                w[i] = (i < 4 ? gid->prefix : gid->id) >> (48 - i % 4 * 16) & 0xffff;
        return arena_printf(f->arena, "multicast LID 0x%04x (MGID %x:%x:%x:%x:%x:%x:%x:%x)", (unsigned) lid.v, w[0], w[1], w[2], w[3],
                            w[4], w[5], w[6], w[7]);
}

/* No port of the snapshot: the addresses in the packet. */
static int open_stranger(const struct finder *f, struct lid lid, const struct gid *gid, uint32_t by_lid, struct violation_host *ret)
{
        const char *remark = "";

        if (by_lid == LID_SEVERAL)
                remark = " (several ports claim it)";
        else if (f->subnet && f->lids)
                remark = " (no port of this fabric has it)";
        if (lid_is_multicast(lid))
                ret->label = label_of_group(f, lid, gid);
        else if (gid)
                ret->label = arena_printf(f->arena, "LID %u with port GUID 0x%016" PRIx64 "%s", lid.v, gid->id, remark);
        else if (lid.v != 0)
                ret->label = arena_printf(f->arena, "LID %u%s", lid.v, remark);
        else
                ret->label = arena_strdup(f->arena, "an unknown port");
        return ret->label ? 0 : -ENOMEM;
}

/* LID and GID belong to two ports. A GUID stays with its port, while a LID may have a new owner, but a sender writes both itself.
 * So the label has both, and none is named as the sender unless it is plugged into the switch port that refused the packet. */
static int open_conflict(const struct finder *f, uint32_t by_gid, uint32_t by_lid, struct violation_host *ret, bool *ret_conflict)
{
        struct violation_host gid_host, lid_host;
        int r;

        if (f->plugged_in == by_gid || f->plugged_in == by_lid)
                return violation_host_open(f->arena, f->subnet, f->plugged_in, ret);
        r = violation_host_open(f->arena, f->subnet, by_gid, &gid_host) ?:
            violation_host_open(f->arena, f->subnet, by_lid, &lid_host);
        if (r < 0)
                return r;
        ret->label = arena_printf(f->arena, "a port that is %s by GID but %s by LID", gid_host.label, lid_host.label);
        *ret_conflict = true;
        return ret->label ? 0 : -ENOMEM;
}

static int open_end(const struct finder *f, struct lid lid, const struct gid *gid, struct violation_host *ret, bool *ret_conflict)
{
        uint32_t by_lid = f->subnet && f->lids ? lid_map_find(f->lids, lid) : SUBNET_NONE;
        uint32_t by_gid = f->subnet && gid ? subnet_find_endport(f->subnet, (struct guid) { gid->id }) : SUBNET_NONE;
        int r;

        *ret = (struct violation_host) {};
        *ret_conflict = false;
        if (by_gid == SUBNET_NONE && (by_lid == SUBNET_NONE || by_lid == LID_SEVERAL))
                return open_stranger(f, lid, gid, by_lid, ret);
        if (by_gid != SUBNET_NONE && by_lid != SUBNET_NONE && by_lid != LID_SEVERAL && by_lid != by_gid)
                return open_conflict(f, by_gid, by_lid, ret, ret_conflict);
        r = violation_host_open(f->arena, f->subnet, by_gid != SUBNET_NONE ? by_gid : by_lid, ret);
        if (r < 0 || by_gid != SUBNET_NONE || !gid)
                return r;
        /* A packet with a GID of another subnet has the LID of the router that forwarded it. */
        if (subnet_port_node(f->subnet, &f->subnet->ports[by_lid])->type == NODE_ROUTER)
                *ret = (struct violation_host) {
                        .label = arena_printf(f->arena, "port GUID 0x%016" PRIx64 " behind router %s", gid->id, ret->label),
                };
        return ret->label ? 0 : -ENOMEM;
}

static uint32_t plugged_into(const struct subnet *s, struct violation_port port)
{
        uint32_t i = s ? subnet_find_port_of(s, port.node_guid, port.number) : SUBNET_NONE;

        return i != SUBNET_NONE && s->ports[i].role == PORT_SWITCH_EXTERNAL ? s->ports[i].peer : SUBNET_NONE;
}

int violation_ends_of_notice(struct arena *a, const struct subnet *subnet, const struct lid_map *lids,
                             const struct notice *notice, struct violation_ends *ret)
{
        const struct finder f = {
                .arena = a, .subnet = subnet, .lids = lids,
                .plugged_in = plugged_into(subnet, violation_port_of_notice(subnet, lids, notice)),
        };
        const struct gid *from = notice->has_gid1 && notice->gid1.id != 0 ? &notice->gid1 : NULL;
        const struct gid *to = notice->has_gid2 && notice->gid2.id != 0 ? &notice->gid2 : NULL;
        bool to_conflicts;

        return open_end(&f, notice->lid1, from, &ret->from, &ret->from_conflicts) ?:
               open_end(&f, notice->lid2, to, &ret->to, &to_conflicts);
}
