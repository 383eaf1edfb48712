/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "shell/shell.h"

#include <time.h>

usec_t clock_now(void)
{
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC, &t);
        return (usec_t) t.tv_sec * USEC_PER_SEC + (usec_t) t.tv_nsec / 1000;
}
