/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "mad_engine/window.h"

#include "util/cleanup.h"

#define WINDOW_START   16
#define WINDOW_MINIMUM 4

void mad_engine_window_init(struct mad_engine_window *w, unsigned maximum)
{
        *w = (struct mad_engine_window) {
                .size = MIN(WINDOW_START, maximum),
                .maximum = maximum,
                .threshold = maximum,
        };
}

void mad_engine_window_answered(struct mad_engine_window *w)
{
        if (w->size >= w->maximum)
                return;
        if (w->size >= w->threshold && ++w->answers < w->size)
                return;
        w->size++;
        w->answers = 0;
}

void mad_engine_window_lost(struct mad_engine_window *w, uint64_t lost, uint64_t last)
{
        if (lost <= w->cut_at)
                return;
        w->size = MAX(w->size / 2, MIN(WINDOW_MINIMUM, w->maximum));
        w->threshold = w->size;
        w->answers = 0;
        w->cut_at = last;
}
