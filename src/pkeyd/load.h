/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Both files, and what the settings name, as a generation. */

#include "control/generation.h"
#include "pkeyd/pkeyd_options.h"

/* Reads both files; all that is wrong with either is appended. Returns 0, -EBADMSG, -ENOMEM; *ret owned, number 0. */
int load_generation(const struct options *o, struct findings *findings, struct generation **ret);

/* The settings of the file, but the policy of these bytes (which are copied), which was in force as this number. Same
 * returns. */
int load_remembered(const struct options *o, const char *policy, size_t n, uint64_t number, struct findings *findings,
                    struct generation **ret);
