/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "reach/matrix.h"

#include <errno.h>
#include <string.h>

#include "reach/classes.h"
#include "util/vector.h"

/* How many endports of a set have which membership in a base. */
struct members {
        uint16_t base;
        uint32_t n_full, n_limited;
};

struct side {
        struct members *members; /* ascending base */
        size_t n, allocated;
};

DEFINE_COMPARE(compare_members, struct members, ORDER(a->base, b->base))

/* One item for each base. */
static void merge_members(struct side *side)
{
        size_t n = 0;

        SORT(side->members, side->n, compare_members);
        for (size_t i = 0; i < side->n; i++) {
                const struct members *m = &side->members[i];

                if (n == 0 || side->members[n - 1].base != m->base) {
                        side->members[n++] = *m;
                        continue;
                }
                side->members[n - 1].n_full += m->n_full;
                side->members[n - 1].n_limited += m->n_limited;
        }
        side->n = n;
}

static int count_members(struct arena *a, const struct reach_classes *classes, const uint32_t *ports, uint32_t n_ports,
                         struct side *ret)
{
        uint32_t *counts;

        *ret = (struct side) {};
        if (n_ports == 0) /* of most pairs of sets nothing is in both */
                return 0;
        counts = arena_new_array(a, uint32_t, classes->n);
        if (!counts)
                return -ENOMEM;
        for (uint32_t i = 0; i < n_ports; i++)
                if (classes->class_of[ports[i]] != REACH_NO_CLASS)
                        counts[classes->class_of[ports[i]]]++;
        for (uint32_t c = 0; c < classes->n; c++) {
                const struct reach_class *class = &classes->items[c];

                for (uint32_t i = 0; counts[c] > 0 && i < class->n_levels; i++) {
                        bool full = class->levels[i].after == LEVEL_FULL;

                        if (VECTOR_ADD(a, ret->members, ret->n, ret->allocated, (struct members) {
                                    class->levels[i].base, full ? counts[c] : 0, full ? 0 : counts[c] }) < 0)
                                return -ENOMEM;
                }
        }
        merge_members(ret);
        return 0;
}

/* The endports that are in both sets. NULL: out of memory. */
static const uint32_t *intersect(struct arena *a, const struct reach_set *x, const struct reach_set *y, uint32_t *ret_n)
{
        uint32_t *ports = arena_new_array(a, uint32_t, MIN(x->n, y->n));

        *ret_n = 0;
        for (uint32_t i = 0, k = 0; ports && i < x->n && k < y->n;) {
                uint32_t px = x->ports[i], py = y->ports[k];

                if (px == py)
                        ports[(*ret_n)++] = px;
                i += px <= py;
                k += py <= px;
        }
        return ports;
}

static uint32_t full_in(const struct side *side, uint16_t base)
{
        const struct members *found = FIND_SORTED(m, side->members, side->n, ORDER(m->base, base));

        return found ? found->n_full : 0;
}

/* n_pairs: of an endport of x and another one of y. common: the members in both, of which each makes no pair with itself. */
static int make_cell(struct arena *a, const struct side *x, const struct side *y, const struct side *common, uint64_t n_pairs,
                     struct reach_cell *ret)
{
        struct reach_way *ways = NULL;
        size_t n = 0, allocated = 0;

        for (size_t i = 0, k = 0; i < x->n && k < y->n;) {
                const struct members *mx = &x->members[i], *my = &y->members[k];
                uint64_t n_talk = (uint64_t) mx->n_full * my->n_full + (uint64_t) mx->n_full * my->n_limited +
                                  (uint64_t) mx->n_limited * my->n_full;

                i += mx->base <= my->base;
                k += my->base <= mx->base;
                if (mx->base != my->base || n_talk == full_in(common, mx->base))
                        continue;
                n_talk -= full_in(common, mx->base);
                if (VECTOR_ADD(a, ways, n, allocated, (struct reach_way) { mx->base, n_talk == n_pairs }) < 0)
                        return -ENOMEM;
        }
        *ret = (struct reach_cell) { ways, (uint32_t) n };
        return 0;
}

static int fill_cell(struct arena *a, const struct reach_classes *classes, const struct reach_set *x, const struct reach_set *y,
                     const struct side *side_x, const struct side *side_y, struct reach_cell *ret)
{
        _cleanup_arena_ struct arena *scratch = arena_new();
        struct side common;
        uint32_t n_common;
        const uint32_t *ports = intersect(scratch, x, y, &n_common);
        int r = ports ? count_members(scratch, classes, ports, n_common, &common) : -ENOMEM;

        return r < 0 ? r : make_cell(a, side_x, side_y, &common, (uint64_t) x->n * y->n - n_common, ret);
}

DEFINE_COMPARE(compare_sets, struct reach_set, ORDER(a->ports[0], b->ports[0]))

int reach_split(struct arena *a, const struct subnet *s, const struct reach_table *tables, const struct reach_set *from,
                struct reach_set **ret, uint32_t *ret_n)
{
        _cleanup_arena_ struct arena *scratch = arena_new();
        uint32_t *ports = arena_new_array(a, uint32_t, from->n), n = 0;
        bool *wanted = arena_new_array(scratch, bool, s->n_ports);
        struct reach_classes classes;
        int r = ports && wanted ? reach_classify_one(scratch, s, tables, &classes) : -ENOMEM;

        *ret_n = 0;
        *ret = r == 0 ? arena_new_array(a, struct reach_set, classes.n) : NULL;
        if (!*ret)
                return -ENOMEM;
        for (uint32_t i = 0; i < from->n; i++)
                wanted[from->ports[i]] = true;
        for (uint32_t c = 0; c < classes.n; c++) {
                struct reach_set *set = &(*ret)[*ret_n];

                *set = (struct reach_set) { .ports = ports + n };
                for (uint32_t i = 0; i < classes.items[c].n_ports; i++)
                        if (wanted[classes.items[c].ports[i]]) {
                                ports[n++] = classes.items[c].ports[i];
                                set->n++;
                        }
                *ret_n += set->n > 0;
        }
        SORT(*ret, *ret_n, compare_sets);
        return 0;
}

int reach_matrix(struct arena *a, const struct subnet *s, const struct reach_table *tables, const struct reach_set *sets,
                 uint32_t n, const struct reach_cell **ret)
{
        _cleanup_arena_ struct arena *scratch = arena_new();
        struct side *sides = arena_new_array(scratch, struct side, n);
        struct reach_cell *cells = arena_new_array(a, struct reach_cell, (size_t) n * n);
        struct reach_classes classes;
        int r = sides && cells ? reach_classify_one(scratch, s, tables, &classes) : -ENOMEM;

        for (uint32_t i = 0; i < n && r == 0; i++)
                r = count_members(scratch, &classes, sets[i].ports, sets[i].n, &sides[i]);
        for (uint32_t i = 0; i < n && r == 0; i++)
                for (uint32_t k = 0; k <= i && r == 0; k++) {
                        r = fill_cell(a, &classes, &sets[i], &sets[k], &sides[i], &sides[k], &cells[(size_t) i * n + k]);
                        cells[(size_t) k * n + i] = cells[(size_t) i * n + k];
                }
        *ret = cells;
        return r;
}
