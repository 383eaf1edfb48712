/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * pkeyd/: control (control/control.h) on an sd_event loop.
 *
 *     pkeyd            main(), --check
 *     pkeyd_options    the command line
 *     daemon           event sources -> control; its actions -> the port, the store, files, OpenSM, the journal
 *     load             both files, or those of a stored generation -> a generation
 *     journal          the only place that logs
 *     notify           notifications to the service manager
 *     bus              the daemon on D-Bus: the connection, reload, confirm, undo, signals
 *     bus_status         its properties
 *     bus_violations     its method Violations, which takes long
 *     bus_leases         its interface for leases, with the endports of the fabric; bus_lease_message: leases in messages
 *     bus_message        texts, findings, violations in messages; limits; who calls
 *     forward          requests about leases from and to the other head node
 *     monitor          violations: background tasks of the port -> violation table -> journal
 *     violation_text     their journal entries, and the same as items of violation_list for the bus
 *     metrics_file     numbers for Prometheus
 *
 * The daemon decides nothing; control does. Each of the other files knows its own source of events and reads the status of control;
 * only daemon.c knows them all. Everything runs on one thread, except for receiving MADs (shell/umad_port.h).
 */

#include "pkeyd/pkeyd_options.h"

/* Runs until pkeyd is stopped. SIGHUP, SIGTERM and SIGINT must be blocked. Returns 0 or a negative errno, which was logged. */
int daemon_run(const struct options *options);
