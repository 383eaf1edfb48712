/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * pkeyd/: control (control/control.h) on an sd_event loop.
 *
 *     pkeyd         main(), --check
 *     daemon        event sources -> control; its actions -> the port, the state directory, files, OpenSM, the journal
 *     load          both files -> a generation
 *     journal       the only place that logs
 *     notify        notifications to the service manager
 *     bus           the daemon on D-Bus: status, reload, violations
 *     monitor       violations: background tasks of the port -> violation table -> journal
 *     metrics_file  numbers for Prometheus
 *
 * The daemon decides nothing; control does. Each of the other files knows its own source of events and reads the status of control;
 * only daemon.c knows them all. Everything runs on one thread, except for receiving MADs (shell/umad_port.h).
 */

#include "pkeyd/pkeyd_options.h"

/* Runs until pkeyd is stopped. SIGHUP, SIGTERM and SIGINT must be blocked. Returns 0 or a negative errno, which was logged. */
int daemon_run(const struct options *options);
