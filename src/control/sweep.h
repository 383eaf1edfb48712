/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "control/control_internal.h"

/* Begins a sweep, and sets c->state to its first state. */
void sweep_begin(struct control *c, enum sweep_kind kind);

/* Handle an answer in the states that wait for it: each begins the next state, or ends the sweep (c->sweep.ended). */
void sweep_followed(struct control *c, const struct control_event *event);
void sweep_port(struct control *c, const struct control_event *event);
void sweep_queried(struct control *c, const struct control_event *event);
void sweep_discovered(struct control *c, const struct control_event *event);
void sweep_chosen(struct control *c, const struct control_event *event);
void sweep_surveyed(struct control *c, const struct control_event *event);
void sweep_confirmed(struct control *c, const struct control_event *event);
void sweep_locked(struct control *c, const struct control_event *event);
void sweep_found_sm(struct control *c, const struct control_event *event);
void sweep_read_conf(struct control *c, const struct control_event *event);
void sweep_stored(struct control *c, const struct control_event *event);
void sweep_phase_applied(struct control *c, const struct control_event *event);
void sweep_writer_answered(struct control *c, const struct control_event *event);

/* When sweep_tick() must be called; USEC_INFINITY: the sweep does not wait for a time. */
usec_t sweep_due(const struct control *c);
void sweep_tick(struct control *c);

/* No further write begins; answers to those in flight are awaited. Steps that only read continue. */
void sweep_stop_writing(struct control *c);
/* Begins to store everything that is not in the store. Returns 1: `state` waits for the answer; 0: there is nothing to store;
 * -ENOMEM. */
int sweep_store(struct control *c, enum control_state state);
/* Takes the answer. Returns 0 or negative errno: it was not stored. */
int sweep_take_stored(struct control *c, const struct control_event *event);
/* Forgets which ports did not answer an interrupted sweep. */
void sweep_forget_interrupted(struct control *c);
/* Frees the data of a sweep that ended; with a goal other than CONTROL_SERVE only when control is freed: the results borrow it. */
void sweep_free(struct control *c);
