/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "shell/pump.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>

#define BATCH          256 /* received frames for one turn */
#define TIMER_ACCURACY USEC_PER_MSEC

struct pump {
        struct smi_port *port;
        struct mad_engine *engine;
        sd_event_source *received, *timer, *start;
        usec_t armed; /* what the timer is set to; USEC_INFINITY: it is off */

        bool running;
        struct smp_stage stage;
        pump_done_t done;
        void *userdata;

        struct mad_frame frames[BATCH];
};

static bool give_results(struct pump *p)
{
        struct smp_result result;
        bool any = false;

        while (mad_engine_next_result(p->engine, &result)) {
                p->stage.result(p->stage.state, &result);
                any = true;
        }
        return any;
}

static void take_requests(struct pump *p)
{
        struct smp_request request;

        for (unsigned n = mad_engine_wants(p->engine); n > 0 && p->stage.next(p->stage.state, &request); n--)
                if (mad_engine_submit(p->engine, &request) < 0) {
                        /* No memory for it: to the stage that is a request which this host could not send. */
                        struct smp_result unsent = { .cookie = request.cookie, .outcome = SMP_UNSENT };

                        p->stage.result(p->stage.state, &unsent);
                        return;
                }
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

static void receive_frames(struct pump *p, usec_t now)
{
        size_t n = umad_port_take(p->port, p->frames, BATCH);

        for (size_t i = 0; i < n; i++)
                /* What does not fit is counted there. */
                (void) mad_engine_receive(p->engine, now, &p->frames[i]);
}

/* Setting a timer costs more than a MAD; in the normal case, where all is answered, deadlines only move away. So it is
 * set when it must ring earlier than it would, and what it rings for too early is looked at anew. */
static int arm(struct pump *p)
{
        usec_t deadline = mad_engine_deadline(p->engine);
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
        (void) sd_event_source_set_enabled(p->received, SD_EVENT_OFF);
        (void) sd_event_source_set_enabled(p->timer, SD_EVENT_OFF);
        (void) sd_event_source_set_enabled(p->start, SD_EVENT_OFF);
        p->armed = USEC_INFINITY;
        p->running = false;
}

/* The last thing a turn does: p may be gone when it returns. */
static void finish(struct pump *p, int r)
{
        stop(p);
        p->done(r, p->userdata);
}

static void turn(struct pump *p)
{
        usec_t now = clock_now();
        int r;

        if (!p->running)
                return;
        receive_frames(p, now);
        (void) give_results(p);
        do {
                take_requests(p);
                send_frames(p, now);
        } while (give_results(p));

        if (mad_engine_is_idle(p->engine)) {
                finish(p, p->stage.done(p->stage.state) ? 0 : -EDEADLK);
                return;
        }
        r = arm(p);
        if (r < 0)
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

int pump_new(sd_event *event, struct smi_port *port, struct mad_engine *engine, struct pump **ret)
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

int pump_start(struct pump *p, const struct smp_stage *stage, pump_done_t done, void *userdata)
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
        p->running = true;
        return 0;
}
