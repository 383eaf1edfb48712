/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "ib/types.h"

#define BACKOFF_FIRST (5 * USEC_PER_SEC)

/* How long to wait before the next try, if the last wait was `previous` (0: this is the first failure): 5 s, 10 s, 20 s
 * and so on, never longer than `cap`. */
static inline usec_t backoff_next(usec_t previous, usec_t cap)
{
        usec_t next = previous == 0 ? BACKOFF_FIRST : previous > cap / 2 ? cap : previous * 2;

        return next < cap ? next : cap;
}
