/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyctl/commands.h"
#include "pkeyctl/host_tables.h"
#include "pkeyctl/output.h"
#include "pkeyctl/pipeline.h"
#include "pkeyctl/session.h"
#include "reconcile.h"

/* The tables as they were read, nothing assumed: the state directory is not asked. */
int command_verify(struct context *ctx)
{
        struct result result = { .kind = RESULT_VERIFY };
        int r;

        if (ctx->options->local)
                return command_verify_local(ctx);
        r = session_read(ctx, POLICY_REQUIRED, ctx->arguments[0], NULL);
        if (r == 0)
                r = verify_compare(ctx->arena, ctx->desired, ctx->observed, &ctx->plan_options, &result.verification);
        if (r == 0)
                r = host_tables_verify(ctx, result.verification);
        if (r < 0)
                return r;
        result.verification->n_silent = reconcile_report_silent(ctx->subnet, ctx->known, &ctx->findings);
        result.status = exit_status_of(result.verification->n_differ > 0,
                                       result.verification->n_unreachable + result.verification->n_silent > 0);
        return output(ctx, &result);
}
