/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/policy.h"

bool policy_owns(const struct policy *p, uint16_t base)
{
        for (uint32_t i = 0; i < p->n_owns; i++)
                if (base >= p->owns[i].first && base <= p->owns[i].last)
                        return true;
        return false;
}

int policy_find_base(const struct policy *p, uint16_t base)
{
        for (uint32_t i = 0; i < p->n_partitions; i++)
                if (p->partitions[i].base == base)
                        return (int) i;
        return -1;
}

uint32_t policy_index0_partition(const struct policy *p)
{
        for (uint32_t i = 0; i < p->n_partitions; i++)
                if (p->partitions[i].index0)
                        return i;
        return 0;
}

const struct port_membership *memberships_find(const struct memberships *m, uint32_t port, uint16_t base)
{
        for (uint32_t i = m->first[port]; i < m->first[port + 1]; i++)
                if (m->policy->partitions[m->items[i].partition].base == base)
                        return &m->items[i];
        return NULL;
}
