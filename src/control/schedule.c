/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "control/schedule.h"

#include "control/backoff.h"
#include "util/macros.h"

#define WAIT_FOR_PORT (3 * USEC_PER_SEC)    /* between two queries of a port that is down */
#define EVENT_SOON    (300 * USEC_PER_MSEC) /* the sweep after an event of a local port */
#define EVENT_GAP     (5 * USEC_PER_SEC)    /* between two such sweeps */
#define SOON          (5 * USEC_PER_SEC)    /* the full sweep after a reload */
#define MAX_TROUBLE   (60 * USEC_PER_SEC)   /* the longest wait after a sweep that failed */
#define LEASES_FIRST  (10 * USEC_PER_SEC)   /* how long leases may delay another sweep that is due */

void schedule_init(struct schedule *s)
{
        *s = (struct schedule) { .retry_at = USEC_INFINITY };
}

usec_t schedule_due(const struct schedule *s)
{
        return s->reload_due || s->lease_due ? 0 : MIN(s->sweep_at, s->retry_at);
}

enum sweep_kind schedule_kind(const struct schedule *s, usec_t now, bool known)
{
        if (!known || s->is_stale)
                return SWEEP_FULL;
        if (s->reload_due || (s->lease_due && now < MIN(s->sweep_at, s->retry_at) + LEASES_FIRST))
                return SWEEP_KNOWN;
        return now >= s->sweep_at ? SWEEP_FULL : SWEEP_RETRY;
}

void schedule_begin(struct schedule *s, usec_t now, enum sweep_kind kind, usec_t interval)
{
        s->reload_due = s->lease_due = false;
        if (kind == SWEEP_FULL)
                s->sweep_at = now + interval;
}

/* --- how a sweep ended ---------------------------------------------------------------------------------------------- */

/* After a reload, which wrote the known fabric, the whole fabric is swept soon. */
static void sweep_settled(struct schedule *s, usec_t now)
{
        if (s->sweep_soon)
                s->sweep_at = MIN(s->sweep_at, now + SOON);
        s->sweep_soon = false;
}

void schedule_ended(struct schedule *s, usec_t now, enum sweep_kind kind, enum sweep_result result, usec_t interval)
{
        if (kind == SWEEP_LEASE && result == SWEEP_DONE)
                return; /* it was about few ports: what is due for others still is */
        s->retry_at = USEC_INFINITY;
        if (result != SWEEP_FAILED)
                s->trouble_delay = 0;
        s->is_stale = result == SWEEP_STALE || (s->is_stale && (result == SWEEP_FAILED || result == SWEEP_WAITS));
        switch (result) {
        case SWEEP_DONE:
                s->retry_delay = 0;
                break;
        case SWEEP_PARTIAL:
                s->retry_delay = backoff_next(s->retry_delay, interval);
                s->retry_at = now + s->retry_delay;
                break;
        case SWEEP_FAILED: /* later again, and later each time */
                s->trouble_delay = backoff_next(s->trouble_delay, MIN(MAX_TROUBLE, interval));
                s->sweep_at = now + s->trouble_delay;
                break;
        case SWEEP_WAITS:
                s->sweep_at = now + WAIT_FOR_PORT;
                break;
        case SWEEP_STOPPED: /* for a new policy or leases, or because the SM may have moved */
                s->reload_due = true;
                return;
        case SWEEP_STALE:
                s->sweep_at = 0;
                return;
        case SWEEP_REFUSED:
        case SWEEP_N_RESULTS:
                break;
        }
        sweep_settled(s, now);
}

/* --- what happens between them -------------------------------------------------------------------------------------- */

void schedule_reload(struct schedule *s)
{
        s->reload_due = true;
        s->sweep_soon = true;
}

void schedule_lease(struct schedule *s)
{
        s->lease_due = true;
}

void schedule_full_sweep(struct schedule *s)
{
        s->sweep_at = 0;
}

void schedule_no_candidate(struct schedule *s)
{
        s->reload_due = false;
}

void schedule_event(struct schedule *s, usec_t now)
{
        usec_t at = MAX(now + EVENT_SOON, s->event_sweep_at + EVENT_GAP);

        if (s->sweep_at <= at)
                return;
        s->event_sweep_at = at;
        s->sweep_at = at;
}

void schedule_port(struct schedule *s, usec_t at)
{
        s->retry_at = MIN(s->retry_at, at);
}
