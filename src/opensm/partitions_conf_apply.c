/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>

#include "opensm/partitions_conf.h"

static bool matches(const struct partitions_conf_member *m, const struct subnet *s, uint32_t port)
{
        if (s->ports[port].role != PORT_ENDPORT)
                return false;
        return m->who == PARTITIONS_CONF_ALL || subnet_port_node(s, &s->ports[port])->type == m->type;
}

static void apply_member(const struct partitions_conf_member *m, const struct subnet *s, enum membership level,
                         uint8_t *levels)
{
        uint32_t port = SUBNET_NONE;

        switch (m->who) {
        case PARTITIONS_CONF_ALL:
        case PARTITIONS_CONF_TYPE:
                for (uint32_t p = 0; p < s->n_ports; p++)
                        if (matches(m, s, p))
                                levels[p] = (uint8_t) level;
                return;
        case PARTITIONS_CONF_SELF:
                port = partitions_conf_self_port(s);
                break;
        case PARTITIONS_CONF_GUID:
                port = subnet_find_endport(s, m->guid);
                break;
        }
        if (port != SUBNET_NONE)
                levels[port] = (uint8_t) level;
}

int partitions_conf_apply(struct arena *a, const struct partitions_conf_partition *partition, const struct subnet *subnet,
                          bool allow_both_pkeys, uint8_t **ret)
{
        uint8_t *levels = arena_new_array(a, uint8_t, subnet->n_ports);

        if (!levels)
                return -ENOMEM;
        for (const struct partitions_conf_member *m = partition->members; m; m = m->next)
                apply_member(m, subnet, partitions_conf_membership(m->membership, allow_both_pkeys), levels);
        *ret = levels;
        return 0;
}
