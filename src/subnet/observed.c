/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "subnet/observed.h"

int observed_new_of(struct arena *a, const struct subnet *subnet,
                    bool (*has_table)(const struct subnet *s, const struct subnet_port *p), struct observed **ret)
{
        struct observed *o = arena_new_object(a, struct observed);

        if (!o)
                return -ENOMEM;
        *o = (struct observed) { subnet, arena_new_array(a, struct observed_table, subnet->n_ports) };
        if (!o->tables)
                return -ENOMEM;
        for (uint32_t i = 0; i < subnet->n_ports; i++) {
                const struct subnet_port *p = &subnet->ports[i];
                struct observed_table *t = &o->tables[i];

                t->enforce_inbound = p->enforce_inbound;
                t->enforce_outbound = p->enforce_outbound;
                if (!has_table(subnet, p))
                        continue;
                t->capacity = subnet_port_capacity(subnet, p);
                t->entries = arena_new_array(a, struct p_key, t->capacity);
                if (!t->entries)
                        return -ENOMEM;
        }
        *ret = o;
        return 0;
}

int observed_new(struct arena *a, const struct subnet *subnet, struct observed **ret)
{
        return observed_new_of(a, subnet, subnet_port_is_managed, ret);
}

struct observed *observed_copy(struct arena *a, const struct observed *from)
{
        uint32_t n = from->subnet->n_ports;
        struct observed *o = arena_new_object(a, struct observed);

        if (!o)
                return NULL;
        *o = (struct observed) { from->subnet, arena_copy(a, from->tables, n) };
        for (uint32_t i = 0; o->tables && i < n; i++) {
                struct observed_table *t = &o->tables[i];

                if (!t->entries)
                        continue;
                t->entries = arena_copy(a, t->entries, t->capacity);
                if (!t->entries)
                        return NULL;
        }
        return o->tables ? o : NULL;
}

void observed_table_set_block(struct observed_table *t, uint16_t block, const struct p_key entries[P_KEY_BLOCK_ENTRIES])
{
        size_t n = p_key_block_size(t->capacity, block);

        if (n > 0)
                memcpy(t->entries + (size_t) block * P_KEY_BLOCK_ENTRIES, entries, n * sizeof(*entries));
}

/* Orders two ports of different snapshots, as each snapshot is sorted. */
static int compare_ports(const struct subnet *s, uint32_t port, const struct subnet *t, uint32_t other)
{
        const struct subnet_port *p = &s->ports[port], *q = &t->ports[other];

        return ORDER(s->nodes[p->node].guid.v, t->nodes[q->node].guid.v) ?: ORDER(p->number, q->number);
}

bool observed_next_common(const struct observed *x, const struct observed *y, uint32_t *i, uint32_t *j)
{
        while (*i < x->subnet->n_ports && *j < y->subnet->n_ports) {
                int c = compare_ports(x->subnet, *i, y->subnet, *j);

                if (c == 0)
                        return true;
                if (c < 0)
                        (*i)++;
                else
                        (*j)++;
        }
        return false;
}

enum observed_filter observed_filter(const struct subnet *s, const struct observed *o, uint32_t port, bool outbound)
{
        const struct subnet_port *p = &s->ports[port];
        bool checks = outbound ? p->enforce_outbound : p->enforce_inbound;

        assert(port < s->n_ports);
        if (o && o->subnet == s) {
                const struct observed_table *t = &o->tables[port];

                if (t->enforcement_doubted)
                        return OBSERVED_FILTER_DOUBTED;
                checks = outbound ? t->enforce_outbound : t->enforce_inbound;
        }
        return checks ? OBSERVED_FILTER_ON : OBSERVED_FILTER_OFF;
}

int observed_default_index(const struct observed *o, uint32_t port)
{
        const struct observed_table *t = &o->tables[port];
        int index = -1;

        assert(port < o->subnet->n_ports);
        for (unsigned i = 0; t->entries && i < t->capacity; i++) {
                if (p_key_base(t->entries[i]) != P_KEY_DEFAULT_BASE)
                        continue;
                if (p_key_is_full(t->entries[i]))
                        return (int) i;
                if (index < 0)
                        index = (int) i;
        }
        return index;
}
