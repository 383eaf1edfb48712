/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Decides what is reported when; violations.h has the rules. A rate limit: in each interval the violations of
 * VIOLATIONS_STORM_PORTS entries are reported one by one, and as many ends of episodes. The other entries wait for the end of the
 * interval, when one summary has all of them; if they are so few that the limit was not exceeded, they are reported one by one
 * then.
 */

#include "violations/violation_table.h"

struct report_scheduler {
        struct violations_config config;
        struct violation_table *table;         /* borrows */
        usec_t opened, ends;                   /* the interval in which lines are counted; USEC_INFINITY: there is none */
        uint32_t n_reported, n_quiet;          /* lines in it */
        bool releases_held, releases_quiet;    /* those that wait are reported one by one now */
        bool in_storm;                         /* the last interval ended with a summary */
};

/* What began before ends earlier if the interval is shorter now, but not later. */
void report_scheduler_set_config(struct report_scheduler *s, const struct violations_config *config);
/* The entry counted n more violations; since: when it was last sampled without them. */
void report_scheduler_count(struct report_scheduler *s, usec_t now, uint32_t entry, uint64_t n, usec_t since);
/* Marks the entry as due if enough of it is unreported, and it was not reported in this interval, or if its counter just reached
 * its maximum. */
void report_scheduler_consider(struct report_scheduler *s, uint32_t entry);
/* The host of this entry is not at its port any more: the episode ends as soon as all of it was reported. */
void report_scheduler_end_stay(struct report_scheduler *s, uint32_t entry);
/* As violations_next_report() and violations_due(). */
bool report_scheduler_next(struct report_scheduler *s, usec_t now, struct violation_report *ret);
usec_t report_scheduler_due(const struct report_scheduler *s);
