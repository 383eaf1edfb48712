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
void sweep_applied(struct control *c, const struct control_event *event);
void sweep_writer_answered(struct control *c, const struct control_event *event);

/* When the sweep waits for the time; USEC_INFINITY: it does not. And when it has come. */
usec_t sweep_due(const struct control *c);
void sweep_tick(struct control *c);

/* No further write begins; those in flight are awaited. Steps that only read go on. */
void sweep_stop_writing(struct control *c);
/* Frees what it holds, after it ended. For a goal other than CONTROL_SERVE the results stay until control is freed. */
void sweep_free(struct control *c);
