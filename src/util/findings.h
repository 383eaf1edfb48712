/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Findings: everything a person must read about a file, a fabric or a plan.
 *
 * A finding is data, not a printed line: a code that programs can match, a severity, where it is, one sentence that says
 * what is wrong and what is accepted, and sometimes a hint. The core appends; pkeyd and pkeyctl decide where it goes. All
 * findings of a file are gathered in one run. Any finding of severity ERROR means: refused. In a policy that is in force
 * already, an
 * error about single ports stops only these (policy/freeze.h).
 *
 * The codes stand in finding-codes.def, one X(name, "text.code") line each; each has a test that provokes it.
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

/* A place in a file. line and column count from 1; line 0: the finding is about the whole file, or about no file at all
 * (file NULL). */
struct location {
        const char *file;
        unsigned line, column;
};

struct finding {
        enum finding_severity severity;
        enum finding_code code;
        struct location where;
        const char *text;
        const char *hint;        /* NULL: none */
        const char *source_line; /* the line of the file, control characters escaped; NULL: none */
        size_t order;            /* of their appending */
};

struct findings {
        struct arena *arena;     /* borrows; owns the texts */
        struct finding *items;   /* malloc'ed, in the order of their appending */
        size_t n, allocated;
        size_t n_errors, n_warnings;
        bool out_of_memory;      /* a finding was lost; count it as an error */
};

void findings_init(struct findings *f, struct arena *arena);
/* Frees the list; the texts go with the arena. */
void findings_done(struct findings *f);
#define _cleanup_findings_ _cleanup_(findings_done)

/* Appends. where and source_line may be NULL, hint too. Returns the new item, to be amended, or NULL when memory is out
 * (then out_of_memory is set, so the finding is not lost silently). */
struct finding *findings_add(struct findings *f, enum finding_severity severity, enum finding_code code,
                             const struct location *where, const char *format, ...)
        __attribute__((format(printf, 5, 6)));
struct finding *findings_vadd(struct findings *f, enum finding_severity severity, enum finding_code code,
                              const struct location *where, const char *format, va_list ap)
        __attribute__((format(printf, 5, 0)));
/* Appends an error that is about no file; hint NULL: none. Returns -EBADMSG, -ENOMEM when memory is out. */
int findings_error(struct findings *f, enum finding_code code, const char *hint, const char *format, ...)
                __attribute__((format(printf, 4, 5)));
/* A copy with all of its texts in the arena; false when memory is out. */
bool finding_copy(struct arena *a, const struct finding *from, struct finding *ret);
/* Appends a copy. */
void findings_append(struct findings *f, const struct finding *item);
/* Nothing if item is NULL. */
void finding_set_hint(struct findings *f, struct finding *item, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

/* True if what the findings are about must be refused. */
static inline bool findings_refuse(const struct findings *f)
{
        return f->n_errors > 0 || f->out_of_memory;
}

/* Sorted by place: those without a file last, then file, line, column, in stable order. */
void findings_sort(struct findings *f);

/* "policy.unknown-key", ...; a static string. */
const char *finding_code_to_string(enum finding_code code);
/* "note", "warning", "error"; a static string. */
const char *finding_severity_to_string(enum finding_severity severity);

/* As a compiler would print it:
 *
 *     partitions.yaml:14:17: error: partitions.tenant-a.members: '0x10000z' is not a GUID (expected ...)
 *       14 |       0x10000z: full
 *          |       ^
 *          = hint: ...
 *
 * with a newline at the end, allocated from the arena; NULL when memory is out. No colours. */
const char *finding_format(struct arena *a, const struct finding *item);
