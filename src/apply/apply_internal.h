/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Private to apply/.
 *
 *     apply.c            the phases, the writes of a phase (tasks) and their requests, the stage
 *     apply_admission.c  which changes of a write are admitted now, and which bases are held
 *     apply_read_back.c  reading back what was written, when the phases have ended
 *     apply_tables.c     what an answer shows of a table, and of the SMA that sent it
 */

#include "apply/apply.h"

/* What a request was for: the upper half of its cookie. The lower half is the index of the task or of the touched block. */
enum cookie_kind {
        COOKIE_TASK = 1,
        COOKIE_READ_BACK = 2,
        COOKIE_READ_BACK_IDENTIFY = 3,
        COOKIE_READ_BACK_AGAIN = 4,
};

enum task_step {
        TASK_NEW,         /* prepared: it may be sent in this phase */
        TASK_IDENTIFYING, /* NodeInfo: which SMA is at that address? */
        TASK_ASKING_LINK, /* no answer: PortInfo of the switch port, is the host plugged in? */
        TASK_READING,     /* the block as it is now, before the write */
        TASK_CONFIRMING,  /* NodeInfo after the read: was that still the SMA of this port? */
        TASK_SET,         /* read, and as expected: ready to be set */
        TASK_SETTING,
        TASK_COUNTING,    /* a Set was not answered: the port's M_KeyViolations */
        TASK_ENDED,
};

/* One write of the current phase. */
struct task {
        enum task_step step;
        uint8_t rounds;                       /* rounds of read and set so far; UINT8_MAX: no more */
        enum mad_outcome last_set;            /* how the last Set ended, if it was not answered */
        bool link_asked;
        bool counted;                         /* violations is valid */
        uint16_t violations;                  /* M_KeyViolations after the last Set without an answer */
        struct p_key before[P_KEY_BLOCK_ENTRIES], after[P_KEY_BLOCK_ENTRIES]; /* as they are now, without held bases */
        uint8_t answer[SMP_DATA_SIZE];        /* the last read */
        bool is_old;                          /* ... was late, and the one before was not: no Set rests on it */
        uint8_t port_info[SMP_DATA_SIZE];     /* of WRITE_ENFORCEMENT: what to set */
};

/* Which SMA is at an address, as far as is known in this phase. */
enum sma_state {
        SMA_UNKNOWN,  /* not identified yet, or an answer since then was late or missing: LIDs may have moved */
        SMA_EXPECTED,
        SMA_STRANGER,
};

/* A block that was written, to be read back at the end. */
struct touched {
        enum plan_phase phase; /* of its last confirmed write */
        uint32_t write;
        bool is_open;          /* a later Set of it was not confirmed: the block may hold that */
        enum {
                CHECK_ONCE,       /* no answer yet, or as expected */
                CHECK_AGAIN,      /* not as expected: the SMA has to identify itself, and the block is read again */
                CHECK_IDENTIFIED, /* it is the SMA of this port */
                CHECK_ENDED,      /* it is another SMA, or it did not answer */
        } check;
};

struct apply {
        const struct plan *plan;
        struct observed *observed;
        struct index_memory *memory;
        struct apply_options options;

        unsigned n_phases_begun;    /* reading back is the last phase */
        enum plan_phase phase;      /* PLAN_N_PHASES: reading back */
        struct task *tasks;         /* of the current phase, one per write */
        uint32_t n_begun, n_ended;  /* of the current phase */
        uint32_t *ready;            /* ring of tasks whose next request may be sent, before any new task begins */
        uint32_t ready_size, ready_first, n_ready;

        struct touched *touched;    /* filled after the last phase */
        uint32_t n_touched, n_read_back_begun, n_read_back_answered, n_read_back_ended;
        uint32_t n_asked, n_read_again; /* positions in touched of the blocks that are read again: identified, read */

        struct apply_outcome *outcomes[PLAN_N_PHASES]; /* one per write */
        struct base_set held;
        uint16_t *held_bases;       /* the same, ascending; filled at the end */
        uint32_t n_held_bases;
        bool *port_failed;          /* per port: a write of its table failed or waits */
        enum sma_state *sma_state;  /* by destination */
        bool aborted;
        bool stale;                 /* a port is no longer at its address */
        uint32_t sets_sent;
        uint64_t steps_done, steps_total;
};

static inline uint64_t apply_make_cookie(enum cookie_kind kind, uint32_t i)
{
        return (uint64_t) kind << 32 | i;
}

/* Task i of the current phase. */
static inline const struct plan_write *write_of(const struct apply *ap, uint32_t i)
{
        return &ap->plan->steps[ap->phase].writes[i];
}

static inline struct observed_table *apply_table_of(const struct apply *ap, const struct plan_write *w)
{
        return &ap->observed->tables[w->port];
}

static inline uint32_t apply_record_of(const struct apply *ap, const struct plan_write *w)
{
        return knowledge_find_port(ap->options.knowledge, ap->plan->subnet, w->port);
}

/* --- apply_tables.c ------------------------------------------------------------------------------------------------------ */

/* Takes over what a block holds, as read or confirmed. Each changed entry is noted in the index memory: as pkeyd's own change if
 * the entry is as in `set` (NULL: no Set was sent), else as a lost one. */
void apply_take_block(struct apply *ap, const struct plan_write *w, const struct p_key entries[P_KEY_BLOCK_ENTRIES],
                      const struct p_key *set);
/* Compares two blocks without the entries past the end of the table. */
bool apply_blocks_equal(const struct apply *ap, const struct plan_write *w, const struct p_key *x, const struct p_key *y);
bool apply_has_bits(const struct port_info *pi, bool inbound, bool outbound);
/* Takes over the filter bits of a PortInfo, which is decoded to *ret. */
void apply_take_enforcement(struct apply *ap, const struct plan_write *w, const uint8_t data[SMP_DATA_SIZE], struct port_info *ret);

/* Marks the table as not read any more, because of this result. */
void apply_mark_unread(struct observed_table *t, const struct mad_result *result);
/* Marks a table that was read in this sweep as uncertain, because the port does not answer any more. */
void apply_doubt_silent_table(struct apply *ap, const struct plan_write *w, const struct mad_result *result);

/* Which SMA is at the address of the port that is written. */
enum sma_state *apply_sma_of(const struct apply *ap, const struct plan_write *w);
/* Returns whether this NodeInfo is of the SMA of the port; if not, the snapshot is marked as stale. */
bool apply_check_sma(struct apply *ap, const struct plan_write *w, const struct mad_result *result);
/* True if the answer is neither what was known nor what a Set wrote: another device may have the address by now. */
bool apply_is_news(const struct apply *ap, const struct plan_write *w, const struct mad_result *result);
/* After a late answer, or after news, the SMA has to identify itself again before its answers count. */
void apply_doubt_sma(const struct apply *ap, const struct plan_write *w, const struct mad_result *result, bool news);

/* Notes in the index memory, before a Set, the indexes that it frees. */
void apply_note_freed(struct apply *ap, const struct plan_write *w, const struct task *t);
/* Notes there, after an unanswered Set, the indexes that it may have used. */
void apply_note_unanswered(struct apply *ap, const struct plan_write *w, const struct task *t);

enum apply_reason apply_reason_of(enum mad_outcome outcome);
/* Makes a request to read what the write is about: the block, or PortInfo. */
void apply_make_read(struct apply *ap, const struct plan_write *w, struct mad_request *ret);
/* Turns such a request into one for NodeInfo of the same SMA. */
void apply_make_identify(struct mad_request *ret);

/* --- apply_admission.c --------------------------------------------------------------------------------------------------- */

/* Computes what task i, the write of a block, changes now, and holds the bases of what it must not change. Returns true if anything
 * is left to write. */
bool apply_begin_block(struct apply *ap, uint32_t i);
/* True if the filter bits must not change now. */
bool apply_filter_waits(const struct apply *ap, const struct plan_write *w);
/* Returns whether all that task i changes is still admitted; if not, the bases of a block are held. */
bool apply_recheck_admission(struct apply *ap, uint32_t i);
/* Holds the bases of task i, the write of a table that was not read, which the rule does not admit. */
void apply_hold_unread(struct apply *ap, uint32_t i);
void apply_list_held_bases(struct apply *ap);

/* --- apply_read_back.c --------------------------------------------------------------------------------------------------- */

/* Gathers every block that was written, once, with its last write. */
void apply_gather_touched(struct apply *ap);
bool apply_next_read_back(struct apply *ap, struct mad_request *ret);
void apply_read_back_ended(struct apply *ap, enum cookie_kind kind, uint32_t i, const struct mad_result *result);
