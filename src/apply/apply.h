/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * apply/: carries out a plan.
 *
 * One stage (mad_engine/stage.h) for each phase of the plan that sends anything:
 *
 *     while (apply_prepare() > 0)
 *             store the knowledge; run apply_stage()
 *
 * apply_prepare() announces everything that the phase may send. It must be in the store before the first MAD of the phase is sent,
 * so that after a crash every write that may have happened is known.
 *
 * Each write takes these steps:
 *
 *     identify   the SMA identifies itself, once for each SMA and phase, because LIDs move while other ports are waited for; and
 *                again after each late answer, before what was read since counts or anything is set. If a host does not answer,
 *                its switch reports whether the link is up: an unplugged host is not waited for.
 *     read       the block is read; if it is not what the plan rests on, nothing is written. A late answer may be old, so the block
 *                is read once more before it is set.
 *     set        the block is set, and the answer compared with what was sent. A Set without an answer is not simply sent again:
 *                the port's M_KeyViolations are read (a port that answers reads, and counts what it does not carry out, was sent
 *                the wrong M_Key), then the block, and what it holds decides.
 *
 * The next phase begins when every write of this one has ended. After all phases every touched block is read back. If a block is
 * not what was written, the SMA identifies itself once more, and the block is read again; only that read counts.
 *
 * A change that the rule (knowledge/rule.h) does not admit waits: a grant must not follow a revoke that may not have happened. The
 * other changes go on. The bases of changes that wait are held, and listed.
 *
 * apply updates `observed` as it goes: it holds each block as it was last read or confirmed.
 *
 * This folder does not know why the plan contains a write.
 */

#include "ib/m_keys.h"
#include "knowledge/held.h"
#include "mad_engine/stage.h"
#include "plan/plan.h"

struct apply;

enum apply_state {
        APPLY_PENDING,  /* not ended yet */
        APPLY_WRITTEN,  /* confirmed, and read back as written */
        APPLY_PRESENT,  /* the port held it already when it was read; no Set was sent */
        APPLY_FAILED,   /* see reason */
        APPLY_HELD,     /* nothing of it is admitted now */
};

enum apply_reason {
        APPLY_OK,
        APPLY_TIMEOUT,       /* no answer */
        APPLY_SET_UNANSWERED, /* the port answers reads, before and after each Set, but no Set: most likely a wrong M_Key */
        APPLY_STATUS,        /* the port refused it with a MAD status */
        APPLY_BUSY,
        APPLY_UNSENT,
        APPLY_CHANGED,       /* the block was not what the plan rests on: another program writes there */
        APPLY_MISMATCH,      /* answered without an error, but the port holds something else than was sent */
        APPLY_REVERTED,      /* confirmed, but different when read back, and not because of a later Set of pkeyd */
        APPLY_STRANGER,      /* another port answers at its address: the snapshot is stale */
        APPLY_UNREACHABLE,   /* its table could not be read before the plan; not tried */
        APPLY_ABORTED,       /* the run ended before this write began */
};

struct apply_outcome {
        enum apply_state state;
        enum apply_reason reason;
        uint16_t mad_status; /* of APPLY_STATUS */
        bool partly_held;    /* written without the bases that are held */
        bool is_unread;      /* of APPLY_FAILED: the table was not read before the plan; not tried */
        bool m_key_counted;  /* of APPLY_SET_UNANSWERED: the port's M_KeyViolations rose from one Set to the next */
};

struct apply_options {
        struct knowledge *knowledge; /* borrows; with the policy of the plan. The gate updates it on the way */
        const struct m_keys *m_keys; /* borrows; NULL: none */
        uint8_t retries;     /* of reads, in the engine; and of rounds of read and set */
};

struct apply_summary {
        uint32_t written;        /* confirmed writes, APPLY_PRESENT included */
        uint32_t sets_sent;      /* SubnSets handed to the engine */
        uint32_t failed, held;
        uint32_t n_held_bases;
};

/* Lives in the arena; borrows plan and observed, and changes observed. memory may be NULL; each change of an entry is noted in it
 * when it is seen. Returns 0 or -ENOMEM. */
int apply_new(struct arena *a, const struct plan *plan, struct observed *observed, struct index_memory *memory,
              const struct apply_options *options, struct apply **ret);
/* Prepares the next phase that sends anything, or the reading back. Returns 1; 0 if nothing is left; or -ENOMEM. */
int apply_prepare(struct apply *ap);
/* The stage of what was prepared. */
struct mad_stage apply_stage(struct apply *ap);

/* Simulates the plan as if every port that was read answered and no MAD was lost: nothing is sent, and what is left waits. Call it
 * in place of apply_prepare(). It changes observed and the knowledge: pass copies (observed_copy, knowledge_copy). Returns 0 or
 * -ENOMEM. */
int apply_simulate(struct apply *ap);

/* Ends the run early: no SubnSet is sent any more, not even again after no answer. Sets in flight are awaited and their blocks
 * read; touched blocks are read back. */
void apply_abort(struct apply *ap);

/* How write w of phase p ended. This and the functions below are valid after apply_prepare() returned 0. */
const struct apply_outcome *apply_outcome(const struct apply *ap, enum plan_phase p, uint32_t w);
void apply_get_summary(const struct apply *ap, struct apply_summary *ret);
/* True if another port answered at the address of one of the snapshot. */
bool apply_is_stale(const struct apply *ap);
/* The held bases, ascending. */
const uint16_t *apply_held_bases(const struct apply *ap, uint32_t *ret_n);
/* Adds each write that waits to the list, with the ports that block it, as far as is known now. Returns 0 or -ENOMEM. */
int apply_collect_held(const struct apply *ap, struct held_list *l);
/* The current phase, for display. */
enum plan_phase apply_phase(const struct apply *ap);
/* "timeout", "status", "mismatch", ...: a static string, also in JSON. */
const char *apply_reason_to_string(enum apply_reason r);
