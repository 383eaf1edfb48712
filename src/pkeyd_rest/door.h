/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * pkeyd-rest: the REST door of pkeyd, a program of its own without privileges. It speaks HTTP to clients of UFM's partition API
 * and D-Bus to pkeyd, in one thread:
 *
 *     listeners --> http --> login --> jobs --> pkeyd_bus --> pkeyd
 *                                       '--> rest/: requests to responses and changes
 *
 * door.c knows all of them; each of the others handles one source of events.
 *
 * SIGHUP reads rest.yaml again; one that is refused is logged, and what was in force stays. SIGTERM ends: running requests are
 * answered.
 */

struct door_options;

/* Runs until it is told to stop. Logs its errors. Returns 0 or negative errno. */
int door_run(const struct door_options *o);
