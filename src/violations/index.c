/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "violations/index.h"

#include <errno.h>
#include <string.h>

#include "util/cleanup.h"

#define AT_START 64

static uint32_t *head(const struct violation_index *x, uint64_t hash)
{
        return &x->heads[hash & (x->allocated - 1)];
}

/* Items that are in keep their hash; their chains are tied anew. */
static void grow_into(struct violation_index *x, uint32_t *heads, uint32_t *next, uint64_t *hashes, uint32_t n)
{
        struct violation_index old = *x;

        *x = (struct violation_index) { .heads = heads, .next = next, .hashes = hashes, .allocated = n };
        memset(heads, 0xff, n * sizeof(*heads));
        for (uint32_t h = 0; h < old.allocated; h++)
                for (uint32_t item = old.heads[h]; item != VIOLATION_NONE; item = old.next[item])
                        violation_index_add(x, item, old.hashes[item]);
        violation_index_done(&old);
}

int violation_index_reserve(struct violation_index *x, uint32_t n)
{
        _cleanup_free_ uint32_t *heads = NULL, *next = NULL;
        _cleanup_free_ uint64_t *hashes = NULL;
        uint32_t allocated = x->allocated ? x->allocated : AT_START;

        if (n <= x->allocated)
                return 0;
        while (allocated < n)
                allocated *= 2;
        heads = calloc(allocated, sizeof(*heads));
        next = calloc(allocated, sizeof(*next));
        hashes = calloc(allocated, sizeof(*hashes));
        if (!heads || !next || !hashes)
                return -ENOMEM;
        grow_into(x, heads, next, hashes, allocated);
        heads = next = NULL;
        hashes = NULL;
        return 0;
}

void violation_index_done(struct violation_index *x)
{
        free(x->heads);
        free(x->next);
        free(x->hashes);
        *x = (struct violation_index) {};
}

void violation_index_add(struct violation_index *x, uint32_t item, uint64_t hash)
{
        uint32_t *h = head(x, hash);

        x->hashes[item] = hash;
        x->next[item] = *h;
        *h = item;
}

void violation_index_remove(struct violation_index *x, uint32_t item)
{
        uint32_t *link = head(x, x->hashes[item]);

        while (*link != item)
                link = &x->next[*link];
        *link = x->next[item];
}

static uint32_t find(const struct violation_index *x, uint32_t item, uint64_t hash)
{
        while (item != VIOLATION_NONE && x->hashes[item] != hash)
                item = x->next[item];
        return item;
}

uint32_t violation_index_first(const struct violation_index *x, uint64_t hash)
{
        return x->allocated ? find(x, *head(x, hash), hash) : VIOLATION_NONE;
}

uint32_t violation_index_next(const struct violation_index *x, uint32_t item)
{
        return find(x, x->next[item], x->hashes[item]);
}
