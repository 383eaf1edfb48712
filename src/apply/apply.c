/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "apply/apply.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* What a request was for: the upper half of its cookie. The lower half is the index of the task or of the touched block. */
enum cookie_kind {
        COOKIE_TASK = 1,
        COOKIE_READ_BACK = 2,
        COOKIE_READ_BACK_IDENTIFY = 3,
        COOKIE_READ_BACK_AGAIN = 4,
};

/* Retries of the first NodeInfo to a host before its switch is asked whether the link is up. */
#define RETRIES_BEFORE_LINK 1

enum task_step {
        TASK_NEW,     /* prepared: it may be sent in this phase */
        TASK_IDENTIFYING, /* NodeInfo: which SMA is at that address? */
        TASK_ASKING_LINK, /* no answer: PortInfo of the switch port, is the host plugged in? */
        TASK_READING, /* the block as it is now, before the write */
        TASK_CONFIRMING, /* NodeInfo after the read: was that still the SMA of this port? */
        TASK_SET,     /* read, and as expected: ready to be set */
        TASK_SETTING,
        TASK_COUNTING, /* a Set was not answered: the port's M_KeyViolations */
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
        uint8_t port_info[SMP_DATA_SIZE];     /* of WRITE_ENFORCEMENT: what to set */
};

/* Which SMA is at an address, as far as is known in this phase. */
enum sma_state {
        SMA_UNKNOWN,  /* not identified yet, or a later answer was late or missing: LIDs may have moved */
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
        uint8_t held[(P_KEY_BASE_MASK + 1) / 8]; /* a bit for each held base */
        uint16_t *held_bases;       /* the same, ascending; filled at the end */
        uint32_t n_held_bases;
        bool *port_failed;          /* per port: a write of its table failed or waits */
        enum sma_state *sma_state;  /* by destination */
        bool aborted, stale;
        uint32_t sets_sent;
        uint64_t steps_done, steps_total;
};

/* --- held bases ------------------------------------------------------------------------------------------------------ */

static bool has_base(const uint8_t *set, uint16_t base)
{
        return set[base / 8] & (1 << base % 8);
}

static void hold_base(struct apply *ap, struct p_key key)
{
        uint16_t base = p_key_base(key);

        if (base == 0 || has_base(ap->held, base))
                return;
        ap->held[base / 8] |= (uint8_t) (1 << base % 8);
        ap->n_held_bases++;
}

static const struct plan_write *write_of(const struct apply *ap, uint32_t i)
{
        return &ap->plan->steps[ap->phase].writes[i];
}

static struct observed_table *table_of(const struct apply *ap, const struct plan_write *w)
{
        return &ap->observed->tables[w->port];
}

/* Holds the base of every change of the write. */
static void hold_bases_of(struct apply *ap, const struct plan_write *w)
{
        for (unsigned i = 0; w->kind == WRITE_BLOCK && i < P_KEY_BLOCK_ENTRIES; i++)
                if (w->before[i].v != w->after[i].v) {
                        hold_base(ap, w->before[i]);
                        hold_base(ap, w->after[i]);
                }
}

/* --- what is known of a block ---------------------------------------------------------------------------------------- */

static int note_change(struct apply *ap, const struct subnet_port *p, uint16_t index, struct p_key before, struct p_key after,
                       bool is_own)
{
        struct guid node = ap->plan->subnet->nodes[p->node].guid;

        return is_own ? index_memory_note(ap->memory, node, p->number, index, before, after) :
                        index_memory_note_lost(ap->memory, node, p->number, index, before, after);
}

/* Takes over what a block holds, as read or confirmed. Each changed entry is noted in the index memory: as pkeyd's own change if
 * the entry is as in `set` (NULL: no Set was sent), else as a lost one. */
static void take_block(struct apply *ap, const struct plan_write *w, const struct p_key entries[P_KEY_BLOCK_ENTRIES],
                       const struct p_key *set)
{
        const struct subnet_port *p = &ap->plan->subnet->ports[w->port];
        struct observed_table *t = table_of(ap, w);
        struct p_key known[P_KEY_BLOCK_ENTRIES];
        uint16_t i, index;

        observed_table_get_block(t, w->block, known);
        for (i = 0; ap->memory && i < P_KEY_BLOCK_ENTRIES; i++) {
                index = (uint16_t) (w->block * P_KEY_BLOCK_ENTRIES + i);
                if (index < t->capacity && known[i].v != entries[i].v)
                        /* without memory a hint is lost, not correctness */
                        (void) note_change(ap, p, index, known[i], entries[i], set && set[i].v == entries[i].v);
        }
        observed_table_set_block(t, w->block, entries);
}

/* Entries behind the end of the table are ignored: some SMAs return what they were sent, others zeros. */
static bool blocks_equal(const struct apply *ap, const struct plan_write *w, const struct p_key *x, const struct p_key *y)
{
        size_t end = table_of(ap, w)->capacity - (size_t) w->block * P_KEY_BLOCK_ENTRIES;

        return memcmp(x, y, MIN(end, (size_t) P_KEY_BLOCK_ENTRIES) * sizeof(*x)) == 0;
}

/* --- how a task ends ------------------------------------------------------------------------------------------------- */

static void task_end(struct apply *ap, uint32_t i, enum apply_state state, enum apply_reason reason)
{
        const struct plan_write *w = write_of(ap, i);
        struct apply_outcome *o = &ap->outcomes[ap->phase][i];

        o->state = state;
        o->reason = reason;
        ap->tasks[i].step = TASK_ENDED;
        ap->n_ended++;
        ap->steps_done += 2;
        if (state == APPLY_FAILED || state == APPLY_HELD)
                ap->port_failed[w->port] = true;
}

static void make_ready(struct apply *ap, uint32_t i)
{
        ap->ready[(ap->ready_first + ap->n_ready) % ap->ready_size] = i;
        ap->n_ready++;
}

static enum apply_reason reason_of(enum mad_outcome outcome)
{
        switch (outcome) {
        case MAD_TIMED_OUT:
                return APPLY_TIMEOUT;
        case MAD_REFUSED:
                return APPLY_STATUS;
        case MAD_BUSY:
                return APPLY_BUSY;
        case MAD_UNSENT:
                return APPLY_UNSENT;
        case MAD_ANSWERED:
                break;
        }
        return APPLY_OK;
}

/* The task's port was read after the last Set, and holds what it held before. */
static enum apply_reason reason_of_set(const struct task *t)
{
        return t->last_set == MAD_TIMED_OUT ? APPLY_SET_UNANSWERED : reason_of(t->last_set);
}

static uint32_t record_of(const struct apply *ap, const struct plan_write *w)
{
        return knowledge_find_port(ap->options.knowledge, ap->plan->subnet, w->port);
}

/* The table does not count as read any more. */
static void mark_unread(struct observed_table *t, const struct mad_result *result)
{
        t->source = TABLE_ASSUMED;
        t->failure = result->outcome;
        t->mad_status = result->mad_status;
}

/* What the table holds is not certain: a Set was not answered, it is not known which SMA was read, or the read failed. */
static void doubt_table(struct apply *ap, uint32_t i, const struct mad_result *result)
{
        struct observed_table *t = table_of(ap, write_of(ap, i));

        if (write_of(ap, i)->kind == WRITE_ENFORCEMENT)
                t->enforcement_doubted = true;
        else
                mark_unread(t, result);
}

/* The table was read in this sweep, but the port does not answer any more: what it holds is not certain. */
static void doubt_silent_table(struct apply *ap, const struct plan_write *w, const struct mad_result *result)
{
        if (w->kind == WRITE_BLOCK && result->outcome == MAD_TIMED_OUT)
                knowledge_doubt(ap->options.knowledge, record_of(ap, w));
}

static void task_fail_unanswered(struct apply *ap, uint32_t i, const struct mad_result *result)
{
        doubt_silent_table(ap, write_of(ap, i), result);
        if (ap->tasks[i].rounds > 0 || ap->tasks[i].step == TASK_CONFIRMING ||
            (write_of(ap, i)->kind == WRITE_BLOCK && result->outcome == MAD_TIMED_OUT))
                doubt_table(ap, i, result);
        ap->outcomes[ap->phase][i].mad_status = result->mad_status;
        task_end(ap, i, APPLY_FAILED, reason_of(result->outcome));
}

/* --- a block --------------------------------------------------------------------------------------------------------- */

/* A repair moves entries: carried out by half it would drop an entry that has no other place yet. */
static bool is_all_or_nothing(enum plan_phase phase)
{
        return phase <= PHASE_REPAIR_DROP;
}

static bool changes_base(const struct plan_write *w, uint16_t base)
{
        for (unsigned i = 0; w->kind == WRITE_BLOCK && i < P_KEY_BLOCK_ENTRIES; i++)
                if (w->before[i].v != w->after[i].v && (p_key_base(w->before[i]) == base || p_key_base(w->after[i]) == base))
                        return true;
        return false;
}

static bool is_unfinished(const struct apply_outcome *o)
{
        return o->state == APPLY_FAILED || o->state == APPLY_HELD;
}

/* True if an earlier phase left a change of this base in the same table undone: an entry that moves must have its new place before
 * it loses the old one. */
static bool waits_for_earlier(const struct apply *ap, const struct plan_write *w, uint16_t base)
{
        for (enum plan_phase phase = 0; ap->port_failed[w->port] && phase < ap->phase; phase++) {
                const struct plan_step *step = &ap->plan->steps[phase];
                uint32_t i = LOWER_BOUND(item, step->writes, step->n_writes, item->port < w->port);

                for (; i < step->n_writes && step->writes[i].port == w->port; i++)
                        if (is_unfinished(&ap->outcomes[phase][i]) && changes_base(&step->writes[i], base))
                                return true;
        }
        return false;
}

/* Whether the base of this entry may be as it is in the block. */
static bool is_admitted(const struct apply *ap, const struct plan_write *w, const struct p_key after[P_KEY_BLOCK_ENTRIES],
                        struct p_key key)
{
        uint32_t record = record_of(ap, w);

        if (!p_key_is_used(key))
                return true;
        return record != KNOWLEDGE_NONE && !waits_for_earlier(ap, w, p_key_base(key)) &&
               knowledge_judge_block(ap->options.knowledge, record, w->block, after, p_key_base(key)) == RULE_ADMITS;
}

static bool entry_is_admitted(const struct apply *ap, const struct plan_write *w, const struct task *t, unsigned i)
{
        return t->before[i].v == t->after[i].v ||
               (is_admitted(ap, w, t->after, t->before[i]) && is_admitted(ap, w, t->after, t->after[i]));
}

/* An entry that is not what the plan expected (an earlier change of it waits, or failed) cannot be changed. Returns true if there
 * is one. */
static bool compute_changes(struct apply *ap, const struct plan_write *w, struct task *t)
{
        bool any = false;

        observed_table_get_block(table_of(ap, w), w->block, t->before);
        memcpy(t->after, t->before, sizeof(t->after));
        for (unsigned i = 0; i < P_KEY_BLOCK_ENTRIES; i++) {
                if (w->before[i].v == w->after[i].v)
                        continue;
                if (t->before[i].v == w->before[i].v) {
                        t->after[i] = w->after[i];
                        continue;
                }
                hold_base(ap, w->before[i]);
                hold_base(ap, w->after[i]);
                any = true;
        }
        return any;
}

/* Takes out what the rule does not admit now. Only in a repair, which is carried out completely or not at all, can this take away
 * what an entry before it rests on. */
static bool drop_inadmissible(struct apply *ap, const struct plan_write *w, struct task *t)
{
        bool any = false;

        for (unsigned i = 0; i < P_KEY_BLOCK_ENTRIES; i++) {
                if (entry_is_admitted(ap, w, t, i))
                        continue;
                hold_base(ap, t->before[i]);
                hold_base(ap, t->after[i]);
                t->after[i] = t->before[i];
                any = true;
        }
        return any;
}

/* Computes what the write changes now. Returns true if anything is left to write. */
static bool task_compute(struct apply *ap, const struct plan_write *w, struct task *t, bool *ret_partly)
{
        *ret_partly = compute_changes(ap, w, t);
        *ret_partly |= drop_inadmissible(ap, w, t);
        if (*ret_partly && is_all_or_nothing(ap->phase)) {
                hold_bases_of(ap, w);
                return false;
        }
        return memcmp(t->before, t->after, sizeof(t->before)) != 0;
}

static bool task_begin_block(struct apply *ap, uint32_t i)
{
        struct apply_outcome *o = &ap->outcomes[ap->phase][i];
        bool any = task_compute(ap, write_of(ap, i), &ap->tasks[i], &o->partly_held);

        if (o->partly_held)
                ap->port_failed[write_of(ap, i)->port] = true;
        return any;
}

/* --- the enforcement bits of a switch port ---------------------------------------------------------------------------- */

static bool has_bits(const struct port_info *pi, bool inbound, bool outbound)
{
        return pi->enforce_inbound == inbound && pi->enforce_outbound == outbound;
}

static void take_enforcement(struct apply *ap, const struct plan_write *w, const uint8_t data[SMP_DATA_SIZE],
                             struct port_info *ret)
{
        port_info_decode(data, ret);
        table_of(ap, w)->enforce_inbound = ret->enforce_inbound;
        table_of(ap, w)->enforce_outbound = ret->enforce_outbound;
        table_of(ap, w)->enforcement_doubted = false;
}

/* --- phases ---------------------------------------------------------------------------------------------------------- */

/* A port whose table could not be read for the plan is not tried again; it fails for the same reason. */
static void task_fail_unread(struct apply *ap, uint32_t i)
{
        const struct observed_table *t = table_of(ap, write_of(ap, i));

        ap->outcomes[ap->phase][i].mad_status = t->mad_status;
        task_end(ap, i, APPLY_FAILED, t->failure == MAD_ANSWERED ? APPLY_UNREACHABLE : reason_of(t->failure));
}

static bool covers(const struct observed_table *t, const struct p_key *keys, size_t n)
{
        return !p_keys_find_uncovered(t->entries, t->capacity, keys, (uint32_t) n);
}

/* The bits of a switch port change only when its table is right and the peer's entries are within it: an entry of the peer that is
 * still to be lowered or dropped would be cut off too early (or passed, where a bit is cleared). So would an entry that an
 * unanswered write may have left there, which may be of a base that is not in the policy and is kept. */
static bool enforcement_must_wait(const struct apply *ap, uint32_t port)
{
        uint32_t peer = ap->plan->subnet->ports[port].peer, record;
        const struct observed_table *mine = &ap->observed->tables[port], *its;
        const struct knowledge_record *r;

        if (ap->port_failed[port])
                return true;
        if (peer == SUBNET_NONE)
                return false;
        its = &ap->observed->tables[peer];
        if (its->entries && !covers(mine, its->entries, its->capacity))
                return true;
        record = knowledge_find_port(ap->options.knowledge, ap->plan->subnet, peer);
        r = record == KNOWLEDGE_NONE ? NULL : knowledge_get(ap->options.knowledge, record);
        for (size_t i = 0; r && i < r->n_writes; i++)
                if (r->writes[i].is_sent && !covers(mine, r->writes[i].entries, P_KEY_BLOCK_ENTRIES))
                        return true;
        return false;
}

static bool filter_is_admitted(const struct apply *ap, const struct plan_write *w)
{
        uint32_t record = record_of(ap, w);
        uint16_t base;

        return record != KNOWLEDGE_NONE &&
               knowledge_judge_filter(ap->options.knowledge, record, w->after_inbound, w->after_outbound, &base) == RULE_ADMITS;
}

static enum sma_state *sma_of(const struct apply *ap, const struct plan_write *w)
{
        return &ap->sma_state[ap->plan->subnet->ports[w->port].destination];
}

/* True if the answer is neither what was known nor what a Set wrote: another device may have the address by now. */
static bool is_news(const struct apply *ap, const struct plan_write *w, const struct mad_result *result)
{
        const struct observed_table *t = table_of(ap, w);
        struct p_key entries[P_KEY_BLOCK_ENTRIES];
        uint32_t record = record_of(ap, w);
        struct port_info pi;

        if (result->outcome != MAD_ANSWERED)
                return false;
        if (result->attribute == SMP_ATTR_P_KEY_TABLE) {
                p_key_block_decode(result->data, entries);
                return record != KNOWLEDGE_NONE && knowledge_get(ap->options.knowledge, record)->entries &&
                       !knowledge_block_may_be(ap->options.knowledge, record, w->block, entries);
        }
        port_info_decode(result->data, &pi);
        return result->attribute == SMP_ATTR_PORT_INFO && w->kind == WRITE_ENFORCEMENT && !t->enforcement_doubted &&
               !has_bits(&pi, t->enforce_inbound, t->enforce_outbound) && !has_bits(&pi, w->after_inbound, w->after_outbound);
}

static void doubt_sma(const struct apply *ap, const struct plan_write *w, const struct mad_result *result, bool news)
{
        if (*sma_of(ap, w) == SMA_EXPECTED && (!mad_result_is_prompt(result) || news))
                *sma_of(ap, w) = SMA_UNKNOWN;
}

/* If the answer to a Set is lost, only the next survey reads the table, and it compares with nothing. So an index that is about to
 * be freed is noted as freed now. If it is not freed after all, it is in use, which takes precedence. */
static void note_freed(struct apply *ap, const struct plan_write *w, const struct task *t)
{
        const struct subnet *s = ap->plan->subnet;
        const struct subnet_port *p = &s->ports[w->port];
        uint16_t i;

        for (i = 0; ap->memory && i < P_KEY_BLOCK_ENTRIES; i++)
                if (!p_key_is_used(t->after[i]))
                        (void) index_memory_note(ap->memory, s->nodes[p->node].guid, p->number,
                                                 (uint16_t) (w->block * P_KEY_BLOCK_ENTRIES + i), t->before[i],
                                                 t->after[i]);
}

static int announce(struct apply *ap, const struct plan_write *w, const struct task *t)
{
        if (w->kind != WRITE_BLOCK)
                return 0;
        note_freed(ap, w, t);
        return knowledge_announce_block(ap->options.knowledge, record_of(ap, w), w->block, t->after);
}

/* Announces what a task may send, or ends the task at once if it must not send anything. */
static int task_prepare(struct apply *ap, uint32_t i)
{
        const struct plan_write *w = write_of(ap, i);

        if (ap->aborted) {
                task_end(ap, i, APPLY_FAILED, APPLY_ABORTED);
        } else if (table_of(ap, w)->source != TABLE_READ) {
                task_fail_unread(ap, i);
        } else if (w->kind == WRITE_BLOCK && !task_begin_block(ap, i)) {
                task_end(ap, i, APPLY_HELD, APPLY_OK);
        } else if (w->kind == WRITE_ENFORCEMENT &&
                   ((ap->phase == PHASE_ENFORCE && enforcement_must_wait(ap, w->port)) || !filter_is_admitted(ap, w))) {
                task_end(ap, i, APPLY_HELD, APPLY_OK);
        } else {
                return announce(ap, w, &ap->tasks[i]);
        }
        return 0;
}

static void task_begin(struct apply *ap, uint32_t i)
{
        if (ap->tasks[i].step == TASK_ENDED)
                return;
        ap->tasks[i].step = *sma_of(ap, write_of(ap, i)) == SMA_EXPECTED ? TASK_READING : TASK_IDENTIFYING;
        make_ready(ap, i);
}

static int compare_touched(const struct apply *ap, const struct touched *x, const struct touched *y)
{
        const struct plan_write *a = &ap->plan->steps[x->phase].writes[x->write];
        const struct plan_write *b = &ap->plan->steps[y->phase].writes[y->write];

        return ORDER(a->port, b->port) ?: ORDER(a->kind, b->kind) ?: (a->kind == WRITE_BLOCK ? ORDER(a->block, b->block) : 0);
}

static int compare_touched_r(const void *x, const void *y, void *ap)
{
        const struct touched *a = x, *b = y;
        int c = compare_touched(ap, a, b);

        return c ?: ORDER(a->phase, b->phase);
}

static bool is_open(const struct apply *ap, const struct plan_write *w)
{
        const struct knowledge_record *r = knowledge_get(ap->options.knowledge, record_of(ap, w));

        for (size_t i = 0; w->kind == WRITE_BLOCK && i < r->n_writes; i++)
                if (r->writes[i].is_sent && r->writes[i].block == w->block)
                        return true;
        return w->kind == WRITE_ENFORCEMENT && table_of(ap, w)->enforcement_doubted;
}

/* Gathers every block that was written, once, with its last write. */
static void gather_touched(struct apply *ap)
{
        enum plan_phase phase;
        uint32_t i, n = 0, k = 0;

        for (phase = 0; phase < PLAN_N_PHASES; phase++)
                for (i = 0; i < ap->plan->steps[phase].n_writes; i++)
                        if (ap->outcomes[phase][i].state == APPLY_WRITTEN)
                                ap->touched[n++] = (struct touched) {
                                        .phase = phase, .write = i, .is_open = is_open(ap, &ap->plan->steps[phase].writes[i]),
                                };
        qsort_r(ap->touched, n, sizeof(*ap->touched), compare_touched_r, ap);
        for (i = 0; i < n; i++) {
                if (i + 1 < n && compare_touched(ap, &ap->touched[i], &ap->touched[i + 1]) == 0)
                        continue;
                ap->touched[k++] = ap->touched[i];
        }
        ap->n_touched = k;
        ap->steps_total = ap->steps_done + k;
}

static void list_held_bases(struct apply *ap)
{
        uint32_t n = 0;

        for (uint32_t base = 1; ap->n_held_bases > n && base <= P_KEY_BASE_MASK; base++)
                if (has_base(ap->held, (uint16_t) base))
                        ap->held_bases[n++] = (uint16_t) base;
}

static int prepare_phase(struct apply *ap, enum plan_phase phase)
{
        int r = 0;

        ap->phase = phase;
        ap->n_begun = ap->n_ended = 0;
        ap->ready_first = ap->n_ready = 0;
        memset(ap->sma_state, 0, ap->plan->subnet->n_ports * sizeof(*ap->sma_state));
        memset(ap->tasks, 0, ap->plan->steps[phase].n_writes * sizeof(*ap->tasks));
        for (uint32_t i = 0; r == 0 && i < ap->plan->steps[phase].n_writes; i++)
                r = task_prepare(ap, i);
        return r;
}

static bool phase_is_done(const struct apply *ap)
{
        if (ap->phase == PLAN_N_PHASES)
                return ap->n_read_back_ended == ap->n_touched;
        return ap->n_ended == ap->plan->steps[ap->phase].n_writes;
}

int apply_prepare(struct apply *ap)
{
        int r;

        knowledge_withdraw(ap->options.knowledge);
        while (ap->n_phases_begun < PLAN_N_PHASES) {
                r = prepare_phase(ap, (enum plan_phase) ap->n_phases_begun++);
                if (r < 0)
                        return r;
                if (!phase_is_done(ap))
                        return 1;
        }
        if (ap->n_phases_begun++ == PLAN_N_PHASES) {
                ap->phase = PLAN_N_PHASES;
                gather_touched(ap);
                if (!phase_is_done(ap))
                        return 1;
        }
        list_held_bases(ap);
        return 0;
}

/* Begins new tasks only when no other task has something to send: each should end soon after it begins, because what was read of
 * its block gets old. */
static void advance(struct apply *ap)
{
        while (ap->phase < PLAN_N_PHASES && ap->n_ready == 0 && ap->n_begun < ap->plan->steps[ap->phase].n_writes)
                task_begin(ap, ap->n_begun++);
}

/* --- requests -------------------------------------------------------------------------------------------------------- */

static uint64_t make_cookie(enum cookie_kind kind, uint32_t i)
{
        return (uint64_t) kind << 32 | i;
}

static void address(struct apply *ap, const struct plan_write *w, struct mad_request *ret)
{
        const struct subnet_port *p = &ap->plan->subnet->ports[w->port];
        uint8_t switch_port = p->role == PORT_SWITCH_EXTERNAL ? p->number : 0;

        *ret = (struct mad_request) {
                .route = p->route,
                .destination = p->destination,
                .key = m_keys_get(ap->options.m_keys, p->guid),
                .method = MAD_GET,
                .retries = ap->options.retries,
        };
        if (w->kind == WRITE_BLOCK) {
                ret->attribute = SMP_ATTR_P_KEY_TABLE;
                ret->modifier = p_key_table_modifier(switch_port, w->block);
        } else {
                ret->attribute = SMP_ATTR_PORT_INFO;
                ret->modifier = p->number;
        }
}

static void make_set(struct apply *ap, const struct plan_write *w, struct task *t, struct mad_request *ret)
{
        ret->method = MAD_SET;
        ret->retries = 0; /* no answer: what the block holds then decides, see answer_result */
        if (w->kind == WRITE_BLOCK)
                p_key_block_encode(t->after, ret->data);
        else
                memcpy(ret->data, t->port_info, SMP_DATA_SIZE);
        t->step = TASK_SETTING;
        t->rounds++;
        ap->sets_sent++;
}

/* Asks the port that has the M_Key: for ports of a switch its port 0. */
static void make_count(const struct apply *ap, const struct plan_write *w, struct mad_request *ret)
{
        const struct subnet_port *p = &ap->plan->subnet->ports[w->port];

        ret->attribute = SMP_ATTR_PORT_INFO;
        ret->modifier = p->role == PORT_SWITCH_EXTERNAL ? 0 : p->number;
}

static void make_identify(struct mad_request *ret)
{
        ret->attribute = SMP_ATTR_NODE_INFO;
        ret->modifier = 0;
}

/* The switch port that a host is plugged into; NULL: there is none. */
static const struct subnet_port *link_of(const struct apply *ap, const struct plan_write *w)
{
        const struct subnet_port *ports = ap->plan->subnet->ports, *p = &ports[w->port];

        return p->role == PORT_ENDPORT && p->peer != SUBNET_NONE && ports[p->peer].role == PORT_SWITCH_EXTERNAL ? &ports[p->peer]
                                                                                                                : NULL;
}

static void make_first_identify(const struct apply *ap, uint32_t i, struct mad_request *ret)
{
        make_identify(ret);
        if (!link_of(ap, write_of(ap, i)))
                return;
        if (ap->tasks[i].link_asked)
                ret->retries -= MIN(ret->retries, RETRIES_BEFORE_LINK + 1);
        else
                ret->retries = MIN(ret->retries, RETRIES_BEFORE_LINK);
}

static void make_link(const struct apply *ap, const struct plan_write *w, struct mad_request *ret)
{
        const struct subnet_port *link = link_of(ap, w);

        ret->route = link->route;
        ret->destination = link->destination;
        ret->key = m_keys_get(ap->options.m_keys, link->guid);
        ret->attribute = SMP_ATTR_PORT_INFO;
        ret->modifier = link->number;
}

/* Other writes since the task began may have made it inadmissible. */
static bool is_still_admitted(struct apply *ap, uint32_t i)
{
        const struct plan_write *w = write_of(ap, i);

        if (w->kind == WRITE_ENFORCEMENT)
                return filter_is_admitted(ap, w);
        for (unsigned k = 0; k < P_KEY_BLOCK_ENTRIES; k++)
                if (!entry_is_admitted(ap, w, &ap->tasks[i], k)) {
                        hold_bases_of(ap, w);
                        return false;
                }
        return true;
}

/* True if the run ended early and this task must stop: nothing begins, and no Set is sent again. But a read that has still to be
 * confirmed may be news. */
static bool must_stop(const struct apply *ap, const struct task *t)
{
        return ap->aborted && (t->step == TASK_SET || (t->rounds == 0 && t->step != TASK_CONFIRMING));
}

/* True if another task found that a different SMA is at the address. */
static bool is_at_stranger(const struct apply *ap, uint32_t i)
{
        enum task_step step = ap->tasks[i].step;

        return *sma_of(ap, write_of(ap, i)) == SMA_STRANGER &&
               (step == TASK_READING || step == TASK_CONFIRMING || step == TASK_SET);
}

/* Ends the task if it must not send its next request. A Set waits until the SMA has identified itself. */
static bool ends_before_request(struct apply *ap, uint32_t i)
{
        struct task *t = &ap->tasks[i];

        if (must_stop(ap, t)) {
                task_end(ap, i, APPLY_FAILED, t->rounds == 0 ? APPLY_ABORTED : reason_of_set(t));
                return true;
        }
        if (is_at_stranger(ap, i)) {
                task_end(ap, i, APPLY_FAILED, APPLY_STRANGER);
                return true;
        }
        if (t->step == TASK_SET && *sma_of(ap, write_of(ap, i)) == SMA_UNKNOWN)
                t->step = TASK_CONFIRMING;
        if (t->step == TASK_SET && !is_still_admitted(ap, i)) {
                task_end(ap, i, APPLY_HELD, APPLY_OK);
                return true;
        }
        return false;
}

static void make_request(struct apply *ap, uint32_t i, struct mad_request *ret)
{
        const struct plan_write *w = write_of(ap, i);
        struct task *t = &ap->tasks[i];

        address(ap, w, ret);
        ret->cookie = make_cookie(COOKIE_TASK, i);
        if (t->step == TASK_IDENTIFYING)
                make_first_identify(ap, i, ret);
        else if (t->step == TASK_ASKING_LINK)
                make_link(ap, w, ret);
        else if (t->step == TASK_CONFIRMING)
                make_identify(ret);
        else if (t->step == TASK_SET)
                make_set(ap, w, t, ret);
        else if (t->step == TASK_COUNTING)
                make_count(ap, w, ret);
}

static bool next_of_phase(struct apply *ap, struct mad_request *ret)
{
        while (ap->n_ready > 0) {
                uint32_t i = ap->ready[ap->ready_first];

                ap->ready_first = (ap->ready_first + 1) % ap->ready_size;
                ap->n_ready--;
                if (!ends_before_request(ap, i)) {
                        make_request(ap, i, ret);
                        return true;
                }
                advance(ap);
        }
        return false;
}

static const struct plan_write *touched_write(const struct apply *ap, uint32_t i)
{
        const struct touched *t = &ap->touched[i];

        return &ap->plan->steps[t->phase].writes[t->write];
}

/* `touched` is sorted by port, so the ports of a switch are next to each other. */
static bool is_of_same_sma(const struct apply *ap, uint32_t i, uint32_t k)
{
        const struct subnet_port *ports = ap->plan->subnet->ports;

        return ports[touched_write(ap, i)->port].destination == ports[touched_write(ap, k)->port].destination;
}

static void make_read_back(struct apply *ap, uint32_t i, enum cookie_kind kind, struct mad_request *ret)
{
        address(ap, touched_write(ap, i), ret);
        ret->cookie = make_cookie(kind, i);
}

static bool next_to_read_back(struct apply *ap, struct mad_request *ret)
{
        if (ap->n_read_back_begun == ap->n_touched)
                return false;
        make_read_back(ap, ap->n_read_back_begun++, COOKIE_READ_BACK, ret);
        return true;
}

/* An SMA with a table that is not as expected identifies itself once: LIDs move. */
static bool next_to_identify(struct apply *ap, struct mad_request *ret)
{
        while (ap->n_asked < ap->n_touched && ap->touched[ap->n_asked].check != CHECK_AGAIN)
                ap->n_asked++;
        if (ap->n_asked == ap->n_touched)
                return false;
        make_read_back(ap, ap->n_asked, COOKIE_READ_BACK_IDENTIFY, ret);
        make_identify(ret);
        for (uint32_t first = ap->n_asked; ap->n_asked < ap->n_touched && is_of_same_sma(ap, first, ap->n_asked);)
                ap->n_asked++;
        return true;
}

static bool next_to_read_again(struct apply *ap, struct mad_request *ret)
{
        while (ap->n_read_again < ap->n_touched &&
               (ap->touched[ap->n_read_again].check == CHECK_ONCE || ap->touched[ap->n_read_again].check == CHECK_ENDED))
                ap->n_read_again++;
        if (ap->n_read_again == ap->n_touched || ap->touched[ap->n_read_again].check != CHECK_IDENTIFIED)
                return false;
        make_read_back(ap, ap->n_read_again++, COOKIE_READ_BACK_AGAIN, ret);
        return true;
}

static bool apply_next(void *state, usec_t now, struct mad_request *ret)
{
        struct apply *ap = state;

        (void) now;
        advance(ap);
        if (ap->phase < PLAN_N_PHASES)
                return next_of_phase(ap, ret);
        if (ap->n_read_back_answered < ap->n_touched)
                return next_to_read_back(ap, ret);
        return next_to_identify(ap, ret) || next_to_read_again(ap, ret);
}

/* --- results --------------------------------------------------------------------------------------------------------- */

/* Only pkeyd writes with its key: if the counter rose from one Set to the next, that Set was refused. */
static void count_result(struct apply *ap, uint32_t i, const struct mad_result *result)
{
        struct task *t = &ap->tasks[i];
        struct port_info pi;

        if (result->outcome == MAD_ANSWERED) {
                port_info_decode(result->data, &pi);
                if (t->counted && pi.m_key_violations > t->violations) {
                        ap->outcomes[ap->phase][i].m_key_counted = true;
                        t->rounds = UINT8_MAX; /* each further Set would only begin the lease of its M_Key and be reported to the
                                                * SM */
                }
                t->counted = true;
                t->violations = pi.m_key_violations;
        }
        t->step = TASK_READING;
        make_ready(ap, i);
}

/* The Set may have been carried out: the indexes that it was to use may have been used, whatever the next read shows. */
static void note_unanswered(struct apply *ap, const struct plan_write *w, const struct task *t)
{
        const struct subnet_port *p = &ap->plan->subnet->ports[w->port];

        for (uint16_t i = 0; ap->memory && w->kind == WRITE_BLOCK && i < P_KEY_BLOCK_ENTRIES; i++)
                if (!p_key_is_used(t->before[i]) && p_key_is_used(t->after[i]))
                        (void) index_memory_note_open(ap->memory, subnet_port_node(ap->plan->subnet, p)->guid, p->number,
                                                      (uint16_t) (w->block * P_KEY_BLOCK_ENTRIES + i), t->after[i]);
}

/* The Set may have been carried out. A refused Set is not sent again. */
static void set_unanswered(struct apply *ap, uint32_t i, const struct mad_result *result)
{
        struct task *t = &ap->tasks[i];

        note_unanswered(ap, write_of(ap, i), t);
        if (result->outcome == MAD_REFUSED)
                t->rounds = UINT8_MAX;
        t->last_set = result->outcome;
        ap->outcomes[ap->phase][i].mad_status = result->mad_status;
        t->step = result->outcome == MAD_TIMED_OUT ? TASK_COUNTING : TASK_READING;
        make_ready(ap, i);
}

/* True if the SMA at the address is that of this port; if not, the snapshot is stale. */
static bool is_own_sma(struct apply *ap, const struct plan_write *w, const struct mad_result *result)
{
        struct node_info info;

        node_info_decode(result->data, &info);
        if (subnet_port_has_sma(ap->plan->subnet, &ap->plan->subnet->ports[w->port], &info))
                return true;
        ap->stale = true;
        return false;
}

/* Takes what a block holds, and compares it with what it should hold before and after the write. */
static void block_answered(struct apply *ap, uint32_t i, const uint8_t data[SMP_DATA_SIZE], bool *ret_is_before, bool *ret_is_after)
{
        const struct plan_write *w = write_of(ap, i);
        const struct task *t = &ap->tasks[i];
        struct p_key entries[P_KEY_BLOCK_ENTRIES];

        p_key_block_decode(data, entries);
        take_block(ap, w, entries, t->rounds > 0 ? t->after : NULL);
        *ret_is_before = blocks_equal(ap, w, entries, t->before);
        *ret_is_after = blocks_equal(ap, w, entries, t->after);
}

/* The same with the enforcement bits; prepares the PortInfo to be set. */
static void enforcement_answered(struct apply *ap, uint32_t i, const uint8_t data[SMP_DATA_SIZE], bool *ret_is_before,
                                 bool *ret_is_after)
{
        const struct plan_write *w = write_of(ap, i);
        struct task *t = &ap->tasks[i];
        struct port_info pi;

        take_enforcement(ap, w, data, &pi);
        *ret_is_before = has_bits(&pi, w->before_inbound, w->before_outbound);
        *ret_is_after = has_bits(&pi, w->after_inbound, w->after_outbound);
        memcpy(t->port_info, data, SMP_DATA_SIZE);
        port_info_set_enforcement(t->port_info, w->after_inbound, w->after_outbound);
}

/* Takes the answer to a Set or to a read from the SMA of this port. If it is as after the write without a Set, another program
 * wrote the same; with a read after a Set, the answer to the Set was lost. */
static void answer_result(struct apply *ap, uint32_t i, const uint8_t data[SMP_DATA_SIZE], bool setting)
{
        struct task *t = &ap->tasks[i];
        bool is_before, is_after;

        if (write_of(ap, i)->kind == WRITE_BLOCK)
                block_answered(ap, i, data, &is_before, &is_after);
        else
                enforcement_answered(ap, i, data, &is_before, &is_after);
        if (is_after) {
                task_end(ap, i, t->rounds > 0 ? APPLY_WRITTEN : APPLY_PRESENT, APPLY_OK);
        } else if (setting) {
                task_end(ap, i, APPLY_FAILED, APPLY_MISMATCH);
        } else if (!is_before) {
                task_end(ap, i, APPLY_FAILED, APPLY_CHANGED);
        } else if (t->rounds > ap->options.retries) {
                task_end(ap, i, APPLY_FAILED, reason_of_set(t));
        } else {
                t->step = TASK_SET;
                make_ready(ap, i);
        }
}

static void identify_result(struct apply *ap, uint32_t i, const struct mad_result *result)
{
        struct task *t = &ap->tasks[i];

        *sma_of(ap, write_of(ap, i)) = is_own_sma(ap, write_of(ap, i), result) ? SMA_EXPECTED : SMA_STRANGER;
        if (*sma_of(ap, write_of(ap, i)) == SMA_STRANGER) {
                task_end(ap, i, APPLY_FAILED, APPLY_STRANGER);
        } else if (t->step == TASK_CONFIRMING) {
                answer_result(ap, i, t->answer, false);
        } else {
                t->step = TASK_READING;
                make_ready(ap, i);
        }
}

static void read_result(struct apply *ap, uint32_t i, const struct mad_result *result)
{
        struct task *t = &ap->tasks[i];

        memcpy(t->answer, result->data, SMP_DATA_SIZE);
        switch (*sma_of(ap, write_of(ap, i))) {
        case SMA_EXPECTED:
                answer_result(ap, i, t->answer, false);
                break;
        case SMA_STRANGER: /* another task found that a different SMA is there */
                task_end(ap, i, APPLY_FAILED, APPLY_STRANGER);
                break;
        case SMA_UNKNOWN:
                t->step = TASK_CONFIRMING;
                make_ready(ap, i);
                break;
        }
}

static bool may_be_unplugged(const struct apply *ap, uint32_t i, const struct mad_result *result)
{
        const struct task *t = &ap->tasks[i];

        return t->step == TASK_IDENTIFYING && !t->link_asked && result->outcome == MAD_TIMED_OUT && link_of(ap, write_of(ap, i));
}

/* A host without a link is not waited for. */
static void link_result(struct apply *ap, uint32_t i, const struct mad_result *result)
{
        static const struct mad_result nobody = { .outcome = MAD_TIMED_OUT };
        struct port_info pi;

        ap->tasks[i].link_asked = true;
        if (result->outcome == MAD_ANSWERED)
                port_info_decode(result->data, &pi);
        if (result->outcome == MAD_ANSWERED && !pi.link_up) {
                task_fail_unanswered(ap, i, &nobody);
                return;
        }
        ap->tasks[i].step = TASK_IDENTIFYING;
        make_ready(ap, i);
}

static void task_result(struct apply *ap, uint32_t i, const struct mad_result *result)
{
        enum task_step step = ap->tasks[i].step;

        if (step == TASK_ASKING_LINK) {
                link_result(ap, i, result);
                return;
        }
        if (may_be_unplugged(ap, i, result)) {
                ap->tasks[i].step = TASK_ASKING_LINK;
                make_ready(ap, i);
                return;
        }
        doubt_sma(ap, write_of(ap, i), result, is_news(ap, write_of(ap, i), result));
        if (step == TASK_COUNTING)
                count_result(ap, i, result);
        else if (result->outcome != MAD_ANSWERED && step == TASK_SETTING)
                set_unanswered(ap, i, result);
        else if (result->outcome != MAD_ANSWERED)
                task_fail_unanswered(ap, i, result);
        else if (step == TASK_IDENTIFYING || step == TASK_CONFIRMING)
                identify_result(ap, i, result);
        else if (step == TASK_SETTING)
                answer_result(ap, i, result->data, true);
        else
                read_result(ap, i, result);
}

static void fail_read_back(struct apply *ap, const struct touched *t, enum apply_reason reason, uint16_t mad_status)
{
        struct apply_outcome *o = &ap->outcomes[t->phase][t->write];

        o->state = APPLY_FAILED;
        o->reason = reason;
        o->mad_status = mad_status;
}

/* The block was not read back. */
static void end_unread(struct apply *ap, uint32_t i, enum apply_reason reason, const struct mad_result *result)
{
        const struct plan_write *w = touched_write(ap, i);

        ap->touched[i].check = CHECK_ENDED;
        fail_read_back(ap, &ap->touched[i], reason, result->mad_status);
        if (w->kind == WRITE_BLOCK)
                mark_unread(table_of(ap, w), result);
        doubt_silent_table(ap, w, result);
        ap->n_read_back_ended++;
        ap->steps_done++;
}

/* If the SMA is another one, or does not identify itself, its answers are dropped. */
static void read_back_identify_result(struct apply *ap, uint32_t i, const struct mad_result *result)
{
        enum apply_reason reason = reason_of(result->outcome);

        if (result->outcome == MAD_ANSWERED && !is_own_sma(ap, touched_write(ap, i), result))
                reason = APPLY_STRANGER;
        *sma_of(ap, touched_write(ap, i)) = reason == APPLY_OK ? SMA_EXPECTED : SMA_UNKNOWN;
        for (uint32_t k = i; k < ap->n_touched && is_of_same_sma(ap, i, k); k++) {
                if (ap->touched[k].check != CHECK_AGAIN)
                        continue;
                if (reason == APPLY_OK)
                        ap->touched[k].check = CHECK_IDENTIFIED;
                else
                        end_unread(ap, k, reason, result);
        }
}

/* True if the block or the bits are as the last Set left them. */
static bool is_as_written(const struct apply *ap, const struct plan_write *w, const struct mad_result *result)
{
        struct p_key entries[P_KEY_BLOCK_ENTRIES], known[P_KEY_BLOCK_ENTRIES];
        struct port_info pi;

        if (w->kind == WRITE_ENFORCEMENT) {
                port_info_decode(result->data, &pi);
                return has_bits(&pi, w->after_inbound, w->after_outbound);
        }
        p_key_block_decode(result->data, entries);
        observed_table_get_block(table_of(ap, w), w->block, known);
        return blocks_equal(ap, w, entries, known);
}

static void read_back_result(struct apply *ap, uint32_t i, const struct mad_result *result, bool again)
{
        struct touched *t = &ap->touched[i];
        const struct plan_write *w = touched_write(ap, i);
        struct p_key entries[P_KEY_BLOCK_ENTRIES];
        struct port_info pi;

        ap->n_read_back_answered += !again;
        doubt_sma(ap, w, result, !again && is_news(ap, w, result)); /* it identified itself between both reads */
        if (result->outcome != MAD_ANSWERED) {
                end_unread(ap, i, reason_of(result->outcome), result);
                return;
        }
        if (again && *sma_of(ap, w) != SMA_EXPECTED) { /* it is not known which SMA answered */
                end_unread(ap, i, APPLY_TIMEOUT, &(struct mad_result) { .outcome = MAD_TIMED_OUT });
                return;
        }
        if (!is_as_written(ap, w, result)) {
                if (!again) {
                        t->check = CHECK_AGAIN;
                        return;
                }
                if (!t->is_open) /* otherwise the change may be that later Set */
                        fail_read_back(ap, t, APPLY_REVERTED, 0);
        }
        ap->n_read_back_ended++;
        ap->steps_done++;
        if (w->kind == WRITE_BLOCK) {
                p_key_block_decode(result->data, entries);
                take_block(ap, w, entries, NULL);
        } else {
                take_enforcement(ap, w, result->data, &pi);
        }
}

static void apply_result(void *state, usec_t now, const struct mad_result *result)
{
        struct apply *ap = state;
        uint32_t i = (uint32_t) result->cookie, kind = (uint32_t) (result->cookie >> 32);

        (void) now;
        if (kind == COOKIE_READ_BACK || kind == COOKIE_READ_BACK_AGAIN)
                read_back_result(ap, i, result, kind == COOKIE_READ_BACK_AGAIN);
        else if (kind == COOKIE_READ_BACK_IDENTIFY)
                read_back_identify_result(ap, i, result);
        else
                task_result(ap, i, result);
        advance(ap);
}

static bool apply_done(const void *state)
{
        return phase_is_done(state);
}

static void apply_progress(const void *state, uint64_t *ret_done, uint64_t *ret_total)
{
        const struct apply *ap = state;

        *ret_done = ap->steps_done;
        *ret_total = ap->steps_total;
}

/* --- interface ------------------------------------------------------------------------------------------------------- */

static int allocate(struct arena *a, struct apply *ap)
{
        uint32_t most = 0, all = 0, n;
        enum plan_phase phase;

        for (phase = 0; phase < PLAN_N_PHASES; phase++) {
                n = ap->plan->steps[phase].n_writes;
                ap->outcomes[phase] = arena_new_array(a, struct apply_outcome, n);
                if (!ap->outcomes[phase])
                        return -ENOMEM;
                most = MAX(most, n);
                all += n;
        }
        ap->tasks = arena_new_array(a, struct task, most);
        ap->ready_size = MAX(most, 1u);
        ap->ready = arena_new_array(a, uint32_t, ap->ready_size);
        ap->touched = arena_new_array(a, struct touched, all);
        ap->held_bases = arena_new_array(a, uint16_t, P_KEY_BASE_MASK);
        ap->port_failed = arena_new_array(a, bool, ap->plan->subnet->n_ports);
        ap->sma_state = arena_new_array(a, enum sma_state, ap->plan->subnet->n_ports);
        ap->steps_total = (uint64_t) all * 3;
        return ap->tasks && ap->ready && ap->touched && ap->held_bases && ap->port_failed && ap->sma_state ? 0 : -ENOMEM;
}

int apply_new(struct arena *a, const struct plan *plan, struct observed *observed, struct index_memory *memory,
              const struct apply_options *options, struct apply **ret)
{
        struct apply *ap = arena_new_object(a, struct apply);
        int r;

        assert(plan->subnet == observed->subnet); /* ports are indexes into it */
        if (!ap)
                return -ENOMEM;
        ap->plan = plan;
        ap->observed = observed;
        ap->memory = memory;
        ap->options = *options;
        r = allocate(a, ap);
        if (r < 0)
                return r;
        *ret = ap;
        return 0;
}

/* --- a dry run ------------------------------------------------------------------------------------------------------- */

static void simulate_task(struct apply *ap, uint32_t i)
{
        const struct plan_write *w = write_of(ap, i);

        if (ap->tasks[i].step == TASK_ENDED)
                return;
        if (w->kind == WRITE_BLOCK) {
                observed_table_set_block(table_of(ap, w), w->block, ap->tasks[i].after);
                knowledge_see_block(ap->options.knowledge, record_of(ap, w), w->block, ap->tasks[i].after);
        } else {
                table_of(ap, w)->enforce_inbound = w->after_inbound;
                table_of(ap, w)->enforce_outbound = w->after_outbound;
                knowledge_see_filter(ap->options.knowledge, record_of(ap, w), w->after_inbound, w->after_outbound);
        }
        task_end(ap, i, APPLY_WRITTEN, APPLY_OK);
}

int apply_pretend(struct apply *ap)
{
        int r;

        while ((r = apply_prepare(ap)) > 0) {
                for (uint32_t i = 0; ap->phase < PLAN_N_PHASES && i < ap->plan->steps[ap->phase].n_writes; i++)
                        simulate_task(ap, i);
                ap->n_read_back_ended = ap->n_touched;
        }
        return r;
}

/* --- what waits ------------------------------------------------------------------------------------------------------ */

static int collect_base(const struct apply *ap, struct held_list *l, const struct plan_write *w,
                        const struct p_key entries[P_KEY_BLOCK_ENTRIES], struct p_key key)
{
        if (!p_key_is_used(key))
                return 0;
        return held_collect(l, ap->options.knowledge, record_of(ap, w), w->block, entries, p_key_base(key));
}

/* The block as it is now, with all changes of the plan. */
static int collect_block(const struct apply *ap, struct held_list *l, const struct plan_write *w)
{
        struct p_key now[P_KEY_BLOCK_ENTRIES], after[P_KEY_BLOCK_ENTRIES];
        int r = 0;

        observed_table_get_block(table_of(ap, w), w->block, now);
        memcpy(after, now, sizeof(after));
        for (unsigned i = 0; i < P_KEY_BLOCK_ENTRIES; i++)
                if (w->before[i].v != w->after[i].v)
                        after[i] = w->after[i];
        for (unsigned i = 0; r == 0 && i < P_KEY_BLOCK_ENTRIES; i++) {
                if (now[i].v == after[i].v)
                        continue;
                r = collect_base(ap, l, w, after, now[i]);
                if (r == 0)
                        r = collect_base(ap, l, w, after, after[i]);
        }
        return r;
}

static int collect_filter(const struct apply *ap, struct held_list *l, const struct plan_write *w)
{
        uint32_t record = record_of(ap, w);
        uint16_t base;

        if (knowledge_judge_filter(ap->options.knowledge, record, w->after_inbound, w->after_outbound, &base) == RULE_ADMITS)
                return 0; /* it waits for its own table */
        return held_collect_filter(l, ap->options.knowledge, record, w->after_inbound, w->after_outbound, base);
}

static bool waits(const struct apply_outcome *o)
{
        return o->state == APPLY_HELD || o->partly_held;
}

int apply_collect_held(const struct apply *ap, struct held_list *l)
{
        int r = 0;

        for (enum plan_phase phase = 0; phase < PLAN_N_PHASES; phase++)
                for (uint32_t i = 0; r == 0 && i < ap->plan->steps[phase].n_writes; i++) {
                        const struct plan_write *w = &ap->plan->steps[phase].writes[i];

                        if (!waits(&ap->outcomes[phase][i]) || record_of(ap, w) == KNOWLEDGE_NONE)
                                continue;
                        r = w->kind == WRITE_BLOCK ? collect_block(ap, l, w) : collect_filter(ap, l, w);
                }
        return r;
}

struct mad_stage apply_stage(struct apply *ap)
{
        return (struct mad_stage) {
                .state = ap,
                .next = apply_next,
                .result = apply_result,
                .done = apply_done,
                .progress = apply_progress,
        };
}

void apply_abort(struct apply *ap)
{
        ap->aborted = true;
}

bool apply_is_stale(const struct apply *ap)
{
        return ap->stale;
}

const struct apply_outcome *apply_outcome(const struct apply *ap, enum plan_phase p, uint32_t w)
{
        return &ap->outcomes[p][w];
}

void apply_get_summary(const struct apply *ap, struct apply_summary *ret)
{
        enum plan_phase phase;
        uint32_t i;

        *ret = (struct apply_summary) { .sets_sent = ap->sets_sent, .n_held_bases = ap->n_held_bases };
        for (phase = 0; phase < PLAN_N_PHASES; phase++)
                for (i = 0; i < ap->plan->steps[phase].n_writes; i++)
                        switch (ap->outcomes[phase][i].state) {
                        case APPLY_WRITTEN:
                        case APPLY_PRESENT:
                                ret->written++;
                                break;
                        case APPLY_FAILED:
                                ret->failed++;
                                break;
                        case APPLY_HELD:
                                ret->held++;
                                break;
                        case APPLY_PENDING:
                                break;
                        }
}

const uint16_t *apply_held_bases(const struct apply *ap, uint32_t *ret_n)
{
        *ret_n = ap->n_held_bases;
        return ap->held_bases;
}

enum plan_phase apply_phase(const struct apply *ap)
{
        return ap->phase;
}

const char *apply_reason_to_string(enum apply_reason r)
{
        static const char *const names[] = {
                [APPLY_OK] = "ok", [APPLY_TIMEOUT] = "timeout", [APPLY_SET_UNANSWERED] = "set-unanswered",
                [APPLY_STATUS] = "status", [APPLY_BUSY] = "busy", [APPLY_UNSENT] = "unsent", [APPLY_CHANGED] = "changed",
                [APPLY_MISMATCH] = "mismatch", [APPLY_REVERTED] = "reverted", [APPLY_STRANGER] = "stranger",
                [APPLY_UNREACHABLE] = "unreachable", [APPLY_ABORTED] = "aborted",
        };

        return WORD(names, r, "unknown");
}
