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
/* "1 packet", "12,345 packets" */
void words_add_count(struct words *w, uint64_t n, const char *one, const char *many);
/* "12,345" */
void words_add_number(struct words *w, uint64_t n);
/* "a moment", "59 seconds", "12 minutes", "3 hours", "400 days": the nearest of the largest unit of which there are
 * two */
void words_add_duration(struct words *w, usec_t duration);
/* What goes between the first items, the last two, as in "a, b and c": call before item i of n. */
void words_add_separator(struct words *w, uint32_t i, uint32_t n);
