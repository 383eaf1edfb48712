/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>

#include "pkeyctl/fold.h"
#include "pkeyctl/table.h"
#include "pkeyctl/text.h"

/* --- apply ----------------------------------------------------------------------------------------------------------- */

static int add_failure(struct context *ctx, struct table *t, const struct plan_step *step, uint32_t w,
                       const struct apply_outcome *outcome)
{
        const struct plan_write *write = &step->writes[w];
        const char *label = subnet_port_label(ctx->arena, ctx->subnet, write->port);
        const char *why = output_reason(ctx, write->port, outcome);
        char block[8];

        if (!label || !why)
                return -ENOMEM;
        (void) snprintf(block, sizeof(block), "%u", write->block);
        return table_row(t, "red", plan_phase_to_string(step->phase), label,
                         write->kind == WRITE_BLOCK ? block : "-",
                         outcome->state == APPLY_HELD ? "held back" : apply_reason_to_string(outcome->reason), why);
}

static int print_failures(struct context *ctx, const struct apply *apply)
{
        static const struct table_column columns[] = {
                { "PHASE", TABLE_LEFT },  { "PORT", TABLE_LEFT }, { "BLOCK", TABLE_RIGHT },
                { "REASON", TABLE_LEFT }, { "WHY", TABLE_LIST },
        };
        _cleanup_table_ struct table *t = NULL;

        if (table_new(columns, ELEMENTS(columns), &t) < 0)
                return -ENOMEM;
        for (size_t s = 0; s < PLAN_N_PHASES; s++) {
                const struct plan_step *step = &ctx->plan->steps[s];

                for (uint32_t w = 0; w < step->n_writes; w++) {
                        const struct apply_outcome *outcome = apply_outcome(apply, step->phase, w);

                        if (outcome->state == APPLY_WRITTEN || outcome->state == APPLY_PRESENT)
                                continue;
                        if (add_failure(ctx, t, step, w, outcome) < 0)
                                return -ENOMEM;
                }
        }
        return table_print(t);
}

static void print_held_bases(struct context *ctx, const struct apply *apply)
{
        uint32_t n;
        const uint16_t *bases = apply_held_bases(apply, &n);

        if (n == 0)
                return;
        printf("held back from later phases, for a write of them is not confirmed:");
        for (uint32_t i = 0; i < n; i++) {
                const char *name = output_partition(ctx, bases[i]);

                printf("%s %s%s0x%04x", i > 0 ? "," : "", name, *name ? " " : "", bases[i]);
        }
        putchar('\n');
}

static void print_summary(const struct apply_result *r)
{
        text_count(r->summary.written, "write");
        printf(" confirmed (");
        text_count(r->summary.sets_sent, "SubnSet");
        printf(" sent)");
        if (r->summary.failed > 0)
                printf(", %u failed", r->summary.failed);
        if (r->summary.held > 0)
                printf(", %u held back", r->summary.held);
        printf("; ");
}

/* The last line says what is in force. */
static void print_state(const struct apply_result *r)
{
        if (r->interrupted)
                puts("interrupted: the policy is in force in part");
        else if (!r->verified)
                puts("the policy is in force in part");
        else if (r->generation > 0)
                printf("verified, the policy is in force (generation %" PRIu64 ")\n", r->generation);
        else
                puts("verified, the policy is in force");
}

int text_apply(struct context *ctx, const struct apply_result *r, enum exit_status status)
{
        int error = text_findings(ctx, false);

        if (error < 0 || (ctx->options->quiet && status == EXIT_DONE))
                return error;
        if (!r->apply) {
                printf("nothing to do; ");
        } else {
                error = print_failures(ctx, r->apply);
                if (error < 0)
                        return error;
                print_held_bases(ctx, r->apply);
                print_summary(r);
        }
        print_state(r);
        return 0;
}
