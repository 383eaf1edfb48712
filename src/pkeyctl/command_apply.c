/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "pkeyctl/commands.h"
#include "pkeyctl/output.h"
#include "pkeyctl/pipeline.h"
#include "watch/role.h"

/* A run that can be interrupted: while it writes, a signal ends it in order; before, it just ends it. */
struct run {
        struct context *ctx;
        struct apply *apply; /* NULL: not writing yet */
        bool interrupted;
        sd_event_source *on_int, *on_term;
};

static void run_done(struct run *run)
{
        (void) sd_event_source_unref(run->on_int);
        (void) sd_event_source_unref(run->on_term);
}

static void set_blocked(bool blocked)
{
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, SIGINT);
        sigaddset(&set, SIGTERM);
        (void) sigprocmask(blocked ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

static int on_signal(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
        struct run *run = userdata;

        (void) source;
        if (!run->apply) {
                /* nothing was sent: end as if the signal had not been blocked */
                fputc('\n', stderr);
                set_blocked(false);
                (void) signal((int) info->ssi_signo, SIG_DFL);
                return raise((int) info->ssi_signo);
        }
        if (!run->interrupted)
                fputs("\npkeyctl: interrupted, the writes in flight are awaited\n", stderr);
        run->interrupted = true;
        apply_abort(run->apply);
        return 0;
}

static int watch_signals(struct context *ctx, struct run *run)
{
        int r;

        set_blocked(true);
        r = sd_event_default(&ctx->event);
        if (r >= 0)
                r = sd_event_add_signal(ctx->event, &run->on_int, SIGINT, on_signal, run);
        if (r >= 0)
                r = sd_event_add_signal(ctx->event, &run->on_term, SIGTERM, on_signal, run);
        if (r < 0 && r != -ENOMEM) {
                (void) findings_add(&ctx->findings, FINDING_ERROR, FINDING_HOST_DISCOVERY, NULL, "event loop: %s",
                                    strerror(-r));
                return -EBADMSG;
        }
        return r < 0 ? r : 0;
}

/* Refused at once rather than after a minute of discovery. */
static int check_can_ask(struct context *ctx)
{
        struct finding *item;

        if (ctx->options->yes || isatty(STDIN_FILENO))
                return 0;
        item = findings_add(&ctx->findings, FINDING_ERROR, FINDING_USAGE, NULL, "there is no terminal to ask on");
        if (item)
                finding_set_hint(&ctx->findings, item, "--yes applies without asking");
        return -EBADMSG;
}

/* Two who give OpenSM files would undo each other's steps. */
static int check_writer(struct context *ctx)
{
        struct finding *item;

        if (ctx->settings.writer == WRITER_DIRECT)
                return 0;
        item = findings_add(&ctx->findings, FINDING_ERROR, FINDING_USAGE, NULL,
                            "with writer: opensm it is pkeyd that gives OpenSM its partition files, one phase after the other");
        if (item)
                finding_set_hint(&ctx->findings, item, "pkeyctl plan shows what would change, pkeyctl reload has pkeyd carry it out");
        return -EBADMSG;
}

static int confirm(struct context *ctx)
{
        char answer[16] = "";

        if (ctx->options->yes)
                return 0;
        (void) fflush(stdout);
        fprintf(stderr, "Apply %u block writes on %u ports? [y/N] ", ctx->plan->n_block_writes,
                ctx->plan->n_ports_affected);
        set_blocked(false);
        if (!fgets(answer, sizeof(answer), stdin))
                fputc('\n', stderr);
        set_blocked(true);
        answer[strcspn(answer, "\r\n")] = '\0';
        if (strcasecmp(answer, "y") == 0 || strcasecmp(answer, "yes") == 0)
                return 0;
        (void) findings_add(&ctx->findings, FINDING_ERROR, FINDING_USAGE, NULL, "not confirmed");
        return -EBADMSG;
}

static void warn_state(struct context *ctx, int r, const char *what)
{
        if (r < 0)
                (void) findings_add(&ctx->findings, FINDING_WARNING, FINDING_HOST_STATE_DIR, NULL,
                                    "%s: %s could not be saved: %s", ctx->options->state_dir ?: STATE_DIR_DEFAULT, what,
                                    strerror(-r));
}

static void save_memory(struct context *ctx)
{
        if (ctx->state && ctx->memory)
                warn_state(ctx, state_dir_save_indexes(ctx->state, ctx->memory), "the memory of used indexes");
}

static int write_tables(struct context *ctx, struct run *run, struct apply_result *result)
{
        const struct apply_options options = { .m_keys = ctx->m_keys, .retries = STAGE_RETRIES };
        struct mad_stage stage;
        int r;

        r = apply_new(ctx->arena, ctx->plan, ctx->observed, ctx->memory, &options, &run->apply);
        if (r < 0)
                return r;
        stage = apply_stage(run->apply);
        ctx->writing = true;
        r = pipeline_run(ctx, &stage, "writing tables");
        if (r < 0) {
                save_memory(ctx);
                return r;
        }
        apply_get_summary(run->apply, &result->summary);
        result->apply = run->apply;
        result->interrupted = run->interrupted;
        return 0;
}

/* Only a policy that is wholly in force is remembered as such: what it gives a port that does not answer is taken for what
 * that port holds. */
static void save_policy(struct context *ctx, struct apply_result *result)
{
        uint64_t generation = ctx->generation + 1;
        int r;

        if (!ctx->state)
                return;
        if (ctx->last_policy && ctx->last_policy_n == ctx->policy_n_bytes &&
            memcmp(ctx->last_policy, ctx->policy_bytes, ctx->policy_n_bytes) == 0) {
                result->generation = ctx->generation;
                return;
        }
        r = state_dir_save_policy(ctx->state, ctx->policy_bytes, ctx->policy_n_bytes, generation);
        if (r >= 0)
                result->generation = generation;
        warn_state(ctx, r, "the policy in force");
}

/* What was done is written down before it is told: the reader of stdout may be gone. */
static enum exit_status settle(struct context *ctx, struct apply_result *result)
{
        bool all = result->summary.failed == 0 && result->summary.held == 0 && result->summary.n_held_bases == 0 &&
                   !result->interrupted && result->plan->n_unreachable == 0;

        result->verified = result->verification->n_differ == 0 && result->verification->n_unreachable == 0;
        save_memory(ctx);
        if (!all || !result->verified)
                return EXIT_PARTIAL;
        save_policy(ctx, result);
        return EXIT_DONE;
}

static int prepare(struct context *ctx, const struct arguments *arguments, struct run *run, struct plan_result *result)
{
        int r;

        r = pipeline_read_files(ctx, POLICY_REQUIRED, arguments->n > 0 ? arguments->items[0] : NULL);
        if (r < 0)
                return r;
        r = check_writer(ctx);
        if (r == 0)
                r = check_can_ask(ctx);
        if (r < 0)
                return r;
        r = watch_signals(ctx, run);
        if (r < 0)
                return r;
        r = pipeline_open_state(ctx, true);
        if (r < 0)
                return r;
        r = pipeline_look(ctx);
        if (r < 0)
                return r;
        r = pipeline_plan(ctx);
        if (r < 0)
                return r;
        return pipeline_unreachable(ctx, &result->unreachable, &result->n_unreachable);
}

/* It is the admin's hand that writes, so this is no reason to refuse. */
static void warn_standby(struct context *ctx)
{
        struct role_view view = { .sm_lid = ctx->subnet->sm_lid };
        struct guid guids[ROLE_MAX_PORTS];
        struct finding *item;

        if (ctx->settings.role != ROLE_FOLLOW_SM || ctx->subnet->self == SUBNET_NONE)
                return;
        role_view_add_known(&view, ctx->subnet, &ctx->subnet->ports[ctx->subnet->self].guid, 1);
        role_view_add_known(&view, ctx->subnet, guids, local_port_guids(guids, ROLE_MAX_PORTS));
        if (role_sm_is_here(&view))
                return;
        item = findings_add(&ctx->findings, FINDING_WARNING, FINDING_HOST_STANDS_BY, NULL,
                            "the master SM is at LID %u, not on this host, whose pkeyd would not write now (role: "
                            "follow-sm)", (unsigned) ctx->subnet->sm_lid.v);
        if (item)
                finding_set_hint(&ctx->findings, item, "the pkeyd of the other head node puts its own policy in force again; "
                                 "apply there, or change the policy on both");
}

static int propose_and_write(struct context *ctx, struct run *run, struct apply_result *result)
{
        int r;

        if (plan_is_empty(ctx->plan))
                return 0;
        r = ctx->output->propose(ctx, result->plan);
        if (r < 0)
                return r;
        r = confirm(ctx);
        if (r < 0)
                return r;
        return write_tables(ctx, run, result);
}

int command_apply(struct context *ctx, const struct arguments *arguments)
{
        _cleanup_(run_done) struct run run = { .ctx = ctx };
        struct plan_result plan = {};
        struct apply_result result = { .plan = &plan };
        struct verification *verification;
        enum exit_status status;
        struct changes changes;
        int r;

        r = prepare(ctx, arguments, &run, &plan);
        if (r < 0)
                return r;
        warn_standby(ctx);
        r = changes_compute(ctx->arena, ctx->plan, ctx->observed, &changes);
        if (r < 0)
                return r;
        plan.changes = &changes;
        r = propose_and_write(ctx, &run, &result);
        if (r < 0)
                return r;
        r = verify_compare(ctx->arena, ctx->desired, ctx->observed, &ctx->plan_options, &verification);
        if (r < 0)
                return r;
        result.verification = verification;
        status = settle(ctx, &result);
        r = ctx->output->apply(ctx, &result, status);
        return r < 0 ? r : (int) status;
}
