/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyctl/table.h"

#include <errno.h>
#include <libsmartcols.h>
#include <string.h>
#include <sys/ioctl.h>

#include "shell/report.h"

#define LIST_WIDTH_MIN 24u

struct table {
        struct libscols_table *scols;
        const struct table_column *columns; /* borrows */
        size_t n_columns;
        size_t list_width;                  /* where lists are broken; 0: nowhere */
};

struct table *table_free(struct table *t)
{
        if (!t)
                return NULL;
        scols_unref_table(t->scols);
        free(t);
        return NULL;
}

/* Lists get half of the terminal; what is not a terminal gets them in one piece, for grep and awk. */
static size_t list_width(void)
{
        struct winsize size = {};

        if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
                return 0;
        return MAX(LIST_WIDTH_MIN, size.ws_col / 2u);
}

static int add_column(struct table *t, const struct table_column *column)
{
        int flags = column->align == TABLE_RIGHT ? SCOLS_FL_RIGHT : 0;
        struct libscols_column *c;

        if (column->align == TABLE_LIST)
                flags |= SCOLS_FL_WRAP;
        c = scols_table_new_column(t->scols, column->name, 0, flags);
        if (!c)
                return -ENOMEM;
        if (column->align != TABLE_LIST)
                return 0;
        if (scols_column_set_safechars(c, "\n") != 0)
                return -ENOMEM;
        return scols_column_set_wrapfunc(c, scols_wrapnl_chunksize, scols_wrapnl_nextchunk, NULL) == 0 ? 0 : -ENOMEM;
}

int table_new(const struct table_column *columns, size_t n_columns, struct table **ret)
{
        _cleanup_table_ struct table *t = calloc(1, sizeof(*t));

        if (!t)
                return -ENOMEM;
        t->columns = columns;
        t->n_columns = n_columns;
        t->list_width = list_width();
        t->scols = scols_new_table();
        if (!t->scols || scols_table_enable_colors(t->scols, report_wants_colour(stdout)) != 0)
                return -ENOMEM;
        for (size_t i = 0; i < n_columns; i++)
                if (add_column(t, &columns[i]) < 0)
                        return -ENOMEM;
        *ret = STEAL(t);
        return 0;
}

/* Turns the last break before `width` columns into a newline, again and again. A comma stays at the line's end. */
static char *break_list(const char *text, size_t width)
{
        size_t n = strlen(text), column = 0, used = 0, last = 0;
        char *out = malloc(n * 2 + 1);

        if (!out)
                return NULL;
        for (size_t i = 0; i < n; i++) {
                if (column >= width && last > 0) {
                        memmove(out + last + 1, out + last, used - last);
                        out[last] = '\n';
                        column = used - last;
                        used++;
                        last = 0;
                }
                out[used++] = text[i];
                column++;
                if (text[i] == ',' || text[i] == ' ')
                        last = used;
        }
        out[used] = '\0';
        return out;
}

static int set_cell(struct table *t, struct libscols_line *line, size_t i, const char *text)
{
        char *broken;

        if (!text)
                return 0;
        if (t->columns[i].align != TABLE_LIST || t->list_width == 0)
                return scols_line_set_data(line, i, text);
        broken = break_list(text, t->list_width);
        return broken ? scols_line_refer_data(line, i, broken) : -ENOMEM;
}

int table_add(struct table *t, const char *const *cells, const char *colour)
{
        struct libscols_line *line = scols_table_new_line(t->scols, NULL);

        if (!line)
                return -ENOMEM;
        for (size_t i = 0; i < t->n_columns; i++)
                if (set_cell(t, line, i, cells[i]) != 0)
                        return -ENOMEM;
        if (colour && scols_line_set_color(line, colour) != 0)
                return -ENOMEM;
        return 0;
}

int table_print(struct table *t)
{
        if (scols_table_is_empty(t->scols))
                return 0;
        return scols_print_table(t->scols) == 0 ? 0 : -EIO;
}
