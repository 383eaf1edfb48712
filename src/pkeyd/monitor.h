/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * P_Key violations: counters that are polled and notices that come go into the violation table, what is reported from it goes
 * into the journal and on the bus.
 *
 * Poll and subscription are background tasks of the port session. Every number that is shown anywhere is from that table (see
 * violations/violations.h). The monitor outlives snapshots, generations and sessions; it holds a reference to the snapshot and
 * the generation that its words rest on.
 */

#include <systemd/sd-event.h>

#include "control/control.h"
#include "metrics/metrics.h"
#include "pkeyd/journal.h"
#include "pkeyd/violation_list.h"
#include "shell/port_session.h"
#include "shell/verbs_port.h"

struct monitor;

struct monitor_handlers {
        /* An entry was logged: the same for the bus. */
        void (*reported)(const struct violation_item *item, void *userdata);
        /* Violations were counted; logged: some of them were logged, too. */
        void (*counted)(bool logged, void *userdata);
        void *userdata;
};

/* Borrows all but the handlers. Returns 0 or negative errno; *ret owned. */
int monitor_new(sd_event *event, const struct control *control, struct verbs_host *verbs, const struct journal *journal,
                const struct monitor_handlers *handlers, struct monitor **ret);
struct monitor *monitor_free(struct monitor *m);

/* After each event of control: what became of snapshot, generation and SM. session: that is open; NULL: none is. */
void monitor_update(struct monitor *m, struct port_session *session);
/* At the end of each turn of the session. */
void monitor_turn(struct monitor *m);

/* The violation table, as it is shown; borrows m. */
void monitor_list(struct monitor *m, struct violation_list *ret);
/* Its part of the metrics; borrowed until m is used again. */
void monitor_collect(struct monitor *m, struct metrics *ret);
