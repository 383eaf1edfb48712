/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Findings: what a person must read about a file, a fabric or a plan.
 *
 * A finding is data, not a printed line: a code for programs, a severity, a place, one sentence that says what is wrong and what
 * is accepted, and often a hint that says what to do. The core appends findings; pkeyd and pkeyctl log or print them. All findings
 * of a file are gathered in one run. A finding of severity ERROR means that the input is refused; in a policy in force, an error
 * about single ports freezes only these (policy/freeze.h).
 *
 * The codes are in finding-codes.def, one X(name, "text.code") for each; a test provokes each of them.
 */

#include <stdarg.h>
#include <stdbool.h>

#include "util/arena.h"

enum finding_severity {
        FINDING_NOTE,    /* worth knowing, never wrong */
        FINDING_WARNING, /* probably not what was meant */
        FINDING_ERROR,   /* refused */
};

enum finding_code {
#define X(name, text) FINDING_##name,
#include "util/finding-codes.def"
#undef X
        FINDING_CODE_MAX,
};

/* A place in a file. Lines and columns count from 1. line 0: the whole file. file NULL: no file. */
struct location {
        const char *file;
        unsigned line, column;
};

/* The one certain correction of what a finding is about: `length` characters of the file, from this line and column on, become
 * `text`. Never one of several that are possible. text NULL: there is none. */
struct finding_fix {
        unsigned line, column, length;
        const char *text;
};

struct finding {
        enum finding_severity severity;
        enum finding_code code;
        struct location where;
        const char *text;
        const char *hint;        /* NULL: none */
        const char *source_line; /* the line of the file, control characters escaped; NULL: none */
        struct finding_fix fix;
        size_t order;            /* number of findings appended before it */
};

/* Begins as { .arena = a }. */
struct findings {
        struct arena *arena;     /* borrows; owns the texts */
        struct finding *items;   /* owned; in the order of appending, until findings_sort() */
        size_t n, allocated;
        size_t n_errors, n_warnings;
        bool out_of_memory;      /* a finding was lost; counts as an error */
};

/* Frees the list. The texts belong to the arena. */
void findings_done(struct findings *f);
#define _cleanup_findings_ _cleanup_(findings_done)

/* Appends a finding. where: copied except for the file name, which is borrowed; may be NULL. Returns the new item, to which the
 * caller may add, or NULL if out of memory; then out_of_memory is set. */
struct finding *findings_add(struct findings *f, enum finding_severity severity, enum finding_code code,
                             const struct location *where, const char *format, ...)
        __attribute__((format(printf, 5, 6)));
struct finding *findings_vadd(struct findings *f, enum finding_severity severity, enum finding_code code,
                              const struct location *where, const char *format, va_list ap)
        __attribute__((format(printf, 5, 0)));
/* Appends an error that is not about a file. hint may be NULL. Returns -EBADMSG, or -ENOMEM. */
int findings_error(struct findings *f, enum finding_code code, const char *hint, const char *format, ...)
                __attribute__((format(printf, 4, 5)));
/* Makes a copy with all texts in the arena. Returns false if out of memory. */
bool finding_copy(struct arena *a, const struct finding *from, struct finding *ret);
/* Appends a copy, or sets out_of_memory. */
void findings_append(struct findings *f, const struct finding *item);
/* Appends copies of all. */
void findings_append_all(struct findings *f, const struct findings *from);
/* Sets the hint of an item; does nothing if item is NULL. */
void finding_set_hint(struct findings *f, struct finding *item, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

/* Returns whether the input that the findings are about must be refused. */
static inline bool findings_refuse(const struct findings *f)
{
        return f->n_errors > 0 || f->out_of_memory;
}

/* The text of the first error; NULL: there is none. Borrowed. */
const char *findings_first_error(const struct findings *f);

/* Sorts by file, line and column, in stable order; findings without a file come last. */
void findings_sort(struct findings *f);

/* "policy.unknown-key", ...: a static string; and back, false: no such code, or NULL. */
const char *finding_code_to_string(enum finding_code code);
bool finding_code_from_string(const char *word, enum finding_code *ret);
/* "note", "warning", "error": a static string; and back, false: no such word, or NULL. */
const char *finding_severity_to_string(enum finding_severity severity);
bool finding_severity_from_string(const char *word, enum finding_severity *ret);

/* "FILE:LINE:COLUMN: ", "FILE: ", or "". In the arena, or static; NULL: out of memory. */
const char *location_format(struct arena *a, const struct location *where);
/* A finding in the format of compilers:
 *
 *     partitions.yaml:14:17: error: partitions.tenant-a.members: '0x10000z' is not a GUID (expected ...)
 *       14 |       0x10000z: full
 *          |       ^
 *          = hint: ...
 *
 * with a newline at the end. Allocated from the arena; NULL: out of memory. */
const char *finding_format(struct arena *a, const struct finding *item);
