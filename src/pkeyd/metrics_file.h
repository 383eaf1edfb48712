/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The file of metrics (setting metrics.textfile) for node_exporter. pkeyd writes it at the end of each sweep, when it refuses a
 * file, within a second after violations were counted, and at least once a minute, so that an old file means that pkeyd does not
 * run. An error of writing it is logged once, and again when it is over; it stops nothing else.
 */

#include <systemd/sd-event.h>

#include "control/control.h"
#include "metrics/metrics.h"
#include "pkeyd/journal.h"

struct metrics_file;

/* Fills in what control does not know: MADs, plan_duration and violations. The rest is filled in already. */
typedef void (*metrics_collector)(struct metrics *m, void *userdata);

/* Borrows all. fabric: its name; NULL: none. Returns 0 or negative errno; *ret owned. */
int metrics_file_new(sd_event *event, const char *fabric, const struct control *control, const struct journal *journal,
                     metrics_collector collect, void *userdata, struct metrics_file **ret);
struct metrics_file *metrics_file_free(struct metrics_file *f);
DEFINE_CLEANUP(struct metrics_file *, metrics_file_free)

/* To be called after each event of control: writes the file if a sweep has ended or files were refused. */
void metrics_file_update(struct metrics_file *f);
/* To be called when violations were counted. now: one was reported, so the file is written at once; else within a second, since
 * counters may change very often. */
void metrics_file_violations(struct metrics_file *f, bool now);
