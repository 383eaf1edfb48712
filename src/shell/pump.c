/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "shell/pump.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>

#define BATCH          256 /* received frames for one turn */
#define TIMER_ACCURACY USEC_PER_MSEC
#define SIDE_IN_FLIGHT 8   /* MADs of all side stages together */
#define SIDE_PACE      (10 * USEC_PER_MSEC) /* to wake up for each MAD that is due costs more than the MAD */

struct pump {
        struct mad_port *port;
        struct mad_engine *engine;
        sd_event_source *received, *timer, *start;
        usec_t armed; /* what the timer is set to; USEC_INFINITY: it is off */

        bool running;
        struct mad_stage stage;
        pump_done_t done;
        void *userdata;
        uint32_t n_under_way; /* requests of the stage without a result yet */

        struct mad_side_stage sides[PUMP_SIDES];
        size_t n_sides;
        unsigned n_side_under_way;

        struct mad_frame frames[BATCH];
};

/* Lane 0 is the stage, lane i the side stage i - 1. */
static void give_result(struct pump *p, usec_t now, const struct mad_result *result)
{
        if (result->lane == 0) {
                p->n_under_way -= MIN(p->n_under_way, 1U);
                if (p->running)
                        p->stage.result(p->stage.state, result);
                return;
        }
        p->n_side_under_way -= MIN(p->n_side_under_way, 1U);
        if (result->lane <= p->n_sides) {
                const struct mad_side_stage *side = &p->sides[result->lane - 1];

                side->result(side->state, now, result);
        }
}

static bool give_results(struct pump *p, usec_t now)
{
        struct mad_result result;
        bool any = false;

        while (mad_engine_next_result(p->engine, &result)) {
                give_result(p, now, &result);
                any = true;
        }
        return any;
}

static int submit(struct pump *p, usec_t now, struct mad_request *request, uint8_t lane)
{
        struct mad_result unsent = { .cookie = request->cookie, .lane = lane, .outcome = MAD_UNSENT };
        int r;

        request->lane = lane;
        if (lane == 0)
                p->n_under_way++;
        else
                p->n_side_under_way++;
        r = mad_engine_submit(p->engine, request);
        if (r < 0)
                /* No memory for it: to the stage that is a request which this host could not send. */
                give_result(p, now, &unsent);
        return r;
}

static void take_requests(struct pump *p, usec_t now)
{
        struct mad_request request;
        unsigned n = mad_engine_wants(p->engine);

        /* a window full of what side stages sent must not look like a stage that has nothing to do */
        if (n == 0 && p->n_under_way == 0)
                n = 1;
        for (; n > 0 && p->stage.next(p->stage.state, &request); n--)
                if (submit(p, now, &request, 0) < 0)
                        return;
}

static void take_side_requests(struct pump *p, usec_t now)
{
        struct mad_request request;

        for (size_t i = 0; i < p->n_sides; i++)
                while (p->n_side_under_way < SIDE_IN_FLIGHT && p->sides[i].next(p->sides[i].state, now, &request))
                        if (submit(p, now, &request, (uint8_t) (i + 1)) < 0)
                                return;
}

static void send_frames(struct pump *p, usec_t now)
{
        struct mad_frame frame;

        while (mad_engine_next_send(p->engine, now, &frame)) {
                int r = umad_port_send(p->port, &frame);

                if (r < 0)
                        mad_engine_send_failed(p->engine, now, &frame, -r);
        }
}

/* Whoever sent it sends it again until it is answered. */
static void take_report(struct pump *p, usec_t now, const struct mad_frame *report)
{
        struct mad_frame response;

        for (size_t i = 0; i < p->n_sides; i++)
                if (p->sides[i].report && p->sides[i].report(p->sides[i].state, now, report)) {
                        mad_frame_make_report_response(report, &response);
                        (void) umad_port_send(p->port, &response);
                        return;
                }
}

static void receive_frames(struct pump *p, usec_t now)
{
        size_t n = umad_port_take(p->port, p->frames, BATCH);

        for (size_t i = 0; i < n; i++)
                if (mad_frame_is_report(&p->frames[i]))
                        take_report(p, now, &p->frames[i]);
                else
                        /* What does not fit is counted there. */
                        (void) mad_engine_receive(p->engine, now, &p->frames[i]);
}

/* When the next side request is due; not while a stage runs, or while enough of them are under way. */
static usec_t sides_due(const struct pump *p)
{
        usec_t due = USEC_INFINITY;

        if (p->running || p->n_side_under_way >= SIDE_IN_FLIGHT)
                return USEC_INFINITY;
        for (size_t i = 0; i < p->n_sides; i++)
                due = MIN(due, p->sides[i].due(p->sides[i].state));
        return due > USEC_INFINITY - SIDE_PACE ? USEC_INFINITY : (due + SIDE_PACE - 1) / SIDE_PACE * SIDE_PACE;
}

/* Setting a timer costs more than a MAD; in the normal case, where all is answered, deadlines only move away. So it is
 * set when it must ring earlier than it would, and what it rings for too early is looked at anew. */
static int arm(struct pump *p)
{
        usec_t deadline = MIN(mad_engine_deadline(p->engine), sides_due(p));
        int r;

        if (deadline >= p->armed)
                return 0;
        r = sd_event_source_set_time(p->timer, deadline);
        if (r < 0)
                return r;
        p->armed = deadline;
        return sd_event_source_set_enabled(p->timer, SD_EVENT_ONESHOT);
}

static void stop(struct pump *p)
{
        if (p->n_sides == 0) {
                (void) sd_event_source_set_enabled(p->received, SD_EVENT_OFF);
                (void) sd_event_source_set_enabled(p->timer, SD_EVENT_OFF);
                p->armed = USEC_INFINITY;
        }
        (void) sd_event_source_set_enabled(p->start, SD_EVENT_OFF);
        p->running = false;
}

/* The last thing a turn does: p may be gone when it returns. */
static void finish(struct pump *p, int r)
{
        stop(p);
        if (p->n_sides > 0)
                (void) arm(p);
        p->done(r, p->userdata);
}

static void turn(struct pump *p)
{
        usec_t now = clock_now();
        int r;

        receive_frames(p, now);
        (void) give_results(p, now);
        do {
                if (p->running)
                        take_requests(p, now);
                else
                        take_side_requests(p, now);
                send_frames(p, now);
        } while (give_results(p, now));

        if (p->running && p->n_under_way == 0) {
                finish(p, p->stage.done(p->stage.state) ? 0 : -EDEADLK);
                return;
        }
        r = arm(p);
        if (r < 0 && p->running)
                finish(p, r);
}

static int on_received(sd_event_source *s, int fd, uint32_t revents, void *userdata)
{
        (void) s;
        (void) fd;
        (void) revents;
        turn(userdata);
        return 0;
}

static int on_timer(sd_event_source *s, uint64_t usec, void *userdata)
{
        struct pump *p = userdata;

        (void) s;
        (void) usec;
        p->armed = USEC_INFINITY;
        turn(p);
        return 0;
}

static int on_start(sd_event_source *s, void *userdata)
{
        (void) s;
        turn(userdata);
        return 0;
}

int pump_new(sd_event *event, struct mad_port *port, struct mad_engine *engine, struct pump **ret)
{
        _cleanup_(pump_free_p) struct pump *p = calloc(1, sizeof(*p));
        int r;

        if (!p)
                return -ENOMEM;
        p->port = port;
        p->engine = engine;
        r = sd_event_add_io(event, &p->received, umad_port_event_fd(port), EPOLLIN, on_received, p);
        if (r < 0)
                return r;
        r = sd_event_add_time(event, &p->timer, CLOCK_MONOTONIC, 0, TIMER_ACCURACY, on_timer, p);
        if (r < 0)
                return r;
        r = sd_event_add_defer(event, &p->start, on_start, p);
        if (r < 0)
                return r;
        stop(p);
        *ret = STEAL(p);
        return 0;
}

static void drop_source(sd_event_source *s)
{
        if (!s)
                return;
        (void) sd_event_source_set_enabled(s, SD_EVENT_OFF);
        (void) sd_event_source_unref(s);
}

struct pump *pump_free(struct pump *p)
{
        if (!p)
                return NULL;
        drop_source(p->received);
        drop_source(p->timer);
        drop_source(p->start);
        free(p);
        return NULL;
}

int pump_set_sides(struct pump *p, const struct mad_side_stage *sides, size_t n)
{
        int r;

        if (n > PUMP_SIDES)
                return -EINVAL;
        for (size_t i = 0; i < n; i++)
                p->sides[i] = sides[i];
        p->n_sides = n;
        r = sd_event_source_set_enabled(p->received, SD_EVENT_ON);
        if (r >= 0)
                r = sd_event_source_set_enabled(p->start, SD_EVENT_ONESHOT);
        return r < 0 ? r : 0;
}

void pump_wake(struct pump *p)
{
        (void) sd_event_source_set_enabled(p->start, SD_EVENT_ONESHOT);
}

int pump_start(struct pump *p, const struct mad_stage *stage, pump_done_t done, void *userdata)
{
        int r;

        if (p->running)
                return -EBUSY;
        r = sd_event_source_set_enabled(p->received, SD_EVENT_ON);
        if (r < 0)
                return r;
        r = sd_event_source_set_enabled(p->start, SD_EVENT_ONESHOT);
        if (r < 0)
                return r;
        p->stage = *stage;
        p->done = done;
        p->userdata = userdata;
        p->n_under_way = 0;
        p->running = true;
        return 0;
}
