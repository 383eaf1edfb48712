/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "reach/matrix.h"

#include <errno.h>
#include <string.h>

#include "reach/classes.h"

/* What decides the kind of a port: its class, and the sets that it is in. */
struct sorter {
        const uint32_t *class_of; /* by port */
        const uint32_t *first;    /* by port, and one more: where its sets begin in `sets` */
        const uint32_t *sets;     /* ascending for each port */
};

static uint32_t n_sets_of(const struct sorter *sorter, uint32_t port)
{
        return sorter->first[port + 1] - sorter->first[port];
}

/* 0: they are of one kind. */
static int compare_kinds(const struct sorter *sorter, uint32_t a, uint32_t b)
{
        uint32_t n = n_sets_of(sorter, a);

        return ORDER(sorter->class_of[a], sorter->class_of[b]) ?: ORDER(n, n_sets_of(sorter, b)) ?:
               (n == 0 ? 0 : memcmp(sorter->sets + sorter->first[a], sorter->sets + sorter->first[b], n * sizeof(*sorter->sets)));
}

static int compare_ports(const void *pa, const void *pb, void *userdata)
{
        uint32_t a = *(const uint32_t *) pa, b = *(const uint32_t *) pb;

        return compare_kinds(userdata, a, b) ?: ORDER(a, b);
}

/* Lists the sets of each port. */
static int invert(struct arena *a, uint32_t n_ports, const struct reach_set *sets, uint32_t n_sets, struct sorter *ret)
{
        uint32_t *first = arena_new_array(a, uint32_t, (size_t) n_ports + 1), *next = arena_new_array(a, uint32_t, n_ports), *of;

        if (!first || !next)
                return -ENOMEM;
        for (uint32_t i = 0; i < n_sets; i++)
                for (uint32_t k = 0; k < sets[i].n; k++)
                        first[sets[i].ports[k] + 1]++;
        for (uint32_t p = 0; p < n_ports; p++) {
                first[p + 1] += first[p];
                next[p] = first[p];
        }
        of = arena_new_array(a, uint32_t, first[n_ports]);
        if (!of)
                return -ENOMEM;
        for (uint32_t i = 0; i < n_sets; i++)
                for (uint32_t k = 0; k < sets[i].n; k++)
                        of[next[sets[i].ports[k]]++] = i;
        ret->first = first;
        ret->sets = of;
        return 0;
}

/* *kind has its ports already. */
static int describe_kind(struct arena *a, const struct sorter *sorter, const struct reach_class *class, struct reach_kind *kind)
{
        uint32_t port = kind->ports[0], *in;
        struct p_key *keys = arena_new_array(a, struct p_key, class->n_levels);

        kind->n_sets = n_sets_of(sorter, port);
        in = arena_new_array(a, uint32_t, kind->n_sets);
        if (!keys || !in)
                return -ENOMEM;
        for (uint32_t i = 0; i < class->n_levels; i++)
                keys[i] = p_key_make(class->levels[i].base, class->levels[i].after == LEVEL_FULL);
        for (uint32_t i = 0; i < kind->n_sets; i++)
                in[i] = sorter->sets[sorter->first[port] + i];
        kind->keys = keys;
        kind->n_keys = class->n_levels;
        kind->sets = in;
        return 0;
}

DEFINE_COMPARE(compare_first_port, struct reach_kind, ORDER(a->ports[0], b->ports[0]))

/* The ports that have a class, sorted by their kinds. */
static uint32_t *sort_ports(struct arena *a, const struct subnet *s, struct sorter *sorter, uint32_t *ret_n)
{
        uint32_t *ports = arena_new_array(a, uint32_t, s->n_ports), n = 0;

        for (uint32_t p = 0; ports && p < s->n_ports; p++)
                if (sorter->class_of[p] != REACH_NO_CLASS)
                        ports[n++] = p;
        if (ports && n > 0)
                qsort_r(ports, n, sizeof(*ports), compare_ports, sorter);
        *ret_n = n;
        return ports;
}

/* Ports of one kind follow each other. */
static int make_kinds(struct arena *a, const struct sorter *sorter, const struct reach_classes *classes, const uint32_t *ports,
                      uint32_t n_ports, struct reach_kind **ret, uint32_t *ret_n)
{
        struct reach_kind *kinds = arena_new_array(a, struct reach_kind, n_ports);
        uint32_t n = 0;
        int r = kinds ? 0 : -ENOMEM;

        for (uint32_t i = 0; i < n_ports && r == 0; i++) {
                if (n == 0 || compare_kinds(sorter, ports[i], kinds[n - 1].ports[0]) != 0)
                        kinds[n++].ports = ports + i;
                kinds[n - 1].n_ports++;
        }
        for (uint32_t i = 0; i < n && r == 0; i++)
                r = describe_kind(a, sorter, &classes->items[sorter->class_of[kinds[i].ports[0]]], &kinds[i]);
        if (r < 0)
                return r;
        SORT(kinds, n, compare_first_port);
        *ret = kinds;
        *ret_n = n;
        return 0;
}

int reach_kinds(struct arena *a, const struct subnet *s, const struct reach_table *tables, const struct reach_set *sets,
                uint32_t n_sets, struct reach_kind **ret, uint32_t *ret_n)
{
        _cleanup_arena_ struct arena *scratch = arena_new();
        struct reach_classes classes;
        struct sorter sorter;
        uint32_t *ports, n;
        int r = scratch ? reach_classify_one(scratch, s, tables, &classes) : -ENOMEM;

        r = r ?: invert(scratch, s->n_ports, sets, n_sets, &sorter);
        if (r < 0)
                return r;
        sorter.class_of = classes.class_of;
        ports = sort_ports(a, s, &sorter, &n);
        return ports ? make_kinds(a, &sorter, &classes, ports, n, ret, ret_n) : -ENOMEM;
}
