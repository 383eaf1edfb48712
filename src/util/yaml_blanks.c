/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/yaml_blanks.h"

#include <string.h>

#include "util/text.h"

#define TAB_WIDTH       2  /* with it the keys below "- KEY: VALUE" are where they must be */
#define MAX_COMMENTS    50 /* lines between two with keys */
#define LINE_MAX_LENGTH 400 /* longer lines are not understood */

/* A line of a map in block style, without values that are more than a word; other lines are not understood. */
struct pair {
        size_t indentation; /* characters in front of the key */
        size_t gap, value;  /* offsets of what is between ':' and the value, and of the value */
        bool has_value;
};

/* Copies a line without its end. Returns false if it is cut. */
static bool copy_line(const struct yaml_source *s, unsigned line, char ret[LINE_MAX_LENGTH + 1])
{
        size_t at = s->lines[line - 1], rest = MIN(s->n - at, (size_t) LINE_MAX_LENGTH + 1), n;

        for (n = 0; n < rest && s->bytes[at + n] != '\n' && s->bytes[at + n] != '\r'; n++)
                ;
        memcpy(ret, s->bytes + at, MIN(n, (size_t) LINE_MAX_LENGTH));
        ret[MIN(n, (size_t) LINE_MAX_LENGTH)] = '\0';
        return n <= LINE_MAX_LENGTH;
}

static bool is_blank_or_comment(const char *p)
{
        p += strspn(p, " \t");
        return *p == '\0' || *p == '#';
}

/* Returns false if the line is not understood. */
static bool read_pair(const char *p, struct pair *ret)
{
        size_t at = strspn(p, " \t"), key = at;

        ret->indentation = at;
        if (p[at] == '"') {
                at += 1 + strcspn(p + at + 1, "\"");
                at += p[at] == '"';
        } else {
                at += strspn(p + at, TEXT_LETTERS_AND_DIGITS "_./-,[]");
        }
        if (at == key || strchr("-.[],/", p[key]) || p[at] != ':')
                return false;
        ret->gap = at + 1;
        ret->value = at = ret->gap + strspn(p + ret->gap, " \t");
        at += strspn(p + at, TEXT_LETTERS_AND_DIGITS ".");
        ret->has_value = at > ret->value;
        if (ret->has_value && ret->value == ret->gap)
                return false;
        at += strspn(p + at, " ");
        return p[at] == '\0' || (p[at] == '#' && p[at - 1] == ' ');
}

/* The nearest line with more than a comment before (step -1) or after (1) this one. False if it is not understood, has a tab in it,
 * or there is none. */
static bool read_next(const struct yaml_source *s, unsigned line, int step, struct pair *ret)
{
        for (unsigned i = 0; i < MAX_COMMENTS; i++) {
                char text[LINE_MAX_LENGTH + 1];

                line += (unsigned) step;
                if (line == 0 || line > s->n_lines || !copy_line(s, line, text))
                        return false;
                if (!is_blank_or_comment(text))
                        return !strchr(text, '\t') && read_pair(text, ret);
        }
        return false;
}

bool yaml_blanks_are_tabs(const struct yaml_source *s)
{
        unsigned n_indented = 0;

        for (unsigned line = 1; line <= s->n_lines; line++) {
                char text[LINE_MAX_LENGTH + 1];
                size_t tabs;

                (void) copy_line(s, line, text);
                tabs = strspn(text, "\t");
                if (is_blank_or_comment(text))
                        continue;
                if (text[tabs] == ' ')
                        return false;
                n_indented += tabs > 0;
        }
        return n_indented > 1;
}

/* A line KEY: VALUE can have nothing below it. So it begins where the next one does, if that is below the line before, or a key of
 * the same map. Its present indentation must have a character for each blank, or be tabs only: else one of the characters may have
 * been typed over the first letter of the key. */
static unsigned indentation_between(const struct yaml_source *s, unsigned line, const char *text, const struct pair *pair)
{
        struct pair before, after;
        size_t blanks;

        if (!pair->has_value || !read_next(s, line, -1, &before) || !read_next(s, line, 1, &after))
                return 0;
        blanks = after.indentation;
        if (before.has_value ? before.indentation != blanks : before.indentation >= blanks)
                return 0;
        return pair->indentation == blanks || strspn(text, "\t") == pair->indentation ? (unsigned) blanks : 0;
}

unsigned yaml_blanks_for_tab(const struct yaml_source *s, bool file_has_tabs, unsigned line, unsigned column, unsigned *ret_column,
                             unsigned *ret_length)
{
        char text[LINE_MAX_LENGTH + 1];
        bool is_whole = copy_line(s, line, text);
        size_t indentation = strspn(text, " \t");
        struct pair pair;

        *ret_column = 1;
        *ret_length = (unsigned) indentation;
        if (!is_whole)
                return 0;
        if (column <= indentation && file_has_tabs)
                return TAB_WIDTH * (unsigned) indentation;
        if (!read_pair(text, &pair))
                return 0;
        if (column <= indentation)
                return indentation_between(s, line, text, &pair);
        *ret_column = (unsigned) pair.gap + 1;
        *ret_length = (unsigned) (pair.value - pair.gap);
        /* with a blank in the gap, the tab may have been typed over the first letter of the value */
        return column == pair.gap + 1 && strspn(text + pair.gap, "\t") == pair.value - pair.gap && pair.has_value;
}
