/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The dispatcher: everything that goes over one port, sans I/O.
 *
 *     stage -----------.             .--> gate --> next_send() --> the wire
 *                       >-- engine --
 *     background tasks '             '<----------- receive() <---- the wire
 *
 * It owns the MAD engine, moves requests of the stage and of the background tasks into it, frames out of it (through the gate,
 * which
 * may refuse them), and results back to whoever asked. Reports of the SA go to the background task that takes them, and are
 * answered.
 *
 * One stage runs at a time; while it does, background tasks send nothing new. Results of a task's earlier requests reach it
 * all the same.
 *
 * A turn of its owner is: receive() for each frame that came, next_send() until it has no more, then take_end(). due() says
 * when the next turn is needed if no frame comes before.
 *
 * The dispatcher refuses to know what the MADs mean, and who owns the port.
 */

#include "mad_engine/mad_engine.h"
#include "mad_engine/stage.h"

#define MAD_DISPATCHER_TASKS 4

/* Who judges what leaves, and sees what came of it. */
struct mad_gate {
        void *state;
        /* False: this frame must not leave; the request ends MAD_UNSENT. */
        bool (*admit)(void *state, const struct mad_frame *frame);
        /* How a request ended, before who asked is told. */
        void (*see)(void *state, const struct mad_result *result);
};

struct mad_dispatcher;

/* Returns 0, -EINVAL, -ENOMEM (see mad_engine_new); *ret owned. */
int mad_dispatcher_new(const struct mad_engine_config *config, struct mad_dispatcher **ret);
/* Copies the gate, borrows its state. Without one no Set of subnet management leaves. */
void mad_dispatcher_set_gate(struct mad_dispatcher *d, const struct mad_gate *gate);
/* Stage and tasks are not called any more; requests under way get no result. Accepts NULL, returns NULL. */
struct mad_dispatcher *mad_dispatcher_free(struct mad_dispatcher *d);
DEFINE_CLEANUP(struct mad_dispatcher *, mad_dispatcher_free)

/* Copies the stage, borrows its state until its end was taken. No stage may run. */
void mad_dispatcher_start(struct mad_dispatcher *d, const struct mad_stage *stage);
bool mad_dispatcher_is_running(const struct mad_dispatcher *d);
/* The stage that runs, if one does, ends with -ECANCELED in the next turn. It is told of each request
 * (take_back) before this returns, and is not called any more. What it sent may still be carried out. */
void mad_dispatcher_abandon(struct mad_dispatcher *d, usec_t now);
/* Once after each start: the stage ended. *ret_r is 0, -ECANCELED, or -EDEADLK: it is not done, has nothing to send and waits for
 * nothing, so it would wait for ever. */
bool mad_dispatcher_take_end(struct mad_dispatcher *d, int *ret_r);
/* The stage's own estimate; 0 and 0 while none runs. */
void mad_dispatcher_progress(const struct mad_dispatcher *d, uint64_t *ret_done, uint64_t *ret_total);

/* Background tasks from now on, at most MAD_DISPATCHER_TASKS; copies them, borrows their states. Call it once. */
void mad_dispatcher_set_tasks(struct mad_dispatcher *d, const struct mad_background_task *tasks, size_t n);

/* A frame that came from the wire. */
void mad_dispatcher_receive(struct mad_dispatcher *d, usec_t now, const struct mad_frame *frame);
/* The next frame for the wire; false: none now. */
bool mad_dispatcher_next_send(struct mad_dispatcher *d, usec_t now, struct mad_frame *ret);
/* The frame that next_send gave could not be sent by this host (errno in error). */
void mad_dispatcher_send_failed(struct mad_dispatcher *d, usec_t now, const struct mad_frame *frame, int error);

/* When the next turn is needed, if no frame comes before. USEC_INFINITY: it waits for frames only. */
usec_t mad_dispatcher_due(const struct mad_dispatcher *d);

void mad_dispatcher_get_counters(const struct mad_dispatcher *d, struct mad_engine_counters *ret);
