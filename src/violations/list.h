/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Doubly linked lists of items 0, 1, 2, ...: an item is in at most one of the lists that share an array of links. */

#include "util/hash_index.h"

#define VIOLATION_NONE HASH_INDEX_NONE

struct violation_link {
        uint32_t before, after;
};

struct record_list {
        uint32_t first, last, n;
};

static inline void record_list_init(struct record_list *l)
{
        *l = (struct record_list) { VIOLATION_NONE, VIOLATION_NONE, 0 };
}

static inline void record_list_append(struct record_list *l, struct violation_link *links, uint32_t item)
{
        links[item] = (struct violation_link) { l->last, VIOLATION_NONE };
        if (l->last == VIOLATION_NONE)
                l->first = item;
        else
                links[l->last].after = item;
        l->last = item;
        l->n++;
}

static inline void record_list_remove(struct record_list *l, struct violation_link *links, uint32_t item)
{
        struct violation_link *k = &links[item];

        if (k->before == VIOLATION_NONE)
                l->first = k->after;
        else
                links[k->before].after = k->after;
        if (k->after == VIOLATION_NONE)
                l->last = k->before;
        else
                links[k->after].before = k->before;
        l->n--;
}
