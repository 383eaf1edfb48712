/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Loads both files, and the secrets that the settings name, as a generation. */

#include "generation/generation.h"
#include "pkeyd/pkeyd_options.h"

/* Appends the findings about both files. Returns 0, -EBADMSG, -ENOMEM; *ret is owned and has number 0. */
int load_generation(const struct options *o, struct findings *findings, struct generation **ret);

/* The same with the policy of these bytes (copied), which was in force with this number, instead of the policy file. */
int load_remembered(const struct options *o, const char *policy, size_t n, uint64_t number, struct findings *findings,
                    struct generation **ret);
