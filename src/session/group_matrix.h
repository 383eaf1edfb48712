/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Who can talk to whom, by the tables that were read: the groups of the policy that have endports in this fabric, and the other
 * endports in sets with equal memberships. */

#include "reach/matrix.h"
#include "session/output.h"
#include "session/session.h"

struct matrix {
        const char **names;         /* of each set: a group, or a hostlist that may be cut */
        struct reach_set *sets;     /* at most MATRIX_MAX_SETS; the others are left out */
        uint32_t n, n_groups;       /* groups come first */
        const struct reach_cell *cells;
        const struct reach_table *tables;
};
#define MATRIX_MAX_SETS 1000

static inline const struct reach_cell *matrix_cell(const struct matrix *m, uint32_t x, uint32_t y)
{
        return &m->cells[(size_t) x * m->n + y];
}

/* The next pair of sets x <= y that can talk, from this one on; its cell, or NULL: there is none. The caller then adds 1 to y. */
const struct reach_cell *matrix_next_cell(const struct matrix *m, uint32_t *x, uint32_t *y);

/* In the context's arena. Returns 0 or -ENOMEM. */
int matrix_make(struct context *ctx, struct matrix *ret);
