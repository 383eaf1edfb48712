/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "shell/shell.h"

#include <time.h>

static usec_t clock_read(clockid_t clock)
{
        struct timespec t;

        (void) clock_gettime(clock, &t);
        return (usec_t) t.tv_sec * USEC_PER_SEC + (usec_t) t.tv_nsec / 1000;
}

usec_t clock_now(void)
{
        return clock_read(CLOCK_MONOTONIC);
}

usec_t clock_wall(void)
{
        return clock_read(CLOCK_REALTIME);
}

usec_t clock_to_wall(usec_t monotonic)
{
        usec_t now = clock_now();

        return monotonic == 0 ? 0 : clock_wall() - (now - (monotonic < now ? monotonic : now));
}
