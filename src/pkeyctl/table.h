/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Tables on stdout, through libsmartcols. */

#include "util/arena.h"

enum table_align {
        TABLE_LEFT,
        TABLE_RIGHT,
        TABLE_LIST, /* a list that is broken into lines at its commas or blanks when the terminal is narrow */
};

struct table_column {
        const char *name;
        enum table_align align;
};

struct table;

/* Columns are named by the first row. Returns 0 or -ENOMEM; *ret is owned by the caller. */
int table_new(const struct table_column *columns, size_t n_columns, struct table **ret);
struct table *table_free(struct table *t);
DEFINE_CLEANUP(struct table *, table_free)
#define _cleanup_table_ _cleanup_(table_free_p)

/* Copies one cell per column; NULL: empty. colour: an ANSI name ("red"), used on a terminal; NULL: none. */
int table_add(struct table *t, const char *const *cells, const char *colour);
#define table_row(t, colour, ...) table_add((t), (const char *const[]) { __VA_ARGS__ }, (colour))

/* Returns 0 or a negative errno. A table without rows prints nothing. */
int table_print(struct table *t);
