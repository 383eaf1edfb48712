/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <string.h>

#include "apply/apply_internal.h"

/* --- held bases ----------------------------------------------------------------------------------------------------- */

static void hold_base(struct apply *ap, struct p_key key)
{
        uint16_t base = p_key_base(key);

        if (base == 0 || base_set_has(&ap->held, base))
                return;
        base_set_add(&ap->held, base);
        ap->n_held_bases++;
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

void apply_list_held_bases(struct apply *ap)
{
        uint32_t n = 0;

        for (uint32_t base = 1; ap->n_held_bases > n && base <= P_KEY_BASE_MASK; base++)
                if (base_set_has(&ap->held, (uint16_t) base))
                        ap->held_bases[n++] = (uint16_t) base;
}

/* --- blocks --------------------------------------------------------------------------------------------------------- */

/* A repair moves entries: half of it could drop an entry that has no other place yet. */
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

static bool rule_admits(const struct apply *ap, const struct plan_write *w, const struct p_key after[P_KEY_BLOCK_ENTRIES],
                        struct p_key key)
{
        uint32_t record = apply_record_of(ap, w);

        return !p_key_is_used(key) ||
               (record != KNOWLEDGE_NONE &&
                knowledge_judge_block(ap->options.knowledge, record, w->block, after, p_key_base(key)) == RULE_ADMITS);
}

/* Returns whether the block `after` may be written as far as the base of this entry is concerned. */
static bool is_admitted(const struct apply *ap, const struct plan_write *w, const struct p_key after[P_KEY_BLOCK_ENTRIES],
                        struct p_key key)
{
        return rule_admits(ap, w, after, key) && !(p_key_is_used(key) && waits_for_earlier(ap, w, p_key_base(key)));
}

static bool entry_is_admitted(const struct apply *ap, const struct plan_write *w, const struct task *t, unsigned i)
{
        return t->before[i].v == t->after[i].v ||
               (is_admitted(ap, w, t->after, t->before[i]) && is_admitted(ap, w, t->after, t->after[i]));
}

/* Fills t->before with the block as it is now, and t->after with the block after the write. An entry that is not what the plan
 * expected (an earlier change of it waits, or failed) stays as it is, and its bases are held. Returns true if there is one. */
static bool compute_changes(struct apply *ap, const struct plan_write *w, struct task *t)
{
        bool any = false;

        observed_table_get_block(apply_table_of(ap, w), w->block, t->before);
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

bool apply_begin_block(struct apply *ap, uint32_t i)
{
        struct apply_outcome *o = &ap->outcomes[ap->phase][i];
        bool any = task_compute(ap, write_of(ap, i), &ap->tasks[i], &o->partly_held);

        if (o->partly_held)
                ap->port_failed[write_of(ap, i)->port] = true;
        return any;
}

/* The block as it is now, as far as is known, and with all changes of the plan. */
static void get_block_after(const struct apply *ap, const struct plan_write *w, struct p_key now[P_KEY_BLOCK_ENTRIES],
                            struct p_key after[P_KEY_BLOCK_ENTRIES])
{
        observed_table_get_block(apply_table_of(ap, w), w->block, now);
        for (unsigned i = 0; i < P_KEY_BLOCK_ENTRIES; i++)
                after[i] = w->before[i].v != w->after[i].v ? w->after[i] : now[i];
}

void apply_hold_unread(struct apply *ap, uint32_t i)
{
        const struct plan_write *w = write_of(ap, i);
        struct p_key now[P_KEY_BLOCK_ENTRIES], after[P_KEY_BLOCK_ENTRIES];

        ap->outcomes[ap->phase][i].is_unread = true;
        if (w->kind != WRITE_BLOCK)
                return;
        get_block_after(ap, w, now, after);
        for (unsigned k = 0; k < P_KEY_BLOCK_ENTRIES; k++) {
                if (now[k].v != after[k].v && !rule_admits(ap, w, after, now[k]))
                        hold_base(ap, now[k]);
                if (now[k].v != after[k].v && !rule_admits(ap, w, after, after[k]))
                        hold_base(ap, after[k]);
        }
}

/* --- filter bits ---------------------------------------------------------------------------------------------------- */

static bool covers(const struct observed_table *t, const struct p_key *keys, size_t n)
{
        return !p_keys_find_uncovered(t->entries, t->capacity, keys, (uint32_t) n);
}

/* The bits of a switch port change only when its table matches the policy and covers the peer's entries: an entry of the peer that
 * is still to be lowered or dropped would be cut off too early (or passed, where a bit is cleared). So would an entry that an
 * unanswered write may have left there, which may be of a base that is not in the policy and is kept. */
static bool enforcement_must_wait(const struct apply *ap, uint32_t port)
{
        uint32_t peer = ap->plan->subnet->ports[port].peer;
        const struct observed_table *mine = &ap->observed->tables[port], *its;
        const struct knowledge_record *r;

        if (ap->port_failed[port])
                return true;
        if (peer == SUBNET_NONE)
                return false;
        its = &ap->observed->tables[peer];
        if (its->entries && !covers(mine, its->entries, its->capacity))
                return true;
        r = knowledge_get(ap->options.knowledge, knowledge_find_port(ap->options.knowledge, ap->plan->subnet, peer));
        for (size_t i = 0; r && i < r->n_writes; i++)
                if (r->writes[i].is_sent && !covers(mine, r->writes[i].entries, P_KEY_BLOCK_ENTRIES))
                        return true;
        return false;
}

static bool filter_is_admitted(const struct apply *ap, const struct plan_write *w)
{
        uint32_t record = apply_record_of(ap, w);
        uint16_t base;

        return record != KNOWLEDGE_NONE &&
               knowledge_judge_filter(ap->options.knowledge, record, w->after_inbound, w->after_outbound, &base) == RULE_ADMITS;
}

bool apply_filter_waits(const struct apply *ap, const struct plan_write *w)
{
        return (ap->phase == PHASE_ENFORCE && enforcement_must_wait(ap, w->port)) || !filter_is_admitted(ap, w);
}

/* --- before a Set --------------------------------------------------------------------------------------------------- */

/* Other writes since the task began may have made it inadmissible. */
bool apply_recheck_admission(struct apply *ap, uint32_t i)
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

/* --- what waits ----------------------------------------------------------------------------------------------------- */

static int collect_base(const struct apply *ap, struct held_list *l, const struct plan_write *w,
                        const struct p_key entries[P_KEY_BLOCK_ENTRIES], struct p_key key, bool is_unread)
{
        if (!p_key_is_used(key) || (is_unread && rule_admits(ap, w, entries, key)))
                return 0;
        return held_collect(l, ap->options.knowledge, apply_record_of(ap, w), w->block, entries, p_key_base(key));
}

static int collect_block(const struct apply *ap, struct held_list *l, const struct plan_write *w, bool is_unread)
{
        struct p_key now[P_KEY_BLOCK_ENTRIES], after[P_KEY_BLOCK_ENTRIES];
        int r = 0;

        get_block_after(ap, w, now, after);
        for (unsigned i = 0; r == 0 && i < P_KEY_BLOCK_ENTRIES; i++) {
                if (now[i].v == after[i].v)
                        continue;
                r = collect_base(ap, l, w, after, now[i], is_unread) ?: collect_base(ap, l, w, after, after[i], is_unread);
        }
        return r;
}

static int collect_filter(const struct apply *ap, struct held_list *l, const struct plan_write *w)
{
        uint32_t record = apply_record_of(ap, w);
        uint16_t base;

        if (knowledge_judge_filter(ap->options.knowledge, record, w->after_inbound, w->after_outbound, &base) == RULE_ADMITS)
                return 0; /* it waits for its own table */
        return held_collect_filter(l, ap->options.knowledge, record, w->after_inbound, w->after_outbound, base);
}

static bool waits(const struct apply_outcome *o)
{
        return o->state == APPLY_HELD || o->partly_held || o->is_unread;
}

int apply_collect_held(const struct apply *ap, struct held_list *l)
{
        int r = 0;

        for (enum plan_phase phase = 0; phase < PLAN_N_PHASES; phase++)
                for (uint32_t i = 0; r == 0 && i < ap->plan->steps[phase].n_writes; i++) {
                        const struct plan_write *w = &ap->plan->steps[phase].writes[i];
                        const struct apply_outcome *o = &ap->outcomes[phase][i];

                        if (!waits(o) || apply_record_of(ap, w) == KNOWLEDGE_NONE)
                                continue;
                        r = w->kind == WRITE_BLOCK ? collect_block(ap, l, w, o->is_unread) : collect_filter(ap, l, w);
                }
        return r;
}
