/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "verify/changes.h"

#include <errno.h>

#include "util/vector.h"
#include "verify/explain.h"

/* The change of one endport in one base. */
struct item {
        uint32_t port;
        uint16_t base;
        uint8_t before, after;
};

struct item_list {
        struct arena *arena; /* borrows */
        struct item *items;
        size_t n, allocated;
};

/* Adds an item if the membership in this base changes. */
static int add_base(struct item_list *list, uint32_t port, uint16_t base, const struct explain_table *before,
                    const struct explain_table *after)
{
        enum membership was = explain_table_membership(before, base), is = explain_table_membership(after, base);

        if (was == is)
                return 0;
        return VECTOR_ADD(list->arena, list->items, list->n, list->allocated,
                          (struct item) { port, base, (uint8_t) was, (uint8_t) is });
}

static int compare_tables(struct item_list *list, uint32_t port, const struct explain_table *before,
                          const struct explain_table *after)
{
        int r = 0;

        for (uint32_t i = 0; i < before->n_levels && r == 0; i++)
                r = add_base(list, port, before->levels[i].base, before, after);
        for (uint32_t i = 0; i < after->n_levels && r == 0; i++)
                if (explain_table_membership(before, after->levels[i].base) == MEMBERSHIP_NONE)
                        r = add_base(list, port, after->levels[i].base, before, after);
        return r;
}

static int compare_port(struct item_list *list, uint32_t port, const struct plan *plan, const struct observed *observed)
{
        const struct observed_table *t = &observed->tables[port];
        struct explain_table before, after;

        return explain_table_make(list->arena, t->entries, t->capacity, &before) ?:
               explain_table_make(list->arena, plan->final_tables[port], t->capacity, &after) ?:
               compare_tables(list, port, &before, &after);
}

DEFINE_COMPARE(compare_items, struct item,
               ORDER(a->base, b->base) ?: ORDER(b->after, a->after) ?: ORDER(a->before, b->before) ?: ORDER(a->port, b->port))

static bool same_group(const struct item *a, const struct item *b)
{
        return a->base == b->base && a->before == b->before && a->after == b->after;
}

/* Groups sorted items by change. All groups share one array of ports. */
static int group_items(struct arena *a, const struct item_list *list, struct changes *ret)
{
        struct change *changes = arena_new_array(a, struct change, list->n);
        uint32_t *ports = arena_new_array(a, uint32_t, list->n);
        uint32_t n = 0;

        if (!changes || !ports)
                return -ENOMEM;
        for (size_t i = 0; i < list->n; i++) {
                const struct item *item = &list->items[i];

                ports[i] = item->port;
                if (i == 0 || !same_group(item, item - 1))
                        changes[n++] = (struct change) { item->base, item->before, item->after, ports + i, 0 };
                changes[n - 1].n_ports++;
        }
        ret->items = changes;
        ret->n = n;
        return 0;
}

/* Counts the switch ports that the plan writes; one may have writes in several steps. */
static int count_enforcing(struct arena *a, const struct plan *plan, uint32_t *ret)
{
        bool *seen = arena_new_array(a, bool, plan->subnet->n_ports);
        uint32_t n = 0;

        if (!seen)
                return -ENOMEM;
        for (size_t s = 0; s < PLAN_N_PHASES; s++)
                for (uint32_t w = 0; w < plan->steps[s].n_writes; w++) {
                        uint32_t port = plan->steps[s].writes[w].port;

                        if (seen[port] || plan->subnet->ports[port].role != PORT_SWITCH_EXTERNAL)
                                continue;
                        seen[port] = true;
                        n++;
                }
        *ret = n;
        return 0;
}

int changes_compute(struct arena *a, const struct plan *plan, const struct observed *observed, struct changes *ret)
{
        _cleanup_arena_ struct arena *scratch = arena_new();
        struct item_list list = { .arena = scratch };
        struct changes out = {};
        int r;

        if (!scratch)
                return -ENOMEM;
        for (uint32_t p = 0; p < plan->subnet->n_ports; p++) {
                if (!plan->final_tables[p] || plan->subnet->ports[p].role != PORT_ENDPORT)
                        continue;
                r = compare_port(&list, p, plan, observed);
                if (r < 0)
                        return r;
        }
        SORT(list.items, list.n, compare_items);
        r = group_items(a, &list, &out) ?: count_enforcing(scratch, plan, &out.n_enforcing_ports);
        if (r == 0)
                *ret = out;
        return r;
}

char change_mark(const struct change *c)
{
        enum level before = membership_level(c->before), after = membership_level(c->after);

        if (before == LEVEL_NONE)
                return '+';
        if (after == LEVEL_NONE)
                return '-';
        if (before == after)
                return '~';
        return before < after ? '^' : 'v';
}
