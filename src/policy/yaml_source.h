/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The bytes of a YAML file, looked at before libyaml sees them: are they text at all, where do lines begin, what does a
 * line look like below a finding. What YAML understands but nobody can see (tabs, no-break spaces, lone carriage
 * returns, marks that turn the direction of text) is refused here, with the place.
 */

#include "policy/file_report.h"

struct yaml_source {
        const char *file;        /* for messages; borrows */
        const char *bytes;       /* without a byte order mark; borrows */
        size_t n;
        size_t *lines;           /* owned; where line i + 1 begins */
        size_t n_lines;
        struct report *report;   /* borrows */
};

/* Returns 0, -EBADMSG (the report says why), -ENOMEM. */
int yaml_source_init(struct yaml_source *s, const char *file, const char *bytes, size_t n, struct report *report);
void yaml_source_done(struct yaml_source *s);

/* A line, from 1, as it may be printed: one character for each, so that columns stay. In the arena; NULL: no such line,
 * or memory is out. */
const char *yaml_source_line(const struct yaml_source *s, struct arena *a, unsigned line);

/* The first n bytes as they may stand in a comment of a YAML file: each character, or byte that is none, that is refused there
 * is one '?'. NULL when memory is out. */
char *yaml_source_comment(struct arena *a, const char *bytes, size_t n);
