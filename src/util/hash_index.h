/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A hash index over items 0, 1, 2, ... that are stored elsewhere: from a hash to all items that have it. The caller compares
 * the items themselves, because several may have the same hash. */

#include <stdint.h>

#include "util/arena.h"
#include "util/hash.h"

#define HASH_INDEX_NONE UINT32_MAX

struct hash_index {
        struct arena *arena; /* borrows; owns the memory. NULL: malloc, freed by hash_index_done() */
        uint32_t *heads;     /* by the low bits of the hash */
        uint32_t *next;      /* by item */
        uint64_t *hashes;    /* by item */
        uint32_t allocated;  /* of each; a power of two, or 0 */
};

/* Room for items below n, at most 2^31. Returns 0 or -ENOMEM (then nothing changed). */
int hash_index_reserve(struct hash_index *x, uint32_t n);
/* Only without an arena. */
void hash_index_done(struct hash_index *x);

/* The item has room and is not in. */
void hash_index_add(struct hash_index *x, uint32_t item, uint64_t hash);
/* It is in. */
void hash_index_remove(struct hash_index *x, uint32_t item);
/* The first item with this hash, and the next after one; HASH_INDEX_NONE: no more. */
uint32_t hash_index_first(const struct hash_index *x, uint64_t hash);
uint32_t hash_index_next(const struct hash_index *x, uint32_t item);
