/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "violations/lids.h"

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
