/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The engine's window against a switch that forwards so many MADs a second and drops what its buffer does not hold, in
 * virtual time: MADs answered a second over some seconds and the share of MADs lost, beside fixed windows of every size (4: what
 * OpenSM uses;
 * 128: as many as the engine may ever have).
 *
 * Then with hosts of which some never answer, each asked once as a stage asks: the seconds until the last request has ended, beside
 * those of all tries to one silent host and of the first tries to all of them, as many at a time as the switch has room for.
 *
 * Ends non-zero if the engine, with no setting touched, gets less than 80 % of what the best fixed window gets, or loses 2 % or
 * more; with silent hosts: if it takes more than twice those seconds, or loses 4 % or more of so few MADs.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "events.h"
#include "fabric.h"
#include "mad_engine/mad_engine.h"
#include "mad_engine/stage.h"
#include "settings/settings.h"
#include "util/macros.h"

#define DURATION    (4 * USEC_PER_SEC) /* enough for some timeouts to pass */
#define MADS        300000             /* more than any of them carries in that time */
#define N_HOSTS     8
#define WAY         20 /* microseconds from here to the switch, and from there on */
#define N_FIXED     8
#define TRIES       5
#define ASKED       4000 /* hosts of which some are silent */

static const unsigned fixed_windows[N_FIXED] = { 1, 4, 8, 16, 32, 64, 128, 256 };

struct bottleneck {
        const char *name;
        unsigned rate;   /* MADs a second */
        unsigned buffer; /* MADs */
};

static const struct bottleneck bottlenecks[] = {
        { "fast, deep", 60000, 256 }, { "fast", 60000, 64 }, { "fast, shallow", 60000, 16 },
        { "slow, deep", 8000, 128 },  { "slow", 8000, 32 },  { "slow, shallow", 8000, 12 },
};

struct line {
        struct fabsim f;
        struct events events;
        const struct bottleneck *b;
        unsigned n_silent; /* hosts of N_HOSTS, those with the lowest LIDs */
        uint64_t now_ns, free_at_ns;
        uint64_t sent, lost;
};

struct score {
        double per_second, loss, seconds;
};

static void line_init(struct line *l, const struct bottleneck *b)
{
        unsigned leaf, host;

        *l = (struct line) { .b = b };
        leaf = fabsim_add_node(&l->f, NODE_SWITCH, N_HOSTS + 1, 8, "leaf");
        for (unsigned i = 0; i <= N_HOSTS; i++) {
                host = fabsim_add_node(&l->f, NODE_CA, 1, 128, "host");
                fabsim_connect(&l->f, host, 1, leaf, (uint8_t) (i + 1));
                l->f.nodes[host].ports[1].lid.v = (uint16_t) (i + 1);
                if (i == 0)
                        l->f.self = l->f.sm = (struct fabsim_place) { host, 1 };
        }
}

static usec_t line_now(const struct line *l)
{
        return l->now_ns / 1000;
}

/* What is sent reaches the switch, waits for those before it, and comes back as an answer; or the buffer is full. */
static void line_send(struct line *l, const struct mad_frame *frame)
{
        uint64_t at = l->now_ns + WAY * 1000, one = UINT64_C(1000000000) / l->b->rate;
        struct fabsim_place place;
        struct mad_frame answer;
        unsigned hops;

        l->sent++;
        if (l->free_at_ns > at && (l->free_at_ns - at) / one >= l->b->buffer) {
                l->lost++;
                return;
        }
        l->free_at_ns = MAX(l->free_at_ns, at) + one;
        if (frame->lid.v < 2 + l->n_silent)
                return;
        if (!fabsim_route(&l->f, frame, &place, &hops) || !fabsim_answer(&l->f, 0, place, frame, &answer))
                abort();
        events_add(&l->events, l->free_at_ns + 2 * WAY * 1000, EVENT_DELIVER)->frame = answer;
}

static struct mad_request request_number(uint32_t i)
{
        return (struct mad_request) {
                .route.lid.v = (uint16_t) (2 + i % N_HOSTS),
                .destination = i, /* as if there were as many hosts; they answer alike */
                .cookie = i,
                .method = MAD_GET,
                .attribute = SMP_ATTR_P_KEY_TABLE,
                .retries = TRIES - 1,
        };
}

static struct score score_of(const struct line *l, uint64_t answered)
{
        return (struct score) { (double) answered * 1e9 / (double) l->now_ns, (double) l->lost / (double) l->sent,
                                (double) l->now_ns / 1e9 };
}

static void advance_to(struct line *l, uint64_t ns)
{
        l->now_ns = MAX(l->now_ns, ns);
}

struct run {
        const struct bottleneck *b;
        usec_t duration;
        uint32_t n_requests;
        unsigned n_silent;
        uint8_t retries;
};

static struct score run_engine(const struct run *run, const struct settings *settings)
{
        struct mad_engine_config config = { .window = settings->window, .timeout = settings->timeout, .tid_key = 1 };
        struct mad_engine *e;
        struct mad_request request;
        struct mad_result result;
        struct mad_frame frame;
        uint64_t answered = 0;
        uint32_t next = 0;
        struct line l;

        line_init(&l, run->b);
        l.n_silent = run->n_silent;
        if (mad_engine_new(&config, &e) < 0)
                abort();
        for (;;) {
                for (unsigned n = mad_engine_wants(e); n > 0 && next < run->n_requests; n--) {
                        request = request_number(next++);
                        request.retries = run->retries;
                        (void) mad_engine_submit(e, &request);
                }
                while (mad_engine_next_send(e, line_now(&l), &frame))
                        line_send(&l, &frame);
                while (mad_engine_next_result(e, &result))
                        answered += result.outcome == MAD_ANSWERED;
                if (line_now(&l) >= run->duration || mad_engine_is_idle(e))
                        break;
                if (l.events.n > 0 && events_next_at(&l.events) / 1000 <= mad_engine_deadline(e)) {
                        struct event *event = events_take(&l.events);

                        advance_to(&l, event->at);
                        (void) mad_engine_receive(e, line_now(&l), &event->frame);
                        free(event);
                } else if (mad_engine_deadline(e) != USEC_INFINITY) {
                        advance_to(&l, mad_engine_deadline(e) * 1000);
                }
        }
        (void) mad_engine_free(e);
        events_done(&l.events);
        return score_of(&l, answered);
}

/* The plain way: so many at a time, each given the same time to answer. */
struct plain {
        struct line l;
        usec_t timeout;
        unsigned window, in_flight;
        uint32_t next, first_waiting;      /* all sends in order of time: a queue of numbers and deadlines */
        uint32_t *queue;
        uint64_t *deadlines;
        uint32_t n_queued;
        bool *is_answered;
        uint8_t *tries;
        uint64_t answered;
};

static void plain_send(struct plain *p, uint32_t i)
{
        struct mad_request request = request_number(i);
        struct mad_frame frame;

        mad_request_encode(&request, i, &frame);
        p->queue[p->n_queued] = i;
        p->deadlines[p->n_queued++] = p->l.now_ns + p->timeout * 1000;
        p->tries[i]++;
        p->in_flight++;
        line_send(&p->l, &frame);
}

/* Those whose time is up: again, or given up. */
static void plain_look_at_deadlines(struct plain *p)
{
        while (p->first_waiting < p->n_queued &&
               (p->is_answered[p->queue[p->first_waiting]] || p->deadlines[p->first_waiting] <= p->l.now_ns)) {
                uint32_t i = p->queue[p->first_waiting++];

                if (p->is_answered[i])
                        continue;
                p->in_flight--;
                if (p->tries[i] < TRIES)
                        plain_send(p, i);
        }
}

static void plain_step(struct plain *p)
{
        uint64_t deadline = p->first_waiting < p->n_queued ? p->deadlines[p->first_waiting] : UINT64_MAX;
        struct event *event;
        uint32_t i;

        if (events_next_at(&p->l.events) > deadline) {
                advance_to(&p->l, deadline);
                return;
        }
        event = events_take(&p->l.events);
        advance_to(&p->l, event->at);
        i = mad_frame_tid(&event->frame);
        if (!p->is_answered[i]) {
                p->is_answered[i] = true;
                p->answered++;
                p->in_flight--;
        }
        free(event);
}

static struct score run_fixed(const struct bottleneck *b, unsigned window, usec_t timeout)
{
        struct plain p = {
                .timeout = timeout,
                .window = window,
                .queue = calloc(MADS * TRIES, sizeof(*p.queue)),
                .deadlines = calloc(MADS * TRIES, sizeof(*p.deadlines)),
                .is_answered = calloc(MADS, sizeof(*p.is_answered)),
                .tries = calloc(MADS, sizeof(*p.tries)),
        };
        struct score s;

        if (!p.queue || !p.deadlines || !p.is_answered || !p.tries)
                abort();
        line_init(&p.l, b);
        for (;;) {
                plain_look_at_deadlines(&p);
                while (p.in_flight < p.window && p.next < MADS)
                        plain_send(&p, p.next++);
                if (line_now(&p.l) >= DURATION)
                        break;
                plain_step(&p);
        }
        s = score_of(&p.l, p.answered);
        events_done(&p.l.events);
        free(p.queue);
        free(p.deadlines);
        free(p.is_answered);
        free(p.tries);
        return s;
}

static bool compare(const struct bottleneck *b, const struct settings *settings)
{
        const struct run run = { .b = b, .duration = DURATION, .n_requests = MADS, .retries = TRIES - 1 };
        struct score engine = run_engine(&run, settings), best = {}, s;
        unsigned best_window = 0;
        bool good;

        printf("%-14s %8u/s, room for %3u:", b->name, b->rate, b->buffer);
        for (unsigned i = 0; i < N_FIXED; i++) {
                s = run_fixed(b, fixed_windows[i], settings->timeout);
                if (s.per_second > best.per_second) {
                        best = s;
                        best_window = fixed_windows[i];
                }
                if (fixed_windows[i] == 4 || fixed_windows[i] == 128)
                        printf("  fixed %3u: %7.0f/s, %5.2f %% lost;", fixed_windows[i], s.per_second, s.loss * 100);
        }
        good = engine.per_second >= 0.8 * best.per_second && engine.loss < 0.02;
        printf("  best (%3u): %7.0f/s, %5.2f %%;  engine: %7.0f/s, %5.2f %% lost, %3.0f %% of the best%s\n", best_window,
               best.per_second, best.loss * 100, engine.per_second, engine.loss * 100,
               100 * engine.per_second / best.per_second, good ? "" : "  TOO BAD");
        return good;
}

/* The times of all tries to one host that does not answer: 1, 2, 4, 4, ... times the timeout. */
static usec_t tries_take(unsigned tries, usec_t timeout)
{
        return tries < 3 ? timeout * (1 + 2 * (tries - 1)) : timeout * (3 + 4 * (tries - 2));
}

static bool with_silent(const struct bottleneck *b, unsigned n_silent, const struct settings *settings)
{
        const struct run run = {
                .b = b, .duration = USEC_INFINITY, .n_requests = ASKED, .n_silent = n_silent, .retries = STAGE_RETRIES,
        };
        struct score engine = run_engine(&run, settings);
        unsigned n_hosts = n_silent * ASKED / N_HOSTS, at_a_time = MIN(b->buffer, settings->window);
        usec_t first_tries = n_hosts * settings->timeout / at_a_time;
        double expected = (double) (tries_take(STAGE_RETRIES + 1, settings->timeout) + first_tries) / 1e6;
        bool good = engine.seconds <= 2 * expected && engine.loss < 0.04;

        printf("%-14s %u of %d hosts silent: %4.1f s, expected %4.1f s, %5.2f %% lost%s\n", b->name, n_hosts, ASKED,
               engine.seconds, expected, engine.loss * 100, good ? "" : "  TOO BAD");
        return good;
}

int main(void)
{
        struct settings settings;
        bool good = true;

        settings_default(&settings);
        for (size_t i = 0; i < ELEMENTS(bottlenecks); i++)
                good &= compare(&bottlenecks[i], &settings);
        for (size_t i = 0; i < ELEMENTS(bottlenecks); i++)
                for (unsigned n = 1; n <= N_HOSTS / 2; n *= 2)
                        good &= with_silent(&bottlenecks[i], n, &settings);
        return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
