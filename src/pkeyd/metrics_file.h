/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "apply/apply.h"
#include "notices/notices.h"
#include "pkeyd/daemon.h"
#include "violations/poll.h"
#include "violations/violations.h"

/*
 * The file of metrics (setting metrics.textfile): what the daemon knows in numbers, for node_exporter. Gathers what passes
 * tell of themselves, and asks the rest of those who know it whenever the file is written: at the end of each pass, at
 * once when the files are refused, within a second when violations were counted, and otherwise once in a minute, so that an old file means a daemon that is not there.
 * Trouble with the file is logged once until it is over, and never stops anything.
 */
/* Returns 0 or negative errno; *ret owned; borrows d and its event loop. */
int metrics_file_new(struct daemon *d, struct metrics_file **ret);
struct metrics_file *metrics_file_free(struct metrics_file *f);

/* From whom violations are known; each is borrowed until others are set, and may be NULL. */
void metrics_file_set_monitor(struct metrics_file *f, struct violations *violations, const struct notices *notices,
                              const struct violation_poll *poll);

/* For pass.c: what was done. judged: tables were compared with the policy; else only who is there is news. */
void metrics_file_looked(struct metrics_file *f, const struct watch_report *report, bool judged);
void metrics_file_planned(struct metrics_file *f, usec_t duration);
void metrics_file_applied(struct metrics_file *f, usec_t duration, bool ended_early, const struct apply_summary *summary);
/* A pass that ended: of the whole fabric if `full`. */
void metrics_file_passed(struct metrics_file *f, enum pass_result result, bool full, usec_t duration);

/* For daemon.c: this fabric, with its counters, is about to be freed. */
void metrics_file_keep_counters(struct metrics_file *f, const struct fabric *fabric);

/* Within a second: for what changes so often that a file each time would be too many. */
void metrics_file_write_soon(struct metrics_file *f);
/* Writes the file as things are now, if the settings want one; takes away one that they wanted before. */
void metrics_file_write(struct metrics_file *f);
