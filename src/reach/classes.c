/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "reach/classes.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "util/hash_index.h"
#include "util/vector.h"

#define N_BASES (P_KEY_BASE_MASK + 1)

struct classifier {
        struct arena *arena;          /* borrows; of the result */
        const struct subnet *subnet;
        const struct reach_table *before, *after;
        struct hash_index index;      /* of the classes, by their levels */
        struct reach_class *items;
        size_t n, allocated;
        uint32_t *class_of;           /* by port; REACH_NO_CLASS: none */
        struct reach_level *levels;   /* of the port that is being classified */
        size_t n_levels, allocated_levels;
};

/* --- levels of one port --------------------------------------------------------------------------------------------- */

static bool is_known(const struct subnet *s, const struct reach_table *tables, uint32_t port)
{
        uint32_t leaf = subnet_leaf_port(s, port);

        return tables[port].entries && (leaf == SUBNET_NONE || !tables[leaf].enforces || tables[leaf].entries);
}

static bool passes_leaf(const struct subnet *s, const struct reach_table *tables, uint32_t port, uint16_t base)
{
        uint32_t leaf = subnet_leaf_port(s, port);

        return leaf == SUBNET_NONE || !tables[leaf].enforces || p_keys_hold_base(tables[leaf].entries, tables[leaf].capacity, base);
}

/* Each entry in use becomes a level; a base may have several. */
static int add_levels(struct classifier *c, const struct reach_table *tables, uint32_t port)
{
        for (uint32_t i = 0; i < tables[port].capacity; i++) {
                struct p_key key = tables[port].entries[i];
                uint8_t level = p_key_is_full(key) ? LEVEL_FULL : LEVEL_LIMITED;

                if (!p_key_is_used(key) || !passes_leaf(c->subnet, tables, port, p_key_base(key)))
                        continue;
                if (VECTOR_ADD(NULL, c->levels, c->n_levels, c->allocated_levels, (struct reach_level) {
                            .base = p_key_base(key),
                            .before = tables == c->before ? level : LEVEL_NONE,
                            .after = tables == c->after ? level : LEVEL_NONE }) < 0)
                        return -ENOMEM;
        }
        return 0;
}

DEFINE_COMPARE(compare_levels, struct reach_level, ORDER(a->base, b->base))

/* One level for each base. */
static void merge_levels(struct classifier *c)
{
        size_t n = 0;

        SORT(c->levels, c->n_levels, compare_levels);
        for (size_t i = 0; i < c->n_levels; i++) {
                struct reach_level *level = &c->levels[i];

                if (n > 0 && c->levels[n - 1].base == level->base) {
                        c->levels[n - 1].before = MAX(c->levels[n - 1].before, level->before);
                        c->levels[n - 1].after = MAX(c->levels[n - 1].after, level->after);
                } else {
                        c->levels[n++] = *level;
                }
        }
        c->n_levels = n;
}

/* --- classes --------------------------------------------------------------------------------------------------------- */

static uint64_t hash_levels(const struct reach_level *levels, size_t n)
{
        uint64_t hash = HASH_START;

        for (size_t i = 0; i < n; i++)
                hash = hash_mix(hash, (uint64_t) levels[i].base << 16 | (uint64_t) levels[i].before << 8 | levels[i].after);
        return hash;
}

static bool same_levels(const struct reach_class *class, const struct reach_level *levels, size_t n)
{
        for (size_t i = 0; class->n_levels == n && i < n; i++)
                if (class->levels[i].base != levels[i].base || class->levels[i].before != levels[i].before ||
                    class->levels[i].after != levels[i].after)
                        return false;
        return class->n_levels == n;
}

static int add_class(struct classifier *c, uint64_t hash, uint32_t *ret)
{
        struct reach_level *levels = arena_copy(c->arena, c->levels, c->n_levels);
        uint32_t i = (uint32_t) c->n;
        bool changes = false;

        for (size_t k = 0; levels && k < c->n_levels; k++)
                changes |= levels[k].before != levels[k].after;
        if (!levels || hash_index_reserve(&c->index, i + 1) < 0 ||
            VECTOR_ADD(c->arena, c->items, c->n, c->allocated,
                       (struct reach_class) { .levels = levels, .n_levels = (uint32_t) c->n_levels, .changes = changes }) < 0)
                return -ENOMEM;
        hash_index_add(&c->index, i, hash);
        *ret = i;
        return 0;
}

static int classify_port(struct classifier *c, uint32_t port)
{
        uint64_t hash;
        uint32_t class;
        int r;

        c->n_levels = 0;
        r = add_levels(c, c->before, port) ?: add_levels(c, c->after, port);
        if (r < 0)
                return r;
        merge_levels(c);
        hash = hash_levels(c->levels, c->n_levels);
        class = HASH_INDEX_FIND(i, &c->index, hash, same_levels(&c->items[i], c->levels, c->n_levels));
        if (class == HASH_INDEX_NONE)
                r = add_class(c, hash, &class);
        if (r < 0)
                return r;
        c->class_of[port] = class;
        c->items[class].n_ports++;
        return 0;
}

static int classify_ports(struct classifier *c, uint32_t *ret_n_unknown)
{
        int r = 0;

        for (uint32_t p = 0; p < c->subnet->n_ports && r == 0; p++) {
                c->class_of[p] = REACH_NO_CLASS;
                if (c->subnet->ports[p].role != PORT_ENDPORT)
                        continue;
                if (is_known(c->subnet, c->before, p) && is_known(c->subnet, c->after, p))
                        r = classify_port(c, p);
                else
                        ++*ret_n_unknown;
        }
        return r;
}

/* The ports of all classes share one array. */
static int collect_ports(struct classifier *c)
{
        uint32_t *ports = arena_new_array(c->arena, uint32_t, c->subnet->n_ports), n = 0;
        uint32_t **next = arena_new_array(c->arena, uint32_t *, c->n);

        if (!ports || !next)
                return -ENOMEM;
        for (size_t i = 0; i < c->n; i++) {
                c->items[i].ports = next[i] = ports + n;
                n += c->items[i].n_ports;
        }
        for (uint32_t p = 0; p < c->subnet->n_ports; p++)
                if (c->class_of[p] != REACH_NO_CLASS)
                        *next[c->class_of[p]]++ = p;
        return 0;
}

/* --- holders of a base ------------------------------------------------------------------------------------------------ */

static int collect_holders(struct classifier *c, struct reach_classes *ret)
{
        uint32_t *first = arena_new_array(c->arena, uint32_t, N_BASES + 1), *next = arena_new_array(c->arena, uint32_t, N_BASES);
        struct reach_holder *holders;

        if (!first || !next)
                return -ENOMEM;
        for (size_t i = 0; i < c->n; i++)
                for (uint32_t k = 0; k < c->items[i].n_levels; k++)
                        first[c->items[i].levels[k].base + 1]++;
        for (uint32_t b = 0; b < N_BASES; b++)
                first[b + 1] += first[b];
        memcpy(next, first, N_BASES * sizeof(*next));
        holders = arena_new_array(c->arena, struct reach_holder, first[N_BASES]);
        if (!holders)
                return -ENOMEM;
        for (size_t i = 0; i < c->n; i++)
                for (uint32_t k = 0; k < c->items[i].n_levels; k++) {
                        const struct reach_level *level = &c->items[i].levels[k];

                        holders[next[level->base]++] = (struct reach_holder) { (uint32_t) i, level->before, level->after };
                }
        ret->holders = holders;
        ret->first_holder = first;
        return 0;
}

int reach_classify(struct arena *a, const struct subnet *s, const struct reach_table *before, const struct reach_table *after,
                   struct reach_classes *ret)
{
        struct classifier c = {
                .arena = a, .subnet = s, .before = before, .after = after, .index = { .arena = a },
                .class_of = arena_new_array(a, uint32_t, s->n_ports),
        };
        int r = c.class_of ? 0 : -ENOMEM;

        assert(before != after);
        *ret = (struct reach_classes) {};
        r = r ?: classify_ports(&c, &ret->n_unknown) ?: collect_ports(&c) ?: collect_holders(&c, ret);
        free(c.levels);
        ret->items = c.items;
        ret->class_of = c.class_of;
        ret->n = (uint32_t) c.n;
        return r;
}

int reach_classify_one(struct arena *a, const struct subnet *s, const struct reach_table *tables, struct reach_classes *ret)
{
        static const struct p_key nothing;
        struct reach_table *empty = arena_new_array(a, struct reach_table, s->n_ports);

        for (uint32_t p = 0; empty && p < s->n_ports; p++)
                empty[p].entries = &nothing;
        return empty ? reach_classify(a, s, empty, tables, ret) : -ENOMEM;
}
