/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A text that grows. Errors stick: append at will, look once at the end. */

#include <stdbool.h>
#include <stddef.h>

#include "util/arena.h"

struct text {
        char *bytes; /* owned; NULL while empty */
        size_t n, allocated;
        bool failed; /* memory is out */
};

void text_done(struct text *t);
#define _cleanup_text_ _cleanup_(text_done)

void text_add_n(struct text *t, const char *bytes, size_t n);
void text_add(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "s" unless n is 1. */
static inline const char *text_plural(uint64_t n)
{
        return n == 1 ? "" : "s";
}

/* A copy in the arena; NULL if memory was out at any time. */
char *text_copy(struct arena *a, const struct text *t);
