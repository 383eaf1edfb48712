/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * shell/: the only code that touches the world, beside the programs themselves.
 *
 *     clock           monotonic time, for everybody who needs a `now`
 *     thread          a thread in which signals are blocked
 *     file            bounded reading, atomic writing
 *     secret          files and credentials that nobody else may read
 *     state           what pkeyd remembers between runs, as control asks for it: the start, the lock, transactions
 *     state_import    the files of version 0.1.0, taken over once
 *     sqlite_store    a store of records in the state directory, in an SQLite database
 *     umad_port       one InfiniBand port through libibumad: send, and a thread that receives
 *     port_session    an open port and its dispatcher on an sd_event loop
 *     opened_port     the port that the settings name, as control asks for it
 *     opensm_process  OpenSM as a process: a signal makes it read its file again
 *     verbs_port      the ports of this host as its kernel shows them, through libibverbs
 *     report          findings to stderr
 *
 * Each is thin: what can be decided without the world is decided in the core. Shell code includes core code, never the
 * other way round. Functions return 0 or a negative errno and do not log, unless their header says so.
 */

#include "ib/types.h"
#include "util/arena.h"

/* CLOCK_MONOTONIC. */
usec_t clock_now(void);
/* CLOCK_REALTIME, for people and other programs. */
usec_t clock_wall(void);
/* Local time to the minute, as journalctl has it, of seconds since 1970. A copy in the arena; NULL: out of memory. */
const char *clock_to_text(struct arena *a, uint64_t seconds);
/* A moment of clock_now() as clock_wall() has it; 0 stays 0. */
usec_t clock_to_wall(usec_t monotonic);
