/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "ib/types.h"
#include "shell/fabric.h"
#include "util/arena.h"

/* The command line. Strings are borrowed from argv. */
struct options {
        const char *fabric_name;
        struct fabric fabric;
        const char *config_file;
        bool config_named;        /* with --config; then the file must exist */
        const char *policy_file;
        const char *state_dir;
        bool check, verbose, help, version;
        const char *ca;           /* NULL, and 0 in the members below: as in the settings */
        unsigned port;
        usec_t timeout;
};

/* Returns 1: run; 0: done (--help, --version); -EBADMSG: wrong usage, reported on stderr; -ENOMEM. Strings that are not from argv
 * live in the arena. */
int options_parse(struct arena *a, int argc, char *argv[], struct options *ret);
