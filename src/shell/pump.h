/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The pump: while a stage runs, it moves requests from the stage to the MAD engine, frames from the engine to the wire,
 * what comes to the engine, and results to the stage. One stage at a time.
 *
 * Side stages go on beside it for as long as the pump lives: what they want is sent while no stage runs, a few MADs at a time,
 * so that they slow nothing down; Reports of the SA are handed to them and answered at any time.
 */

#include <systemd/sd-event.h>

#include "mad_engine/mad_engine.h"
#include "mad_engine/stage.h"
#include "shell/umad_port.h"

struct pump;

/* Called once, from the loop, when the stage is done and the engine idle: r is 0. A stage that is not done, waits for
 * nothing and has nothing to send would wait for ever: then r is -EDEADLK. The pump may be freed or started again in it. */
typedef void (*pump_done_t)(int r, void *userdata);

/* Borrows event, port and engine. Returns 0 or negative errno; *ret owned. */
int pump_new(sd_event *event, struct mad_port *port, struct mad_engine *engine, struct pump **ret);
struct pump *pump_free(struct pump *p);
DEFINE_CLEANUP(struct pump *, pump_free)

/* At most PUMP_SIDES of them, borrowed until the pump is freed or others are set. */
#define PUMP_SIDES 4
int pump_set_sides(struct pump *p, const struct mad_side_stage *sides, size_t n);
/* A side stage has something new to say, without anything having come: it is asked for its next request. */
void pump_wake(struct pump *p);

/* Starts a stage; `done` is called later, never from in here. -EBUSY if one runs. */
int pump_start(struct pump *p, const struct mad_stage *stage, pump_done_t done, void *userdata);
