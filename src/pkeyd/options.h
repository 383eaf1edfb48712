/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>

#include "ib/types.h"

/* The command line. Strings are borrowed from argv and the environment. */
struct options {
        const char *config_file;
        bool config_named;        /* with --config: then it must exist */
        const char *policy_file;
        char *state_dir;          /* owned */
        bool check, verbose;
        const char *ca;           /* NULL: as the settings say; so are 0 below */
        unsigned port;
        usec_t timeout;
};

/* Returns 1: go on; 0: done (--help, --version); -EINVAL: bad usage, was reported on stderr; -ENOMEM. */
int options_parse(int argc, char *argv[], struct options *ret);
void options_done(struct options *o);
