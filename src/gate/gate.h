/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * gate/: every Set of subnet management passes the gate last, between the engine and the wire.
 *
 * The gate does not know the plan. It decodes the bytes of each Set again, and admits it only if
 *
 *     kind       it is P_KeyTable, or PortInfo with only the filter bits of a switch port changed;
 *     identity   the SMA identified itself (NodeInfo) since the gate was opened, and again after each other answer that was late or
 *                news;
 *     read       the block (or PortInfo) was read from that address since then, and the table since another pkeyd may have written
 *                to it;
 *     owns       entries of bases that pkeyd does not own stay as they were read;
 *     policy     no level rises above what the policy gives the port;
 *     rule       knowledge/rule.h admits it for each base that changes;
 *     stored     the block was announced to the knowledge with these entries, and that is in the store;
 *     lock       this process still holds the fabric lock. A lock that hosts share ends with its lease, also while this process is
 *                paused; so the gate asks last, directly before the Set leaves.
 *
 * owns, policy and stored are about P_KeyTable only: filter bits count as unsure from the Set until they are read.
 *
 * It is opened for each phase of an apply, and closed otherwise: then no Set passes. So a wrong planner can stall, but cannot open
 * anything. If the gate refuses a Set, pkeyd has a bug, or a table changed at that moment.
 *
 * Only the gate puts what is written and read back into the knowledge: a write is recorded before its MAD leaves. LIDs move: an
 * answer that was late (mad_result_is_prompt) or is news (knowledge_block_may_be), and the answers after it, count only after the
 * SMA has identified itself once more, as the same one.
 *
 * The gate does not know why a Set is sent, or what happens after a refusal.
 */

#include "ib/mad.h"
#include "knowledge/knowledge.h"

struct gate;

/* Returns owned, closed; NULL: out of memory. */
struct gate *gate_new(void);
struct gate *gate_free(struct gate *g);
DEFINE_CLEANUP(struct gate *, gate_free)

/* Borrows both until gate_close(). Earlier answers do not count any more, because LIDs move. The counts of the knowledge must match
 * the policy in force (knowledge_set_policy). */
void gate_open(struct gate *g, struct knowledge *k, const struct policy *policy);
void gate_close(struct gate *g);

/* Sets the function that returns whether this process holds the lock; the gate calls it for every Set. Without one no lock is
 * needed. */
void gate_set_lock(struct gate *g, bool (*holds)(void *userdata), void *userdata);

/* Whether a frame may leave; only Sets of SMPs are judged. A refusal is counted, unless the gate only waits for the SMA to identify
 * itself. */
bool gate_admit(struct gate *g, const struct mad_frame *frame);
/* Takes the result of a request. */
void gate_see(struct gate *g, const struct mad_result *result);

/* The number of Sets refused since gate_new(), and why the last one was; without those for which the lock had ended. */
uint64_t gate_n_refused(const struct gate *g);
const char *gate_refusal(const struct gate *g);
/* The number of Sets that did not leave because the lock had ended. */
uint64_t gate_n_late(const struct gate *g);
