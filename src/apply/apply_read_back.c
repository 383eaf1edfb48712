/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdlib.h>

#include "apply/apply_internal.h"

/* --- requests ------------------------------------------------------------------------------------------------------- */

static const struct plan_write *last_write(const struct apply *ap, const struct touched *t)
{
        return &ap->plan->steps[t->phase].writes[t->write];
}

static const struct plan_write *touched_write(const struct apply *ap, uint32_t i)
{
        return last_write(ap, &ap->touched[i]);
}

static int compare_touched(const struct apply *ap, const struct touched *x, const struct touched *y)
{
        const struct plan_write *a = last_write(ap, x), *b = last_write(ap, y);

        return ORDER(a->port, b->port) ?: ORDER(a->kind, b->kind) ?: (a->kind == WRITE_BLOCK ? ORDER(a->block, b->block) : 0);
}

static int compare_touched_r(const void *x, const void *y, void *ap)
{
        const struct touched *a = x, *b = y;

        return compare_touched(ap, a, b) ?: ORDER(a->phase, b->phase);
}

static bool is_open(const struct apply *ap, const struct plan_write *w)
{
        const struct knowledge_record *r = knowledge_get(ap->options.knowledge, apply_record_of(ap, w));

        for (size_t i = 0; w->kind == WRITE_BLOCK && i < r->n_writes; i++)
                if (r->writes[i].is_sent && r->writes[i].block == w->block)
                        return true;
        return w->kind == WRITE_ENFORCEMENT && apply_table_of(ap, w)->enforcement_doubted;
}

void apply_gather_touched(struct apply *ap)
{
        uint32_t n = 0, k = 0;

        for (enum plan_phase phase = 0; phase < PLAN_N_PHASES; phase++)
                for (uint32_t i = 0; i < ap->plan->steps[phase].n_writes; i++)
                        if (ap->outcomes[phase][i].state == APPLY_WRITTEN)
                                ap->touched[n++] = (struct touched) {
                                        .phase = phase, .write = i, .is_open = is_open(ap, &ap->plan->steps[phase].writes[i]),
                                };
        qsort_r(ap->touched, n, sizeof(*ap->touched), compare_touched_r, ap);
        for (uint32_t i = 0; i < n; i++)
                if (i + 1 == n || compare_touched(ap, &ap->touched[i], &ap->touched[i + 1]) != 0)
                        ap->touched[k++] = ap->touched[i];
        ap->n_touched = k;
        ap->steps_total = ap->steps_done + k;
}

/* `touched` is sorted by port, so the ports of a switch are next to each other. */
static bool is_of_same_sma(const struct apply *ap, uint32_t i, uint32_t k)
{
        const struct subnet_port *ports = ap->plan->subnet->ports;

        return ports[touched_write(ap, i)->port].destination == ports[touched_write(ap, k)->port].destination;
}

static void make_read_back(struct apply *ap, uint32_t i, enum cookie_kind kind, struct mad_request *ret)
{
        apply_make_read(ap, touched_write(ap, i), ret);
        ret->cookie = apply_make_cookie(kind, i);
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
        apply_make_identify(ret);
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

bool apply_next_read_back(struct apply *ap, struct mad_request *ret)
{
        if (ap->n_read_back_answered < ap->n_touched)
                return next_to_read_back(ap, ret);
        return next_to_identify(ap, ret) || next_to_read_again(ap, ret);
}

/* --- results -------------------------------------------------------------------------------------------------------- */

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
                apply_mark_unread(apply_table_of(ap, w), result);
        apply_doubt_silent_table(ap, w, result);
        ap->n_read_back_ended++;
        ap->steps_done++;
}

/* If the SMA is another one, or does not identify itself, its answers are dropped. */
static void read_back_identify_result(struct apply *ap, uint32_t i, const struct mad_result *result)
{
        enum apply_reason reason = apply_reason_of(result->outcome);

        if (result->outcome == MAD_ANSWERED && !apply_check_sma(ap, touched_write(ap, i), result))
                reason = APPLY_STRANGER;
        *apply_sma_of(ap, touched_write(ap, i)) = reason == APPLY_OK ? SMA_EXPECTED : SMA_UNKNOWN;
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
                return apply_has_bits(&pi, w->after_inbound, w->after_outbound);
        }
        p_key_block_decode(result->data, entries);
        observed_table_get_block(apply_table_of(ap, w), w->block, known);
        return apply_blocks_equal(ap, w, entries, known);
}

static void read_back_result(struct apply *ap, uint32_t i, const struct mad_result *result, bool again)
{
        struct touched *t = &ap->touched[i];
        const struct plan_write *w = touched_write(ap, i);
        struct p_key entries[P_KEY_BLOCK_ENTRIES];
        struct port_info pi;

        ap->n_read_back_answered += !again;
        apply_doubt_sma(ap, w, result, !again && apply_is_news(ap, w, result)); /* it identified itself between both reads */
        if (result->outcome != MAD_ANSWERED) {
                end_unread(ap, i, apply_reason_of(result->outcome), result);
                return;
        }
        if (again && *apply_sma_of(ap, w) != SMA_EXPECTED) { /* it is not known which SMA answered */
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
                apply_take_block(ap, w, entries, NULL);
        } else {
                apply_take_enforcement(ap, w, result->data, &pi);
        }
}

void apply_read_back_ended(struct apply *ap, enum cookie_kind kind, uint32_t i, const struct mad_result *result)
{
        if (kind == COOKIE_READ_BACK_IDENTIFY)
                read_back_identify_result(ap, i, result);
        else
                read_back_result(ap, i, result, kind == COOKIE_READ_BACK_AGAIN);
}
