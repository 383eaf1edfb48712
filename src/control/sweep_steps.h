/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What the files of a sweep know of each other: sweep.c calls sweep_decide.c, that calls sweep_write.c, and all three what
 * stands in sweep_steps.c. */

#include "control/sweep.h"

/* --- sweep_steps.c -------------------------------------------------------------------------------------------------- */

/* What an answer during an apply said of a table is in the knowledge, also where apply could not take it over. What went from the
 * last snapshot to there was used: index memory is told, at the latest when the knowledge is stored. Returns 0 or -ENOMEM. */
int sweep_learn_heard(struct control *c);
void sweep_end(struct control *c, enum sweep_result result);
/* ... and what one that is made for a person comes to. error: negative errno. */
void sweep_end_with(struct control *c, enum sweep_result result, int error);
/* Ends the sweep with a problem of this host: nothing that a policy could be blamed for. error: negative errno. */
void sweep_fail(struct control *c, const char *what, int error);
void sweep_unlock(struct control *c);
/* What a policy in force gives the ports of a subnet. Returns 0, -EBADMSG, -ENOMEM; both live in the arena of the sweep. */
int sweep_resolve(struct control *c, const struct policy *policy, const struct subnet *subnet, struct memberships **ret_memberships,
                  struct desired **ret);
void sweep_run_stage(struct control *c, enum control_state state, struct mad_stage stage);
/* PortInfo of the local port. */
void sweep_query_port(struct control *c, enum control_state state);
/* False: the sweep has ended, the port is good for nothing now. r: how the query ended. */
bool sweep_port_works(struct control *c, int r);
void sweep_port_waits(struct control *c, const char *why);
/* A new snapshot, to be surveyed. */
void sweep_discover(struct control *c);
/* Reads all tables of a new snapshot, or those that were chosen; of a known one the ports that failed, or all again. */
void sweep_survey(struct control *c);
/* The sweep ends, because a reload is more urgent. Whom it asked in vain is known to the next one. */
void sweep_interrupted(struct control *c);
/* The ports of this host but the local one, whose LID the query brings. */
void sweep_view_others(const struct control *c, struct sm_view *ret);
/* How long this host waits before it writes in the place of the other head node. */
usec_t sweep_sm_hold(const struct control *c);

/* Which bases are held. In place of what was known of that before; out of memory: nothing is known. */
void sweep_see_held(struct control *c, const struct apply *apply);
/* The same of the plan, before it is carried out. */
void sweep_foresee_held(struct control *c);

/* --- sweep_decide.c ------------------------------------------------------------------------------------------------- */

void sweep_lock(struct control *c);
/* With opensm.conf first, where it matters. */
void sweep_decide(struct control *c);

/* --- sweep_write.c -------------------------------------------------------------------------------------------------- */

/* Reports what changed since the last update. judge: compare tables with the decision; else only who is there and who answers. */
int sweep_watch(struct control *c, bool judge, struct watch_report *ret);
/* Carries the decision out in whichever way the settings say. */
void sweep_carry_out(struct control *c);
void sweep_apply(struct control *c);
/* Compares what is there now with the decision; the sweep ends, or mirrors. */
void sweep_verify(struct control *c);
/* After each step of the writer. */
void sweep_follow_writer(struct control *c);
