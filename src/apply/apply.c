/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "apply/apply_internal.h"

/* Retries of the first NodeInfo to a host before its switch is asked whether the link is up. */
#define RETRIES_BEFORE_LINK 1

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

/* Moves the task to this step, and enqueues it to send the request of the step. */
static void task_continue(struct apply *ap, uint32_t i, enum task_step step)
{
        ap->tasks[i].step = step;
        ap->ready[(ap->ready_first + ap->n_ready) % ap->ready_size] = i;
        ap->n_ready++;
}

/* The task's port was read after the last Set, and holds what it held before. */
static enum apply_reason reason_of_set(const struct task *t)
{
        return t->last_set == MAD_TIMED_OUT ? APPLY_SET_UNANSWERED : apply_reason_of(t->last_set);
}

/* Marks the table of write i as uncertain: a Set was not answered, the SMA that was read is not known, or the read failed. */
static void doubt_table(struct apply *ap, uint32_t i, const struct mad_result *result)
{
        struct observed_table *t = apply_table_of(ap, write_of(ap, i));

        if (write_of(ap, i)->kind == WRITE_ENFORCEMENT)
                t->enforcement_doubted = true;
        else
                apply_mark_unread(t, result);
}

static void task_fail_unanswered(struct apply *ap, uint32_t i, const struct mad_result *result)
{
        apply_doubt_silent_table(ap, write_of(ap, i), result);
        if (ap->tasks[i].rounds > 0 || ap->tasks[i].step == TASK_CONFIRMING ||
            (write_of(ap, i)->kind == WRITE_BLOCK && result->outcome == MAD_TIMED_OUT))
                doubt_table(ap, i, result);
        ap->outcomes[ap->phase][i].mad_status = result->mad_status;
        task_end(ap, i, APPLY_FAILED, apply_reason_of(result->outcome));
}

/* --- phases ---------------------------------------------------------------------------------------------------------- */

/* A port whose table could not be read for the plan is not tried again; it fails for the same reason. A base that would wait for
 * other ports even if this port answered is held all the same. */
static void task_fail_unread(struct apply *ap, uint32_t i)
{
        const struct observed_table *t = apply_table_of(ap, write_of(ap, i));

        apply_hold_unread(ap, i);
        ap->outcomes[ap->phase][i].mad_status = t->mad_status;
        task_end(ap, i, APPLY_FAILED, t->failure == MAD_ANSWERED ? APPLY_UNREACHABLE : apply_reason_of(t->failure));
}

static int announce(struct apply *ap, const struct plan_write *w, const struct task *t)
{
        if (w->kind != WRITE_BLOCK)
                return 0;
        apply_note_freed(ap, w, t);
        return knowledge_announce_block(ap->options.knowledge, apply_record_of(ap, w), w->block, t->after);
}

/* Announces what a task may send, or ends the task at once if it must not send anything. */
static int task_prepare(struct apply *ap, uint32_t i)
{
        const struct plan_write *w = write_of(ap, i);

        if (ap->aborted) {
                task_end(ap, i, APPLY_FAILED, APPLY_ABORTED);
        } else if (apply_table_of(ap, w)->source != TABLE_READ) {
                task_fail_unread(ap, i);
        } else if (w->kind == WRITE_BLOCK ? !apply_begin_block(ap, i) : apply_filter_waits(ap, w)) {
                task_end(ap, i, APPLY_HELD, APPLY_OK);
        } else {
                return announce(ap, w, &ap->tasks[i]);
        }
        return 0;
}

static void task_begin(struct apply *ap, uint32_t i)
{
        if (ap->tasks[i].step != TASK_ENDED)
                task_continue(ap, i, *apply_sma_of(ap, write_of(ap, i)) == SMA_EXPECTED ? TASK_READING : TASK_IDENTIFYING);
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
                apply_gather_touched(ap);
                if (!phase_is_done(ap))
                        return 1;
        }
        apply_list_held_bases(ap);
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

/* The switch port that the written port is plugged into; NULL: there is none. */
static const struct subnet_port *link_of(const struct apply *ap, const struct plan_write *w)
{
        uint32_t leaf = subnet_leaf_port(ap->plan->subnet, w->port);

        return leaf == SUBNET_NONE ? NULL : &ap->plan->subnet->ports[leaf];
}

static void make_first_identify(const struct apply *ap, uint32_t i, struct mad_request *ret)
{
        apply_make_identify(ret);
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

        return *apply_sma_of(ap, write_of(ap, i)) == SMA_STRANGER &&
               (step == TASK_READING || step == TASK_CONFIRMING || step == TASK_SET);
}

/* Ends the task if it must not send its next request; returns true then. A Set waits until the SMA has identified itself. */
static bool end_before_request(struct apply *ap, uint32_t i)
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
        if (t->step == TASK_SET && *apply_sma_of(ap, write_of(ap, i)) == SMA_UNKNOWN)
                t->step = TASK_CONFIRMING;
        if (t->step == TASK_SET && !apply_recheck_admission(ap, i)) {
                task_end(ap, i, APPLY_HELD, APPLY_OK);
                return true;
        }
        return false;
}

static void make_request(struct apply *ap, uint32_t i, struct mad_request *ret)
{
        const struct plan_write *w = write_of(ap, i);
        struct task *t = &ap->tasks[i];

        apply_make_read(ap, w, ret);
        ret->cookie = apply_make_cookie(COOKIE_TASK, i);
        if (t->step == TASK_IDENTIFYING)
                make_first_identify(ap, i, ret);
        else if (t->step == TASK_ASKING_LINK)
                make_link(ap, w, ret);
        else if (t->step == TASK_CONFIRMING)
                apply_make_identify(ret);
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
                if (!end_before_request(ap, i)) {
                        make_request(ap, i, ret);
                        return true;
                }
                advance(ap);
        }
        return false;
}

static bool apply_next(void *state, usec_t, struct mad_request *ret)
{
        struct apply *ap = state;

        advance(ap);
        if (ap->phase < PLAN_N_PHASES)
                return next_of_phase(ap, ret);
        return apply_next_read_back(ap, ret);
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
        task_continue(ap, i, TASK_READING);
}

/* The Set may have been carried out. A refused Set is not sent again. */
static void set_unanswered(struct apply *ap, uint32_t i, const struct mad_result *result)
{
        struct task *t = &ap->tasks[i];

        apply_note_unanswered(ap, write_of(ap, i), t);
        if (result->outcome == MAD_REFUSED)
                t->rounds = UINT8_MAX;
        t->last_set = result->outcome;
        ap->outcomes[ap->phase][i].mad_status = result->mad_status;
        task_continue(ap, i, result->outcome == MAD_TIMED_OUT ? TASK_COUNTING : TASK_READING);
}

/* Takes what a block holds, and compares it with what it should hold before and after the write. */
static void block_answered(struct apply *ap, uint32_t i, const uint8_t data[SMP_DATA_SIZE], bool *ret_is_before, bool *ret_is_after)
{
        const struct plan_write *w = write_of(ap, i);
        const struct task *t = &ap->tasks[i];
        struct p_key entries[P_KEY_BLOCK_ENTRIES];

        p_key_block_decode(data, entries);
        apply_take_block(ap, w, entries, t->rounds > 0 ? t->after : NULL);
        *ret_is_before = apply_blocks_equal(ap, w, entries, t->before);
        *ret_is_after = apply_blocks_equal(ap, w, entries, t->after);
}

/* The same with the enforcement bits; prepares the PortInfo to be set. */
static void enforcement_answered(struct apply *ap, uint32_t i, const uint8_t data[SMP_DATA_SIZE], bool *ret_is_before,
                                 bool *ret_is_after)
{
        const struct plan_write *w = write_of(ap, i);
        struct task *t = &ap->tasks[i];
        struct port_info pi;

        apply_take_enforcement(ap, w, data, &pi);
        *ret_is_before = apply_has_bits(&pi, w->before_inbound, w->before_outbound);
        *ret_is_after = apply_has_bits(&pi, w->after_inbound, w->after_outbound);
        memcpy(t->port_info, data, SMP_DATA_SIZE);
        port_info_set_enforcement(t->port_info, w->after_inbound, w->after_outbound);
}

/* Takes the answer to a Set or to a read from the SMA of this port. If a read shows what the write should result in, the answer to
 * an earlier Set was lost; or, if no Set was sent, another program wrote the same. */
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
                task_continue(ap, i, t->is_old ? TASK_READING : TASK_SET);
        }
}

static void identify_result(struct apply *ap, uint32_t i, const struct mad_result *result)
{
        const struct plan_write *w = write_of(ap, i);
        struct task *t = &ap->tasks[i];

        *apply_sma_of(ap, w) = apply_check_sma(ap, w, result) ? SMA_EXPECTED : SMA_STRANGER;
        if (*apply_sma_of(ap, w) == SMA_STRANGER)
                task_end(ap, i, APPLY_FAILED, APPLY_STRANGER);
        else if (t->step == TASK_CONFIRMING)
                answer_result(ap, i, t->answer, false);
        else
                task_continue(ap, i, TASK_READING);
}

static void read_result(struct apply *ap, uint32_t i, const struct mad_result *result)
{
        struct task *t = &ap->tasks[i];

        memcpy(t->answer, result->data, SMP_DATA_SIZE);
        t->is_old = !t->is_old && !mad_result_is_prompt(result);
        switch (*apply_sma_of(ap, write_of(ap, i))) {
        case SMA_EXPECTED:
                answer_result(ap, i, t->answer, false);
                break;
        case SMA_STRANGER: /* another task found that a different SMA is there */
                task_end(ap, i, APPLY_FAILED, APPLY_STRANGER);
                break;
        case SMA_UNKNOWN:
                task_continue(ap, i, TASK_CONFIRMING);
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
        static const struct mad_result no_answer = { .outcome = MAD_TIMED_OUT };
        struct port_info pi;

        ap->tasks[i].link_asked = true;
        port_info_decode(result->data, &pi);
        if (result->outcome == MAD_ANSWERED && !pi.link_up)
                task_fail_unanswered(ap, i, &no_answer);
        else
                task_continue(ap, i, TASK_IDENTIFYING);
}

static void task_result(struct apply *ap, uint32_t i, const struct mad_result *result)
{
        enum task_step step = ap->tasks[i].step;

        if (step == TASK_ASKING_LINK) {
                link_result(ap, i, result);
                return;
        }
        if (may_be_unplugged(ap, i, result)) {
                task_continue(ap, i, TASK_ASKING_LINK);
                return;
        }
        apply_doubt_sma(ap, write_of(ap, i), result, apply_is_news(ap, write_of(ap, i), result));
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

static void apply_result(void *state, usec_t, const struct mad_result *result)
{
        struct apply *ap = state;
        enum cookie_kind kind = (enum cookie_kind) (result->cookie >> 32);
        uint32_t i = (uint32_t) result->cookie;

        if (kind == COOKIE_TASK)
                task_result(ap, i, result);
        else
                apply_read_back_ended(ap, kind, i, result);
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
        uint32_t most = 0, all = 0;

        for (enum plan_phase phase = 0; phase < PLAN_N_PHASES; phase++) {
                uint32_t n = ap->plan->steps[phase].n_writes;

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
        *ap = (struct apply) { .plan = plan, .observed = observed, .memory = memory, .options = *options };
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
                observed_table_set_block(apply_table_of(ap, w), w->block, ap->tasks[i].after);
                knowledge_see_block(ap->options.knowledge, apply_record_of(ap, w), w->block, ap->tasks[i].after);
        } else {
                apply_table_of(ap, w)->enforce_inbound = w->after_inbound;
                apply_table_of(ap, w)->enforce_outbound = w->after_outbound;
                knowledge_see_filter(ap->options.knowledge, apply_record_of(ap, w), w->after_inbound, w->after_outbound);
        }
        task_end(ap, i, APPLY_WRITTEN, APPLY_OK);
}

int apply_simulate(struct apply *ap)
{
        int r;

        while ((r = apply_prepare(ap)) > 0) {
                for (uint32_t i = 0; ap->phase < PLAN_N_PHASES && i < ap->plan->steps[ap->phase].n_writes; i++)
                        simulate_task(ap, i);
                ap->n_read_back_ended = ap->n_touched;
        }
        return r;
}

struct mad_stage apply_stage(struct apply *ap)
{
        return (struct mad_stage) {
                .state = ap, .next = apply_next, .result = apply_result, .done = apply_done, .progress = apply_progress,
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
        assert(p < PLAN_N_PHASES && w < ap->plan->steps[p].n_writes);
        return &ap->outcomes[p][w];
}

void apply_get_summary(const struct apply *ap, struct apply_summary *ret)
{
        *ret = (struct apply_summary) { .sets_sent = ap->sets_sent, .n_held_bases = ap->n_held_bases };
        for (enum plan_phase phase = 0; phase < PLAN_N_PHASES; phase++)
                for (uint32_t i = 0; i < ap->plan->steps[phase].n_writes; i++) {
                        enum apply_state state = ap->outcomes[phase][i].state;

                        ret->written += state == APPLY_WRITTEN || state == APPLY_PRESENT;
                        ret->failed += state == APPLY_FAILED;
                        ret->held += state == APPLY_HELD;
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

DEFINE_WORDS(apply_reason_to_string, enum apply_reason, "unknown",
             [APPLY_OK] = "ok", [APPLY_TIMEOUT] = "timeout", [APPLY_SET_UNANSWERED] = "set-unanswered", [APPLY_STATUS] = "status",
             [APPLY_BUSY] = "busy", [APPLY_UNSENT] = "unsent", [APPLY_CHANGED] = "changed", [APPLY_MISMATCH] = "mismatch",
             [APPLY_REVERTED] = "reverted", [APPLY_STRANGER] = "stranger", [APPLY_UNREACHABLE] = "unreachable",
             [APPLY_ABORTED] = "aborted")
