/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyctl/commands.h"
#include "pkeyctl/output.h"
#include "pkeyctl/pipeline.h"
#include "pkeyctl/session.h"

/* --- JSON --------------------------------------------------------------------------------------------------------------- */

static json_t *enforcement(struct doc *d, bool inbound, bool outbound)
{
        return doc_pack(d, "{s:b, s:b}", "inbound", inbound, "outbound", outbound);
}

/* Which write: enough to tell two of a plan apart. */
json_t *json_write(struct doc *d, const struct plan_write *w)
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
                        doc_append(d, writes, json_write(d, &step->writes[w]));
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

void json_put_plan(struct doc *d, const struct plan_result *r, const struct held_list *held)
{
        const struct plan *plan = d->ctx->plan;
        json_t *changes = json_array();

        for (uint32_t i = 0; i < r->changes->n; i++)
                doc_append(d, changes, change_object(d, &r->changes->items[i]));
        doc_add(d, d->root, "{s:i, s:i, s:i, s:o, s:o, s:o, s:i, s:o, s:o}", "changes", plan->n_block_writes, "enforcement_changes",
                plan->n_enforcement_writes, "ports_affected", plan->n_ports_affected, "memberships", changes, "phases",
                phases(d), "unreachable", json_unreachable(d, r->unreachable, r->n_unreachable), "silent", r->n_silent,
                "frozen", frozen(d, r), "held", json_held(d, held));
}

static void json_plan(struct doc *d, const void *result)
{
        const struct plan_result *r = result;

        json_put_plan(d, r, r->held);
}

/* --- text --------------------------------------------------------------------------------------------------------------- */

/* --- who ------------------------------------------------------------------------------------------------------------- */

static const char *mark_colour(char mark)
{
        switch (mark) {
        case '+':
                return "green";
        case '-':
                return "red";
        }
        return "brown"; /* what terminals show as yellow */
}

/* "+ full", "- limited", "^ limited to full" */
static const char *describe(struct context *ctx, const struct change *c)
{
        char mark = change_mark(c);

        if (mark == '+')
                return output_format(ctx, "+ %s", membership_to_string(c->after));
        if (mark == '-')
                return output_format(ctx, "- %s", membership_to_string(c->before));
        return output_format(ctx, "%c %s to %s", mark, membership_to_string(c->before), membership_to_string(c->after));
}

static void add_change(struct context *ctx, struct text_table *t, const struct change *c, bool first)
{
        const char *name = output_partition(ctx, c->base);
        char p_key[8];

        (void) snprintf(p_key, sizeof(p_key), "0x%04x", c->base);
        if (!*name)
                name = "(not in the policy)";
        text_table_row(t, mark_colour(change_mark(c)), "%s\t%s\t%s\t%u\t%s", first ? name : "", first ? p_key : "",
                       describe(ctx, c), c->n_ports, output_folded(ctx, c->ports, c->n_ports));
}

static void print_changes(struct context *ctx, const struct changes *changes)
{
        struct text_table t;

        text_table_begin(&t, "PARTITION|P_KEY|CHANGE|>PORTS|*WHO", 0);
        for (uint32_t i = 0; i < changes->n; i++)
                add_change(ctx, &t, &changes->items[i], i == 0 || changes->items[i - 1].base != changes->items[i].base);
        text_table_print(ctx, &t);
        if (changes->n_enforcing_ports > 0)
                printf("%u enforcing switch port%s\n", changes->n_enforcing_ports,
                       changes->n_enforcing_ports == 1 ? " follows" : "s follow");
}

/* --- every write, with -v --------------------------------------------------------------------------------------------- */

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

static void print_writes(struct context *ctx)
{
        struct text_table t;

        text_table_begin(&t, "PHASE|PORT|>LID|*ENTRIES", 0);
        for (size_t s = 0; s < PLAN_N_PHASES; s++) {
                const struct plan_step *step = &ctx->plan->steps[s];

                for (uint32_t i = 0; i < step->n_writes; i++) {
                        const struct plan_write *w = &step->writes[i];

                        text_table_row(&t, NULL, "%s\t%s\t%u\t%s", plan_phase_to_string(step->phase),
                                       output_label(ctx, w->port), ctx->subnet->ports[w->port].lid.v,
                                       describe_write(ctx, w));
                }
        }
        putchar('\n');
        text_table_print(ctx, &t);
}

/* --- how ------------------------------------------------------------------------------------------------------------- */

/* Returns how many there are. */
static uint32_t print_phases(struct context *ctx)
{
        struct text_table t;
        uint32_t n = 0;

        text_table_begin(&t, "PHASE|ON|>WRITES", 0);
        for (size_t s = 0; s < PLAN_N_PHASES; s++) {
                const struct plan_step *step = &ctx->plan->steps[s];

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

static void print_plan(struct context *ctx, const struct plan_result *r)
{
        const struct plan *p = ctx->plan;
        uint32_t n_phases;

        print_changes(ctx, r->changes);
        n_phases = print_phases(ctx);
        if (ctx->options->verbose)
                print_writes(ctx);
        printf("\n%u block write%s", p->n_block_writes, text_plural(p->n_block_writes));
        if (p->n_enforcement_writes > 0)
                printf(" and %u enforcement write%s", p->n_enforcement_writes, text_plural(p->n_enforcement_writes));
        printf(" in %u phase%s, on %u port%s", n_phases, text_plural(n_phases), p->n_ports_affected,
               text_plural(p->n_ports_affected));
        if (r->n_unreachable > 0)
                printf("; %u could not be read", r->n_unreachable);
        if (r->n_silent > 0)
                printf("; %u link%s silent", r->n_silent, r->n_silent == 1 ? " is" : "s are");
        if (r->n_frozen > 0)
                printf("; %u frozen", r->n_frozen);
}

static void text_plan(struct context *ctx, const void *result)
{
        const struct plan_result *r = result;

        if (ctx->status != EXIT_DIFFERENCE) {
                puts(r->n_frozen > 0 ? "nothing to do on the ports that are not frozen" :
                     r->n_unreachable + r->n_silent > 0 ? "nothing to do on the ports that answered" :
                                            "nothing to do: every table is as the policy says");
                return;
        }
        print_plan(ctx, r);
        puts("; nothing was sent");
        text_held(ctx, r->held);
}

void plan_propose(struct context *ctx, const struct plan_result *r)
{
        if (ctx->options->json)
                return;
        /* before the question, for they may decide the answer */
        text_findings(ctx, false);
        if (ctx->options->quiet && ctx->options->yes)
                return;
        print_plan(ctx, r);
        putchar('\n');
        text_held(ctx, r->held);
}

/* --- the command -------------------------------------------------------------------------------------------------------- */

int command_plan(struct context *ctx)
{
        static const struct printer printer = { text_plan, json_plan, QUIET };
        struct plan_result result = {}, *plan = &result;
        struct changes changes;
        bool is_partial;
        int r;

        r = pipeline_unreachable(ctx, &plan->unreachable, &plan->n_unreachable);
        if (r == 0)
                r = pipeline_frozen(ctx, &plan->frozen, &plan->n_frozen);
        if (r == 0)
                r = changes_compute(ctx->arena, ctx->plan, ctx->observed, &changes);
        if (r < 0)
                return r;
        pipeline_note_in_force(ctx);
        plan->n_silent = subnet_count_silent(ctx->subnet);
        plan->changes = &changes;
        plan->held = control_get_results(ctx->control)->held;
        is_partial = plan->n_unreachable + plan->n_silent + plan->n_frozen > 0;
        return output(ctx, &printer, exit_status_of(!plan_is_empty(ctx->plan), is_partial), &result);
}
