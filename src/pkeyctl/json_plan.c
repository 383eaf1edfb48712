/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyctl/result_json.h"

static json_t *enforcement(struct doc *d, bool inbound, bool outbound)
{
        return doc_pack(d, "{s:b, s:b}", "inbound", inbound, "outbound", outbound);
}

/* Which write: enough to tell two of a plan apart. */
static json_t *write_object(struct doc *d, const struct plan_write *w)
{
        switch (w->kind) {
        case WRITE_BLOCK:
                return doc_port(d, w->port, "{s:s, s:i, s:o, s:o}", "attribute", "P_KeyTable", "block", w->block, "before",
                                doc_p_keys(d, w->before, P_KEY_BLOCK_ENTRIES), "after",
                                doc_p_keys(d, w->after, P_KEY_BLOCK_ENTRIES));
        case WRITE_ENFORCEMENT:
                return doc_port(d, w->port, "{s:s, s:n, s:o, s:o}", "attribute", "PortInfo", "block", "before",
                                enforcement(d, w->before_inbound, w->before_outbound), "after",
                                enforcement(d, w->after_inbound, w->after_outbound));
        }
        return NULL;
}

static json_t *phases(struct doc *d)
{
        json_t *array = json_array();

        for (size_t s = 0; s < PLAN_N_PHASES; s++) {
                const struct plan_step *step = &d->ctx->plan->steps[s];
                json_t *writes;

                if (step->n_writes == 0)
                        continue;
                writes = json_array();
                for (uint32_t w = 0; w < step->n_writes; w++)
                        doc_append(d, writes, write_object(d, &step->writes[w]));
                doc_append(d, array,
                           doc_pack(d, "{s:s, s:s, s:o}", "phase", plan_phase_to_string(step->phase), "ports",
                                    plan_phase_is_enforcing(step->phase) ? "enforcing" : "endports", "writes", writes));
        }
        return array;
}

static json_t *change_object(struct doc *d, const struct change *c)
{
        json_t *ports = json_array();

        for (uint32_t i = 0; i < c->n_ports; i++)
                doc_append(d, ports, doc_guid(d->ctx->subnet->ports[c->ports[i]].guid));
        return doc_pack(d, "{s:o, s:o, s:s, s:s, s:o}", "partition", doc_text(output_partition(d->ctx, c->base)),
                        "p_key", doc_base(c->base), "before", membership_to_string(c->before), "after",
                        membership_to_string(c->after), "port_guids", ports);
}

json_t *as_json_unreachable(struct doc *d, const uint32_t *ports, uint32_t n)
{
        json_t *array = json_array();

        for (uint32_t i = 0; i < n; i++) {
                const struct observed_table *t = &d->ctx->observed->tables[ports[i]];

                doc_append(d, array,
                           doc_port(d, ports[i], "{s:s, s:o, s:b}", "reason", mad_outcome_to_string(t->failure), "detail",
                                    doc_text(output_failure(d->ctx, ports[i])), "assumed", t->source == TABLE_ASSUMED));
        }
        return array;
}

static json_t *frozen(struct doc *d, const struct plan_result *r)
{
        json_t *array = json_array();

        for (uint32_t i = 0; i < r->n_frozen; i++) {
                enum freeze why = d->ctx->plan->frozen[r->frozen[i]];

                doc_append(d, array, doc_port(d, r->frozen[i], "{s:s, s:s, s:s}", "reason", freeze_to_string(why), "detail",
                                              freeze_reason(why), "way_out", freeze_way_out(why)));
        }
        return array;
}

static void put_plan(struct doc *d, const struct plan_result *r, const struct held_list *held)
{
        const struct plan *plan = d->ctx->plan;
        json_t *changes = json_array();

        for (uint32_t i = 0; i < r->changes->n; i++)
                doc_append(d, changes, change_object(d, &r->changes->items[i]));
        doc_add(d, d->root, "{s:i, s:i, s:i, s:o, s:o, s:o, s:i, s:o, s:o}", "changes", plan->n_block_writes, "enforcement_changes",
                plan->n_enforcement_writes, "ports_affected", plan->n_ports_affected, "memberships", changes, "phases",
                phases(d), "unreachable", as_json_unreachable(d, r->unreachable, r->n_unreachable), "silent", r->n_silent,
                "frozen", frozen(d, r), "held", as_json_held(d, held));
}

void as_json_plan(struct doc *d, const struct result *r)
{
        put_plan(d, &r->plan, r->plan.held);
}

/* --- apply ----------------------------------------------------------------------------------------------------------- */

static json_t *failed_write(struct doc *d, const struct plan_step *step, const struct plan_write *w,
                            const struct apply_outcome *outcome)
{
        json_t *o = write_object(d, w);

        doc_add(d, o, "{s:s, s:s, s:o}", "phase", plan_phase_to_string(step->phase), "reason",
                outcome->state == APPLY_HELD ? "held-back" : apply_reason_to_string(outcome->reason), "detail",
                doc_text(output_reason(d->ctx, w->port, outcome)));
        return o;
}

/* Writes that are not confirmed, then ports of which nothing could be planned. */
static json_t *failed_writes(struct doc *d, const struct apply_result *r)
{
        json_t *array = json_array();

        for (size_t s = 0; r->apply && s < PLAN_N_PHASES; s++) {
                const struct plan_step *step = &d->ctx->plan->steps[s];

                for (uint32_t w = 0; w < step->n_writes; w++) {
                        const struct apply_outcome *outcome = apply_outcome(r->apply, step->phase, w);

                        if (outcome->state != APPLY_WRITTEN && outcome->state != APPLY_PRESENT)
                                doc_append(d, array, failed_write(d, step, &step->writes[w], outcome));
                }
        }
        for (uint32_t i = 0; i < r->plan->n_unreachable; i++) {
                uint32_t port = r->plan->unreachable[i];

                if (!d->ctx->plan->final_tables[port])
                        doc_append(d, array,
                                   doc_port(d, port, "{s:s, s:o}", "reason", apply_reason_to_string(APPLY_UNREACHABLE),
                                            "detail", doc_text(output_failure(d->ctx, port))));
        }
        return array;
}

static json_t *held_back(struct doc *d, const struct apply *apply)
{
        json_t *array = json_array();
        uint32_t n = 0;
        const uint16_t *bases = apply ? apply_held_bases(apply, &n) : NULL;

        for (uint32_t i = 0; i < n; i++)
                doc_append(d, array, doc_base(bases[i]));
        return array;
}

void as_json_apply(struct doc *d, const struct result *result)
{
        const struct apply_result *r = &result->apply;

        put_plan(d, r->plan, r->held);
        doc_add(d, d->root, "{s:i, s:i, s:o, s:o, s:b, s:b, s:o}", "written", r->summary.written, "sets_sent",
                r->summary.sets_sent, "failed", failed_writes(d, r), "held_back", held_back(d, r->apply),
                "interrupted", r->interrupted, "verified", r->verified, "generation",
                r->generation ? json_integer((json_int_t) r->generation) : json_null());
}
