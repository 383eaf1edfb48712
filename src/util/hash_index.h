/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A hash index over items 0, 1, 2, ... that the caller stores. It finds all items with a hash; the caller compares the items,
 * because different items may have the same hash. */

#include <stdint.h>

#include "util/arena.h"
#include "util/hash.h"

#define HASH_INDEX_NONE UINT32_MAX

struct hash_index {
        struct arena *arena; /* borrows; owns the arrays. NULL: they are malloc'ed, and hash_index_done() frees them */
        uint32_t *heads;     /* the first item of each chain, by the low bits of the hash */
        uint32_t *next;      /* the next item of the chain, by item */
        uint64_t *hashes;    /* by item */
        uint32_t allocated;  /* of each; a power of two, or 0 */
};

/* Makes room for items below n, which is at most 2^31. Returns 0, or -ENOMEM without a change. */
int hash_index_reserve(struct hash_index *x, uint32_t n);
/* Not for an index in an arena. */
void hash_index_done(struct hash_index *x);

/* The item must have room and not be in the index. */
void hash_index_add(struct hash_index *x, uint32_t item, uint64_t hash);
/* The item must be in the index. */
void hash_index_remove(struct hash_index *x, uint32_t item);
/* The first item with this hash, and the next after one; HASH_INDEX_NONE: no more. */
uint32_t hash_index_first(const struct hash_index *x, uint64_t hash);
uint32_t hash_index_next(const struct hash_index *x, uint32_t item);

/* The first item with this hash for which is_it, an expression about `item`, is true; HASH_INDEX_NONE: there is none. */
#define HASH_INDEX_FIND(item, x, hash, is_it)                                                                          \
        ({                                                                                                             \
                const struct hash_index *_x = (x);                                                                     \
                uint32_t item = hash_index_first(_x, (hash));                                                          \
                while (item != HASH_INDEX_NONE && !(is_it))                                                            \
                        item = hash_index_next(_x, item);                                                              \
                item;                                                                                                  \
        })
