/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * shell/: the I/O that the programs share; etcd/ and state/ have that of the store.
 *
 *     clock            monotonic and wall-clock time
 *     timer            arms a timer of an event loop
 *     fabric           the files, store and bus name of one of several fabrics of this host
 *     file             bounded reading, atomic writing
 *     secret           files and credentials that no other user may read
 *     user             users and groups of this host
 *     local_port       finds the InfiniBand ports of this host
 *     umad_port        one InfiniBand port through libibumad: send, and a thread that receives
 *     port_session     an open port and its dispatcher on an sd_event loop
 *     opened_port      the port that the settings name, kept open for control
 *     verbs_port       the ports of this host as its kernel shows them, through libibverbs
 *     ipoib_interface  the network interface of a port
 *     opensm_process   OpenSM as a process: a signal makes it read its file again
 *     opensm_program   which numbers the OpenSM that is installed reads
 *     command_line     options by a table
 *     findings_print   findings to a stream
 *     journal_fields   entries of the journal, with fields
 *     bus_fields       dictionaries of the daemon's D-Bus interface, for its clients
 *     bus_properties   its properties, for pkeyd, too
 *     text_diff        two texts as a unified diff, by diff(1)
 *
 * Each is thin: the core decides everything that can be decided without I/O. Shell code includes core code, never the
 * other way round. Functions return 0 or a negative errno and do not log, unless their header says so.
 */

#include "ib/types.h"
#include "util/arena.h"

/* CLOCK_MONOTONIC. */
usec_t clock_now(void);
/* CLOCK_BOOTTIME, which also counts while this host is suspended. */
usec_t clock_boot(void);
/* CLOCK_REALTIME, for people and other programs. */
usec_t clock_wall(void);
/* Seconds since 1970 as local time to the minute ("2026-01-31 12:00"). Lives in the arena; NULL: out of memory. */
const char *clock_to_text(struct arena *a, uint64_t seconds);
/* Converts a time of clock_now() to one of clock_wall(); 0 stays 0. */
usec_t clock_to_wall(usec_t monotonic);
