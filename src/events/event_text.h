/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "apply/apply.h"
#include "events/log.h"
#include "generation/generation.h"
#include "knowledge/held.h"
#include "subnet/known.h"
#include "watch/watch.h"

/* Results of the stages as log entries. More than EVENT_TEXT_MAX ports of a kind become one summary with examples. */
#define EVENT_TEXT_MAX 16

/* All findings about files. */
void event_text_findings(struct log *l, const struct findings *findings);
/* Findings of the planner, each once for each generation. */
void event_text_plan_findings(struct log *l, struct generation *g, const struct findings *findings);

/* What a sweep found. In audit mode every table that differs is news, else only those that drifted: the
 * others are about to be written, and event_text_apply has what came of it. standby: only who is there and who answers;
 * event_text_standby
 * has the rest. */
void event_text_watch(struct log *l, const struct generation *g, const struct watch_report *report, const struct subnet *subnet,
               bool standby);

/* How the tables differ from the policy of a standby, summed up in one entry. `reported` is the digest of what was logged
 * last (0: nothing): the same again is not logged again, and the end of it once; while ports are not read, that the end is not
 * known. */
void event_text_standby(struct log *l, const struct generation *g, const struct subnet *subnet, const struct verification *v,
                 uint64_t *reported);

/* Which bases are held, each with what waits for what, why, and the way out; once when that changes, and when it ends. `now` is
 * seconds since 1970, `reported` the digest of what was logged last (0: nothing). Names of ports come from subnet and known. */
void event_text_held(struct log *l, const struct generation *g, const struct subnet *subnet, const struct known *known,
                     const struct held_list *held, uint64_t now, uint64_t *reported);

/* What an apply did. `failures` is the digest of what the last one could not do: the same again is not logged again. */
void event_text_apply(struct log *l, struct generation *g, const struct plan *plan, const struct observed *observed,
               const struct apply *apply, usec_t duration, uint64_t *failures);
