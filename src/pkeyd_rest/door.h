/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * pkeyd_rest/: pkeyd-rest, the REST door of pkeyd, a program of its own without privileges. It speaks HTTP to clients of UFM's
 * partition API, and D-Bus to pkeyd, in one thread:
 *
 *     listeners --> http --> login --> jobs --> pkeyd_bus --> pkeyd
 *                                       '--> rest/: requests to responses and changes
 *
 * door.c knows all of them; each of the others handles one source of events.
 *
 * On SIGHUP the door reads rest.yaml again; if it refuses the file, it logs why, and keeps the configuration in force. On SIGTERM
 * it answers the requests that it has, and ends.
 */

#include "shell/fabric.h"

/* Runs with this rest.yaml until a signal ends it. Logs its errors. Returns 0 or negative errno. */
int door_run(const char *file, const struct fabric *fabric);
