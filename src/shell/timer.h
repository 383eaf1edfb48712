/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <systemd/sd-event.h>

#include "ib/types.h"

/* Arms a timer of an event loop to elapse once, at `due` (CLOCK_MONOTONIC); USEC_INFINITY: turns it off. Returns 0 or negative
 * errno. */
static inline int timer_set(sd_event_source *timer, usec_t due)
{
        int r = sd_event_source_set_time(timer, due);

        return r < 0 ? r : sd_event_source_set_enabled(timer, due == USEC_INFINITY ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
}
