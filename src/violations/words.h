/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A line of bounded length that is put together piece by piece; what does not fit is left out, and the line ends with
 * "...". */

#include "ib/types.h"
#include "util/arena.h"

#define WORDS_SIZE 6144

struct words {
        char text[WORDS_SIZE];
        size_t n;
};

void words_add(struct words *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* What goes between the first items, the last two, as in "a, b and c": call before item i of n. */
void words_add_separator(struct words *w, uint32_t i, uint32_t n);

/* A piece for the arguments of words_add(): words_number(n).text. */
struct words_piece {
        char text[64];
};

/* "12,345" */
struct words_piece words_number(uint64_t n);
/* "1 packet", "12,345 packets" */
struct words_piece words_count(uint64_t n, const char *one, const char *many);
/* "a moment", "59 seconds", "12 minutes", "3 hours", "400 days": the nearest of the largest unit of which there are
 * two */
struct words_piece words_duration(usec_t duration);
