/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "violations/poll_schedule.h"

#include <assert.h>

#include "util/macros.h"
#include "violations/violations.h"

/* Turns that are late by less are made up for; what is more makes the round longer. */
#define LATE_SLOTS   8
#define LATE_MAX     USEC_PER_SEC
#define LATE_MIN     (100 * USEC_PER_MSEC) /* the sender may collect requests for a moment */
#define SLOW_PERCENT 150 /* of the interval: a round that takes longer does not keep it */

void poll_schedule_init(struct poll_schedule *s, usec_t interval)
{
        assert(interval > 0);
        *s = (struct poll_schedule) { .interval = interval, .cycle = 1 };
}

/* --- turns ----------------------------------------------------------------------------------------------------------- */

static usec_t turn_at(const struct poll_schedule *s)
{
        return s->began + (s->position - s->from) * s->interval / s->n_items;
}

/* The item at this position has its turn then, and the others after it. */
static void set_turns(struct poll_schedule *s, usec_t when, uint32_t position)
{
        s->began = when;
        s->from = s->position = position;
}

/* Turns that were missed delay all later ones. */
static void skip_missed_turns(struct poll_schedule *s, usec_t now)
{
        usec_t late = MAX(MIN(LATE_SLOTS * s->interval / s->n_items, LATE_MAX), LATE_MIN);

        if (now > turn_at(s) && now - turn_at(s) > late)
                set_turns(s, now, s->position);
}

void poll_schedule_set_interval(struct poll_schedule *s, usec_t now, usec_t interval)
{
        usec_t then = s->n_items > 0 ? turn_at(s) : now;

        assert(interval > 0);
        if (interval != s->interval)
                poll_schedule_forget_cycle(s);
        s->interval = interval;
        if (s->n_items > 0)
                then = MIN(then, now + interval / s->n_items);
        set_turns(s, then, s->position);
}

void poll_schedule_set_items(struct poll_schedule *s, usec_t now, uint32_t n_items, uint32_t position)
{
        usec_t then = s->n_items > 0 ? turn_at(s) : now;

        assert(position <= n_items);
        if (s->n_items == 0)
                s->cycle_began = now;
        s->n_items = n_items;
        set_turns(s, then, position);
}

usec_t poll_schedule_due(const struct poll_schedule *s)
{
        return s->n_items > 0 ? turn_at(s) : USEC_INFINITY;
}

/* --- cycles ---------------------------------------------------------------------------------------------------------- */

static void end_cycle(struct poll_schedule *s, usec_t when)
{
        bool is_kept;

        s->cycle++;
        s->cycle_duration = s->cycle_began > 0 ? when - s->cycle_began : 0;
        s->is_slow = s->cycle_duration > s->cycle_rounds * s->interval * SLOW_PERCENT / 100;
        is_kept = s->cycle_rounds == 1 && !s->is_slow;
        s->n_kept_rounds = is_kept ? MIN(s->n_kept_rounds + 1, VIOLATIONS_QUIET_INTERVALS) : 0;
        if (!is_kept)
                s->n_late_rounds = MIN(s->n_late_rounds + s->cycle_rounds, VIOLATIONS_QUIET_INTERVALS);
        else if (s->n_kept_rounds == VIOLATIONS_QUIET_INTERVALS)
                s->n_late_rounds = 0;
        s->cycle_began = when;
        s->cycle_rounds = 0;
}

void poll_schedule_forget_cycle(struct poll_schedule *s)
{
        s->cycle_began = s->cycle_duration = 0;
        s->is_slow = false;
}

bool poll_schedule_is_late(const struct poll_schedule *s)
{
        return s->n_late_rounds >= VIOLATIONS_QUIET_INTERVALS;
}

static void end_round(struct poll_schedule *s)
{
        usec_t when = turn_at(s);

        s->n_rounds++;
        s->cycle_rounds++;
        if (!s->is_behind)
                end_cycle(s, when);
        s->is_behind = false;
        set_turns(s, when, 0);
}

bool poll_schedule_next(struct poll_schedule *s, usec_t now, uint32_t *ret_item)
{
        if (s->n_items == 0)
                return false;
        skip_missed_turns(s, now);
        if (s->position == s->n_items)
                end_round(s);
        if (turn_at(s) > now)
                return false;
        *ret_item = s->position++;
        return true;
}
