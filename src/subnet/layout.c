/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "subnet/layout.h"

#include <errno.h>
#include <string.h>

#include "util/vector.h"

int layout_add(struct layout *l, struct guid node_guid, uint8_t number, const struct p_key *entries, uint16_t n)
{
        struct p_key *copy;

        while (n > 0 && !p_key_is_used(entries[n - 1]))
                n--;
        copy = arena_copy(l->arena, entries, n);
        if (!copy)
                return -ENOMEM;
        return VECTOR_ADD(l->arena, l->tables, l->n, l->allocated,
                          (struct layout_table) { node_guid, number, n, copy, .turn = l->n });
}

DEFINE_COMPARE(compare_tables, struct layout_table,
               ORDER(a->node_guid.v, b->node_guid.v) ?: ORDER(a->number, b->number) ?: ORDER(a->turn, b->turn))

void layout_sort(struct layout *l)
{
        SORT(l->tables, l->n, compare_tables);
}

const struct layout_table *layout_find(const struct layout *l, struct guid node_guid, uint8_t number)
{
        const struct layout_table key = { .node_guid = node_guid, .number = number };
        size_t at = l ? LOWER_BOUND(t, l->tables, l->n, compare_tables(t, &key) < 0) : 0;
        bool found = l && at < l->n && l->tables[at].node_guid.v == node_guid.v && l->tables[at].number == number;

        return found ? &l->tables[at] : NULL;
}
