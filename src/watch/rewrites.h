/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Drift that has one cause. When a host on a leaf switch is rebooted, OpenSM reads all tables of that leaf again, finds entries
 * that it did not write, and rewrites them: many ports of one switch lose or gain entries from one sweep to the next. That is one
 * event to report, not one for each port.
 */

#include "watch/watch.h"

#define REWRITE_MIN_PORTS 3 /* fewer may have other causes */
#define REWRITE_MAX_KEYS  8

struct watch_rewrite {
        uint32_t node;       /* the switch, index into subnet->nodes */
        uint32_t n_ports;    /* endports on it whose tables drifted */
        struct p_key lost[REWRITE_MAX_KEYS], gained[REWRITE_MAX_KEYS]; /* by any of these ports, ascending base */
        uint32_t n_lost, n_gained;                                     /* of all; may exceed REWRITE_MAX_KEYS */
};

/* Finds the switches with at least REWRITE_MIN_PORTS drifted endports, ascending node, in a report about a snapshot of this subnet.
 * (*ret_is_part)[i]: whether WATCH_DRIFTED event i belongs to one of them, as events of the switch's own ports do. The results
 * live in the arena. Returns 0 or -ENOMEM. */
int watch_find_rewrites(struct arena *a, const struct subnet *subnet, const struct watch_report *report,
                        struct watch_rewrite **ret, uint32_t *ret_n, bool **ret_is_part);
