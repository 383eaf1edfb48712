/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What a change of tables means, in words. */

#include "policy/policy.h"
#include "reach/reach.h"

#define REACH_MAX_SHOWN 20 /* lines that a person reads */

/* The policies that name partitions: the new one, and the one before; each may be NULL. */
struct reach_names {
        const struct policy *now, *before;
};

/* The name of a partition, or its number. May be allocated from a; NULL: out of memory. */
const char *reach_name(struct arena *a, const struct reach_names *names, uint16_t base);

/* "node0008: no longer with node[0001-0007] (tenant-a); now with node[0009-0016] (tenant-b)". Allocated from a; NULL: out of
 * memory. */
const char *reach_describe(struct arena *a, const struct subnet *s, const struct reach_names *names, const struct reach_line *l);

/* "7 pairs of ports lost, 8 gained; nothing else changes"; that nothing changes; or that too much changes to compare it. Allocated
 * from a; NULL: out of memory. */
const char *reach_summarize(struct arena *a, const struct reach_changes *r);

/* Adds notes (FINDING_PLAN_REACH) with the first REACH_MAX_SHOWN lines and the summary; nothing if no pair is lost or gained. */
void reach_report(const struct subnet *s, const struct reach_names *names, const struct reach_changes *r,
                  struct findings *findings);
