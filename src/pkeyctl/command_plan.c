/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyctl/commands.h"
#include "session/held_output.h"

int plan_describe(struct context *ctx, struct plan_result *ret)
{
        ret->n_silent = subnet_count_silent(ctx->subnet);
        return pipeline_filter(ctx, pipeline_is_unreachable, &ret->unreachable) ?:
               pipeline_filter(ctx, pipeline_is_frozen, &ret->frozen) ?:
               changes_compute(ctx->arena, ctx->plan, ctx->observed, &ret->changes) ?:
               reach_of_plan(ctx->arena, ctx->plan, ctx->observed, &ret->reach);
}

/* --- JSON ------------------------------------------------------------------------------------------------------------ */

static json_t *enforcement(bool inbound, bool outbound)
{
        return json_pack("{s:b, s:b}", "inbound", inbound, "outbound", outbound);
}

json_t *json_write(struct doc *d, const struct plan_write *w)
{
        switch (w->kind) {
        case WRITE_BLOCK:
                return doc_port(d, w->port, "{s:s, s:i, s:o, s:o}", "attribute", "P_KeyTable", "block", w->block,
                                "before", doc_p_keys(d, w->before, P_KEY_BLOCK_ENTRIES),
                                "after", doc_p_keys(d, w->after, P_KEY_BLOCK_ENTRIES));
        case WRITE_ENFORCEMENT:
                return doc_port(d, w->port, "{s:s, s:n, s:o, s:o}", "attribute", "PortInfo", "block",
                                "before", enforcement(w->before_inbound, w->before_outbound),
                                "after", enforcement(w->after_inbound, w->after_outbound));
        }
        return NULL;
}

static json_t *phase_object(struct doc *d, const struct plan_step *step)
{
        return json_pack("{s:s, s:s, s:o}", "phase", plan_phase_to_string(step->phase),
                         "ports", plan_phase_is_enforcing(step->phase) ? "enforcing" : "endports",
                         "writes", JSON_ARRAY(i, step->n_writes, json_write(d, &step->writes[i])));
}

static json_t *change_object(struct doc *d, const struct change *c)
{
        return doc_partition(d, c->base, "{s:s, s:s, s:o}", "before", membership_to_string(c->before),
                             "after", membership_to_string(c->after),
                             "port_guids", JSON_ARRAY(i, c->n_ports, doc_guid(d->ctx->subnet->ports[c->ports[i]].guid)));
}

static json_t *frozen_object(struct doc *d, uint32_t port)
{
        enum freeze why = d->ctx->desired->frozen[port];

        return doc_port(d, port, "{s:s, s:s, s:s}", "reason", freeze_to_string(why), "detail", freeze_reason(why),
                        "way_out", freeze_way_out(why));
}

json_t *json_frozen_ports(struct doc *d, const struct endports *frozen)
{
        return JSON_ARRAY(i, frozen->n, frozen_object(d, frozen->ports[i]));
}

void json_plan(struct doc *d, const void *result)
{
        const struct plan_result *r = result;
        const struct plan *plan = d->ctx->plan;

        doc_add(d, d->root, "{s:i, s:i, s:i, s:o, s:o, s:o, s:o, s:i, s:o, s:o}", "changes", plan->n_block_writes,
                "enforcement_changes", plan->n_enforcement_writes, "ports_affected", plan->n_ports_affected,
                "memberships", JSON_ARRAY(i, r->changes.n, change_object(d, &r->changes.items[i])),
                "phases", JSON_ARRAY_IF(i, PLAN_N_PHASES, plan->steps[i].n_writes > 0, phase_object(d, &plan->steps[i])),
                "reach", json_reach(d, &r->reach), "unreachable", json_unreachable(d, r->unreachable.ports, r->unreachable.n), "silent", r->n_silent,
                "frozen", json_frozen_ports(d, &r->frozen), "held", json_held(d, output_held(d->ctx)));
}

/* --- text ------------------------------------------------------------------------------------------------------------ */

/* "+ full", "- limited", "^ limited to full" */
static const char *describe_change(struct context *ctx, const struct change *c)
{
        char mark = change_mark(c);

        if (mark == '+' || mark == '-')
                return output_format(ctx, "%c %s", mark, membership_to_string(mark == '+' ? c->after : c->before));
        return output_format(ctx, "%c %s to %s", mark, membership_to_string(c->before), membership_to_string(c->after));
}

static void print_changes(struct context *ctx, const struct changes *changes)
{
        struct text_table t;

        text_table_begin(&t, "PARTITION|P_KEY|CHANGE|>PORTS|*MEMBERS", 0);
        for (uint32_t i = 0; i < changes->n; i++) {
                const struct change *c = &changes->items[i];
                bool is_first = i == 0 || changes->items[i - 1].base != c->base;
                const char *name = output_partition(ctx, c->base);
                char mark = change_mark(c);

                /* terminals show brown as yellow */
                text_table_row(&t, mark == '+' ? "green" : mark == '-' ? "red" : "brown", "%s\t%s\t%s\t%u\t%s",
                               !is_first ? "" : *name ? name : "(not in the policy)",
                               is_first ? output_format(ctx, "0x%04x", c->base) : "", describe_change(ctx, c), c->n_ports,
                               output_folded(ctx, c->ports, c->n_ports));
        }
        text_table_print(ctx, &t);
        if (changes->n_enforcing_ports > 0)
                printf("%u enforcing switch port%s\n", changes->n_enforcing_ports,
                       changes->n_enforcing_ports == 1 ? " changes with them" : "s change with them");
}

static const char *on_off(bool on)
{
        return on ? "on" : "off";
}

static const char *describe_write(struct context *ctx, const struct plan_write *w)
{
        _cleanup_text_ struct text t = {};

        switch (w->kind) {
        case WRITE_BLOCK:
                for (unsigned i = 0; i < P_KEY_BLOCK_ENTRIES; i++)
                        if (w->before[i].v != w->after[i].v)
                                text_add(&t, "%s[%u] 0x%04x > 0x%04x", t.n > 0 ? ", " : "",
                                         w->block * P_KEY_BLOCK_ENTRIES + i, w->before[i].v, w->after[i].v);
                break;
        case WRITE_ENFORCEMENT:
                text_add(&t, "enforcement in %s > %s, out %s > %s", on_off(w->before_inbound), on_off(w->after_inbound),
                         on_off(w->before_outbound), on_off(w->after_outbound));
                break;
        }
        return output_taken(ctx, &t);
}

/* With -v every write. */
static void print_writes(struct context *ctx)
{
        struct text_table t;

        text_table_begin(&t, "PHASE|PORT|>LID|*ENTRIES", 0);
        for (const struct plan_step *step = ctx->plan->steps; step < ctx->plan->steps + PLAN_N_PHASES; step++)
                for (uint32_t i = 0; i < step->n_writes; i++)
                        text_table_row(&t, NULL, "%s\t%s\t%u\t%s", plan_phase_to_string(step->phase),
                                       output_label(ctx, step->writes[i].port), ctx->subnet->ports[step->writes[i].port].lid.v,
                                       describe_write(ctx, &step->writes[i]));
        putchar('\n');
        text_table_print(ctx, &t);
}

/* Returns how many there are. */
static uint32_t print_phases(struct context *ctx)
{
        struct text_table t;
        uint32_t n = 0;

        text_table_begin(&t, "PHASE|ON|>WRITES", 0);
        for (const struct plan_step *step = ctx->plan->steps; step < ctx->plan->steps + PLAN_N_PHASES; step++) {
                if (step->n_writes == 0)
                        continue;
                text_table_row(&t, NULL, "%s\t%s\t%u", plan_phase_to_string(step->phase),
                               plan_phase_is_enforcing(step->phase) ? "switch ports" : "endports", step->n_writes);
                n++;
        }
        putchar('\n');
        text_table_print(ctx, &t);
        return n;
}

static void print_plan(struct context *ctx, const struct plan_result *r, const char *end)
{
        const struct plan *p = ctx->plan;
        uint32_t n_phases;

        text_reach(ctx, &r->reach);
        print_changes(ctx, &r->changes);
        n_phases = print_phases(ctx);
        if (ctx->options->verbose)
                print_writes(ctx);
        printf("\n%u block write%s", p->n_block_writes, text_plural(p->n_block_writes));
        if (p->n_enforcement_writes > 0)
                printf(" and %u enforcement write%s", p->n_enforcement_writes, text_plural(p->n_enforcement_writes));
        printf(" in %u phase%s, on %u port%s", n_phases, text_plural(n_phases), p->n_ports_affected,
               text_plural(p->n_ports_affected));
        if (r->unreachable.n > 0)
                printf("; %u could not be read", r->unreachable.n);
        if (r->n_silent > 0)
                printf("; %u link%s silent", r->n_silent, r->n_silent == 1 ? " is" : "s are");
        if (r->frozen.n > 0)
                printf("; %u frozen", r->frozen.n);
        puts(end);
        text_held(ctx, output_held(ctx));
}

static void text_plan(struct context *ctx, const void *result)
{
        const struct plan_result *r = result;

        if (ctx->status == EXIT_DIFFERENCE)
                print_plan(ctx, r, "; nothing was sent");
        else if (r->frozen.n > 0)
                puts("nothing to do on the ports that are not frozen");
        else if (r->unreachable.n + r->n_silent > 0)
                puts("nothing to do on the ports that answered");
        else
                puts("nothing to do: every table matches the policy");
}

void plan_propose(struct context *ctx, const struct plan_result *r)
{
        if (ctx->options->json)
                return;
        text_findings(ctx, false);
        if (!ctx->options->quiet || !ctx->options->yes)
                print_plan(ctx, r, "");
}

int command_plan(struct context *ctx)
{
        static const struct printer printer = { text_plan, json_plan, QUIET };
        struct plan_result plan;
        bool is_partial;
        int r = plan_describe(ctx, &plan);

        if (r < 0)
                return r;
        pipeline_note_in_force(ctx);
        is_partial = plan.unreachable.n + plan.n_silent + plan.frozen.n > 0;
        return output(ctx, &printer, exit_status_of(!plan_is_empty(ctx->plan), is_partial), &plan);
}
