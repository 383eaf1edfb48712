/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Hints like "did you mean": finds the nearest of several words by edit distance, ignoring case. */

#include <stddef.h>

#include "util/arena.h"

#define NEAREST_MAX_LENGTH 64

/* The number of insertions, deletions, substitutions and swaps of adjacent characters that turn a into b, each place edited once,
 * ignoring case. limit + 1 if it is more than limit, or if a word is longer than NEAREST_MAX_LENGTH. */
unsigned edit_distance(const char *a, const char *b, unsigned limit);

struct nearest {
        const char *text;
        const char *best; /* borrows; NULL: no near word so far */
        unsigned limit;   /* the largest distance that still counts as near */
};

/* Starts a search for the nearest word. Borrows text, and the candidates below. */
void nearest_init(struct nearest *n, const char *text);
void nearest_offer(struct nearest *n, const char *candidate);

/* The nearest of n words; NULL: none is near. */
const char *nearest_word(const char *text, const char *const *words, size_t n);

/* The nearest word, if no other word is as near or only one edit farther; else NULL. So a word with one typing error, which is one
 * edit away from the word that was meant, never becomes another word. */
const char *nearest_certain(const char *text, const char *const *words, size_t n);

/* "did you mean '--verify'?" for the nearest of n words, with the prefix in_front; `otherwise` (which may be NULL) if none is near.
 * Lives in the arena; NULL: out of memory. */
const char *nearest_hint(struct arena *a, const char *text, const char *const *words, size_t n, const char *in_front,
                         const char *otherwise);
