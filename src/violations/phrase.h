/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Numbers and durations in words. */

#include "ib/types.h"

/* For arguments of text_add() and printf(): phrase_number(n).text. */
struct phrase {
        char text[64];
};

/* "12,345" */
struct phrase phrase_number(uint64_t n);
/* "1 packet", "12,345 packets" */
struct phrase phrase_count(uint64_t n, const char *one, const char *many);

static inline usec_t elapsed(usec_t from, usec_t to)
{
        return to > from ? to - from : 0;
}

/* "a moment", "59 seconds", "12 minutes", "3 hours", "400 days": rounded, in the largest unit of which it has at least two. */
struct phrase phrase_duration(usec_t duration);
