/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "apply/apply.h"
#include "events/log.h"
#include "generation/generation.h"
#include "knowledge/held.h"
#include "subnet/known.h"
#include "watch/watch.h"

/*
 * Results of the stages as log entries. Entries of one kind about more than EVENT_TEXT_MAX ports become one, with examples. Of the
 * planner's notes and warnings with one code the first EVENT_TEXT_MAX are logged, and then how many more there are: an outage makes
 * one for each selector.
 *
 * What was logged already is not logged again. Where this depends on the last entry, the caller keeps its digest (`reported`,
 * `failures`; at first 0).
 */
#define EVENT_TEXT_MAX 16

/* All findings about files. */
void event_text_findings(struct log *l, const struct findings *findings);
/* Findings of the planner, each once for each generation. */
void event_text_plan_findings(struct log *l, struct generation *g, const struct findings *findings);

/* Changes since the last sweep. Tables that differ are logged in audit mode only: in enforce mode they are about to be written, and
 * event_text_apply() logs the result. Drift is logged in both. standby: only ports that came, went or do not answer; for tables see
 * event_text_standby(). g may be NULL. */
void event_text_watch(struct log *l, const struct generation *g, const struct watch_report *report, const struct subnet *subnet,
                      bool standby);

/* How the tables differ from the policy of a standby, as one entry whenever that changes, and once when they match again. While
 * ports are not read, the entry is that it is not known whether they match. */
void event_text_standby(struct log *l, const struct generation *g, const struct subnet *subnet, const struct verification *v,
                        uint64_t *reported);

/* Each held base with the ports that wait, those that they wait for, why, and the way out; again when that changes, and once when
 * no base is held. `now`: seconds since 1970. Names of ports come from subnet and known. */
void event_text_held(struct log *l, const struct generation *g, const struct subnet *subnet, const struct known *known,
                     const struct held_list *held, uint64_t now, uint64_t *reported);

/* The result of an apply. The same failures as before are not logged again. observed: ports that could not be read get no entry of
 * their own, because event_text_watch() has one; NULL: each port gets one. */
void event_text_apply(struct log *l, struct generation *g, const struct plan *plan, const struct observed *observed,
                      const struct apply *apply, usec_t duration, uint64_t *failures);
