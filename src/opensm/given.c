/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "opensm/given.h"

#include <errno.h>
#include <stdlib.h>

#include "util/vector.h"

struct grant {
        struct guid guid;
        struct p_key key;
};

DEFINE_COMPARE(compare_grants, struct grant, ORDER(a->guid.v, b->guid.v))

struct grants {
        struct grant *items; /* malloc'ed */
        size_t n, allocated;
};

static int add_grants(struct grants *to, const struct partitions_conf_partition *p)
{
        struct p_key keys[2];
        uint32_t n_keys;
        int r = 0;

        for (const struct partitions_conf_member *m = p->members; r == 0 && m; m = m->next) {
                if (m->who != PARTITIONS_CONF_GUID)
                        continue;
                n_keys = p_keys_of_membership(p->base, m->membership, keys);
                for (uint32_t i = 0; r == 0 && i < n_keys; i++)
                        r = VECTOR_ADD(NULL, to->items, to->n, to->allocated, (struct grant) { m->guid, keys[i] });
        }
        return r;
}

static int group_grants(struct arena *a, const struct grant *grants, size_t n, struct opensm_tables *ret)
{
        struct p_key *keys = arena_new_array(a, struct p_key, n);
        struct partitions_file_port *ports = arena_new_array(a, struct partitions_file_port, n);
        uint32_t n_ports = 0;

        if (!keys || !ports)
                return -ENOMEM;
        for (size_t i = 0; i < n;) {
                size_t first = i;

                for (; i < n && grants[i].guid.v == grants[first].guid.v; i++)
                        keys[i] = grants[i].key;
                ports[n_ports++] = (struct partitions_file_port) {
                        .guid = grants[first].guid, .keys = keys + first,
                        .n_keys = p_keys_sort(keys + first, (uint32_t) (i - first)),
                };
        }
        *ret = (struct opensm_tables) { .ports = ports, .n_ports = n_ports };
        return 0;
}

int opensm_tables_of_file(struct arena *a, const struct partitions_conf *conf, struct opensm_tables *ret)
{
        struct grants grants = {};
        int r = 0;

        for (uint32_t i = 0; r == 0 && i < conf->n_partitions; i++)
                r = add_grants(&grants, &conf->partitions[i]);
        SORT(grants.items, grants.n, compare_grants);
        r = r ?: group_grants(a, grants.items, grants.n, ret);
        free(grants.items);
        return r;
}

const struct partitions_file_port opensm_nothing_given;

const struct partitions_file_port *opensm_find_given(const struct opensm_tables *t, struct guid guid)
{
        return (t ? FIND_SORTED(port, t->ports, t->n_ports, ORDER(port->guid.v, guid.v)) : NULL) ?: &opensm_nothing_given;
}
