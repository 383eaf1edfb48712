/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyctl/result_text.h"

static void add_failure(struct context *ctx, struct text_table *t, const struct plan_step *step, const struct plan_write *w,
                        const struct apply_outcome *outcome)
{
        char block[8] = "-";

        if (w->kind == WRITE_BLOCK)
                (void) snprintf(block, sizeof(block), "%u", w->block);
        text_table_row(t, "red", "%s\t%s\t%s\t%s\t%s", plan_phase_to_string(step->phase), output_label(ctx, w->port), block,
                       outcome->state == APPLY_HELD ? "held back" : apply_reason_to_string(outcome->reason),
                       output_reason(ctx, w->port, outcome));
}

static void print_failures(struct context *ctx, const struct apply *apply)
{
        struct text_table t;

        text_table_begin(&t, "PHASE|PORT|>BLOCK|REASON|*WHY", 0);
        for (size_t s = 0; s < PLAN_N_PHASES; s++) {
                const struct plan_step *step = &ctx->plan->steps[s];

                for (uint32_t w = 0; w < step->n_writes; w++) {
                        const struct apply_outcome *outcome = apply_outcome(apply, step->phase, w);

                        if (outcome->state != APPLY_WRITTEN && outcome->state != APPLY_PRESENT)
                                add_failure(ctx, &t, step, &step->writes[w], outcome);
                }
        }
        text_table_print(ctx, &t);
}

static void print_summary(const struct apply_summary *s)
{
        printf("%u write%s confirmed (%u SubnSet%s sent)", s->written, text_plural(s->written), s->sets_sent,
               text_plural(s->sets_sent));
        if (s->failed > 0)
                printf(", %u failed", s->failed);
        if (s->held > 0)
                printf(", %u held back", s->held);
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

void text_apply(struct context *ctx, const struct result *result)
{
        const struct apply_result *r = &result->apply;

        if (ctx->options->quiet && result->status == EXIT_DONE)
                return;
        if (!r->apply) {
                printf("nothing to do; ");
        } else {
                print_failures(ctx, r->apply);
                text_held(ctx, r->held);
                print_summary(&r->summary);
        }
        print_state(r);
}
