/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/hash_index.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define AT_START 64

static uint32_t *head(const struct hash_index *x, uint64_t hash)
{
        return &x->heads[hash & (x->allocated - 1)];
}

static void *new_array(const struct hash_index *x, uint32_t n, size_t size)
{
        return x->arena ? arena_alloc_array(x->arena, n, size) : calloc(n, size);
}

static void drop_arrays(const struct hash_index *x)
{
        if (x->arena)
                return;
        free(x->heads);
        free(x->next);
        free(x->hashes);
}

/* Adds all items of an index to a larger one. */
static void move_items(struct hash_index *to, const struct hash_index *from)
{
        memset(to->heads, 0xff, to->allocated * sizeof(*to->heads));
        for (uint32_t h = 0; h < from->allocated; h++)
                for (uint32_t item = from->heads[h]; item != HASH_INDEX_NONE; item = from->next[item])
                        hash_index_add(to, item, from->hashes[item]);
}

int hash_index_reserve(struct hash_index *x, uint32_t n)
{
        struct hash_index larger = { .arena = x->arena, .allocated = x->allocated ? x->allocated : AT_START };

        if (n <= x->allocated)
                return 0;
        while (larger.allocated < n)
                larger.allocated *= 2;
        larger.heads = new_array(x, larger.allocated, sizeof(*larger.heads));
        larger.next = new_array(x, larger.allocated, sizeof(*larger.next));
        larger.hashes = new_array(x, larger.allocated, sizeof(*larger.hashes));
        if (!larger.heads || !larger.next || !larger.hashes) {
                drop_arrays(&larger);
                return -ENOMEM;
        }
        move_items(&larger, x);
        drop_arrays(x);
        *x = larger;
        return 0;
}

void hash_index_done(struct hash_index *x)
{
        drop_arrays(x);
        *x = (struct hash_index) {};
}

void hash_index_add(struct hash_index *x, uint32_t item, uint64_t hash)
{
        uint32_t *h = head(x, hash);

        assert(item < x->allocated);
        x->hashes[item] = hash;
        x->next[item] = *h;
        *h = item;
}

void hash_index_remove(struct hash_index *x, uint32_t item)
{
        uint32_t *link = head(x, x->hashes[item]);

        while (*link != item)
                link = &x->next[*link];
        *link = x->next[item];
}

static uint32_t find(const struct hash_index *x, uint32_t item, uint64_t hash)
{
        while (item != HASH_INDEX_NONE && x->hashes[item] != hash)
                item = x->next[item];
        return item;
}

uint32_t hash_index_first(const struct hash_index *x, uint64_t hash)
{
        return x->allocated ? find(x, *head(x, hash), hash) : HASH_INDEX_NONE;
}

uint32_t hash_index_next(const struct hash_index *x, uint32_t item)
{
        return find(x, x->next[item], x->hashes[item]);
}
