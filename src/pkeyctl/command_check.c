/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>

#include "pkeyctl/commands.h"
#include "pkeyctl/output.h"
#include "pkeyctl/pipeline.h"

static int count_members(struct context *ctx, struct check_result *result)
{
        const struct memberships *m;
        int r;

        r = policy_resolve(ctx->arena, ctx->policy, ctx->subnet, &ctx->findings, &ctx->memberships);
        if (r < 0)
                return r;
        result->counts = arena_new_array(ctx->arena, struct member_count, ctx->policy->n_partitions);
        if (!result->counts)
                return -ENOMEM;
        m = ctx->memberships;
        for (uint32_t i = 0; i < m->first[ctx->subnet->n_ports]; i++)
                member_count_add(&result->counts[m->items[i].partition], m->items[i].membership);
        return 0;
}

int command_check(struct context *ctx)
{
        struct result result = { .kind = RESULT_CHECK };
        int files, topology = 0, r;

        ctx->named_files_only = true;
        files = pipeline_read_files(ctx, POLICY_REQUIRED, ctx->arguments[0]);
        if (files < 0 && files != -EBADMSG)
                return files;
        if (ctx->options->topology)
                topology = pipeline_read_topology(ctx);
        if (files < 0 || topology < 0)
                return topology < 0 ? topology : files;
        if (ctx->subnet) {
                r = count_members(ctx, &result.check);
                if (r < 0)
                        return r;
        }
        return output(ctx, &result);
}
