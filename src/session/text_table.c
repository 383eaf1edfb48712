/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "session/text_table.h"

#include <errno.h>
#include <libsmartcols.h>
#include <string.h>
#include <sys/ioctl.h>

#include "shell/findings_print.h"

#define LIST_WIDTH_MIN 24u
#define LINE_WIDTH_MIN 40
#define LINE_WIDTH_MAX 120 /* longer lines are hard to read, however wide the terminal is */

size_t text_table_terminal_width(void)
{
        struct winsize size = {};

        return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

static bool add_column(struct text_table *t, const char *name, bool is_list, bool is_right)
{
        int flags = (is_right ? SCOLS_FL_RIGHT : 0) | (is_list ? SCOLS_FL_WRAP : 0);
        struct libscols_column *c = scols_table_new_column(t->scols, name, 0, flags);

        return c &&
               (!is_list || (scols_column_set_safechars(c, "\n") == 0 &&
                             scols_column_set_wrapfunc(c, scols_wrapnl_chunksize, scols_wrapnl_nextchunk, NULL) == 0));
}

void text_table_begin(struct text_table *t, const char *columns, size_t n_shown)
{
        _cleanup_free_ char *copy = strdup(columns);
        size_t width = text_table_terminal_width();
        char *rest = copy, *name;

        /* lists get half of the terminal's width; without a terminal they are not broken, for grep and awk */
        *t = (struct text_table) { .scols = scols_new_table(), .list_width = width == 0 ? 0 : MAX(LIST_WIDTH_MIN, width / 2) };
        t->failed = !copy || !t->scols || scols_table_enable_colors(t->scols, findings_print_wants_color(stdout)) != 0;
        while (!t->failed && (name = strsep(&rest, "|"))) {
                bool is_list = *name == '*', is_right = *name == '>';

                t->lists |= (unsigned) is_list << t->n_columns++;
                if (n_shown > 0 && t->n_columns > n_shown)
                        continue;
                t->n_shown = t->n_columns;
                t->failed = !add_column(t, name + (is_list || is_right), is_list, is_right);
        }
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

static bool set_cell(struct text_table *t, struct libscols_line *line, size_t i, const char *text)
{
        char *broken;

        if (!(t->lists >> i & 1) || t->list_width == 0)
                return scols_line_set_data(line, i, text) == 0;
        broken = break_list(text, t->list_width);
        return broken && scols_line_refer_data(line, i, broken) == 0;
}

void text_table_row(struct text_table *t, const char *color, const char *format, ...)
{
        struct libscols_line *line = t->failed ? NULL : scols_table_new_line(t->scols, NULL);
        _cleanup_free_ char *cells = NULL;
        char *rest;
        va_list ap;

        va_start(ap, format);
        if (vasprintf(&cells, format, ap) < 0)
                cells = NULL;
        va_end(ap);
        rest = cells;
        t->failed = !line || !cells || (color && scols_line_set_color(line, color) != 0);
        for (size_t i = 0; i < t->n_shown && !t->failed; i++)
                t->failed = !set_cell(t, line, i, (i + 1 < t->n_columns ? strsep(&rest, "\t") : rest) ?: "");
}

int text_table_end(struct text_table *t)
{
        int r = t->failed ? -ENOMEM : 0;

        if (r == 0 && !scols_table_is_empty(t->scols) && scols_print_table(t->scols) != 0)
                r = -EIO;
        scols_unref_table(t->scols);
        return r;
}

/* --- other lines ----------------------------------------------------------------------------------------------------- */

unsigned text_line_width(void)
{
        const char *columns = getenv("COLUMNS");
        size_t width = text_table_terminal_width();

        if (width == 0)
                width = columns && *columns >= '1' && *columns <= '9' ? strtoul(columns, NULL, 10) : 80;
        return (unsigned) MIN(MAX(width, LINE_WIDTH_MIN), LINE_WIDTH_MAX);
}
