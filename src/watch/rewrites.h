/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Drift that has one cause. When a host on a leaf switch is rebooted OpenSM reads all tables of that leaf again, finds what it
 * did not write, and rewrites them: many ports of one switch lose or gain entries from one sweep to the next. That is one thing
 * to tell, not one for each port.
 */

#include "watch/watch.h"

#define REWRITE_MIN_PORTS 3 /* fewer may be anything */
#define REWRITE_MAX_KEYS  8

struct watch_rewrite {
        uint32_t node;       /* the switch, index into subnet->nodes */
        uint32_t n_ports;    /* endports on it whose tables drifted */
        struct p_key lost[REWRITE_MAX_KEYS], gained[REWRITE_MAX_KEYS]; /* by any of them, ascending base */
        uint32_t n_lost, n_gained;                                     /* all of them; may be more than there is room for */
};

/* Of a report about a snapshot of this subnet, the switches with at least REWRITE_MIN_PORTS drifted endports, ascending node.
 * *ret_told:
 * for each WATCH_DRIFTED event whether it is part of one (the events of the switch's own ports are). Returns 0 or -ENOMEM; in
 * the arena. */
int watch_find_rewrites(struct arena *a, const struct subnet *subnet, const struct watch_report *report,
                        struct watch_rewrite **ret, uint32_t *ret_n, bool **ret_told);
