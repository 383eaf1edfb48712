/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Findings about a file, each with the line that it is about. Their number is limited, so that a file of junk does not become a
 * gigabyte of findings.
 */

#include "util/findings.h"

#define REPORT_MAX 1000

/* The place of a finding, and the line to print below it. */
struct place {
        struct location where;
        const char *source_line; /* NULL: none */
};

struct report {
        struct findings *findings; /* borrows */
        size_t n, n_errors;        /* since report_init(), including dropped ones */
        bool has_error[FINDING_CODE_MAX]; /* of each code, including dropped errors */
        size_t dropped_errors;     /* of the findings after the first REPORT_MAX, which are dropped */
        struct finding *last;         /* the last finding; NULL: it was dropped, or out of memory */
        const char *file, *file_copy; /* the file of the last finding, and its copy in the findings' arena */
};

void report_init(struct report *r, struct findings *findings);

/* Appends a finding. Copies the file name and the source line. place may be NULL. */
void report_add(struct report *r, enum finding_severity severity, enum finding_code code, const struct place *place,
                const char *format, ...) __attribute__((format(printf, 5, 6)));
void report_vadd(struct report *r, enum finding_severity severity, enum finding_code code, const struct place *place,
                 const char *format, va_list ap) __attribute__((format(printf, 5, 0)));
/* Adds a hint to the last finding, if it was not dropped. */
void report_hint(struct report *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Adds a correction to the last finding, if it was not dropped. It must be certain. Copies the text; NULL: out of memory, and no
 * correction. */
void report_fix(struct report *r, const struct finding_fix *fix);

/* Reports the number of dropped findings. Returns 0, -EBADMSG if there was an error, -ENOMEM if a finding was lost. */
int report_finish(struct report *r);

/* Formats a text in the findings' arena; never NULL. */
const char *report_text(struct report *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "full, limited, both"; in the findings' arena, never NULL. */
const char *report_list(struct report *r, const char *const *words, size_t n);
/* A text as a quotation in a message: in '', with unprintable bytes escaped, cut if it is long. In the findings' arena; never
 * NULL. */
const char *report_quote(struct report *r, const char *text);
/* The same without quotes, for paths. */
const char *report_escape(struct report *r, const char *text);
