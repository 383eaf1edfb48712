/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/yaml_source.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "util/text.h"
#include "util/vector.h"

#define LINE_WIDTH_MAX  160
#define TAB_WIDTH       2  /* with it the keys below "- KEY: VALUE" are where they must be */
#define MAX_COMMENTS    50 /* lines between two with keys */
#define LINE_MAX_LENGTH 400 /* longer lines are not understood */

/* --- the spaces that must be in place of tabs, if only one number can be meant ---------------------------------------- */

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

/* True if several lines are indented, and all of them with tabs only. */
static bool indents_by_tabs(const struct yaml_source *s)
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

/* Corrects a line, whose first tab is in this column: the *ret_length characters from *ret_column on become as many spaces as it
 * returns; 0: it is not certain how many. */
static unsigned blanks_for_tab(const struct yaml_source *s, bool file_has_tabs, unsigned line, unsigned column,
                               unsigned *ret_column, unsigned *ret_length)
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

/* --- characters -------------------------------------------------------------------------------------------------------- */

/* Decodes the character at p, of n >= 1 bytes. Returns its length; 0 if it is not UTF-8 (RFC 3629: no overlong forms, no
 * surrogates, nothing above U+10FFFF). */
static size_t decode(const unsigned char *p, size_t n, uint32_t *ret)
{
        static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
        size_t length;
        uint32_t c;

        if (p[0] < 0x80) {
                *ret = p[0];
                return 1;
        }
        length = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
        if (p[0] < 0xc2 || p[0] > 0xf4 || length > n)
                return 0;
        c = p[0] & (0xffu >> (length + 1));
        for (size_t i = 1; i < length; i++) {
                if ((p[i] & 0xc0) != 0x80)
                        return 0;
                c = c << 6 | (p[i] & 0x3f);
        }
        if (c < least[length] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
                return 0;
        *ret = c;
        return length;
}

/* Characters that make a text appear in another order than it is stored. */
static bool turns_direction(uint32_t c)
{
        return (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0x200e || c == 0x200f;
}

static bool is_control(uint32_t c)
{
        return (c < 0x20 && c != '\t' && c != '\n' && c != '\r') || (c >= 0x7f && c < 0xa0) || c == 0xfeff ||
               c == 0xfffe || c == 0xffff;
}

static bool breaks_line(uint32_t c)
{
        return c == 0x85 || c == 0x2028 || c == 0x2029;
}

/* Appends the character at p for display: white space as ' ', a character that is refused, or a byte that is not UTF-8, as '?'.
 * Returns the number of bytes at p that it takes. */
static size_t copy_visible(const unsigned char *p, size_t n, char **out)
{
        uint32_t c = 0;
        size_t length = decode(p, n, &c);

        if (c == '\t' || c == '\r' || c == 0xa0)
                *(*out)++ = ' ';
        else if (length == 0 || c == '\n' || is_control(c) || breaks_line(c) || turns_direction(c))
                *(*out)++ = '?';
        else
                *out = mempcpy(*out, p, length);
        return MAX(length, (size_t) 1);
}

char *yaml_source_visible(struct arena *a, const char *bytes, size_t n)
{
        char *text = arena_alloc_array(a, n + 1, 1), *out = text;

        for (size_t i = 0; text && i < n;)
                i += copy_visible((const unsigned char *) bytes + i, n - i, &out);
        return text;
}

/* The character that is checked. */
struct position {
        struct yaml_source *source;
        unsigned line, column;
        bool in_comment, after_blank;
        bool has_tabs;            /* indents_by_tabs() */
        unsigned last_blank_line; /* of the last tab or no-break space that was reported */
};

static void refuse(struct position *at, enum finding_code code, const char *text, const char *hint)
{
        struct yaml_source *source = at->source;
        struct place place = { .where = { source->file, at->line, at->column } };

        place.source_line = yaml_source_line(source, source->report->findings->arena, at->line);
        report_add(source->report, FINDING_ERROR, code, &place, "%s", text);
        if (hint)
                report_hint(source->report, "%s", hint);
}

/* Corrects the last finding, about a tab. */
static void fix_tab(struct position *at)
{
        struct finding_fix fix = { .line = at->line };
        struct report *r = at->source->report;
        unsigned blanks = blanks_for_tab(at->source, at->has_tabs, at->line, at->column, &fix.column, &fix.length);

        if (blanks == 0)
                return;
        fix.text = arena_printf(r->findings->arena, "%*s", (int) blanks, "");
        report_fix(r, &fix);
}

/* Tabs and no-break spaces look like spaces. Only the first one of a line is reported. */
static void check_blank(struct position *at, uint32_t c)
{
        if (at->in_comment || at->last_blank_line == at->line)
                return;
        at->last_blank_line = at->line;
        if (c == '\t') {
                refuse(at, FINDING_YAML_SYNTAX, "a tab (accepted: spaces; YAML does not allow tabs as indentation)",
                       "replace it with spaces, as `expand -t 4 FILE` does");
                fix_tab(at);
        } else {
                refuse(at, FINDING_YAML_SYNTAX, "a no-break space, U+00A0 (accepted: ordinary spaces)",
                       "text pasted from a web page often has them: type the spaces of this line again");
        }
}

/* Returns false if the file is probably not text, so that the rest is not checked. */
static bool check_char(struct position *at, uint32_t c, uint32_t next)
{
        bool is_blank = c == '\t' || c == 0xa0;

        if (is_blank)
                check_blank(at, c);
        else if (c == 0)
                refuse(at, FINDING_YAML_ENCODING, "a NUL byte: this is not a text file", NULL);
        else if (is_control(c) || breaks_line(c) || turns_direction(c))
                refuse(at, FINDING_YAML_ENCODING,
                       report_text(at->source->report, "U+%04" PRIX32 ", %s", c,
                                   c < 0xa0 ? "a control character: is this a text file?" :
                                              "an invisible character, is not accepted"), NULL);
        else if (c == '\r' && next != '\n')
                refuse(at, FINDING_YAML_ENCODING, "a carriage return within a line", "end lines with a line feed, as on Unix");
        else
                return true;
        return is_blank;
}

static void advance(struct position *at, uint32_t c)
{
        if (c == '\n') {
                at->line++;
                at->column = 1;
                at->in_comment = false;
                at->after_blank = true;
                return;
        }
        if (c == '#' && at->after_blank)
                at->in_comment = true;
        at->after_blank = c == ' ' || c == '\t';
        at->column++;
}

static void scan_characters(struct yaml_source *source)
{
        struct position at = {
                .source = source, .line = 1, .column = 1, .after_blank = true,
                .has_tabs = source->n > 0 && memchr(source->bytes, '\t', source->n) && indents_by_tabs(source),
        };
        const unsigned char *p = (const unsigned char *) source->bytes;
        size_t offset = 0, length;
        uint32_t c;

        while (offset < source->n) {
                length = decode(p + offset, source->n - offset, &c);
                if (length == 0) {
                        refuse(&at, FINDING_YAML_ENCODING,
                               report_text(source->report, "byte 0x%02x is not UTF-8: this is not a text file, or it has another "
                                           "encoding", p[offset]), NULL);
                        return;
                }
                if (!check_char(&at, c, offset + 1 < source->n ? p[offset + 1] : 0))
                        return;
                advance(&at, c);
                offset += length;
        }
}

static int find_lines(struct yaml_source *s)
{
        size_t allocated = 0;

        for (size_t i = 0; i <= s->n; i++) {
                if (i > 0 && s->bytes[i - 1] != '\n')
                        continue;
                if (VECTOR_ADD(NULL, s->lines, s->n_lines, allocated, i) < 0)
                        return -ENOMEM;
        }
        return 0;
}

int yaml_source_init(struct yaml_source *s, const char *file, const char *bytes, size_t n, struct report *report)
{
        struct place whole = { .where = { .file = file } };
        int r;

        *s = (struct yaml_source) { .file = file, .bytes = n > 0 ? bytes : "", .n = n, .report = report };
        if (n >= 2 && (memcmp(bytes, "\xff\xfe", 2) == 0 || memcmp(bytes, "\xfe\xff", 2) == 0)) {
                report_add(report, FINDING_ERROR, FINDING_YAML_ENCODING, &whole, "the file is UTF-16 (accepted: UTF-8)");
                report_hint(report, "save it as UTF-8, or run `iconv -f UTF-16 -t UTF-8`");
                return -EBADMSG;
        }
        s->bytes += yaml_source_mark(bytes, n);
        s->n -= yaml_source_mark(bytes, n);
        r = find_lines(s);
        if (r < 0)
                return r;
        scan_characters(s);
        return report->n_errors > 0 ? -EBADMSG : 0;
}

size_t yaml_source_mark(const char *bytes, size_t n)
{
        static const char mark[] = { '\xef', '\xbb', '\xbf' };

        return n >= sizeof(mark) && memcmp(bytes, mark, sizeof(mark)) == 0 ? sizeof(mark) : 0;
}

void yaml_source_done(struct yaml_source *s)
{
        free(s->lines);
        s->lines = NULL;
}

const char *yaml_source_line(const struct yaml_source *s, struct arena *a, unsigned line)
{
        const unsigned char *p;
        char buffer[LINE_WIDTH_MAX + 4], *out = buffer;
        size_t at = 0, n;

        if (line == 0 || line > s->n_lines)
                return NULL;
        p = (const unsigned char *) s->bytes + s->lines[line - 1];
        n = s->n - s->lines[line - 1];
        while (at < n && p[at] != '\n' && out < buffer + LINE_WIDTH_MAX)
                at += copy_visible(p + at, n - at, &out);
        while (out > buffer && out[-1] == ' ')
                out--;
        return arena_strndup(a, buffer, (size_t) (out - buffer));
}
