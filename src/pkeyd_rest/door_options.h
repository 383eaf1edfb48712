/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>

#include "shell/fabric.h"
#include "util/arena.h"

/* The command line of pkeyd-rest. Texts are borrowed from argv, or live in the arena. */
struct options {
        const char *fabric_name;
        struct fabric fabric;
        const char *config_file;
        bool check, help, version;
};

/* Returns 1: run; 0: done (--help, --version); -EBADMSG: wrong usage, reported on stderr; -ENOMEM. */
int door_options_parse(struct arena *a, int argc, char *argv[], struct options *ret);
