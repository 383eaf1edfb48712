/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The method Violations. All users may call it, and an answer takes time: it converts thousands of records to text. So calls are
 * queued, and answered one at a time, in the order in which they came, when no other event is pending. Each client may have one
 * call in the queue, all clients together BUS_MAX_VIOLATIONS, and after each answer pkeyd leaves the queue alone for nine times as
 * long as the answer took. However often it is called, Status and the fabric wait for one answer at most.
 */

#include <systemd/sd-bus.h>

#include "control/control.h"
#include "pkeyd/violation_list.h"

#define BUS_MAX_VIOLATIONS 16   /* calls that wait */
#define BUS_MAX_RECORDS    4096 /* of one answer */

struct bus_violations {
        const struct control_status *status;
        const struct violation_list *list;
        sd_event_source *turn;                      /* answers the next call */
        usec_t due;                                 /* the earliest time for that */
        sd_bus_message *calls[BUS_MAX_VIOLATIONS];  /* owned, the oldest first */
        size_t n_calls;
};

/* Borrows all. Returns 0 or an error of the event loop. */
int bus_violations_init(struct bus_violations *v, sd_event *event, const struct control_status *status,
                        const struct violation_list *list);
/* Zeroed: nothing to do. */
void bus_violations_done(struct bus_violations *v);

/* Handles the call as an sd-bus method: queues it, with a reference, and returns 1, or refuses it at once with an error. */
int bus_violations_take(struct bus_violations *v, sd_bus_message *call, sd_bus_error *error);
/* Empties the queue, after the connection was lost. */
void bus_violations_drop(struct bus_violations *v);
