/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/policy.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "policy/selector.h"
#include "util/vector.h"

bool policy_owns(const struct policy *p, uint16_t base)
{
        for (uint32_t i = 0; i < p->n_owns; i++)
                if (base >= p->owns[i].first && base <= p->owns[i].last)
                        return true;
        return false;
}

bool policy_manages(const struct policy *p, bool keeps_unmanaged, uint16_t base)
{
        return policy_owns(p, base) && (!keeps_unmanaged || policy_find_base(p, base) >= 0 || policy_pool_of_base(p, base));
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

struct guid_list {
        struct guid *items;
        uint32_t n, allocated;
};

static int add_guid(struct arena *a, struct guid_list *list, const struct selector *selector)
{
        if (selector->kind != SELECTOR_GUID)
                return 0;
        if (VECTOR_GROW(a, list->items, list->n, list->allocated) < 0)
                return -ENOMEM;
        list->items[list->n++] = selector->guid;
        return 0;
}

DEFINE_COMPARE(compare_guids, struct guid, ORDER(a->v, b->v))

int policy_named_guids(struct arena *a, const struct policy *p, const struct guid **ret, uint32_t *ret_n)
{
        struct guid_list list = {};
        uint32_t kept = 0;
        int r = 0;

        for (uint32_t i = 0; i < p->n_pools; i++)
                for (uint32_t k = 0; k < p->pools[i].n_ports && r == 0; k++)
                        r = add_guid(a, &list, p->pools[i].ports[k]);
        for (uint32_t i = 0; i < p->n_groups; i++)
                for (uint32_t k = 0; k < p->groups[i].n_selectors && r == 0; k++)
                        r = add_guid(a, &list, p->groups[i].selectors[k]);
        for (uint32_t i = 0; i < p->n_partitions; i++)
                for (uint32_t k = 0; k < p->partitions[i].n_candidates && r == 0; k++)
                        r = add_guid(a, &list, p->partitions[i].candidates[k].selector);
        if (r < 0)
                return r;
        SORT(list.items, list.n, compare_guids);
        for (uint32_t i = 0; i < list.n; i++)
                if (kept == 0 || list.items[i].v != list.items[kept - 1].v)
                        list.items[kept++] = list.items[i];
        *ret = list.items;
        *ret_n = kept;
        return 0;
}

const struct port_membership *memberships_find(const struct memberships *m, uint32_t port, uint16_t base)
{
        assert(port < m->subnet->n_ports && base <= P_KEY_BASE_MASK);
        for (uint32_t i = m->first[port]; i < m->first[port + 1]; i++)
                if (m->policy->partitions[m->items[i].partition].base == base)
                        return &m->items[i];
        return NULL;
}
