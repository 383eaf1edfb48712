/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * When the next sweep is due, and of which kind. There is a sweep of the whole fabric every sweep_interval; sooner after an event
 * of a local port, a reload, or a problem; and in between there are short ones over ports that failed.
 */

#include "control/control.h"

enum sweep_kind {
        SWEEP_FULL,  /* discover, and read every table */
        SWEEP_KNOWN, /* carry out a new policy at once, on the known fabric; apply reads before it writes */
        SWEEP_RETRY, /* only ports that failed are read again */
        SWEEP_LEASE, /* only for leases, and only their ports: see lease_sweep.h */
};

struct schedule {
        usec_t sweep_at, retry_at;   /* the next full sweep, the next short one */
        usec_t event_sweep_at;       /* when the last full sweep after an event was due */
        usec_t retry_delay, trouble_delay;
        bool sweep_soon;             /* after a reload: the next sweep of the known fabric is followed by a full one */
        bool reload_due;             /* a candidate, or a sweep that was stopped, waits for one of the known fabric */
        bool lease_due;              /* leases wait for a sweep of the known fabric */
        bool is_stale;               /* the last sweep was stale: a candidate waits for a full sweep, too */
};

void schedule_init(struct schedule *s);

usec_t schedule_due(const struct schedule *s);
/* The kind of sweep that is due now; after a stale one always a full one. Leases go before the sweeps that are due by time, but for
 * a while only. known: there is a snapshot through the port that the settings name, and the port works. */
enum sweep_kind schedule_kind(const struct schedule *s, usec_t now, bool known);
void schedule_begin(struct schedule *s, usec_t now, enum sweep_kind kind, usec_t interval);

/* A sweep ended. interval: of full sweeps. */
void schedule_ended(struct schedule *s, usec_t now, enum sweep_kind kind, enum sweep_result result, usec_t interval);

/* There is another candidate. */
void schedule_reload(struct schedule *s);
/* Leases changed. */
void schedule_lease(struct schedule *s);
/* A full sweep is due now: both files are unchanged, or a full sweep was interrupted. */
void schedule_full_sweep(struct schedule *s);
/* There is no candidate any more. */
void schedule_no_candidate(struct schedule *s);
/* An event of a local port. A link that flaps does not cause one sweep after the other. */
void schedule_event(struct schedule *s, usec_t now);
/* A port must be read again at `at`. */
void schedule_port(struct schedule *s, usec_t at);
