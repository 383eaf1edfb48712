/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Tables on stdout, through libsmartcols, and the width of its lines. Errors of tables stick: add any number of rows, check once
 * at the end. */

#include <stdbool.h>
#include <stddef.h>

#include "util/macros.h"

struct text_table {
        struct libscols_table *scols;
        size_t n_columns, n_shown;
        unsigned lists;    /* a bit for each column that holds lists */
        size_t list_width; /* where lists are broken; 0: nowhere */
        bool failed;       /* out of memory */
};

/* The width of the terminal that stdout is; 0: it is none. */
size_t text_table_terminal_width(void);

/* columns: names with '|' between them; one with '>' in front is aligned to the right, one with '*' in front holds
 * lists, which are broken into lines at their commas or blanks when the terminal is narrow. Only the first n_shown are
 * shown; 0: all. */
void text_table_begin(struct text_table *t, const char *columns, size_t n_shown);

/* A cell for each column, tabs between them. color: an ANSI name ("red"), used on a terminal; NULL: none. */
void text_table_row(struct text_table *t, const char *color, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Prints and frees it. Returns 0 or a negative errno. A table without rows prints nothing. */
int text_table_end(struct text_table *t);

/* The width of lines on stdout. */
unsigned text_line_width(void);
