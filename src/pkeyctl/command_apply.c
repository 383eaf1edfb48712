/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyctl/commands.h"
#include "session/bus_client.h"
#include "shell/file.h"

/* --- a pkeyd that runs ----------------------------------------------------------------------------------------------- */

/* Refuses a policy that a running pkeyd does not have: its next sweep would undo it. *ret_has_policy: pkeyd has this one. */
static int check_daemon(struct context *ctx, bool *ret_has_policy)
{
        const char *policy_file, *bytes;
        size_t n;
        int r = apply_find_writer(ctx, &policy_file);

        if (r < 0)
                return r;
        *ret_has_policy = policy_file && file_read(ctx->arena, policy_file, POLICY_MAX_FILE_SIZE, &bytes, &n) == 0 &&
                          generation_has_policy(ctx->files, bytes, n);
        if (*ret_has_policy || !policy_file)
                return 0;
        return findings_error(&ctx->findings, FINDING_DAEMON_RUNS,
                              arena_printf(ctx->arena, "put it into %s, then pkeyctl reload; or stop pkeyd", policy_file),
                              "pkeyd runs on this host with another policy (%s), and its next sweep would undo this one; "
                              "nothing was written", policy_file);
}

/* Shows the plan, and asks. pkeyd has the same fabric and policy, so it carries out the same plan. */
static int confirm_reload(struct context *ctx)
{
        struct plan_result plan = {};
        int r = session_sweep(ctx, CONTROL_PLAN, NULL);

        if (r == 0) {
                pipeline_note_in_force(ctx);
                r = plan_describe(ctx, &plan);
        }
        if (r < 0 || plan_is_empty(ctx->plan))
                return r;
        plan_propose(ctx, &plan);
        return ctx->output_r < 0 ? ctx->output_r : ask_person(ctx, "Have pkeyd carry out %s now?", ctx->policy->file);
}

/* pkeyd reloads the policy file as it is at that time, which may differ from what was confirmed. */
static int check_daemon_still_has_policy(struct context *ctx)
{
        bool has_policy;
        int r = check_daemon(ctx, &has_policy);

        if (r < 0 || has_policy)
                return r;
        return findings_error(&ctx->findings, FINDING_DAEMON_RUNS, "run the command again",
                              "pkeyd was stopped on this host meanwhile, or entered audit mode or standby; nothing was written");
}

/* Makes pkeyd carry out its own policy. */
static int reload_daemon(struct context *ctx)
{
        int r = 0;

        session_block_signals(false);
        (void) findings_add(&ctx->findings, FINDING_NOTE, FINDING_DAEMON_RUNS, NULL,
                            "pkeyd runs on this host with this policy: pkeyctl makes it reload the file and carry it out");
        if (!ctx->options->yes)
                r = confirm_reload(ctx);
        return r ?: check_daemon_still_has_policy(ctx) ?: command_reload(ctx);
}

/* --- the command ----------------------------------------------------------------------------------------------------- */

int command_apply(struct context *ctx)
{
        struct apply_result result = {};
        bool daemon_has_policy;
        int r = apply_handle_signals(ctx) ?: check_daemon(ctx, &daemon_has_policy);

        if (r == 0 && daemon_has_policy)
                return reload_daemon(ctx);
        ctx->files->facts.confirm_for = ctx->options->confirm / USEC_PER_SEC;
        r = r ?: confirm_name_origin(ctx, &ctx->files->facts.origin) ?: apply_without_daemon(ctx, &result);
        if (r < 0)
                return r;
        return result.waits ? confirm_wait(ctx, &result) : apply_show(ctx, &result, result.status);
}
