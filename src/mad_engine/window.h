/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * How many MADs may be in flight: a number that follows what the fabric bears.
 *
 * It starts small and doubles per flight (one more for each answer) up to a threshold, then feels its way up by one per
 * flight. A loss halves it, once per flight: MADs that were sent before the last cut tell nothing new.
 *
 * A loss is known only when its timeout has passed, hundreds of flights after it happened. So what is halved is the size
 * that the window had when the lost MAD was sent, not what it grew to since; and from that size on (the ceiling) it grows
 * so slowly that what is lost on the way, until the next loss is known, does not matter.
 */

#include <stdbool.h>
#include <stdint.h>

struct mad_engine_window {
        unsigned size;      /* MADs that may be in flight now */
        unsigned maximum;   /* what the settings allow */
        unsigned threshold; /* from here on it grows slowly */
        unsigned ceiling;   /* from here on it lost something the last time: very slowly */
        unsigned answers;   /* since it last grew, above the threshold */
        uint64_t cut_at;    /* sends up to this number went out before the last cut */
};

void mad_engine_window_init(struct mad_engine_window *w, unsigned maximum);
void mad_engine_window_answered(struct mad_engine_window *w);

/* Send number `lost` (they count from 1), sent when the window was of that size, had no answer; `last` is the number of the
 * last one sent. */
void mad_engine_window_lost(struct mad_engine_window *w, uint64_t lost, unsigned size_then, uint64_t last);
