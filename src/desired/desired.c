/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "desired/desired.h"

#include <errno.h>

static int list_endport_entries(struct arena *a, const struct memberships *m, uint32_t port, bool certain, struct desired_port *ret)
{
        uint32_t first = m->first[port], n = m->first[port + 1] - first, k = 0;
        struct p_key *wanted = arena_new_array(a, struct p_key, (size_t) n * 2);
        const struct port_membership *item;
        uint16_t base, index0_base = 0;

        if (!wanted)
                return -ENOMEM;
        for (uint32_t i = 0; i < n; i++) {
                item = &m->items[first + i];
                base = m->policy->partitions[item->partition].base;
                k += p_keys_of_membership(base, certain ? item->certain : item->membership, wanted + k);
                if (item->rule && item->rule->index0)
                        index0_base = base;
        }
        *ret = (struct desired_port) { .wanted = wanted, .n_wanted = p_keys_sort(wanted, k), .index0_base = index0_base };
        return 0;
}

int desired_certain(struct arena *a, const struct memberships *memberships, uint32_t port, struct desired_port *ret)
{
        return list_endport_entries(a, memberships, port, true, ret);
}

int desired_of_leaf(struct arena *a, const struct desired_port *peer, struct desired_port *ret)
{
        struct p_key *wanted = arena_new_array(a, struct p_key, peer->n_wanted);
        uint32_t k = 0;

        if (!wanted)
                return -ENOMEM;
        for (uint32_t i = 0; i < peer->n_wanted; i++) {
                if (k > 0 && p_key_same_partition(wanted[k - 1], peer->wanted[i]))
                        k--;
                wanted[k++] = peer->wanted[i];
        }
        *ret = (struct desired_port) { .wanted = wanted, .n_wanted = k };
        return 0;
}

int desired_compute(struct arena *a, const struct memberships *memberships, struct desired **ret)
{
        const struct subnet *s = memberships->subnet;
        struct desired *d = arena_new_object(a, struct desired);
        const struct subnet_port *p;
        int r = 0;

        if (!d)
                return -ENOMEM;
        *d = (struct desired) {
                .policy = memberships->policy,
                .subnet = s,
                .ports = arena_new_array(a, struct desired_port, s->n_ports),
                .index0_base = memberships->policy->partitions[policy_index0_partition(memberships->policy)].base,
        };
        if (!d->ports)
                return -ENOMEM;
        for (uint32_t i = 0; i < s->n_ports && r == 0; i++)
                if (s->ports[i].role == PORT_ENDPORT)
                        r = list_endport_entries(a, memberships, i, false, &d->ports[i]);
        for (uint32_t i = 0; i < s->n_ports && r == 0; i++) {
                p = &s->ports[i];
                if (p->role == PORT_SWITCH_EXTERNAL && subnet_port_can_enforce(s, p) && p->peer != SUBNET_NONE)
                        r = desired_of_leaf(a, &d->ports[p->peer], &d->ports[i]);
        }
        if (r == 0)
                *ret = d;
        return r;
}
