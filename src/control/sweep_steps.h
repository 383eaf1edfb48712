/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Functions that the files of a sweep call of each other: each those of the files that are below it in the list in control.h. */

#include "control/sweep.h"

/* --- sweep_steps.c -------------------------------------------------------------------------------------------------- */

/* Records the indexes as freed that are used in the last snapshot and free in the knowledge, to which an apply adds all answers,
 * also those that it cannot use. To be called before the knowledge is stored. Returns 0 or -ENOMEM. */
int sweep_record_freed(struct control *c);
/* The number of the generation that the sweep carries out. With pkeyctl it gets one only when it is carried out completely. */
uint64_t sweep_number(const struct control *c);
void sweep_end(struct control *c, enum sweep_result result);
/* The same with the result for pkeyctl. error: negative errno. */
void sweep_end_with(struct control *c, enum sweep_result result, int error);
/* Ends the sweep with a problem of this host, not of the policy. error: negative errno. */
void sweep_fail(struct control *c, const char *what, int error);
/* The same: the sweep has to write, and could not take the lock. */
void sweep_fail_without_store(struct control *c);
/* Takes the lock; a guest that stands by does without, and queries where the master SM is. */
void sweep_lock(struct control *c);
void sweep_unlock(struct control *c);
/* The tables of the ports that a plan of this sweep is about: of the fabric, or of a part of it. */
struct observed *sweep_observed(const struct control *c);
/* What a policy in force gives the ports of a subnet. Returns 0, -EBADMSG, -ENOMEM; both live in the arena of the sweep. */
int sweep_resolve(struct control *c, const struct generation *g, const struct subnet *subnet, struct memberships **ret_memberships,
                  struct desired **ret);
/* The same for all ports, also those that are not in the snapshot, or incomplete there. */
int sweep_resolve_all(struct control *c, const struct generation *g, struct memberships **ret_memberships, struct desired **ret);
void sweep_run_stage(struct control *c, enum control_state state, struct mad_stage stage);
/* Queries PortInfo of the local port. */
void sweep_query_port(struct control *c, enum control_state state);
/* r: the result of the query. False: the sweep has ended, because pkeyd cannot work through the port now. */
bool sweep_port_works(struct control *c, int r);
void sweep_port_waits(struct control *c, const char *why);
/* Begins discovery, for a new snapshot. */
void sweep_discover(struct control *c);
/* The ports of this host except the local port, which the query covers. */
void sweep_view_others(const struct control *c, struct sm_view *ret);
/* How long this host waits before it writes in the place of the other head node. */
usec_t sweep_sm_hold(const struct control *c);

/* Sets the held bases from an apply (NULL: none are held). If out of memory none are known. */
void sweep_set_held(struct control *c, const struct apply *apply);
/* The same, for those that the plan would have if it were carried out now. */
void sweep_predict_held(struct control *c);

/* --- sweep_decide.c ------------------------------------------------------------------------------------------------- */

/* Decides by which generation to plan, and plans; reads opensm.conf before, where the settings name it. */
void sweep_decide(struct control *c);

/* --- sweep_once.c --------------------------------------------------------------------------------------------------- */

/* The same in pkeyctl. */
void sweep_decide_once(struct control *c);

/* --- sweep_plan.c --------------------------------------------------------------------------------------------------- */

/* Plans by this generation, from now on that of the sweep. Returns 0; -EBADMSG: refused, findings say why; -ENOMEM. */
int sweep_plan(struct control *c, struct generation *g, struct findings *findings);
/* Is the policy of this generation in force? With CONTROL_SERVE that of a candidate is not, even if it is equal. An undo counts as
 * in force, because it was: what concerns single ports does not refuse it. */
bool sweep_is_in_force(const struct control *c, const struct generation *g);
/* Is this generation (NULL: no) for the port that the sweep works through? */
bool sweep_is_for_port(const struct control *c, const struct generation *g);
/* Which ports a new policy connects or disconnects: for the journal, the caller of the reload, and the history. If there are none,
 * the history gets which partitions gain and lose ports. */
void sweep_note_reach(struct control *c, struct findings *findings);

/* --- sweep_write.c -------------------------------------------------------------------------------------------------- */

/* Reports changes since the last update. compare: of tables, too, by the decision; else only of ports that came, went or do not
 * answer. */
int sweep_watch(struct control *c, bool compare, struct watch_report *ret);
/* Carries out the decision, by apply or through OpenSM. */
void sweep_carry_out(struct control *c);
void sweep_apply(struct control *c);
/* Compares the tables with the decision; then the sweep ends, or writes the mirror. */
void sweep_verify(struct control *c);
/* Continues after each step of the OpenSM writer. */
void sweep_follow_writer(struct control *c);
