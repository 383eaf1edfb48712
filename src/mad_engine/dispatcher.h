/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The dispatcher: all MADs of one port, sans I/O.
 *
 *     stage -----------.             .--> gate --> next_send() --> the wire
 *                       >-- engine --
 *     background tasks '             '<----------- receive() <---- the wire
 *
 * It owns the MAD engine: it moves requests of the stage and of the background tasks into the engine, frames from the engine
 * through the gate, which may refuse them, and results back to the sender of the request. A Report of the SA goes to the background
 * task that takes it; then the dispatcher answers it.
 *
 * One stage runs at a time; meanwhile background tasks send nothing new, but still get the results of their earlier requests.
 *
 * The owner takes a turn: receive() for each frame that came, next_send() until there is none, then take_end(). due() returns when
 * the next turn is needed if no frame comes before.
 *
 * The dispatcher does not know what the MADs mean, or who owns the port.
 */

#include "mad_engine/mad_engine.h"
#include "mad_engine/stage.h"

#define MAD_DISPATCHER_TASKS 4

/* Judges each frame that leaves, and sees each result. */
struct mad_gate {
        void *state;
        /* Returns false if this frame must not leave; the request then ends MAD_UNSENT. */
        bool (*admit)(void *state, const struct mad_frame *frame);
        /* Sees how a request ended, before the stage or task does. */
        void (*see)(void *state, const struct mad_result *result);
};

struct mad_dispatcher;

/* Returns 0, -EINVAL, -ENOMEM (see mad_engine_new); *ret owned. */
int mad_dispatcher_new(const struct mad_engine_config *config, struct mad_dispatcher **ret);
/* Copies the gate, borrows its state. Without a gate no Set of subnet management leaves. */
void mad_dispatcher_set_gate(struct mad_dispatcher *d, const struct mad_gate *gate);
/* The stage and tasks are not called any more; requests in flight get no result. Accepts NULL, returns NULL. */
struct mad_dispatcher *mad_dispatcher_free(struct mad_dispatcher *d);
DEFINE_CLEANUP(struct mad_dispatcher *, mad_dispatcher_free)

/* Copies the stage, borrows its state until its end is taken. No other stage may run. */
void mad_dispatcher_start(struct mad_dispatcher *d, const struct mad_stage *stage);
bool mad_dispatcher_is_running(const struct mad_dispatcher *d);
/* Ends the running stage, if any, with -ECANCELED in the next turn. Its take_back() is called for each open request before this
 * returns; then it is not called any more. What it sent may still be carried out. */
void mad_dispatcher_abandon(struct mad_dispatcher *d, usec_t now);
/* Returns true once after each start, when the stage has ended. *ret_r is 0, -ECANCELED, or -EDEADLK: the stage is not done, but
 * sends nothing and waits for nothing. */
bool mad_dispatcher_take_end(struct mad_dispatcher *d, int *ret_r);
/* The stage's own estimate; 0 and 0 while none runs. */
void mad_dispatcher_progress(const struct mad_dispatcher *d, uint64_t *ret_done, uint64_t *ret_total);

/* Sets the background tasks, at most MAD_DISPATCHER_TASKS; copies them, borrows their states. Call it once. */
void mad_dispatcher_set_tasks(struct mad_dispatcher *d, const struct mad_background_task *tasks, size_t n);

/* Takes a frame from the wire. */
void mad_dispatcher_receive(struct mad_dispatcher *d, usec_t now, const struct mad_frame *frame);
/* Gets the next frame for the wire; false: none now. */
bool mad_dispatcher_next_send(struct mad_dispatcher *d, usec_t now, struct mad_frame *ret);
/* The frame of next_send() could not be sent by this host (errno in error). */
void mad_dispatcher_send_failed(struct mad_dispatcher *d, usec_t now, const struct mad_frame *frame, int error);

/* When the next turn is needed if no frame comes before. USEC_INFINITY: not before a frame comes. */
usec_t mad_dispatcher_due(const struct mad_dispatcher *d);

void mad_dispatcher_get_counters(const struct mad_dispatcher *d, struct mad_engine_counters *ret);
