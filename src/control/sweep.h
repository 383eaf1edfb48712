/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "control/control_internal.h"

/* Begins a sweep: c->state is its first state. */
void sweep_begin(struct control *c, enum sweep_kind kind);

/* The answers, each in the states that wait for it; each goes on to the next state, or ends the sweep (c->sweep.ended). */
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

/* When the sweep waits for the time; USEC_INFINITY: it does not. And when it has come. */
usec_t sweep_due(const struct control *c);
void sweep_tick(struct control *c);

/* No further write begins; those in flight are awaited. Steps that only read go on. */
void sweep_stop_writing(struct control *c);
/* Asks for all that is not in the store to be committed. Returns 1: `state` waits for the answer; 0: there is nothing to store;
 * -ENOMEM. */
int sweep_store(struct control *c, enum control_state state);
/* The answer. Returns what became of it: 0 or negative errno. */
int sweep_take_stored(struct control *c, const struct control_event *event);
/* Whom the last sweep asked in vain is not known any more. */
void sweep_forget_interrupted(struct control *c);
/* Frees what it holds, after it ended. For a goal other than CONTROL_SERVE the results stay until control is freed. */
void sweep_free(struct control *c);
