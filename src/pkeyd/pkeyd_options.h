/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "ib/types.h"
#include "util/arena.h"

/* The command line. Strings are borrowed from argv. */
struct options {
        const char *config_file;
        bool config_named;        /* with --config: then it must exist */
        const char *policy_file;
        const char *state_dir;
        bool check, verbose, help, version;
        const char *ca;           /* NULL: as the settings say; so are 0 below */
        unsigned port;
        usec_t timeout;
};

/* Returns 1: go on; 0: done (--help, --version); -EBADMSG: bad usage, was reported on stderr; -ENOMEM. What is not in argv
 * lives in the arena. */
int options_parse(struct arena *a, int argc, char *argv[], struct options *ret);
