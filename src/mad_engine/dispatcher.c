/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "mad_engine/dispatcher.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define TASKS_IN_FLIGHT 8   /* MADs of all background tasks together */
#define TASKS_PACE      (10 * USEC_PER_MSEC) /* waking up for each due MAD costs more than the MAD */
#define MAX_RESPONSES   16  /* the SA repeats a Report until it is answered */
#define LANE_STAGE      0   /* lane i is background task i - 1 */

struct mad_dispatcher {
        struct mad_engine *engine;
        struct mad_gate gate;    /* admit NULL: no gate */

        struct mad_stage stage;
        bool running, ended;
        int r;                   /* the result of the stage */
        uint32_t n_in_stage;     /* requests of the stage that have no result yet */

        struct mad_background_task tasks[MAD_DISPATCHER_TASKS];
        size_t n_tasks;
        unsigned n_in_tasks;     /* requests of background tasks that have no result yet */

        struct mad_frame responses[MAX_RESPONSES];
        size_t n_responses;
};

int mad_dispatcher_new(const struct mad_engine_config *config, struct mad_dispatcher **ret)
{
        _cleanup_(mad_dispatcher_free_p) struct mad_dispatcher *d = calloc(1, sizeof(*d));
        int r = d ? mad_engine_new(config, &d->engine) : -ENOMEM;

        if (r == 0)
                *ret = STEAL(d);
        return r;
}

struct mad_dispatcher *mad_dispatcher_free(struct mad_dispatcher *d)
{
        if (!d)
                return NULL;
        (void) mad_engine_free(d->engine);
        free(d);
        return NULL;
}

/* --- the gate --------------------------------------------------------------------------------------------------------- */

void mad_dispatcher_set_gate(struct mad_dispatcher *d, const struct mad_gate *gate)
{
        d->gate = *gate;
}

static bool is_admitted(struct mad_dispatcher *d, const struct mad_frame *frame)
{
        struct mad_request request;

        if (d->gate.admit)
                return d->gate.admit(d->gate.state, frame);
        mad_frame_decode(frame, &request);
        return request.mgmt_class != MAD_CLASS_SMP || request.method == MAD_GET;
}

/* --- the stage -------------------------------------------------------------------------------------------------------- */

void mad_dispatcher_start(struct mad_dispatcher *d, const struct mad_stage *stage)
{
        assert(!d->running && !d->ended && d->n_in_stage == 0);
        d->stage = *stage;
        d->running = true;
}

bool mad_dispatcher_is_running(const struct mad_dispatcher *d)
{
        return d->running;
}

bool mad_dispatcher_take_end(struct mad_dispatcher *d, int *ret_r)
{
        bool ended = d->ended;

        if (ended)
                *ret_r = d->r;
        d->ended = false;
        return ended;
}

void mad_dispatcher_progress(const struct mad_dispatcher *d, uint64_t *ret_done, uint64_t *ret_total)
{
        *ret_done = *ret_total = 0;
        if (d->running && d->stage.progress)
                d->stage.progress(d->stage.state, ret_done, ret_total);
}

/* Called when nothing is to be sent: without a request in flight no result will come. */
static void end_stage(struct mad_dispatcher *d)
{
        if (!d->running || d->n_in_stage > 0)
                return;
        d->running = false;
        d->ended = true;
        d->r = d->stage.done(d->stage.state) ? 0 : -EDEADLK;
}

/* --- results ---------------------------------------------------------------------------------------------------------- */

static void give_result(struct mad_dispatcher *d, usec_t now, const struct mad_result *result)
{
        const struct mad_background_task *task;

        if (d->gate.see)
                d->gate.see(d->gate.state, result);
        if (result->lane == LANE_STAGE) {
                assert(d->running && d->n_in_stage > 0);
                d->n_in_stage--;
                if (d->stage.result) /* NULL: it was abandoned and takes nothing back */
                        d->stage.result(d->stage.state, now, result);
                return;
        }
        assert(result->lane <= d->n_tasks && d->n_in_tasks > 0);
        d->n_in_tasks--;
        task = &d->tasks[result->lane - 1];
        task->result(task->state, now, result);
}

static bool give_results(struct mad_dispatcher *d, usec_t now)
{
        struct mad_result result;
        bool any = false;

        while (mad_engine_next_result(d->engine, &result)) {
                give_result(d, now, &result);
                any = true;
        }
        return any;
}

void mad_dispatcher_abandon(struct mad_dispatcher *d, usec_t now)
{
        if (!d->running)
                return;
        d->stage.result = d->stage.take_back;
        mad_engine_give_up(d->engine, LANE_STAGE);
        (void) give_results(d, now);
        assert(d->n_in_stage == 0);
        d->running = false;
        d->ended = true;
        d->r = -ECANCELED;
}

/* --- requests --------------------------------------------------------------------------------------------------------- */

static int submit(struct mad_dispatcher *d, usec_t now, struct mad_request *request, uint8_t lane)
{
        struct mad_result unsent = { .cookie = request->cookie, .lane = lane, .outcome = MAD_UNSENT };
        int r;

        request->lane = lane;
        if (lane == LANE_STAGE)
                d->n_in_stage++;
        else
                d->n_in_tasks++;
        r = mad_engine_submit(d->engine, request);
        if (r < 0)
                /* Without memory the request ends like one that this host could not send. */
                give_result(d, now, &unsent);
        return r;
}

static void take_stage_requests(struct mad_dispatcher *d, usec_t now)
{
        struct mad_request request;
        unsigned n = mad_engine_wants(d->engine);

        /* a window full of background requests must not be taken for a stage without requests */
        if (n == 0 && d->n_in_stage == 0)
                n = 1;
        for (; n > 0 && d->stage.next(d->stage.state, now, &request); n--)
                if (submit(d, now, &request, LANE_STAGE) < 0)
                        return;
}

static void take_task_requests(struct mad_dispatcher *d, usec_t now)
{
        struct mad_request request;

        for (size_t i = 0; i < d->n_tasks; i++)
                while (d->n_in_tasks < TASKS_IN_FLIGHT && d->tasks[i].next(d->tasks[i].state, now, &request))
                        if (submit(d, now, &request, (uint8_t) (i + 1)) < 0)
                                return;
}

/* --- the wire --------------------------------------------------------------------------------------------------------- */

bool mad_dispatcher_next_send(struct mad_dispatcher *d, usec_t now, struct mad_frame *ret)
{
        if (d->n_responses > 0) {
                *ret = d->responses[--d->n_responses];
                return true;
        }
        do {
                (void) give_results(d, now);
                if (d->running)
                        take_stage_requests(d, now);
                else
                        take_task_requests(d, now);
                while (mad_engine_next_send(d->engine, now, ret)) {
                        if (is_admitted(d, ret))
                                return true;
                        mad_engine_send_failed(d->engine, now, ret, EPERM);
                }
        } while (give_results(d, now));
        end_stage(d);
        return false;
}

void mad_dispatcher_send_failed(struct mad_dispatcher *d, usec_t now, const struct mad_frame *frame, int error)
{
        mad_engine_send_failed(d->engine, now, frame, error);
}

static void take_report(struct mad_dispatcher *d, usec_t now, const struct mad_frame *report)
{
        for (size_t i = 0; i < d->n_tasks; i++) {
                const struct mad_background_task *task = &d->tasks[i];

                if (!task->report || !task->report(task->state, now, report))
                        continue;
                if (d->n_responses < MAX_RESPONSES)
                        mad_frame_make_report_response(report, &d->responses[d->n_responses++]);
                return;
        }
}

void mad_dispatcher_receive(struct mad_dispatcher *d, usec_t now, const struct mad_frame *frame)
{
        if (mad_frame_is_report(frame))
                take_report(d, now, frame);
        else
                /* the engine counts frames that match no request */
                (void) mad_engine_receive(d->engine, now, frame);
}

/* --- background tasks ------------------------------------------------------------------------------------------------- */

void mad_dispatcher_set_tasks(struct mad_dispatcher *d, const struct mad_background_task *tasks, size_t n)
{
        assert(d->n_tasks == 0 && n <= MAD_DISPATCHER_TASKS);
        for (size_t i = 0; i < n; i++)
                d->tasks[i] = tasks[i];
        d->n_tasks = n;
}

static usec_t tasks_due(const struct mad_dispatcher *d)
{
        usec_t due = USEC_INFINITY;

        if (d->running || d->n_in_tasks >= TASKS_IN_FLIGHT)
                return USEC_INFINITY;
        for (size_t i = 0; i < d->n_tasks; i++)
                due = MIN(due, d->tasks[i].due(d->tasks[i].state));
        return due > USEC_INFINITY - TASKS_PACE ? USEC_INFINITY : (due + TASKS_PACE - 1) / TASKS_PACE * TASKS_PACE;
}

usec_t mad_dispatcher_due(const struct mad_dispatcher *d)
{
        return MIN(mad_engine_deadline(d->engine), tasks_due(d));
}

void mad_dispatcher_get_counters(const struct mad_dispatcher *d, struct mad_engine_counters *ret)
{
        mad_engine_get_counters(d->engine, ret);
}
