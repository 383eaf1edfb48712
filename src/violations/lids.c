/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "violations/lids.h"

#include <errno.h>

/* 0xc000 and above are multicast and the permissive LID (IBA 1.5, 4.1.3). */
#define LIDS       0xc000
#define LMC_MASK   7

struct lid_map {
        uint32_t ports[LIDS]; /* index + 1; 0: nobody */
};

static bool has_lid(const struct subnet_port *p, struct lid lid)
{
        uint32_t first = p->lid.v, end = first + (1u << (p->lmc & LMC_MASK));

        return p->role == PORT_ENDPORT && first != 0 && lid.v >= first && lid.v < end;
}

uint32_t lid_find(const struct subnet *s, struct lid lid)
{
        uint32_t found = SUBNET_NONE;

        if (lid.v == 0 || lid.v >= LIDS)
                return SUBNET_NONE;
        for (uint32_t i = 0; i < s->n_ports; i++)
                if (has_lid(&s->ports[i], lid))
                        found = found == SUBNET_NONE ? i : LID_SEVERAL;
        return found;
}

int lid_map_new(struct arena *a, const struct subnet *s, struct lid_map **ret)
{
        struct lid_map *m = arena_new_object(a, struct lid_map);

        if (!m)
                return -ENOMEM;
        for (uint32_t i = 0; i < s->n_ports; i++) {
                const struct subnet_port *p = &s->ports[i];

                for (uint32_t lid = p->lid.v; lid < LIDS && has_lid(p, (struct lid) { (uint16_t) lid }); lid++)
                        m->ports[lid] = m->ports[lid] == 0 ? i + 1 : LID_SEVERAL + 1;
        }
        *ret = m;
        return 0;
}

uint32_t lid_map_find(const struct lid_map *m, struct lid lid)
{
        if (lid.v >= LIDS || m->ports[lid.v] == 0)
                return SUBNET_NONE;
        return m->ports[lid.v] - 1;
}
