/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * When the poll queries which of its n items.
 *
 * In a *round* each item has one turn; turns are an n-th of the interval apart. Turns that passed while nothing could be sent make
 * the round longer; they are not made up for in a burst.
 *
 * Silent ports wait for each other, so that some of them are not queried in their turn. A *cycle* is as many rounds as it takes to
 * query every port once. It is *slow* if these rounds took more than 1.5 intervals each.
 */

#include <stdint.h>

#include "ib/types.h"

struct poll_schedule {
        usec_t interval;
        uint32_t n_items;
        uint32_t position, from; /* items before `position` had their turn; that of item i is (i - from) n-ths of an interval */
        usec_t began;            /* after this time */
        uint64_t n_rounds;       /* finished */

        uint64_t cycle;          /* its number */
        bool is_behind;          /* the caller sets it: a silent port had to wait, so the cycle does not end with this round */
        unsigned cycle_rounds;   /* finished ones of this cycle */
        usec_t cycle_began;      /* 0: not known, or there was no session or another interval in between */
        usec_t cycle_duration;   /* of the last cycle; 0: not known */
        bool is_slow;            /* the last cycle */
        unsigned n_late_rounds;  /* of cycles that were longer than a round, or slow */
        unsigned n_kept_rounds;  /* in a row that were a cycle each; VIOLATIONS_QUIET_INTERVALS of them reset n_late_rounds */
};

/* There are no items yet. The first cycle is number 1. */
void poll_schedule_init(struct poll_schedule *s, usec_t interval);
/* The next turn stays when it is, or comes earlier if turns are closer together now. */
void poll_schedule_set_interval(struct poll_schedule *s, usec_t now, usec_t interval);
/* There are other items, of which those before `position` had their turn. The next turn stays when it is. */
void poll_schedule_set_items(struct poll_schedule *s, usec_t now, uint32_t n_items, uint32_t position);

/* Takes the next turn that is due. False: none is. */
bool poll_schedule_next(struct poll_schedule *s, usec_t now, uint32_t *ret_item);
/* When the next turn is, or the round is over; USEC_INFINITY: there are no items. */
usec_t poll_schedule_due(const struct poll_schedule *s);

/* Forgets when the present cycle began and how long the last one took: the interval changed, or the port session was reset. */
void poll_schedule_forget_cycle(struct poll_schedule *s);
/* As violation_poll_is_late(). */
bool poll_schedule_is_late(const struct poll_schedule *s);
