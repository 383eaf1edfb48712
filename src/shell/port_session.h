/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * An open local port on an sd_event loop: libibumad's port, and the dispatcher (mad_engine/dispatcher.h) that all requests
 * pass through.
 *
 * In a turn of the loop received frames go to the dispatcher, then the frames that it has are sent. The handlers are called at the
 * end of a turn, never from within a function of this header. stage_ended may close the session or start the next stage.
 */

#include <systemd/sd-event.h>

#include "mad_engine/dispatcher.h"
#include "settings/settings.h"
#include "shell/umad_port.h"

struct port_session;

struct port_session_handlers {
        /* Called after background tasks have run: they may have results. May be NULL. */
        void (*turn_ended)(void *userdata);
        /* r as in mad_dispatcher_take_end. */
        void (*stage_ended)(int r, void *userdata);
        void *userdata;
        struct mad_gate gate; /* judges all MADs that are sent */
};

/* Opens the port for subnet management, with window and timeout of the settings. Borrows the event loop. Returns 0 or
 * negative errno as umad_port_open; *ret owned. */
int port_session_open(sd_event *event, const struct local_port *lp, const struct settings *settings,
                      const struct port_session_handlers *handlers, struct port_session **ret);
/* Waits for answers to what was just sent (see umad_port_close). Resets the background tasks; does not call a running stage
 * again. */
struct port_session *port_session_close(struct port_session *s);
DEFINE_CLEANUP(struct port_session *, port_session_close)

/* As umad_port_claim. */
int port_session_claim(const struct port_session *s);

/* As mad_dispatcher_start. */
void port_session_run(struct port_session *s, const struct mad_stage *stage);
/* As mad_dispatcher_abandon. */
void port_session_abandon(struct port_session *s);
void port_session_progress(const struct port_session *s, uint64_t *ret_done, uint64_t *ret_total);

/* As mad_dispatcher_set_tasks. */
void port_session_set_tasks(struct port_session *s, const struct mad_background_task *tasks, size_t n);
/* To be called when a background task has something new to send. */
void port_session_wake(struct port_session *s);

/* Registers for performance management and subnet administration, too; with `listen` the tasks get Reports. A second call tries
 * again what failed. Returns 0 or the error of performance management; *ret_sa is 0 or the error of subnet administration
 * (-EINVAL, -EBUSY: another process gets the Reports). */
int port_session_use_gsi(struct port_session *s, bool listen, int *ret_sa);
/* Index in the port's P_Key table for MADs that are sent to QP 1; 0 until it is set. */
void port_session_set_p_key_index(struct port_session *s, unsigned index);

/* Counted since the port was opened. */
void port_session_get_counters(const struct port_session *s, struct mad_engine_counters *ret);
