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

usec_t clock_boot(void)
{
        return clock_read(CLOCK_BOOTTIME);
}

usec_t clock_wall(void)
{
        return clock_read(CLOCK_REALTIME);
}

const char *clock_to_text(struct arena *a, uint64_t seconds)
{
        time_t when = (time_t) seconds;
        char buffer[32];
        struct tm tm;

        if (!localtime_r(&when, &tm) || strftime(buffer, sizeof(buffer), "%Y-%m-%d %H:%M", &tm) == 0)
                return arena_strdup(a, "?");
        return arena_strdup(a, buffer);
}

usec_t clock_to_wall(usec_t monotonic)
{
        usec_t now = clock_now();

        return monotonic == 0 ? 0 : clock_wall() - (now - (monotonic < now ? monotonic : now));
}
