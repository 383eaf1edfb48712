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

/* Fills in what control does not know: MADs, plan_duration and violations. The rest is filled in already. */
typedef void metrics_collector(struct metrics *m, void *userdata);

struct metrics_file {
        const char *fabric;      /* NULL: none */
        const struct control *control;
        const struct journal *journal;
        metrics_collector *collect;
        void *userdata;
        sd_event_source *due;
        usec_t started;          /* CLOCK_REALTIME */
        uint64_t n_sweeps;       /* when the file was last written */
        size_t n_file_errors;
        char *path;              /* the last file that was written, or should have been; NULL: none */
        bool is_written;         /* that file is pkeyd's */
        bool failed;             /* the last write to that path, which was logged */
};

/* Borrows all. fabric: its name; NULL: none. Returns 0 or negative errno. */
int metrics_file_init(struct metrics_file *f, sd_event *event, const char *fabric, const struct control *control,
                      const struct journal *journal, metrics_collector *collect, void *userdata);
/* Zeroed: nothing to do. */
void metrics_file_done(struct metrics_file *f);

/* To be called after each event of control: writes the file if a sweep has ended or files were refused. */
void metrics_file_update(struct metrics_file *f);
/* To be called when violations were counted. now: one was reported, so the file is written at once; else within a second, since
 * counters may change very often. */
void metrics_file_violations(struct metrics_file *f, bool now);
