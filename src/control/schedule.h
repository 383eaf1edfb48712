/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * When the next sweep is due, and of which kind. A sweep of the whole fabric every sweep_interval; sooner after an event of
 * a local port, a reload, or a problem; and between them short ones over ports that failed.
 */

#include "control/control.h"

enum sweep_kind {
        SWEEP_FULL,  /* discover, and read every table */
        SWEEP_KNOWN, /* the fabric as it is known: a new policy is carried out at once; apply reads first */
        SWEEP_RETRY, /* only ports that failed are read again */
};

struct schedule {
        usec_t sweep_at, retry_at;   /* the next full sweep, the next short one */
        usec_t event_sweep_at;       /* the last full sweep that was due to an event */
        usec_t retry_delay, trouble_delay;
        bool sweep_soon;             /* after a reload: the next sweep of the known fabric is followed by a full one */
        bool reload_due;             /* a candidate waits for a sweep of the known fabric */
        bool is_stale;               /* what was read is not what is there: a candidate waits for a full sweep, too */
};

void schedule_init(struct schedule *s);

usec_t schedule_due(const struct schedule *s);
/* What is due now, after a stale sweep a full one in any case. known: there is a snapshot of the port that is wanted, and the
 * port works. */
enum sweep_kind schedule_kind(const struct schedule *s, usec_t now, bool known);
void schedule_begin(struct schedule *s, usec_t now, enum sweep_kind kind, usec_t interval);

/* How the sweep ended. interval: of full sweeps. */
void schedule_ended(struct schedule *s, usec_t now, enum sweep_result result, usec_t interval);

/* Both files were loaded: another candidate. */
void schedule_reload(struct schedule *s);
/* A full sweep is next: they are as they were, or one was interrupted. */
void schedule_full_sweep(struct schedule *s);
/* The candidate is there no more. */
void schedule_no_candidate(struct schedule *s);
/* Something happened in the fabric. A link that flaps does not make one sweep after the other. */
void schedule_event(struct schedule *s, usec_t now);
/* A port is to be read again at `at`. */
void schedule_port(struct schedule *s, usec_t at);
