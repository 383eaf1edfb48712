/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "shell/port_session.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/random.h>

#include "shell/timer.h"

#define BATCH          256 /* received frames for one turn */
#define TIMER_ACCURACY USEC_PER_MSEC

struct port_session {
        struct mad_port *port;
        struct mad_dispatcher *dispatcher;
        struct port_session_handlers handlers;
        struct mad_background_task tasks[MAD_DISPATCHER_TASKS];
        size_t n_tasks;
        sd_event_source *received, *timer, *wake;
        usec_t armed; /* when the timer elapses; USEC_INFINITY: it is off */
        struct mad_frame frames[BATCH];
};

/* Setting a timer costs more than a MAD, and while all requests are answered deadlines only move to later. So the timer is only
 * ever set to an earlier time; when it elapses too early it is set again. */
static void arm(struct port_session *s)
{
        usec_t due = mad_dispatcher_due(s->dispatcher);

        if (due >= s->armed)
                return;
        s->armed = due;
        (void) timer_set(s->timer, due);
}

/* Each frame by its own time: a Set that has a limit (send_before) is not sent after it, even if this process was paused. */
static void send_frames(struct port_session *s)
{
        struct mad_frame frame;

        while (mad_dispatcher_next_send(s->dispatcher, clock_now(), &frame)) {
                int r = umad_port_send(s->port, &frame);

                if (r < 0)
                        mad_dispatcher_send_failed(s->dispatcher, clock_now(), &frame, -r);
        }
}

/* stage_ended may close the session, so it is not used after that. */
static void turn(struct port_session *s)
{
        size_t n = umad_port_take(s->port, s->frames, BATCH);
        usec_t now = clock_now();
        int r;

        for (size_t i = 0; i < n; i++)
                mad_dispatcher_receive(s->dispatcher, now, &s->frames[i]);
        send_frames(s);
        if (s->handlers.turn_ended)
                s->handlers.turn_ended(s->handlers.userdata);
        arm(s);
        if (mad_dispatcher_take_end(s->dispatcher, &r))
                s->handlers.stage_ended(r, s->handlers.userdata);
}

static int on_received(sd_event_source *, int, uint32_t, void *userdata)
{
        turn(userdata);
        return 0;
}

static int on_timer(sd_event_source *, uint64_t, void *userdata)
{
        struct port_session *s = userdata;

        s->armed = USEC_INFINITY;
        turn(s);
        return 0;
}

static int on_wake(sd_event_source *, void *userdata)
{
        turn(userdata);
        return 0;
}

static int add_sources(struct port_session *s, sd_event *event)
{
        int r = sd_event_add_io(event, &s->received, umad_port_event_fd(s->port), EPOLLIN, on_received, s);

        if (r >= 0)
                r = sd_event_add_time(event, &s->timer, CLOCK_MONOTONIC, UINT64_MAX, TIMER_ACCURACY, on_timer, s);
        if (r >= 0)
                r = sd_event_add_defer(event, &s->wake, on_wake, s);
        if (r >= 0)
                r = sd_event_source_set_enabled(s->wake, SD_EVENT_OFF);
        return r < 0 ? r : 0;
}

static int new_dispatcher(const struct settings *settings, struct mad_dispatcher **ret)
{
        struct mad_engine_config config = { .window = settings->window, .timeout = settings->timeout };

        /* Without randomness, right after the boot, any number will do: it still keeps the IDs of two runs apart. */
        if (getrandom(&config.tid_key, sizeof(config.tid_key), GRND_NONBLOCK) < 0)
                config.tid_key = clock_now();
        return mad_dispatcher_new(&config, ret);
}

int port_session_open(sd_event *event, const struct local_port *lp, const struct settings *settings,
                      const struct port_session_handlers *handlers, struct port_session **ret)
{
        _cleanup_(port_session_close_p) struct port_session *s = calloc(1, sizeof(*s));
        int r;

        if (!s)
                return -ENOMEM;
        s->handlers = *handlers;
        s->armed = USEC_INFINITY;
        r = new_dispatcher(settings, &s->dispatcher) ?: umad_port_open(lp, &s->port) ?: add_sources(s, event);
        if (r < 0)
                return r;
        mad_dispatcher_set_gate(s->dispatcher, &handlers->gate);
        *ret = STEAL(s);
        return 0;
}

struct port_session *port_session_close(struct port_session *s)
{
        if (!s)
                return NULL;
        sd_event_source_disable_unref(s->received);
        sd_event_source_disable_unref(s->timer);
        sd_event_source_disable_unref(s->wake);
        for (size_t i = 0; i < s->n_tasks; i++)
                s->tasks[i].reset(s->tasks[i].state, clock_now());
        (void) umad_port_close(s->port);
        (void) mad_dispatcher_free(s->dispatcher);
        free(s);
        return NULL;
}

int port_session_claim(const struct port_session *s)
{
        return umad_port_claim(s->port);
}

void port_session_run(struct port_session *s, const struct mad_stage *stage)
{
        mad_dispatcher_start(s->dispatcher, stage);
        port_session_wake(s);
}

void port_session_abandon(struct port_session *s)
{
        mad_dispatcher_abandon(s->dispatcher, clock_now());
        port_session_wake(s);
}

void port_session_progress(const struct port_session *s, uint64_t *ret_done, uint64_t *ret_total)
{
        mad_dispatcher_progress(s->dispatcher, ret_done, ret_total);
}

void port_session_set_tasks(struct port_session *s, const struct mad_background_task *tasks, size_t n)
{
        mad_dispatcher_set_tasks(s->dispatcher, tasks, n);
        for (size_t i = 0; i < n; i++)
                s->tasks[i] = tasks[i];
        s->n_tasks = n;
        port_session_wake(s);
}

void port_session_wake(struct port_session *s)
{
        (void) sd_event_source_set_enabled(s->wake, SD_EVENT_ONESHOT);
}

int port_session_use_gsi(struct port_session *s, bool listen, int *ret_sa)
{
        int r = umad_port_use_pma(s->port);

        *ret_sa = umad_port_use_sa(s->port, listen);
        return r;
}

void port_session_set_p_key_index(struct port_session *s, unsigned index)
{
        umad_port_set_p_key_index(s->port, index);
}

void port_session_get_counters(const struct port_session *s, struct mad_engine_counters *ret)
{
        mad_dispatcher_get_counters(s->dispatcher, ret);
}
