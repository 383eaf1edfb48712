/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A progress bar on stderr, if that is a terminal and the work takes longer than a second; erased at the end. */

#include "ib/types.h"

struct progress {
        const char *what;   /* "reading tables" */
        bool wanted;
        bool shown;
        usec_t started;
};

struct progress progress_begin(const char *what, bool quiet);
/* total 0: not known. */
void progress_show(struct progress *p, uint64_t done, uint64_t total);
void progress_end(struct progress *p);
#define _cleanup_progress_ _cleanup_(progress_end)
