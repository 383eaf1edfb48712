/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyctl/json.h"

static json_t *enforcement(struct doc *d, bool inbound, bool outbound)
{
        json_t *o = json_object();

        doc_put(d, o, "inbound", json_boolean(inbound));
        doc_put(d, o, "outbound", json_boolean(outbound));
        return o;
}

/* Which write: enough to tell two of a plan apart. */
static json_t *write_object(struct doc *d, const struct context *ctx, const struct plan_write *w)
{
        json_t *o = json_object();

        doc_put_port(d, o, ctx, w->port);
        switch (w->kind) {
        case WRITE_BLOCK:
                doc_put(d, o, "attribute", doc_text("P_KeyTable"));
                doc_put(d, o, "block", json_integer(w->block));
                doc_put(d, o, "before", doc_p_keys(d, w->before, P_KEY_BLOCK_ENTRIES));
                doc_put(d, o, "after", doc_p_keys(d, w->after, P_KEY_BLOCK_ENTRIES));
                break;
        case WRITE_ENFORCEMENT:
                doc_put(d, o, "attribute", doc_text("PortInfo"));
                doc_put(d, o, "block", json_null());
                doc_put(d, o, "before", enforcement(d, w->before_inbound, w->before_outbound));
                doc_put(d, o, "after", enforcement(d, w->after_inbound, w->after_outbound));
                break;
        }
        return o;
}

static json_t *phases(struct doc *d, const struct context *ctx)
{
        json_t *array = json_array();

        for (size_t s = 0; s < PLAN_N_PHASES; s++) {
                const struct plan_step *step = &ctx->plan->steps[s];
                json_t *o, *writes;

                if (step->n_writes == 0)
                        continue;
                o = json_object();
                writes = json_array();
                for (uint32_t w = 0; w < step->n_writes; w++)
                        doc_append(d, writes, write_object(d, ctx, &step->writes[w]));
                doc_put(d, o, "phase", doc_text(plan_phase_to_string(step->phase)));
                doc_put(d, o, "ports", doc_text(plan_phase_is_enforcing(step->phase) ? "enforcing" : "endports"));
                doc_put(d, o, "writes", writes);
                doc_append(d, array, o);
        }
        return array;
}

static json_t *change_object(struct doc *d, const struct context *ctx, const struct change *c)
{
        json_t *o = json_object(), *ports = json_array();

        for (uint32_t i = 0; i < c->n_ports; i++)
                doc_append(d, ports, doc_guid(ctx->subnet->ports[c->ports[i]].guid));
        doc_put(d, o, "partition", doc_text(output_partition(ctx, c->base)));
        doc_put(d, o, "p_key", doc_base(c->base));
        doc_put(d, o, "before", doc_text(membership_to_string(c->before)));
        doc_put(d, o, "after", doc_text(membership_to_string(c->after)));
        doc_put(d, o, "port_guids", ports);
        return o;
}

json_t *as_json_unreachable(struct doc *d, struct context *ctx, const uint32_t *ports, uint32_t n)
{
        json_t *array = json_array();

        for (uint32_t i = 0; i < n; i++) {
                json_t *o = json_object();

                doc_put_port(d, o, ctx, ports[i]);
                doc_put(d, o, "reason",
                        doc_text(mad_outcome_to_string(ctx->observed->tables[ports[i]].failure)));
                doc_put(d, o, "detail", doc_text(output_failure(ctx, ports[i])));
                doc_put(d, o, "assumed", json_boolean(ctx->observed->tables[ports[i]].source == TABLE_ASSUMED));
                doc_append(d, array, o);
        }
        return array;
}

static void put_plan(struct doc *d, struct context *ctx, const struct plan_result *r)
{
        json_t *changes = json_array();

        for (uint32_t i = 0; i < r->changes->n; i++)
                doc_append(d, changes, change_object(d, ctx, &r->changes->items[i]));
        doc_put(d, d->root, "changes", json_integer(ctx->plan->n_block_writes));
        doc_put(d, d->root, "enforcement_changes", json_integer(ctx->plan->n_enforcement_writes));
        doc_put(d, d->root, "ports_affected", json_integer(ctx->plan->n_ports_affected));
        doc_put(d, d->root, "memberships", changes);
        doc_put(d, d->root, "phases", phases(d, ctx));
        doc_put(d, d->root, "unreachable", as_json_unreachable(d, ctx, r->unreachable, r->n_unreachable));
}

int as_json_plan(struct context *ctx, const struct plan_result *r, enum exit_status status)
{
        _cleanup_doc_ struct doc d = {};

        (void) status;
        doc_begin(&d, ctx, true);
        put_plan(&d, ctx, r);
        return doc_print(&d);
}

/* --- apply ----------------------------------------------------------------------------------------------------------- */

static json_t *failed_write(struct doc *d, struct context *ctx, const struct plan_step *step,
                            const struct plan_write *w, const struct apply_outcome *outcome)
{
        json_t *o = write_object(d, ctx, w);

        doc_put(d, o, "phase", doc_text(plan_phase_to_string(step->phase)));
        doc_put(d, o, "reason",
                doc_text(outcome->state == APPLY_HELD ? "held-back" : apply_reason_to_string(outcome->reason)));
        doc_put(d, o, "detail", doc_text(output_reason(ctx, w->port, outcome)));
        return o;
}

/* Writes that are not confirmed, then ports of which nothing could be planned. */
static json_t *failed_writes(struct doc *d, struct context *ctx, const struct apply_result *r)
{
        json_t *array = json_array();

        for (size_t s = 0; r->apply && s < PLAN_N_PHASES; s++) {
                const struct plan_step *step = &ctx->plan->steps[s];

                for (uint32_t w = 0; w < step->n_writes; w++) {
                        const struct apply_outcome *outcome = apply_outcome(r->apply, step->phase, w);

                        if (outcome->state != APPLY_WRITTEN && outcome->state != APPLY_PRESENT)
                                doc_append(d, array, failed_write(d, ctx, step, &step->writes[w], outcome));
                }
        }
        for (uint32_t i = 0; i < r->plan->n_unreachable; i++) {
                uint32_t port = r->plan->unreachable[i];
                json_t *o;

                if (ctx->plan->final_tables[port])
                        continue;
                o = json_object();
                doc_put_port(d, o, ctx, port);
                doc_put(d, o, "reason", doc_text(apply_reason_to_string(APPLY_UNREACHABLE)));
                doc_put(d, o, "detail", doc_text(output_failure(ctx, port)));
                doc_append(d, array, o);
        }
        return array;
}

static json_t *held_back(struct doc *d, const struct apply *apply)
{
        json_t *array = json_array();
        const uint16_t *bases;
        uint32_t n;

        if (!apply)
                return array;
        bases = apply_held_bases(apply, &n);
        for (uint32_t i = 0; i < n; i++)
                doc_append(d, array, doc_base(bases[i]));
        return array;
}

int as_json_apply(struct context *ctx, const struct apply_result *r, enum exit_status status)
{
        _cleanup_doc_ struct doc d = {};

        doc_begin(&d, ctx, status == EXIT_DONE);
        put_plan(&d, ctx, r->plan);
        doc_put(&d, d.root, "written", json_integer(r->summary.written));
        doc_put(&d, d.root, "sets_sent", json_integer(r->summary.sets_sent));
        doc_put(&d, d.root, "failed", failed_writes(&d, ctx, r));
        doc_put(&d, d.root, "held_back", held_back(&d, r->apply));
        doc_put(&d, d.root, "interrupted", json_boolean(r->interrupted));
        doc_put(&d, d.root, "verified", json_boolean(r->verified));
        doc_put(&d, d.root, "generation", r->generation ? json_integer((json_int_t) r->generation) : json_null());
        return doc_print(&d);
}
