/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Leases in control: a request is an event. What it changes takes effect at the next decision, and the sweep for it is due at once.
 * A guest (control_is_guest) carries out no request: the answer is LEASE_ELSEWHERE, also to callers that wait when this host stops
 * writing. Private to control/.
 */

#include "control/control_internal.h"

/* CONTROL_EVENT_LEASE. */
void leasing_request(struct control *c, const struct control_event *event);

/* --- of a sweep --- */

/* The policy of a generation with the leases, in the sweep's arena. Returns 0 or -ENOMEM. */
int leasing_extend(struct control *c, const struct generation *g, const struct policy **ret);
/* Before a plan with a candidate: leases that have no place in it refuse it, or will be released. Returns 0, -EBADMSG, -ENOMEM. */
int leasing_check(struct control *c, const struct generation *g, struct findings *findings);
/* The plan is made. False: some leases were given up because of frozen ports, so that another plan is needed. */
bool leasing_planned(struct control *c);
/* The candidate came into force, or was refused. */
void leasing_accepted(struct control *c);
void leasing_refused(struct control *c);
/* The sweep has ended, and nothing of it is stored yet. */
void leasing_swept(struct control *c);
/* A guest notes which members of leases are confirmed: the other head node leased them. */
void leasing_note_confirmed(struct control *c);

/* --- time --- */

/* True if a port of a new lease could not be read, or written, in the last sweep: it is read again before a plan is made. */
bool leasing_has_failed_ports(const struct control *c);

/* After each event. */
void leasing_tick(struct control *c);
usec_t leasing_due(const struct control *c);
