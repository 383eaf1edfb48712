/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A sweep for leases costs as much as they do, not as much as the fabric: it plans, writes and compares only their ports, on a part
 * of the snapshot.
 *
 *     full decision --keep--> what the policy gives each port, in the knowledge, with counts for the rule
 *                                  |  + or - the entry of each lease that changed
 *                                  v
 *                             desired tables of these ports --> plan --> apply --> compare, as for a fabric that has no other ports
 *
 * The result equals that of a decision about the whole fabric (tests/unit/check_lease_sweep.c). Where that is not certain (a
 * member is absent, frozen, was not read, or is of this host; the planner reports an error; OpenSM writes), control decides about
 * the whole fabric instead. After a failure the sweep ends as any other, and the next one is not a sweep for leases.
 */

#include "control/control_internal.h"

/* At the end of a sweep: keeps what the policy gives each port, if the next sweep may be one for leases; else drops it. */
void lease_sweep_keep(struct control *c);
/* May the sweep that is due for leases be one for them only? */
bool lease_sweep_is_possible(const struct control *c);

/* Plans for the leases that changed. Returns 0; -EAGAIN: it takes a decision about the whole fabric, and nothing changed;
 * -ENOMEM. */
int lease_sweep_decide(struct control *c);
/* What was read and written is true for the snapshot, too; also when writing was interrupted. */
void lease_sweep_merge(struct control *c);
/* The plan was carried out as far as possible: compares. Returns 0 or -ENOMEM; *ret: how the sweep ends. */
int lease_sweep_verify(const struct control *c, enum sweep_result *ret);
