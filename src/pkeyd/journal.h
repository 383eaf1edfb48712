/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The only place that logs. Under systemd an entry goes to the journal with its MESSAGE_ID and fields; otherwise it is
 * a line on stderr. What kinds of entries there are is in control/events.def, what each means in systemd/pkeyd.catalog.
 */

#include "control/log.h"

/* native: stderr is the journal. verbose: debug lines too. */
struct journal {
        bool native;
        bool verbose;
};

void journal_init(struct journal *j, bool verbose);

/* An entry of a log. A finding has its own priority and place; the source line and the caret are shown on stderr only. */
void journal_entry(const struct journal *j, const struct log_entry *entry);
/* One of the shell's own. about may be NULL. */
void journal_event(const struct journal *j, enum log_event event, const struct log_about *about, const char *format, ...)
        __attribute__((format(printf, 4, 5)));
