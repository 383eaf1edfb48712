/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The finding about a selector that matches nothing: why that may be, and which similar names are in the fabric. */

#include "policy/selector_match.h"

/* A list for a finding: "a, b, c, d, ...". */
struct short_list {
        unsigned max;     /* the next item is added as "...", and no more after it */
        unsigned n;       /* at most max + 1 */
        const char *text; /* in the findings' arena; NULL while empty */
};

#define MAX_LISTED 4

void short_list_add(struct short_list *l, struct report *r, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* A warning, or an error with `strict`. absent: a port that the selector selects and that is not in the fabric now; NULL: none
 * is known. */
void selector_report_no_match(struct matcher *m, const struct selector *s, const struct known_port *absent);
