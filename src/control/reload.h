/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "control/control_internal.h"

/* Takes the result of loading both files. */
void reload_candidate(struct control *c, const struct control_candidate *loaded);
/* Refuses the candidate if the generation in force waits to be confirmed: pkeyd was restarted meanwhile, or the other head node or
 * pkeyctl brought it into force after the candidate was loaded. */
void reload_admit_again(struct control *c);

/* The planner accepted the candidate: it comes into force. */
void reload_accept(struct control *c);
/* Drops the candidate, if there is one, and answers all callers: the generation in force stays. */
void reload_refuse(struct control *c, const struct findings *findings);
/* The same, because a caller confirmed or undid a change meanwhile. */
void reload_withdraw(struct control *c, const char *why);
/* Logs once that the generation is in force, when it can be written, or nothing has to be. */
void reload_announce(struct control *c);
/* No generation can be carried out on this fabric: all requests are answered with these findings. */
void reload_refuse_all(struct control *c, const struct findings *findings);
/* Adds findings of the planner to the answers. */
void reload_note_findings(struct control *c, const struct findings *findings);

/* A sweep of this generation ended so. False: its facts had this outcome, with the same bases that are held. */
bool reload_set_outcome(const struct control *c, struct generation *g, enum reload_outcome outcome);
/* A sweep ended: notes how completely the generation in force was carried out, until it was completely. */
void reload_note_outcome(struct control *c, enum sweep_result result);
/* The sweep and what it stored have ended: answers the callers whose reloads it carried out; all of them, if pkeyd cannot reach the
 * fabric. */
void reload_sweep_ended(struct control *c, enum sweep_result result);
/* Frees the findings of reloads and answers. */
void reload_done(struct control *c);
