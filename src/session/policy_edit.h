/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Changes characters within lines of a policy file (check --fix, replace). */

#include "session/context.h"

/* A policy file before and after; both have the same number of lines. */
struct policy_edit {
        const char *path, *before, *after;
        size_t n_before, n_after;
};

/* Prints the lines that change. With --json stdout has one object only, so they go to stderr. */
void policy_edit_show(struct context *ctx, const struct policy_edit *e);
/* Writes the file, which keeps its owner, group and mode, unless another program wrote it while the person was thinking. Returns 0,
 * -EBADMSG (findings say why) or -ENOMEM. */
int policy_edit_write(struct context *ctx, const struct policy_edit *e);
