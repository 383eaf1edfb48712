/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The fields of an entry of systemd's journal, for the programs that write entries. */

#include <stdbool.h>
#include <sys/uio.h>

#include "util/cleanup.h"

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

/* Whether stderr is connected to the journal, so that entries can go there with fields. */
bool journal_fields_are_shown(void);
