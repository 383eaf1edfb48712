/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The bytes of a YAML file before libyaml parses them: checks that they are text, finds the lines, and gives the text of a line
 * for a finding. Refuses characters that YAML accepts but a reader cannot see: tabs, no-break spaces, carriage returns within a
 * line, and marks that change the direction of text.
 */

#include "util/file_report.h"

struct yaml_source {
        const char *file;        /* for messages; borrows */
        const char *bytes;       /* without a byte order mark; borrows */
        size_t n;
        size_t *lines;           /* owned; lines[i]: the offset of line i + 1 */
        size_t n_lines;
        struct report *report;   /* borrows */
};

/* Returns 0, -EBADMSG (see the report), -ENOMEM. Always call yaml_source_done(). */
int yaml_source_init(struct yaml_source *s, const char *file, const char *bytes, size_t n, struct report *report);
void yaml_source_done(struct yaml_source *s);

/* The length of the byte order mark that the bytes begin with; 0: they have none. It has no column. */
size_t yaml_source_mark(const char *bytes, size_t n);

/* The text of a line, counted from 1, for display: one character for each of the file, so that columns are kept. In the arena;
 * NULL: no such line, or out of memory. */
const char *yaml_source_line(const struct yaml_source *s, struct arena *a, unsigned line);

/* n bytes as text for a terminal, or for a comment of a YAML file: each character that yaml_source_init() refuses there, and each
 * byte that is not UTF-8, is replaced by '?' or a space. In the arena; NULL: out of memory. */
char *yaml_source_visible(struct arena *a, const char *bytes, size_t n);
