/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>

#include "pkeyctl/fold.h"
#include "pkeyctl/table.h"
#include "pkeyctl/text.h"

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
                return arena_printf(ctx->arena, "+ %s", membership_to_string(c->after));
        if (mark == '-')
                return arena_printf(ctx->arena, "- %s", membership_to_string(c->before));
        return arena_printf(ctx->arena, "%c %s to %s", mark, membership_to_string(c->before),
                            membership_to_string(c->after));
}

static int add_change(struct context *ctx, struct table *t, const struct change *c, bool first)
{
        const char *name = output_partition(ctx, c->base), *what = describe(ctx, c);
        const char *who = fold_ports(ctx->arena, ctx->subnet, c->ports, c->n_ports);
        char p_key[8], ports[16];

        if (!what || !who)
                return -ENOMEM;
        (void) snprintf(p_key, sizeof(p_key), "0x%04x", c->base);
        (void) snprintf(ports, sizeof(ports), "%u", c->n_ports);
        if (!*name)
                name = "(not in the policy)";
        return table_row(t, mark_colour(change_mark(c)), first ? name : "", first ? p_key : "", what, ports, who);
}

static int print_changes(struct context *ctx, const struct changes *changes)
{
        static const struct table_column columns[] = {
                { "PARTITION", TABLE_LEFT }, { "P_KEY", TABLE_LEFT }, { "CHANGE", TABLE_LEFT },
                { "PORTS", TABLE_RIGHT },    { "WHO", TABLE_LIST },
        };
        _cleanup_table_ struct table *t = NULL;

        if (table_new(columns, ELEMENTS(columns), &t) < 0)
                return -ENOMEM;
        for (uint32_t i = 0; i < changes->n; i++) {
                bool first = i == 0 || changes->items[i - 1].base != changes->items[i].base;

                if (add_change(ctx, t, &changes->items[i], first) < 0)
                        return -ENOMEM;
        }
        if (table_print(t) < 0)
                return -EIO;
        if (changes->n_enforcing_ports > 0) {
                text_count(changes->n_enforcing_ports, "enforcing switch port");
                printf(" %s\n", changes->n_enforcing_ports == 1 ? "follows" : "follow");
        }
        return 0;
}

/* --- every write, with -v --------------------------------------------------------------------------------------------- */

static void print_entries(FILE *f, const struct plan_write *w)
{
        const char *separator = "";

        for (unsigned i = 0; i < P_KEY_BLOCK_ENTRIES; i++) {
                if (w->before[i].v == w->after[i].v)
                        continue;
                fprintf(f, "%s[%u] 0x%04x > 0x%04x", separator, w->block * P_KEY_BLOCK_ENTRIES + i, w->before[i].v,
                        w->after[i].v);
                separator = ", ";
        }
}

static const char *on_off(bool on)
{
        return on ? "on" : "off";
}

static const char *describe_write(struct context *ctx, const struct plan_write *w)
{
        _cleanup_free_ char *text = NULL;
        size_t size = 0;
        FILE *f = open_memstream(&text, &size);

        if (!f)
                return NULL;
        switch (w->kind) {
        case WRITE_BLOCK:
                print_entries(f, w);
                break;
        case WRITE_ENFORCEMENT:
                fprintf(f, "enforcement in %s > %s, out %s > %s", on_off(w->before_inbound), on_off(w->after_inbound),
                        on_off(w->before_outbound), on_off(w->after_outbound));
                break;
        }
        if (fclose(f) != 0)
                return NULL;
        return arena_strndup(ctx->arena, text, size);
}

static int print_writes(struct context *ctx)
{
        static const struct table_column columns[] = {
                { "PHASE", TABLE_LEFT },
                { "PORT", TABLE_LEFT },
                { "LID", TABLE_RIGHT },
                { "ENTRIES", TABLE_LIST },
        };
        _cleanup_table_ struct table *t = NULL;

        if (table_new(columns, ELEMENTS(columns), &t) < 0)
                return -ENOMEM;
        for (size_t s = 0; s < PLAN_N_PHASES; s++) {
                const struct plan_step *step = &ctx->plan->steps[s];

                for (uint32_t w = 0; w < step->n_writes; w++) {
                        const struct plan_write *write = &step->writes[w];
                        const char *label = subnet_port_label(ctx->arena, ctx->subnet, write->port);
                        const char *what = describe_write(ctx, write);
                        char lid[8];

                        (void) snprintf(lid, sizeof(lid), "%u", ctx->subnet->ports[write->port].lid.v);
                        if (!label || !what ||
                            table_row(t, NULL, plan_phase_to_string(step->phase), label, lid, what) < 0)
                                return -ENOMEM;
                }
        }
        putchar('\n');
        return table_print(t);
}

/* --- how ------------------------------------------------------------------------------------------------------------- */

static int print_phases(struct context *ctx)
{
        static const struct table_column columns[] = {
                { "PHASE", TABLE_LEFT },
                { "ON", TABLE_LEFT },
                { "WRITES", TABLE_RIGHT },
        };
        _cleanup_table_ struct table *t = NULL;
        char writes[16];

        if (table_new(columns, ELEMENTS(columns), &t) < 0)
                return -ENOMEM;
        for (size_t s = 0; s < PLAN_N_PHASES; s++) {
                const struct plan_step *step = &ctx->plan->steps[s];

                if (step->n_writes == 0)
                        continue;
                (void) snprintf(writes, sizeof(writes), "%u", step->n_writes);
                if (table_row(t, NULL, plan_phase_to_string(step->phase),
                              plan_phase_is_enforcing(step->phase) ? "switch ports" : "endports", writes) < 0)
                        return -ENOMEM;
        }
        putchar('\n');
        return table_print(t);
}

static uint32_t count_phases(const struct plan *plan)
{
        uint32_t n = 0;

        for (size_t s = 0; s < PLAN_N_PHASES; s++)
                n += plan->steps[s].n_writes > 0;
        return n;
}

static int print_plan(struct context *ctx, const struct plan_result *r)
{
        int error;

        error = print_changes(ctx, r->changes);
        if (error < 0)
                return error;
        error = print_phases(ctx);
        if (error < 0)
                return error;
        if (ctx->options->verbose > 0) {
                error = print_writes(ctx);
                if (error < 0)
                        return error;
        }
        putchar('\n');
        text_count(ctx->plan->n_block_writes, "block write");
        if (ctx->plan->n_enforcement_writes > 0) {
                printf(" and ");
                text_count(ctx->plan->n_enforcement_writes, "enforcement write");
        }
        printf(" in ");
        text_count(count_phases(ctx->plan), "phase");
        printf(", on ");
        text_count(ctx->plan->n_ports_affected, "port");
        if (r->n_unreachable > 0)
                printf("; %u could not be read", r->n_unreachable);
        return 0;
}

int text_plan(struct context *ctx, const struct plan_result *r, enum exit_status status)
{
        int error = text_findings(ctx, false);

        if (error < 0 || ctx->options->quiet)
                return error;
        if (status != EXIT_DIFFERENCE) {
                puts(r->n_unreachable > 0 ? "nothing to do on the ports that answered"
                                          : "nothing to do: every table is as the policy says");
                return 0;
        }
        error = print_plan(ctx, r);
        if (error < 0)
                return error;
        puts("; nothing was sent");
        return 0;
}

int text_propose(struct context *ctx, const struct plan_result *r)
{
        int error;

        /* before the question, for they may decide the answer */
        error = text_findings(ctx, false);
        if (error < 0 || (ctx->options->quiet && ctx->options->yes))
                return error;
        error = print_plan(ctx, r);
        if (error < 0)
                return error;
        putchar('\n');
        return 0;
}
