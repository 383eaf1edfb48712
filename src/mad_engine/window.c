/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "mad_engine/window.h"

#include "util/macros.h"

#define WINDOW_START   16
#define WINDOW_MINIMUM 4
/* Round trips for each step above the ceiling. */
#define FLIGHTS_ABOVE_CEILING 64

void mad_engine_window_init(struct mad_engine_window *w, unsigned maximum)
{
        *w = (struct mad_engine_window) {
                .size = MIN(WINDOW_START, maximum), .maximum = maximum, .threshold = maximum, .ceiling = maximum,
        };
}

void mad_engine_window_answered(struct mad_engine_window *w)
{
        unsigned needed = w->size < w->threshold ? 1 : w->size < w->ceiling ? w->size : w->size * FLIGHTS_ABOVE_CEILING;

        if (w->size >= w->maximum || ++w->answers < needed)
                return;
        w->size++;
        w->answers = 0;
}

void mad_engine_window_lost(struct mad_engine_window *w, uint64_t lost, unsigned size_then, uint64_t last)
{
        if (lost <= w->cut_at)
                return;
        w->before = (struct mad_engine_window_bounds) { w->size, w->threshold, w->ceiling };
        w->is_on_trial = true;
        w->cut_from = w->cut_at;
        w->ceiling = MIN(w->size, size_then);
        w->size = MAX(w->ceiling / 2, MIN(WINDOW_MINIMUM, w->maximum));
        w->threshold = w->size;
        w->answers = 0;
        w->cut_at = last;
}

void mad_engine_window_confirm(struct mad_engine_window *w, uint64_t lost)
{
        if (lost > w->cut_from)
                w->is_on_trial = false;
}

void mad_engine_window_take_back(struct mad_engine_window *w, uint64_t lost)
{
        if (!w->is_on_trial || lost <= w->cut_from)
                return;
        w->is_on_trial = false;
        w->size = MAX(w->size, w->before.size);
        w->threshold = w->before.threshold;
        w->ceiling = w->before.ceiling;
}
