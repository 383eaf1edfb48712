/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The fabric as pkeyd and pkeyctl use it: one port of this host, and on it one job at a time, asynchronously on an
 * sd_event loop: discover, or run a stage (survey, apply). pkeyctl runs the loop until a job is done (fabric_wait).
 */

#include <systemd/sd-event.h>

#include "mad_engine/mad_engine.h"
#include "mad_engine/stage.h"
#include "settings/settings.h"
#include "shell/discovery.h"
#include "shell/umad_port.h"

struct fabric;

/* `r` is 0 or a negative errno. Called from the loop, never from within the function that started the job. */
typedef void (*fabric_done_t)(int r, void *userdata);

/* Finds the local port (see local_port_find for errors; *ret is NULL then). Borrows event; copies what it needs of the
 * settings. */
int fabric_new(sd_event *event, const struct settings *settings, struct fabric **ret);
/* Ends a running job without calling its `done`; waits for a discovery thread to end. */
struct fabric *fabric_free(struct fabric *f);
DEFINE_CLEANUP(struct fabric *, fabric_free)

const struct local_port *fabric_local_port(const struct fabric *f);

/* Looks at the local port again (state, LIDs). Errors as local_port_find. */
int fabric_refresh_port(struct fabric *f);

/* Discovery in a thread. The subnet is made in `arena`, which nobody else may use until done is called; *ret_subnet is
 * set then. -EBUSY if a job runs. */
int fabric_discover(struct fabric *f, struct arena *arena, struct subnet **ret_subnet, fabric_done_t done,
                    void *userdata);

/* The M_Key of what discoveries ask, see m_keys_common: libibnetdisc knows only one. 0 until it is set. */
void fabric_set_m_key(struct fabric *f, uint64_t m_key);

/* From now on discoveries run in a process of their own (see discovery_process.h, which main() must heed). For a program
 * that discovers again and again. */
void fabric_discover_apart(struct fabric *f);

/* Runs a stage to its end. Opens the port if it is not open. -EBUSY if a job runs. */
int fabric_run(struct fabric *f, const struct mad_stage *stage, fabric_done_t done, void *userdata);

/* Background tasks (see mad_engine/stage.h): they go on while no job runs, from now on and whenever the port is open.
 * turn_ended is called at the end of each turn of the dispatcher. Borrows the tasks. The port is opened for them, and stays
 * open over discoveries that run apart. Call it once. -EOPNOTSUPP without fabric_discover_apart: a discovery in this process
 * needs the port for itself. */
int fabric_set_tasks(struct fabric *f, const struct mad_background_task *tasks, size_t n,
                     void (*turn_ended)(void *userdata), void *userdata);
/* A background task has something new to send. */
void fabric_wake_tasks(struct fabric *f);

/* From now on the port is registered for performance management and subnet administration too, whenever it is open; with
 * `listen` Reports come to it. It is opened now if it is not. *ret_sa is 0, or why there is no subnet administration or no
 * Report (-EINVAL, -EBUSY: another process takes them). Returns 0, or why the port or performance management cannot be used. */
int fabric_use_gsi(struct fabric *f, bool listen, int *ret_sa);
/* What is sent to QP 1 goes out with the P_Key at this index of the port's table; 0 until it is set. */
void fabric_set_p_key_index(struct fabric *f, unsigned index);

bool fabric_is_busy(const struct fabric *f);

/* Runs the loop until the job that is running is done; gives its r. For pkeyctl. If `progress` is not NULL it is called
 * now and then (5 times a second) with the steps done and in all (0, 0 while discovering). */
typedef void (*fabric_progress_t)(uint64_t done, uint64_t total, void *userdata);
int fabric_wait(struct fabric *f, fabric_progress_t progress, void *userdata);

/* Of all stages since fabric_new. */
void fabric_get_counters(const struct fabric *f, struct mad_engine_counters *ret);
