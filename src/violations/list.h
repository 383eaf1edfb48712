/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Doubly linked lists of items 0, 1, 2, ...: an item is in at most one of the lists that share an array of links. */

#include "util/hash_index.h"
#include "util/vector.h"

#define VIOLATION_NONE HASH_INDEX_NONE

struct violation_link {
        uint32_t before, after;
};

struct record_list {
        uint32_t first, last, n;
};

/* Makes room for n items in one of the arrays that have an element for each item. 0, or -ENOMEM without a change. */
static inline int record_array_grow(void *array, size_t size, uint32_t n)
{
        size_t allocated = 0;

        return vector_reserve(NULL, array, size, 0, &allocated, n);
}

static inline void record_list_init(struct record_list *l)
{
        *l = (struct record_list) { VIOLATION_NONE, VIOLATION_NONE, 0 };
}

static inline void record_list_append(struct record_list *l, struct violation_link *links, uint32_t item)
{
        links[item] = (struct violation_link) { l->last, VIOLATION_NONE };
        *(l->last == VIOLATION_NONE ? &l->first : &links[l->last].after) = item;
        l->last = item;
        l->n++;
}

static inline void record_list_remove(struct record_list *l, struct violation_link *links, uint32_t item)
{
        const struct violation_link k = links[item];

        *(k.before == VIOLATION_NONE ? &l->first : &links[k.before].after) = k.after;
        *(k.after == VIOLATION_NONE ? &l->last : &links[k.after].before) = k.before;
        l->n--;
}
