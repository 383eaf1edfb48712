/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Entries of systemd's journal and their fields, for the programs that write entries. */

#include <stdbool.h>
#include <sys/uio.h>

#include "shell/fabric.h"
#include "util/macros.h"

#define JOURNAL_FIELDS_MAX 48

/* A field for which there is no memory, or no place, is left out. Zeroed: no fields. */
struct journal_fields {
        struct iovec items[JOURNAL_FIELDS_MAX]; /* as sd_journal_sendv() takes them */
        int n;
};

/* "NAME=value" */
void journal_fields_add(struct journal_fields *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
void journal_fields_done(struct journal_fields *f);
#define _cleanup_journal_fields_ _cleanup_(journal_fields_done)

/* Where the entries of a program go, and what all of them have. */
struct journal_output {
        const char *fabric; /* NULL: none; borrowed */
        char identifier[sizeof("pkeyd-rest@") + FABRIC_NAME_MAX]; /* "pkeyd", "pkeyd@FABRIC" */
        bool native;        /* stderr is connected to the journal, so entries go there with fields */
};

/* fabric: its name, borrowed; NULL: none. */
void journal_output_init(struct journal_output *o, const char *program, const char *fabric);
/* Adds what each entry has; message_id may be NULL. False: it was written to stderr instead, as a line, and has no fields. */
bool journal_output_begin(const struct journal_output *o, int priority, const char *message_id, const char *text,
                          struct journal_fields *f);
/* Writes the entry that was begun, with the fields that were added since. */
void journal_output_send(const struct journal_fields *f, const char *text);
