/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "ib/smp.h"
#include "pkeyd/generation.h"
#include "pkeyd/picture.h"
#include "violations/attribution.h"

/*
 * Who tries to cross a partition boundary: counters that are polled and notices that come go into the book, what the book
 * says goes into the journal.
 *
 * Poll and subscription are background tasks on the daemon's fabric: they go on between passes, a few MADs at a time. Every number
 * that is shown anywhere is the book's (see violations/violations.h). The monitor outlives pictures and generations, and
 * borrows those in force: it must be told before one of them goes away.
 */
struct daemon;
struct monitor;

/* Returns 0 or negative errno; *ret owned; borrows d and its event loop. */
int monitor_new(struct daemon *d, struct monitor **ret);
struct monitor *monitor_free(struct monitor *m);

/* The picture and the generation that are in force now (either may be NULL: nothing is polled yet). Called whenever one of
 * them is another one. */
void monitor_look(struct monitor *m, const struct generation *g, const struct picture *picture);
/* One of them, or both, go away now. */
void monitor_forget(struct monitor *m);

/* The port that is worked through: what it says of the SM, and at which index of its table the default partition is. */
void monitor_port(struct monitor *m, const struct port_info *info);
/* The SM changed, or asked all clients to register again. */
void monitor_resubscribe(struct monitor *m);
/* d->fabric goes away. */
void monitor_detach(struct monitor *m);
