/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "session/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "shell/shell.h"
#include "util/macros.h"

#define SHOW_AFTER (1 * USEC_PER_SEC)
#define BAR_WIDTH  ((int) sizeof(bar) - 1)

static const char bar[] = "##############################";

struct progress progress_begin(const char *what, bool quiet)
{
        return (struct progress) { .what = what, .wanted = !quiet && isatty(STDERR_FILENO), .started = clock_now() };
}

void progress_show(struct progress *p, uint64_t done, uint64_t total)
{
        int filled;

        if (!p->wanted || clock_now() - p->started < SHOW_AFTER)
                return;
        p->shown = true;
        if (total == 0) {
                fprintf(stderr, "\r\033[K%s ... %" PRIu64 " s", p->what, (clock_now() - p->started) / USEC_PER_SEC);
                return;
        }
        filled = (int) (MIN(done, total) * BAR_WIDTH / total);
        fprintf(stderr, "\r\033[K%s [%.*s%*s] %" PRIu64 "/%" PRIu64, p->what, filled, bar, BAR_WIDTH - filled, "", done, total);
}

void progress_end(struct progress *p)
{
        if (p->shown)
                fputs("\r\033[K", stderr);
        p->shown = false;
}
