/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * apply/: carries a plan out.
 *
 * One stage (mad_engine/stage.h) for each of the plan's phases in which something is to be sent:
 *
 *     while (apply_prepare() > 0)
 *             store the knowledge; run apply_stage()
 *
 * apply_prepare() announces all that the phase may send. It must be in the store before the first MAD of the phase leaves, so that
 * after a crash every write that may have happened is known.
 *
 * Each write is: ask who is there, once for each SMA in each phase (LIDs move while others are waited for), and again after each
 * request there that was not answered at once, before what was read since is believed or anything is set (if a host does not say
 * it, its switch says whether the link is up: one that was unplugged is not waited for); read the block; if it is not what the
 * plan rests on, do not write; set it; compare the answer with what was sent. A Set that got no answer is not simply sent again:
 * the block is read, and what is there decides. Before that the port's M_KeyViolations are read: a port that answers reads, and
 * counts what it does not carry out, was sent the wrong M_Key. The next phase begins when every write of this one has ended. When
 * all phases are through, every touched block is read back. Where that is not what was written, the SMA says once more who it is,
 * and the block is read again: only then it is believed.
 *
 * A change that the rule (knowledge/rule.h) does not admit waits: a grant must not follow a revoke that may not have happened. The
 * rest goes on. The bases in which something waits are held, and named.
 *
 * `observed` is kept true on the way: each block as it was last read or confirmed.
 *
 * This folder refuses to know why the plan is as it is.
 */

#include "ib/m_keys.h"
#include "knowledge/held.h"
#include "mad_engine/stage.h"
#include "plan/plan.h"

struct apply;

enum apply_state {
        APPLY_PENDING,  /* not ended yet */
        APPLY_WRITTEN,  /* confirmed, and read back as written */
        APPLY_PRESENT,  /* was there already when it was read: no Set was sent */
        APPLY_FAILED,   /* see reason */
        APPLY_HELD,     /* nothing of it is admitted now */
};

enum apply_reason {
        APPLY_OK,
        APPLY_TIMEOUT,       /* no answer */
        APPLY_SET_UNANSWERED, /* answers reads, before and after each Set, but no Set: most likely a wrong M_Key */
        APPLY_STATUS,        /* refused: MAD status */
        APPLY_BUSY,
        APPLY_UNSENT,
        APPLY_CHANGED,       /* the block was not what the plan rests on: somebody else writes */
        APPLY_MISMATCH,      /* answered OK, but what it holds is not what was sent */
        APPLY_REVERTED,      /* confirmed, but read back different at the end, and not by a later Set of ours */
        APPLY_STRANGER,      /* at its address is another port: the snapshot is stale */
        APPLY_UNREACHABLE,   /* its table could not be read before the plan; not tried */
        APPLY_ABORTED,       /* the run was ended before it was its turn */
};

struct apply_outcome {
        enum apply_state state;
        enum apply_reason reason;
        uint16_t mad_status; /* of APPLY_STATUS */
        bool partly_held;    /* written, but without the bases in which something waits */
        bool m_key_counted;  /* of APPLY_SET_UNANSWERED: the port's M_KeyViolations moved from one Set to the next */
};

struct apply_options {
        struct knowledge *knowledge; /* borrows; with the policy of the plan. The gate keeps it true on the way */
        const struct m_keys *m_keys; /* borrows; NULL: none */
        uint8_t retries;     /* of reads, in the engine; and of read-and-set rounds */
};

struct apply_summary {
        uint32_t written;        /* writes confirmed, PRESENT included */
        uint32_t sets_sent;      /* SubnSets handed to the engine */
        uint32_t failed, held;
        uint32_t n_held_bases;
};

/* Lives in the arena; borrows plan and observed (and changes observed). memory may be NULL; changes of entries are noted
 * in it as they are seen to happen. Returns 0 or -ENOMEM. */
int apply_new(struct arena *a, const struct plan *plan, struct observed *observed, struct index_memory *memory,
              const struct apply_options *options, struct apply **ret);
/* Prepares the next phase in which something is to be sent, or the reading back. Returns 1, or 0: nothing is left; or -ENOMEM. */
int apply_prepare(struct apply *ap);
/* What was prepared. */
struct mad_stage apply_stage(struct apply *ap);

/* What would become of the plan if every port that was read answered, and nothing was lost: nothing is sent, and what is left
 * waits.
 * In place of apply_prepare(). It changes observed and the knowledge: give it copies (observed_copy, knowledge_copy). Returns 0 or
 * -ENOMEM. */
int apply_pretend(struct apply *ap);

/* No SubnSet is sent any more, not even one again that got no answer; those in flight are awaited, what became of them is
 * read, and touched blocks are read back. */
void apply_abort(struct apply *ap);

/* How write w of phase p ended. Valid when apply_prepare() returned 0; these and those that follow. */
const struct apply_outcome *apply_outcome(const struct apply *ap, enum plan_phase p, uint32_t w);
void apply_get_summary(const struct apply *ap, struct apply_summary *ret);
/* A port said that it is not the one that the snapshot has at its address. */
bool apply_is_stale(const struct apply *ap);
/* Bases in which something waits, ascending. */
const uint16_t *apply_held_bases(const struct apply *ap, uint32_t *ret_n);
/* Into the list: each write that waits, and who stands in its way, as far as is known now. Returns 0 or -ENOMEM. */
int apply_collect_held(const struct apply *ap, struct held_list *l);
/* The phase it is in, for people. */
enum plan_phase apply_phase(const struct apply *ap);
/* "timeout", "status", "mismatch", ...: a static string, also in JSON. */
const char *apply_reason_to_string(enum apply_reason r);
