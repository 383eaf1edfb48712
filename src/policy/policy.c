/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/policy.h"

#include <errno.h>
#include <stdlib.h>

#include "policy/selector.h"

bool policy_owns(const struct policy *p, uint16_t base)
{
        for (uint32_t i = 0; i < p->n_owns; i++)
                if (base >= p->owns[i].first && base <= p->owns[i].last)
                        return true;
        return false;
}

bool policy_manages(const struct policy *p, bool keeps_unmanaged, uint16_t base)
{
        return policy_owns(p, base) && (!keeps_unmanaged || policy_find_base(p, base) >= 0);
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

/* guids NULL: they are only counted. */
static uint32_t take_guids(struct selector *const *selectors, uint32_t n, struct guid *guids)
{
        uint32_t taken = 0;

        for (uint32_t i = 0; i < n; i++) {
                if (selectors[i]->kind != SELECTOR_GUID)
                        continue;
                if (guids)
                        guids[taken] = selectors[i]->guid;
                taken++;
        }
        return taken;
}

static uint32_t take_all_guids(const struct policy *p, struct guid *guids)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < p->n_groups; i++)
                n += take_guids(p->groups[i].selectors, p->groups[i].n_selectors, guids ? guids + n : NULL);
        for (uint32_t i = 0; i < p->n_partitions; i++)
                for (uint32_t k = 0; k < p->partitions[i].n_rules; k++) {
                        const struct policy_rule *rule = &p->partitions[i].rules[k];

                        n += take_guids(rule->selectors, rule->n_selectors, guids ? guids + n : NULL);
                }
        return n;
}

static int compare_guids(const void *left, const void *right)
{
        const struct guid *a = left, *b = right;

        return ORDER(a->v, b->v);
}

int policy_named_guids(struct arena *a, const struct policy *p, const struct guid **ret, uint32_t *ret_n)
{
        uint32_t n = take_all_guids(p, NULL), kept = 0;
        struct guid *guids = arena_new_array(a, struct guid, n);

        if (!guids)
                return -ENOMEM;
        (void) take_all_guids(p, guids);
        if (n > 0)
                qsort(guids, n, sizeof(*guids), compare_guids);
        for (uint32_t i = 0; i < n; i++)
                if (kept == 0 || guids[i].v != guids[kept - 1].v)
                        guids[kept++] = guids[i];
        *ret = guids;
        *ret_n = kept;
        return 0;
}

const struct port_membership *memberships_find(const struct memberships *m, uint32_t port, uint16_t base)
{
        for (uint32_t i = m->first[port]; i < m->first[port + 1]; i++)
                if (m->policy->partitions[m->items[i].partition].base == base)
                        return &m->items[i];
        return NULL;
}
