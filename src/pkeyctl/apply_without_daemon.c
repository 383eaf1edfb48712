/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "host/sm_follow.h"
#include "pkeyctl/commands.h"
#include "session/bus_client.h"
#include "session/held_output.h"

static bool is_confirmed(const struct apply_outcome *outcome)
{
        return outcome->state == APPLY_WRITTEN || outcome->state == APPLY_PRESENT;
}

/* --- JSON ------------------------------------------------------------------------------------------------------------ */

static json_t *failed_write(struct doc *d, const struct plan_step *step, const struct plan_write *w,
                            const struct apply_outcome *outcome)
{
        json_t *o = json_write(d, w);

        doc_add(d, o, "{s:s, s:s, s:o}", "phase", plan_phase_to_string(step->phase), "reason",
                outcome->state == APPLY_HELD ? "held-back" : apply_reason_to_string(outcome->reason), "detail",
                doc_text(output_reason(d->ctx, w->port, outcome)));
        return o;
}

/* Writes that are not confirmed, then ports of which nothing could be planned. */
static json_t *failed_writes(struct doc *d, const struct apply_result *r)
{
        const struct plan *plan = d->ctx->plan;
        json_t *array = json_array();

        for (const struct plan_step *step = plan->steps; r->sweep->apply && step < plan->steps + PLAN_N_PHASES; step++)
                for (uint32_t w = 0; w < step->n_writes; w++) {
                        const struct apply_outcome *outcome = apply_outcome(r->sweep->apply, step->phase, w);

                        if (!is_confirmed(outcome))
                                doc_append(d, array, failed_write(d, step, &step->writes[w], outcome));
                }
        for (uint32_t i = 0; i < r->plan.unreachable.n; i++) {
                uint32_t port = r->plan.unreachable.ports[i];

                if (!plan->final_tables[port])
                        doc_append(d, array, doc_port(d, port, "{s:s, s:o}", "reason", apply_reason_to_string(APPLY_UNREACHABLE),
                                                      "detail", doc_text(output_failure(d->ctx, port))));
        }
        return array;
}

static void json_apply(struct doc *d, const void *result)
{
        const struct apply_result *r = result;
        uint32_t n_bases = 0;
        const uint16_t *bases = r->sweep->apply ? apply_held_bases(r->sweep->apply, &n_bases) : NULL;

        json_plan(d, &r->plan);
        doc_add(d, d->root, "{s:i, s:i, s:o, s:o, s:b, s:b, s:o}", "written", r->summary.written, "sets_sent", r->summary.sets_sent,
                "failed", failed_writes(d, r), "held_back", JSON_ARRAY(i, n_bases, doc_base(bases[i])),
                "interrupted", r->sweep->stopped, "verified", r->verified, "generation",
                doc_number(r->sweep->generation));
}

/* --- text ------------------------------------------------------------------------------------------------------------ */

static void print_failures(struct context *ctx, const struct apply *apply)
{
        const struct plan *plan = ctx->plan;
        struct text_table t;

        text_table_begin(&t, "PHASE|PORT|>BLOCK|REASON|*WHY", 0);
        for (const struct plan_step *step = plan->steps; step < plan->steps + PLAN_N_PHASES; step++)
                for (uint32_t i = 0; i < step->n_writes; i++) {
                        const struct apply_outcome *outcome = apply_outcome(apply, step->phase, i);
                        const struct plan_write *w = &step->writes[i];

                        if (!is_confirmed(outcome))
                                text_table_row(&t, "red", "%s\t%s\t%s\t%s\t%s", plan_phase_to_string(step->phase),
                                               output_label(ctx, w->port),
                                               w->kind == WRITE_BLOCK ? output_format(ctx, "%u", w->block) : "-",
                                               outcome->state == APPLY_HELD ? "held back" : apply_reason_to_string(outcome->reason),
                                               output_reason(ctx, w->port, outcome));
                }
        text_table_print(ctx, &t);
}

/* The last line says what is in force. */
static void text_apply(struct context *ctx, const void *result)
{
        const struct apply_result *r = result;
        const struct apply_summary *s = &r->summary;

        if (ctx->options->quiet && ctx->status == EXIT_DONE)
                return;
        if (r->sweep->apply) {
                print_failures(ctx, r->sweep->apply);
                text_held(ctx, r->sweep->held);
                printf("%u write%s confirmed (%u SubnSet%s sent)", s->written, text_plural(s->written), s->sets_sent,
                       text_plural(s->sets_sent));
        } else {
                printf("nothing to do");
        }
        if (s->failed > 0)
                printf(", %u failed", s->failed);
        if (s->held > 0)
                printf(", %u held back", s->held);
        printf("; ");
        if (r->sweep->stopped)
                puts("interrupted: only part of the policy was carried out");
        else if (!r->verified)
                puts("only part of the policy was carried out");
        else if (r->sweep->generation > 0)
                printf("verified, the policy is in force (generation %" PRIu64 ")\n", r->sweep->generation);
        else
                puts("verified, the policy is in force");
}

/* --- the run --------------------------------------------------------------------------------------------------------- */

/* While tables are written, a signal ends the run in order; before that, at once. */
static int on_signal(sd_event_source *, const struct signalfd_siginfo *info, void *userdata)
{
        const struct control_event stop = { .kind = CONTROL_EVENT_STOP };
        const struct context *ctx = userdata;
        const struct control_status *status = ctx->control ? control_get_status(ctx->control) : NULL;

        if (!status || status->state != CONTROL_APPLYING) {
                /* nothing was sent: end as if the signal had not been blocked */
                fputc('\n', stderr);
                session_block_signals(false);
                (void) signal((int) info->ssi_signo, SIG_DFL);
                return raise((int) info->ssi_signo);
        }
        if (!status->stopping)
                fputs("\npkeyctl: interrupted, waiting for the writes in flight\n", stderr);
        (void) control_event(ctx->control, clock_now(), &stop);
        return 0;
}

int apply_find_writer(struct context *ctx, const char **ret_policy_file)
{
        struct daemon_status s = {};
        int r = bus_client_find_here(ctx, &s);

        if (r == -ETIMEDOUT)
                return findings_error(&ctx->findings, FINDING_DAEMON_FAILED, "see systemctl status pkeyd; or stop pkeyd",
                                      "nothing was written: pkeyd is on the system bus but does not answer; if its policy differs, its "
                                      "next sweep would undo this one");
        if (r < 0)
                return r;
        /* in its first sweep, or while it waits for the fabric, it has no generation yet: it is about to write */
        *ret_policy_file = s.writing || (s.generation == 0 && s.file_errors == 0) ? s.policy_file : NULL;
        return 0;
}

/* While the user was asked, pkeyd may have begun to write. */
static int check_no_daemon(struct context *ctx)
{
        const char *policy_file;
        int r = apply_find_writer(ctx, &policy_file);

        if (r < 0 || !policy_file)
                return r;
        return findings_error(&ctx->findings, FINDING_DAEMON_RUNS, "run the command again",
                              "pkeyd was started on this host meanwhile, or left audit mode or standby; nothing was written");
}

/* Only a warning: the admin may want to write nevertheless. */
static void warn_standby(struct context *ctx)
{
        struct sm_view view = { .sm_lid = ctx->subnet->sm_lid };
        struct guid guids[SM_MAX_PORTS];
        struct finding *item;

        if (ctx->settings->role != ROLE_FOLLOW_SM || ctx->subnet->self == SUBNET_NONE)
                return;
        sm_view_add_known(&view, ctx->subnet, &ctx->subnet->ports[ctx->subnet->self].guid, 1);
        sm_view_add_known(&view, ctx->subnet, guids, local_port_guids(guids, SM_MAX_PORTS));
        if (sm_is_here(&view))
                return;
        item = findings_add(&ctx->findings, FINDING_WARNING, FINDING_HOST_STANDS_BY, NULL,
                            "the master SM is at LID %u, not on this host: with role: follow-sm, pkeyd here would "
                            "not write now", (unsigned) ctx->subnet->sm_lid.v);
        finding_set_hint(&ctx->findings, item,
                         "the pkeyd of the other head node puts its own policy in force again; "
                         "apply there, or change the policy on both");
}

/* The mirror still has the old policy. */
static void warn_mirror(struct context *ctx)
{
        struct finding *item;

        if (!ctx->settings->opensm_mirror)
                return;
        item = findings_add(&ctx->findings, FINDING_WARNING, FINDING_PLAN_MIRROR, NULL,
                            "pkeyctl does not update %s (opensm.mirror): an OpenSM that starts, or becomes the master, restores the "
                            "tables of that file until pkeyd has updated it", ctx->settings->opensm_mirror);
        finding_set_hint(&ctx->findings, item, "start pkeyd, which carries the policy out, too: systemctl start pkeyd");
}

/* The plan may be shown more than once; its warnings only once. */
static int describe(struct context *ctx, struct apply_result *result)
{
        if (!result->is_described) {
                warn_standby(ctx);
                warn_mirror(ctx);
                pipeline_note_in_force(ctx);
        }
        result->is_described = true;
        return plan_describe(ctx, &result->plan);
}

static int confirm(struct context *ctx, void *userdata)
{
        struct apply_result *result = userdata;
        uint32_t n_writes = ctx->plan->n_block_writes, n_ports = ctx->plan->n_ports_affected;
        int r = describe(ctx, result);

        if (r < 0)
                return r;
        plan_propose(ctx, &result->plan);
        if (ctx->output_r < 0)
                return ctx->output_r;
        session_block_signals(false);
        r = ask_person(ctx, "Apply %u block write%s on %u port%s?", n_writes, text_plural(n_writes), n_ports, text_plural(n_ports));
        session_block_signals(true);
        return r < 0 ? r : check_no_daemon(ctx);
}

static enum exit_status judge(const struct apply_result *r)
{
        bool all = r->summary.failed + r->summary.held + r->summary.n_held_bases == 0 && !r->sweep->stopped &&
                   r->plan.unreachable.n + r->plan.frozen.n == 0;

        return all && r->verified ? EXIT_DONE : EXIT_PARTIAL;
}

static void take_results(struct context *ctx, struct apply_result *r)
{
        const struct control_results *sweep = control_get_results(ctx->control);
        const struct verification *v = sweep->verification;

        r->sweep = sweep;
        r->verified = v->n_differ == 0 && v->n_unreachable == 0 && r->plan.n_silent == 0;
        if (sweep->apply)
                apply_get_summary(sweep->apply, &r->summary);
        r->status = judge(r);
        /* the generation in force is new */
        r->waits = ctx->options->confirm > 0 && sweep->apply && sweep->generation > 0 && ctx->files->number == sweep->generation;
}

int apply_without_daemon(struct context *ctx, struct apply_result *ret)
{
        const struct session_hooks hooks = { .confirm = confirm, .userdata = ret };
        int r = session_sweep(ctx, CONTROL_APPLY, &hooks);

        if (r == 0 && !ret->is_described) /* there was nothing to confirm */
                r = describe(ctx, ret);
        if (r == 0)
                take_results(ctx, ret);
        return r;
}

int apply_show(struct context *ctx, const struct apply_result *result, enum exit_status status)
{
        static const struct printer printer = { text_apply, json_apply, OK_IF_DONE };

        return output(ctx, &printer, status, result);
}

int apply_handle_signals(struct context *ctx)
{
        return session_handle_signals(ctx, on_signal);
}
