/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The method Violations. Everybody may call it, and an answer takes time: thousands of records are put into words. So calls
 * wait, and are answered one at a time, in the order in which they came, when no other event does. Each client may have one
 * call that waits, all of them BUS_MAX_VIOLATIONS, and after each answer pkeyd does other work for nine times as long as the
 * answer took. Whoever calls how often, Status and the fabric wait for one answer at most.
 */

#include <systemd/sd-bus.h>

#include "control/control.h"
#include "pkeyd/violation_list.h"

#define BUS_MAX_VIOLATIONS 16   /* calls that wait */
#define BUS_MAX_RECORDS    4096 /* of one answer */

struct bus_violations;

/* Borrows all. Returns 0, -ENOMEM or an error of the event loop; *ret owned. */
int bus_violations_new(sd_event *event, const struct control_status *status, const struct violation_list *list,
                       struct bus_violations **ret);
struct bus_violations *bus_violations_free(struct bus_violations *v);

/* What a method of sd-bus does: takes a reference to the call and returns 1, or refuses it at once with an error. */
int bus_violations_take(struct bus_violations *v, sd_bus_message *call, sd_bus_error *error);
/* The connection is gone, and nobody waits any more. v may be NULL. */
void bus_violations_drop(struct bus_violations *v);
