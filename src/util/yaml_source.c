/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/yaml_source.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "util/vector.h"
#include "util/yaml_blanks.h"

#define LINE_WIDTH_MAX 160

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
        bool has_tabs;            /* yaml_blanks_are_tabs() */
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
        unsigned blanks = yaml_blanks_for_tab(at->source, at->has_tabs, at->line, at->column, &fix.column, &fix.length);

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
                .has_tabs = source->n > 0 && memchr(source->bytes, '\t', source->n) && yaml_blanks_are_tabs(source),
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
                if (VECTOR_GROW(NULL, s->lines, s->n_lines, allocated) < 0)
                        return -ENOMEM;
                s->lines[s->n_lines++] = i;
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
