/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/file_report.h"

#include <errno.h>
#include <string.h>

#define QUOTE_MAX 80

void report_init(struct report *r, struct findings *findings)
{
        *r = (struct report) { .findings = findings };
}

/* Copies a file name once for successive findings about it. */
static const char *copy_file(struct report *r, const char *file)
{
        if (!file)
                return NULL;
        if (file != r->file) {
                r->file_copy = arena_strdup(r->findings->arena, file);
                r->file = r->file_copy ? file : NULL;
        }
        return r->file_copy;
}

void report_vadd(struct report *r, enum finding_severity severity, enum finding_code code, const struct place *place,
                 const char *format, va_list ap)
{
        struct location where = {};

        r->last = NULL;
        r->n++;
        r->n_errors += severity == FINDING_ERROR;
        r->has_error[code] = r->has_error[code] || severity == FINDING_ERROR;
        if (r->n > REPORT_MAX) {
                r->dropped_errors += severity == FINDING_ERROR;
                return;
        }
        if (place) {
                where = place->where;
                where.file = copy_file(r, where.file);
        }
        r->last = findings_vadd(r->findings, severity, code, &where, format, ap);
        if (r->last && place && place->source_line)
                r->last->source_line = arena_strdup(r->findings->arena, place->source_line);
}

void report_add(struct report *r, enum finding_severity severity, enum finding_code code, const struct place *place,
                const char *format, ...)
{
        va_list ap;

        va_start(ap, format);
        report_vadd(r, severity, code, place, format, ap);
        va_end(ap);
}

void report_hint(struct report *r, const char *format, ...)
{
        va_list ap;

        if (!r->last)
                return;
        va_start(ap, format);
        r->last->hint = arena_vprintf(r->findings->arena, format, ap);
        va_end(ap);
}

void report_fix(struct report *r, const struct finding_fix *fix)
{
        if (!r->last)
                return;
        r->last->fix = *fix;
        r->last->fix.text = fix->text ? arena_strdup(r->findings->arena, fix->text) : NULL;
}

int report_finish(struct report *r)
{
        if (r->n > REPORT_MAX)
                (void) findings_add(r->findings, r->dropped_errors > 0 ? FINDING_ERROR : FINDING_NOTE, FINDING_VALUE_INVALID, NULL,
                                    "%zu more findings (%zu of them errors) are not shown", r->n - REPORT_MAX, r->dropped_errors);
        if (r->findings->out_of_memory)
                return -ENOMEM;
        return r->n_errors > 0 ? -EBADMSG : 0;
}

const char *report_text(struct report *r, const char *format, ...)
{
        const char *text;
        va_list ap;

        va_start(ap, format);
        text = arena_vprintf(r->findings->arena, format, ap);
        va_end(ap);
        return text ?: "?";
}

const char *report_list(struct report *r, const char *const *words, size_t n)
{
        const char *list = "";

        for (size_t i = 0; i < n; i++)
                list = report_text(r, "%s%s%s", list, i > 0 ? ", " : "", words[i]);
        return list;
}

static const char *escape(struct report *r, const char *text, const char *quote)
{
        size_t n = strlen(text), used = 0;
        char buffer[4 * QUOTE_MAX + 1];

        for (size_t i = 0; i < n && i < QUOTE_MAX; i++) {
                unsigned char c = (unsigned char) text[i];

                if (c >= 0x20 && c < 0x7f)
                        buffer[used++] = (char) c;
                else
                        used += (size_t) snprintf(buffer + used, 5, "\\x%02x", c);
        }
        buffer[used] = '\0';
        return report_text(r, "%s%s%s%s", quote, buffer, n > QUOTE_MAX ? "..." : "", quote);
}

const char *report_quote(struct report *r, const char *text)
{
        return escape(r, text, "'");
}

const char *report_escape(struct report *r, const char *text)
{
        return escape(r, text, "");
}
