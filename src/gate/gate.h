/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * gate/: the last thing that every Set of subnet management passes on its way from the engine to the wire.
 *
 * The gate does not know the plan. It decodes the bytes of each Set again, and admits it only if
 *
 *     kind       it is P_KeyTable, or PortInfo with nothing changed but the filter bits of a switch port;
 *     identity   the SMA there said who it is (NodeInfo) since the gate was opened, and since an answer was late or news;
 *     read       the block (or PortInfo) was read from that address since then;
 *     owns       entries of bases that pkeyd does not own stay as they were read;
 *     policy     no level is raised above what the policy gives the port;
 *     rule       knowledge/rule.h admits it for each base that changes;
 *     stored     the block was announced to the knowledge as it is sent, and that is in the store.
 *
 * It is opened for each phase of an apply, and closed otherwise: then no Set passes. So a planner that is wrong may stall, but
 * it cannot open anything. A refusal by the gate is a bug of pkeyd, or a table that changed in the same moment.
 *
 * What is written and what is read back goes into the knowledge here and nowhere else: a write is recorded before its MAD leaves.
 * LIDs move: an answer that was late (mad_result_is_prompt) or is news (knowledge_block_may_be), and those after it, count when the
 * SMA has said once more who it is, and is who it was.
 *
 * The gate refuses to know why a Set is sent, and what becomes of it when it is refused.
 */

#include "ib/mad.h"
#include "knowledge/knowledge.h"

struct gate;

/* Closed. Returns owned, or NULL when memory is out. */
struct gate *gate_new(void);
struct gate *gate_free(struct gate *g);
DEFINE_CLEANUP(struct gate *, gate_free)

/* Borrows both until it is closed. What was answered before counts no more: LIDs move. The counts of the knowledge must be those of
 * the policy in force (knowledge_set_policy). */
void gate_open(struct gate *g, struct knowledge *k, const struct policy *policy);
void gate_close(struct gate *g);

/* A frame is about to leave. False: it must not (not counted where it is in doubt who is there). Only Sets of SMPs are judged. */
bool gate_admit(struct gate *g, const struct mad_frame *frame);
/* How a request ended. */
void gate_see(struct gate *g, const struct mad_result *result);

/* Sets refused since it was made; why the last one was, in words. */
uint64_t gate_n_refused(const struct gate *g);
const char *gate_refusal(const struct gate *g);
