/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The only place that logs. Under systemd an entry goes to the journal with its MESSAGE_ID and fields; otherwise it is
 * a line on stderr. The kinds of entries are in events/events.def, their meanings in systemd/pkeyd.catalog.
 */

#include "events/log.h"
#include "shell/journal_fields.h"

struct journal {
        struct journal_output output;
        bool verbose; /* logs debug entries, too */
};

/* fabric: its name, borrowed; NULL: none. */
void journal_init(struct journal *j, const char *fabric, bool verbose);

/* Logs an entry of control. A finding has its own priority and place; only stderr shows its source line and caret. */
void journal_entry(const struct journal *j, const struct log_entry *entry);
/* Logs an event of the shell. about may be NULL. */
void journal_event(const struct journal *j, enum log_event event, const struct log_about *about, const char *format, ...)
        __attribute__((format(printf, 4, 5)));
