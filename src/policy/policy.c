/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/policy.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "policy/selector.h"

static bool is_in_ranges(const struct base_range *ranges, uint32_t n, uint16_t base)
{
        for (uint32_t i = 0; i < n; i++)
                if (base >= ranges[i].first && base <= ranges[i].last)
                        return true;
        return false;
}

bool policy_owns(const struct policy *p, uint16_t base)
{
        return is_in_ranges(p->owns, p->n_owns, base);
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

const char *policy_partition_label(struct arena *a, const struct policy_partition *p)
{
        return p->lease ? arena_printf(a, "lease %s", p->lease) : arena_strdup(a, p->name);
}

uint32_t policy_index0_partition(const struct policy *p)
{
        for (uint32_t i = 0; i < p->n_partitions; i++)
                if (p->partitions[i].index0)
                        return i;
        return 0;
}

enum membership policy_default_membership(const struct policy *p)
{
        const struct policy_partition *d = &p->partitions[0];

        if (!policy_owns(p, P_KEY_DEFAULT_BASE))
                return MEMBERSHIP_NONE;
        for (uint32_t i = 0; i < d->n_candidates; i++) {
                const struct selector *s = d->candidates[i].selector;

                if (s->kind == SELECTOR_ALL || (s->kind == SELECTOR_TYPE && s->type == NODE_CA))
                        return d->rules[d->candidates[i].rule].membership;
        }
        return MEMBERSHIP_LIMITED;
}

const struct policy_pool *policy_find_pool(const struct policy *p, const char *name)
{
        for (uint32_t i = 0; i < p->n_pools; i++)
                if (strcmp(p->pools[i].name, name) == 0)
                        return &p->pools[i];
        return NULL;
}

const struct policy_pool *policy_pool_of_base(const struct policy *p, uint16_t base)
{
        for (uint32_t i = 0; i < p->n_pools; i++)
                if (is_in_ranges(p->pools[i].ranges, p->pools[i].n_ranges, base))
                        return &p->pools[i];
        return NULL;
}

DEFINE_COMPARE(compare_guids, struct guid, ORDER(a->v, b->v))

int policy_named_guids(struct arena *a, const struct policy *p, const struct guid **ret, uint32_t *ret_n)
{
        struct selector_list all = {};
        int r = selector_list_all(a, p, &all);
        struct guid *guids = arena_new_array(a, struct guid, all.n);
        uint32_t n = 0, kept = 0;

        if (r < 0 || !guids)
                return -ENOMEM;
        for (size_t i = 0; i < all.n; i++)
                if (all.items[i]->kind == SELECTOR_GUID)
                        guids[n++] = all.items[i]->guid;
        SORT(guids, n, compare_guids);
        for (uint32_t i = 0; i < n; i++)
                if (kept == 0 || guids[i].v != guids[kept - 1].v)
                        guids[kept++] = guids[i];
        *ret = guids;
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

enum membership memberships_get(const struct memberships *m, uint32_t port, uint16_t base)
{
        const struct port_membership *item = memberships_find(m, port, base);

        return item ? item->membership : MEMBERSHIP_NONE;
}
