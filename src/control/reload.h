/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "control/control_internal.h"

/* Both files were loaded, with or without success. */
void reload_candidate(struct control *c, const struct control_candidate *loaded);

/* The planner accepted the candidate: it is in force. / Refused it: what was in force stays. */
void reload_accept(struct control *c);
void reload_refuse(struct control *c, const struct findings *findings);
/* It can be written, or nothing has to be: a generation that was accepted is said to be in force, once. */
void reload_announce(struct control *c);
/* What is in force cannot be carried out on this fabric, for these reasons. */
void reload_cannot(struct control *c, const struct findings *findings);
/* Findings of the planner, for those who wait. */
void reload_note_findings(struct control *c, const struct findings *findings);

/* A sweep ended like that: the reloads that it has carried out have ended, too. */
void reload_sweep_ended(struct control *c, enum sweep_result result);
/* Frees what reloads and answers hold. */
void reload_done(struct control *c);
