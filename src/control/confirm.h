/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Changes that wait to be confirmed, and undo. Private to control/.
 *
 *     reload --confirm 10m --> in force, waits --confirm--> in force
 *                                  |
 *                                  `-- 10m are over, or undo --> the generation before is loaded from the store, and planned as
 *                                                               one in force, with the layout of the tables as they were
 *
 * The states, in struct confirm; `due` and `warn_at` are USEC_INFINITY in pkeyctl, too:
 *
 *                     due       undoing
 *     settled         infinity  false    nothing waits
 *     waits           a time    false    until `due`; is announced at `warn_at`
 *     waits, undoing  a time    true     an undo is being loaded, or is the candidate. If it fails: waits, for one more minute
 *     undoing         infinity  true     the same, of a generation that does not wait
 *
 * The facts of the generation in force say whether it waits, and until when; they are in the store before its first write, so
 * that the time goes on while pkeyd does not run. If it is over when pkeyd starts, the change is undone at once. While a change
 * waits, no other one is accepted.
 *
 * A confirmation is answered when it is stored (store_sync.h): until then a kill would lose it. pkeyctl stores it itself if it does
 * not find pkeyd, which reads it with its next lock: at the latest when it plans the undo.
 */

#include "control/control_internal.h"

/* pkeyd starts: the time of the generation in force goes on. */
void confirm_begin(struct control *c);
/* Does the generation in force wait to be confirmed? */
bool confirm_waits(const struct control *c);
/* A candidate has come into force. Returns why it does not wait to be confirmed, although it should (a static string), or NULL. */
const char *confirm_accepted(struct control *c);
/* Another generation came into force: answers the caller of a confirmation that is not stored. */
void confirm_overtaken(struct control *c);
/* The undo in c->candidate was refused, or could not be loaded. */
void confirm_undo_failed(struct control *c);

/* May this candidate be tried? False: a finding says why not. */
bool confirm_admits(const struct control *c, const struct generation *g, struct findings *findings);

/* Another generation is in force than the one that a caller undoes. */
bool confirm_is_past(const struct control *c, uint64_t generation);
/* Handle CONTROL_EVENT_CONFIRM and CONTROL_EVENT_UNDO. A candidate that these withdraw (reload_withdraw) is gone already. */
void confirm_keep(struct control *c, const struct control_event *event);
void confirm_undo(struct control *c, const struct control_event *event);
/* Another process has stored these facts of the generation in force: takes over a confirmation that they have. */
void confirm_adopt_stored(struct control *c, const struct generation_facts *stored);
/* Answers the caller of an undo that had nothing to do but to withdraw the candidate. */
void confirm_withdrawn(struct control *c, uint64_t request);

/* To be called after each event: what is due now. */
void confirm_tick(struct control *c);
usec_t confirm_due(const struct control *c);

/* The facts of the generation in force were stored, or could not be (negative errno): answers the caller of a confirmation. */
void confirm_answer_stored(struct control *c);
void confirm_answer_not_stored(struct control *c, int r);
