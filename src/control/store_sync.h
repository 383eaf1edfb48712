/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Control and the store: what must be stored, what another process has stored, and what is stored between two sweeps. Private to
 * control/.
 *
 * A sweep stores everything at its end and before it writes (sweep_store in sweep.h). Between two sweeps only the facts of the
 * generation in force and the leases change; they are stored under the lock, without the rest.
 */

#include "control/control_internal.h"

/* --- what must be stored --- */

/* This generation must be stored as the one in force. */
void sync_will_store(struct control *c, struct generation *g);
/* The lock was not taken, because the store was lost: everything must be stored again. If another head node shares the store, it
 * may have written since this one read the store last: a table counts again when it is read. */
void sync_store_was_lost(struct control *c);

/* --- transactions; there is never more than one --- */

/* Returns it, or NULL when out of memory. */
struct store_transaction *sync_begin(struct control *c);
/* Puts leases, and facts that changed. */
void sync_put(struct control *c);
/* Returns 1: `state` waits for the answer; or it has ended: 0, nothing was put; -ENOMEM. */
int sync_commit(struct control *c, enum control_state state);
/* Takes the answer: 0, or why it was not committed. Returns it. */
int sync_end(struct control *c, int r);

/* --- what is taken from the store --- */

/* Takes the contents of m, which replace what is known. */
void sync_take_all(struct control *c, struct remembered *m);
/* Takes what another process has stored: also that the generation in force is confirmed. If that was the other head node, its
 * generation is in force here, too, and the time to confirm it goes on. If it could not be loaded, nothing is written and no
 * candidate is tried until it is (c->not_loaded). */
void sync_take_changed(struct control *c, const struct control_lock *lock);
/* `g` is in force by the store. If the candidate has its policy, that continues it, with the name of the file for messages. Takes
 * g; returns what is in force. */
struct generation *sync_continue(struct control *c, struct generation *g);

/* --- between two sweeps --- */

/* To be called after each event: stores what is due now. */
void sync_tick(struct control *c);
usec_t sync_due(const struct control *c);
/* Handle the answers in CONTROL_LOCKING_FACTS and CONTROL_STORING_FACTS. */
void sync_locked(struct control *c, const struct control_event *event);
void sync_stored(struct control *c, const struct control_event *event);
