/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The file of metrics (setting metrics.textfile): what the daemon knows in numbers, for node_exporter. Numbers are collected
 * whenever the file is written: at the end of each sweep, at once when files are refused, within a second when violations
 * were counted, and otherwise once a minute, so that an old file means a daemon that is not there. A problem with the file is
 * logged once until it is over, and never stops anything.
 */

#include <systemd/sd-event.h>

#include "control/control.h"
#include "metrics/metrics.h"
#include "pkeyd/journal.h"

struct metrics_file;

/* Fills in what others than control know: MADs, plan_duration, and all of violations; the rest is filled. */
typedef void (*metrics_collector)(struct metrics *m, void *userdata);

/* Borrows event loop, control and journal. Returns 0 or negative errno; *ret owned. */
int metrics_file_new(sd_event *event, const struct control *control, const struct journal *journal,
                     metrics_collector collect, void *userdata, struct metrics_file **ret);
struct metrics_file *metrics_file_free(struct metrics_file *f);

/* After each event of control: writes the file if a sweep has ended or files were refused. */
void metrics_file_update(struct metrics_file *f);
/* Violations were counted. now: one of them was reported. Else within a second: they change so often that a file each time
 * would be too many. */
void metrics_file_violations(struct metrics_file *f, bool now);
