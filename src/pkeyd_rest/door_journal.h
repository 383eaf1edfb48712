/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The only place of pkeyd-rest that logs. Under systemd an entry goes to the journal with its MESSAGE_ID and fields; otherwise it
 * is a line on stderr. No entry has a credential, a header or a body.
 */

#include "rest/rest.h"
#include "shell/journal_fields.h"
#include "util/findings.h"

enum door_event {
#define X(name, id, priority) DOOR_EVENT_##name,
#include "pkeyd_rest/door-events.def"
#undef X
        DOOR_N_EVENTS
};

void door_log(const struct journal_output *j, enum door_event event, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Logs each finding, on one line. */
void door_log_findings(const struct journal_output *j, const struct findings *findings);

/* A change and its outcome. */
struct door_audit {
        const char *client, *address;
        const struct rest_change *change;
        enum rest_outcome outcome;
        const char *text; /* why it was not stored; NULL: no reason */
};
/* Logs one entry, or several if the change has many GUIDs. */
void door_log_change(const struct journal_output *j, const struct door_audit *audit);
/* Does not log the name: it may be a secret that was typed in the wrong place. */
void door_log_login(const struct journal_output *j, const char *address, uint64_t n_failures);
