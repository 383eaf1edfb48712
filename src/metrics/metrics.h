/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * metrics/: the status of control and other numbers -> a text that Prometheus reads.
 *
 *     struct metrics --metrics_print--> the text format 0.0.4, for the textfile collector of node_exporter
 *
 * This format differs from OpenMetrics: the TYPE line of a counter has the name with _total, in OpenMetrics without. Otherwise the
 * text follows both: units in names, no time stamps, HELP before TYPE, families in one piece, and `# EOF` as the last line, which
 * OpenMetrics requires and the collector takes for a comment.
 *
 * Numbers of violations are those of the violation table (violations/violations.h), never counted a second time here, so that
 * journal, bus and metrics show the same. Records of one port and source that differ in P_Key and peer are one series here. The
 * labels of a series name the port that counted (node_guid, seen_by), and the endport that it is about, if that is known: for a
 * switch port what is plugged into it.
 *
 * Invariants: the same numbers give the same bytes; no two series have the same labels, whatever the names in a fabric; at most
 * METRICS_MAX_SERIES series of violations by port, the largest, and for each source one of the others (rest="true"), so that sums
 * are right; at most METRICS_MAX_HELD held bases in each family that names them, the lowest. A number that is not known is left
 * out, never 0.
 *
 * This folder does not know where the text goes, or what time it is.
 */

#include "control/control.h"
#include "notices/notices.h"
#include "violations/poll.h"
#include "violations/violations.h"

#define METRICS_MAX_SERIES 5000
#define METRICS_MAX_HELD   64

struct metrics {
        const char *version;
        const char *fabric;    /* a label of every series; NULL: none */
        usec_t started;        /* CLOCK_REALTIME */
        usec_t plan_duration;  /* of the last plan; 0: there was none */
        struct mad_engine_counters mads;

        const struct control_status *control;        /* borrows; its snapshot has the names of ports */
        const struct notices_status *notices;        /* borrows; NULL: there is no subscription */
        const struct violation_poll_counters *poll;  /* borrows; NULL: there is no poll */

        bool has_violations;                         /* there is a violation table */
        const struct violation_record *records;      /* borrows; as violations_records() gives them */
        uint32_t n_records;
        uint64_t violations[VIOLATION_N_SOURCES];    /* as violations_total() gives them */
        usec_t now;                                  /* by the clock of the records; and the same time ... */
        usec_t realtime;                             /* ... in microseconds since 1970 */
};

/* Returns 0 or -ENOMEM; *ret owned, with a NUL after its *ret_n bytes. */
int metrics_print(const struct metrics *m, char **ret, size_t *ret_n);
