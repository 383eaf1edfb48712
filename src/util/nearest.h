/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* "Did you mean": the nearest of many words by edit distance. Letters' case counts less than any other difference. */

#include <stddef.h>

#include "util/arena.h"

#define NEAREST_MAX_LENGTH 64

/* Insertions, deletions, substitutions and swaps of adjacent characters that turn a into b (each place edited once), case
 * ignored. limit + 1 if it is more than limit, or a word is longer than NEAREST_MAX_LENGTH. */
unsigned edit_distance(const char *a, const char *b, unsigned limit);

struct nearest {
        const char *text;
        const char *best; /* borrows what was offered; NULL: nothing near */
        unsigned limit;   /* only what is at most this far is still of interest */
};

/* Borrows text. */
void nearest_init(struct nearest *n, const char *text);
void nearest_offer(struct nearest *n, const char *candidate);

/* The nearest of n words, or NULL. */
const char *nearest_word(const char *text, const char *const *words, size_t n);

/* "did you mean '--verify'?" for the nearest of n words, with this in front of it; `otherwise` (which may be NULL) if none is
 * near. Lives in the arena; NULL when memory is out. */
const char *nearest_hint(struct arena *a, const char *text, const char *const *words, size_t n, const char *in_front,
                         const char *otherwise);
