/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * P_Key violations: polled counters and received notices go into the violation table; reports from it go to the journal and to the
 * bus.
 *
 * Poll and subscription are background tasks of the port session. Every number that pkeyd shows is from the table (see
 * violations/violations.h). The monitor outlives snapshots, generations and sessions; it holds references to the snapshot and
 * the generation that its texts use.
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
        /* A report was logged; item is the same for the bus, borrowed during the call. */
        void (*reported)(const struct violation_item *item, void *userdata);
        /* Violations were counted. logged: at least one report was logged. */
        void (*counted)(bool logged, void *userdata);
        void *userdata;
};

/* Borrows all but the handlers. Returns 0 or negative errno; *ret owned. */
int monitor_new(sd_event *event, const struct control *control, struct verbs_host *verbs, const struct journal *journal,
                const struct monitor_handlers *handlers, struct monitor **ret);
struct monitor *monitor_free(struct monitor *m);
DEFINE_CLEANUP(struct monitor *, monitor_free)

/* To be called after each event of control: follows the snapshot, the generation, the leases and the SM. session: the open one, or
 * NULL. n_opened: sessions so far; this one may have the address of the one before. */
void monitor_update(struct monitor *m, struct port_session *session, uint64_t n_opened);
/* To be called at the end of each turn of the session. */
void monitor_turn(struct monitor *m);

/* Gives access to the violation table; *ret borrows m. */
void monitor_list(struct monitor *m, struct violation_list *ret);
/* Fills in the metrics of violations; their pointers are borrowed until m is used again. */
void monitor_collect(struct monitor *m, struct metrics *ret);
