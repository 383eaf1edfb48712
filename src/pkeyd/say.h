/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "apply/apply.h"
#include "pkeyd/generation.h"
#include "pkeyd/journal.h"
#include "watch/watch.h"

/* Results of the stages as journal entries. More than SAY_MAX ports of a kind become one summary with examples. */
#define SAY_MAX 16

/* All findings about files. */
void say_findings(const struct journal *j, const struct findings *findings);
/* Findings of the planner, each once per generation. */
void say_plan_findings(const struct journal *j, struct generation *g, const struct findings *findings);

/* What a look at the fabric found. In audit mode every table that differs is news, else only those that drifted: the
 * others are about to be written, and apply says what came of it. standing_by: only who is there and who answers; say_standby
 * has the rest. */
void say_look(const struct journal *j, const struct generation *g, const struct watch_report *report,
              const struct subnet *subnet, bool standing_by);

/* How the tables differ from the policy of one that stands by, summed up in one entry. `said` is the digest of what was said
 * last (0: nothing): the same again is not said again, and the end of it once. */
void say_standby(const struct journal *j, const struct generation *g, const struct subnet *subnet,
                 const struct verification *v, uint64_t *said);

/* What an apply did. `failures` is the digest of what the last one could not do: the same again is not said again. */
void say_apply(const struct journal *j, struct generation *g, const struct plan *plan, const struct observed *observed,
               const struct apply *apply, usec_t duration, uint64_t *failures);
