/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/findings.h"

#include <errno.h>
#include <string.h>

#include "util/text.h"
#include "util/vector.h"

/* The number of characters shown of a line of a file; a caret further to the right is omitted. */
#define SOURCE_WIDTH_MAX 160

static const char *const code_texts[FINDING_CODE_MAX] = {
#define X(name, text) [FINDING_##name] = text,
#include "util/finding-codes.def"
#undef X
};

void findings_done(struct findings *f)
{
        free(f->items);
        f->items = NULL;
        f->n = f->allocated = 0;
}

/* Takes an item, whose text may be NULL: out of memory. */
static struct finding *append(struct findings *f, struct finding item)
{
        if (!item.text || VECTOR_GROW(NULL, f->items, f->n, f->allocated) < 0) {
                f->out_of_memory = true;
                return NULL;
        }
        item.order = f->n;
        f->n_errors += item.severity == FINDING_ERROR;
        f->n_warnings += item.severity == FINDING_WARNING;
        f->items[f->n] = item;
        return &f->items[f->n++];
}

struct finding *findings_vadd(struct findings *f, enum finding_severity severity, enum finding_code code,
                              const struct location *where, const char *format, va_list ap)
{
        return append(f, (struct finding) { .severity = severity, .code = code, .where = where ? *where : (struct location) {},
                                            .text = arena_vprintf(f->arena, format, ap) });
}

struct finding *findings_add(struct findings *f, enum finding_severity severity, enum finding_code code,
                             const struct location *where, const char *format, ...)
{
        struct finding *item;
        va_list ap;

        va_start(ap, format);
        item = findings_vadd(f, severity, code, where, format, ap);
        va_end(ap);
        return item;
}

int findings_error(struct findings *f, enum finding_code code, const char *hint, const char *format, ...)
{
        struct finding *item;
        va_list ap;

        va_start(ap, format);
        item = findings_vadd(f, FINDING_ERROR, code, NULL, format, ap);
        va_end(ap);
        if (!item)
                return -ENOMEM;
        item->hint = hint ? arena_strdup(f->arena, hint) : NULL;
        return -EBADMSG;
}

static bool copy_text(struct arena *a, const char **text)
{
        if (!*text)
                return true;
        *text = arena_strdup(a, *text);
        return *text;
}

bool finding_copy(struct arena *a, const struct finding *from, struct finding *ret)
{
        *ret = *from;
        return copy_text(a, &ret->text) && copy_text(a, &ret->where.file) && copy_text(a, &ret->hint) &&
               copy_text(a, &ret->source_line) && copy_text(a, &ret->fix.text);
}

void findings_append(struct findings *f, const struct finding *item)
{
        struct finding copy;

        if (finding_copy(f->arena, item, &copy))
                (void) append(f, copy);
        else
                f->out_of_memory = true;
}

void findings_append_all(struct findings *f, const struct findings *from)
{
        for (size_t i = 0; i < from->n; i++)
                findings_append(f, &from->items[i]);
}

void finding_set_hint(struct findings *f, struct finding *item, const char *format, ...)
{
        va_list ap;

        if (!item)
                return;
        va_start(ap, format);
        item->hint = arena_vprintf(f->arena, format, ap);
        va_end(ap);
}

const char *findings_first_error(const struct findings *f)
{
        for (size_t i = 0; i < f->n; i++)
                if (f->items[i].severity == FINDING_ERROR)
                        return f->items[i].text;
        return NULL;
}

static int compare_places(const void *left, const void *right)
{
        const struct finding *a = left, *b = right;
        int c = !a->where.file - !b->where.file;

        if (c == 0 && a->where.file)
                c = strcmp(a->where.file, b->where.file);
        return c ?: ORDER(a->where.line, b->where.line) ?: ORDER(a->where.column, b->where.column) ?:
               ORDER(a->order, b->order);
}

void findings_sort(struct findings *f)
{
        SORT(f->items, f->n, compare_places);
}

const char *finding_code_to_string(enum finding_code code)
{
        return (unsigned) code < FINDING_CODE_MAX ? code_texts[code] : "unknown";
}

bool finding_code_from_string(const char *word, enum finding_code *ret)
{
        return TEXT_READ_WORD(word, code_texts, ret);
}

DEFINE_WORDS_AND_BACK(finding_severity, enum finding_severity, "error",
                      [FINDING_NOTE] = "note", [FINDING_WARNING] = "warning", [FINDING_ERROR] = "error")

const char *location_format(struct arena *a, const struct location *where)
{
        return !where->file ? "" : where->line == 0 ? arena_printf(a, "%s: ", where->file) :
               arena_printf(a, "%s:%u:%u: ", where->file, where->line, where->column);
}

/* The line and a caret below it. Tabs were replaced with the other control characters, so each column has one cell. */
static const char *format_source(struct arena *a, const struct finding *item)
{
        unsigned column = item->where.column;

        if (!item->source_line || item->where.line == 0)
                return "";
        if (column == 0 || column > SOURCE_WIDTH_MAX)
                return arena_printf(a, "%5u | %.*s\n", item->where.line, SOURCE_WIDTH_MAX, item->source_line);
        return arena_printf(a, "%5u | %.*s\n      | %*s^\n", item->where.line, SOURCE_WIDTH_MAX, item->source_line,
                            (int) column - 1, "");
}

const char *finding_format(struct arena *a, const struct finding *item)
{
        const char *place = location_format(a, &item->where), *source = format_source(a, item);
        const char *hint = item->hint ? arena_printf(a, "      = hint: %s\n", item->hint) : "";

        if (!place || !source || !hint)
                return NULL;
        return arena_printf(a, "%s%s: %s\n%s%s", place, finding_severity_to_string(item->severity), item->text, source, hint);
}
