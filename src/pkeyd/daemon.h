/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * pkeyd/: control (control/control.h) on an sd_event loop.
 *
 *     pkeyd         options, life cycle
 *     daemon        event sources -> control; its actions -> the port, the state directory, files, OpenSM, the journal
 *     load          both files -> a generation
 *     journal       the only place that logs
 *     notify        what the service manager hears
 *     bus           the daemon on D-Bus: its status, its reload, the violations it saw
 *     monitor       violations: background tasks of the port -> violation table -> journal
 *     metrics_file  numbers for Prometheus
 *
 * Nothing is decided here. Each of the others knows its own source of events and asks control for its status; only daemon.c
 * knows them all. Everything happens on one thread.
 */

#include "pkeyd/pkeyd_options.h"

/* Runs until it is stopped. SIGHUP, SIGTERM and SIGINT must be blocked. Returns 0 or a negative errno, which was logged. */
int daemon_run(const struct options *options);
