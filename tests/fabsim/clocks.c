/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The clocks of the head nodes. In half of the histories they differ from each other: the monotonic ones by days, the wall
 * clocks by minutes, and these are set, forward and back, while pkeyd runs and while it does not. In some histories a head node
 * has often booted again when its pkeyd starts, and its monotonic clock has begun anew.
 *
 * Nothing that pkeyd promises depends on the wall clock, but for this: pkeyd counts the time of a lease, how long its P_Key rests,
 * and the time of a change that waits to be confirmed, by the monotonic clock as long as it runs, and goes on by the wall clock
 * when it starts, or takes over from the other head node.
 */

#include "sim.h"

#define SALT   UINT64_C(0x636c6f636b000039) /* no history that tests/fabsim/seeds had before has head nodes that boot */
#define EPOCH  (UINT64_C(1700000000) * USEC_PER_SEC)
#define MOST   1200 /* seconds */

usec_t clocks_now(const struct sim *s, const struct head *h)
{
        return s->now + (usec_t) h->monotonic;
}

usec_t clocks_virtual(const struct head *h, usec_t monotonic)
{
        if (monotonic == USEC_INFINITY)
                return monotonic;
        return h->monotonic > 0 && monotonic < (usec_t) h->monotonic ? 0 : monotonic - (usec_t) h->monotonic; /* 0: it is due */
}

usec_t clocks_wall(const struct sim *s, const struct head *h)
{
        return EPOCH + s->now + (usec_t) h->wall;
}

static void set_wall(struct sim *s, struct head *h, int64_t wall)
{
        h->wall = wall;
        s->first_wall = MIN(s->first_wall, wall);
        s->last_wall = MAX(s->last_wall, wall);
        sim_trace(s, "the wall clock of head node %u is set: %+" PRId64 " s", (unsigned) (h - s->heads), wall / (int64_t) USEC_PER_SEC);
}

usec_t clocks_slack(const struct sim *s)
{
        return (usec_t) (s->last_wall - s->first_wall);
}

/* Often by seconds only. */
static void step_wall(struct sim *s, struct head *h)
{
        int most = prng_permille(&s->clock_rng, 500) ? MOST : 30;

        set_wall(s, h, (int64_t) prng_below(&s->clock_rng, (unsigned) (2 * most) * 1000) * 1000 - most * (int64_t) USEC_PER_SEC);
}

void clocks_make(struct sim *s)
{
        struct prng *r = &s->clock_rng;

        r->state = s->seed ^ SALT;
        if (prng_permille(r, 500))
                return;
        s->boots_again = prng_below(r, 8) == 0;
        for (unsigned i = 0; i < s->n_heads; i++) {
                s->heads[i].monotonic = (int64_t) prng_below(r, 1000000) * 1000003;
                step_wall(s, &s->heads[i]);
                s->counters.clocks_set++;
        }
        for (unsigned n = prng_below(r, 6); n > 0; n--)
                events_add(&s->events, prng_next(r) % s->quiet_at, EVENT_CLOCK)->x = prng_below(r, s->n_heads);
}

void clocks_event(struct sim *s, const struct event *e)
{
        s->counters.clocks_set++;
        step_wall(s, &s->heads[e->x]);
}

/* A head node on which no process runs may have booted since the last one did. */
void clocks_start(struct sim *s, struct head *h)
{
        h->waits_until = MAX(h->waits_until, clocks_slack(s) > 0 ? s->now + SIM_MAX_CONFIRM : 0);
        for (unsigned i = 0; i < SIM_MAX_PROCESSES; i++)
                if (s->processes[i].control && s->processes[i].head == h)
                        return;
        if (!s->boots_again || s->now == 0 || prng_permille(&s->clock_rng, 300))
                return;
        s->counters.boots++;
        h->n_boots++;
        h->monotonic = (int64_t) prng_between(&s->clock_rng, 5, 60) * (int64_t) USEC_PER_SEC - (int64_t) s->now;
        if (prng_permille(&s->clock_rng, 500))
                step_wall(s, h);
        s->calm_at = MAX(s->calm_at, s->now + SIM_MAX_HOLD + 30 * USEC_PER_SEC);
        sim_trace(s, "head node %u has booted", (unsigned) (h - s->heads));
}
