/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * How policy/ and settings/ say what is wrong: findings with the line of the file below them, and not more of them than
 * anybody could read. A file of junk must not become a gigabyte of complaints.
 */

#include "util/findings.h"

#define REPORT_MAX 1000

/* Where a finding points, and the line that is printed below it. */
struct place {
        struct location where;
        const char *source_line; /* NULL: none */
};

struct report {
        struct findings *findings; /* borrows */
        size_t n, n_errors;        /* reported since report_init, those that were dropped included */
        bool refuses;              /* one of these errors is not only about single ports (policy/freeze.h) */
        size_t dropped, dropped_errors;
        struct finding *last; /* what was reported last, until the next; NULL: memory was out, or there were REPORT_MAX
                               */
        const char *file, *file_copy; /* the last file name, and its copy in the findings' arena */
};

void report_init(struct report *r, struct findings *findings);

/* Appends a finding; file name and source line are copied, so that it may outlive what it is about. place may be
 * NULL. */
void report_add(struct report *r, enum finding_severity severity, enum finding_code code, const struct place *place,
                const char *format, ...) __attribute__((format(printf, 5, 6)));
void report_vadd(struct report *r, enum finding_severity severity, enum finding_code code, const struct place *place,
                 const char *format, va_list ap) __attribute__((format(printf, 5, 0)));
/* Of what was reported last, if it was not lost. */
void report_hint(struct report *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Says how many were left out. Returns 0, -EBADMSG if there was an error, -ENOMEM if one was lost. */
int report_finish(struct report *r);

/* Lives in the findings' arena; never NULL. */
const char *report_text(struct report *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "full, limited, both"; in the findings' arena, never NULL. */
const char *report_list(struct report *r, const char *const *words, size_t n);
/* Text as a message may quote it: in '', unprintable bytes escaped, long text cut. Lives in the findings' arena; never
 * NULL. */
const char *report_quote(struct report *r, const char *text);
/* The same without the quotes, for paths. */
const char *report_escape(struct report *r, const char *text);
