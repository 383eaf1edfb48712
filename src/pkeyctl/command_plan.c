/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyctl/commands.h"
#include "pkeyctl/output.h"
#include "pkeyctl/pipeline.h"
#include "pkeyctl/session.h"

int command_plan(struct context *ctx)
{
        struct result result = { .kind = RESULT_PLAN };
        struct plan_result *plan = &result.plan;
        struct changes changes;
        int r;

        r = pipeline_read_files(ctx, POLICY_REQUIRED, ctx->arguments[0]);
        if (r == 0)
                r = session_sweep(ctx, CONTROL_PLAN, NULL);
        if (r == 0)
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
        result.status = exit_status_of(!plan_is_empty(ctx->plan), plan->n_unreachable + plan->n_silent + plan->n_frozen > 0);
        return output(ctx, &result);
}
