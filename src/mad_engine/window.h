/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The window: how many MADs may be in flight. It adapts to what the fabric can carry.
 *
 * It starts small and doubles per round trip (one more for each answer) up to a threshold, then grows by one per round trip. A loss
 * halves it, at most once per round trip: the loss of a MAD that was sent before the last cut shows nothing new.
 *
 * A loss is noticed only after its timeout, hundreds of round trips later. So the size that is halved is that of the window when
 * the lost MAD was sent, not its present size; and above that size (the ceiling) it grows so slowly that losses until the next
 * notice do not matter.
 *
 * A request to a silent port is not answered either, although nothing was lost on the way to other ports. So a cut is on trial
 * until one of the lost requests, sent again, is answered (the cut stands) or is not (it is taken back).
 */

#include <stdbool.h>
#include <stdint.h>

struct mad_engine_window_bounds {
        unsigned size, threshold, ceiling;
};

struct mad_engine_window {
        unsigned size;      /* MADs that may be in flight now */
        unsigned maximum;   /* what the settings allow */
        unsigned threshold; /* above this it grows slowly */
        unsigned ceiling;   /* above this a MAD was lost the last time: it grows very slowly */
        unsigned answers;   /* since it last grew, above the threshold */
        uint64_t cut_at;    /* sends up to this number were before the last cut */
        uint64_t cut_from;  /* and those up to this number before the one before it */
        bool is_on_trial;   /* the last cut may be taken back */
        struct mad_engine_window_bounds before; /* the last cut */
};

void mad_engine_window_init(struct mad_engine_window *w, unsigned maximum);
void mad_engine_window_answered(struct mad_engine_window *w);

/* Shrinks the window after a loss: send number `lost` (the first is 1), made when the window had the size `size_then`, got no
 * answer. `last` is the number of the last send. */
void mad_engine_window_lost(struct mad_engine_window *w, uint64_t lost, unsigned size_then, uint64_t last);

/* A request whose first try (send number `lost`) was lost has an answer: the way lost it, so the last cut stands if it was for this
 * loss or one of the same flight. */
void mad_engine_window_confirm(struct mad_engine_window *w, uint64_t lost);

/* It was sent again, and has no answer either: takes the last cut back if it was for this loss or one of the same flight. */
void mad_engine_window_take_back(struct mad_engine_window *w, uint64_t lost);
