/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd/pass.h"

#include <errno.h>
#include <string.h>

#include "apply/apply.h"
#include "desired/assume.h"
#include "pkeyd/bus.h"
#include "pkeyd/kernel.h"
#include "pkeyd/metrics_file.h"
#include "pkeyd/monitor.h"
#include "pkeyd/opensm_writer.h"
#include "pkeyd/own_port.h"
#include "pkeyd/say.h"
#include "reconcile.h"

#define LOCK_RETRY USEC_PER_SEC

enum pass_step {
        STEP_OWN_PORT,
        STEP_DISCOVER,
        STEP_SURVEY,
        STEP_LOCK,
        STEP_ROLE,
        STEP_RECONCILE,
        STEP_APPLY,
        STEP_OPENSM,
        STEP_VERIFY,
};

struct pass {
        struct daemon *d;
        struct m_keys *m_keys;        /* of what was wanted when it began; a reload may put others in force meanwhile */
        enum pass_kind kind;
        enum pass_step step;
        usec_t began;
        struct own_port own_port;
        struct arena *arena;          /* of all that lives no longer than the pass */
        struct picture *new_picture;  /* PASS_FULL, until it takes the place of d->picture */
        struct observed *seen;        /* what a survey of a known fabric reads */
        struct survey *survey;
        sd_event_source *lock_timer, *role_timer;
        bool surveyed;                /* tables were read in this pass */

        struct generation *generation; /* borrows: what the pass decided by */
        struct plan_options options;
        struct reconciled decision;
        struct apply *apply;
        struct head_guard guard;
        usec_t apply_began, role_seen;
        bool ended;                   /* pass_end_apply was called */
};

struct pass *pass_free(struct pass *p)
{
        if (!p)
                return NULL;
        state_unlock(&p->d->state);
        opensm_writer_drop(p->d->opensm_writer);
        sd_event_source_disable_unref(p->lock_timer);
        sd_event_source_disable_unref(p->role_timer);
        picture_free(p->new_picture);
        (void) m_keys_free(p->m_keys);
        arena_free(p->arena);
        free(p);
        return NULL;
}

/* Always the last thing that is done in a pass: p is gone afterwards. */
static void pass_end(struct pass *p, enum pass_result result)
{
        metrics_file_passed(p->d->metrics, result, p->kind == PASS_FULL, clock_now() - p->began);
        daemon_pass_ended(p->d, result);
}

/* Of mechanism: nothing that a policy could be blamed for. */
static void pass_fail(struct pass *p, const char *what, int error)
{
        struct daemon *d = p->d;

        if (p->step != STEP_DISCOVER)
                journal_event(&d->journal, EVENT_PASS_FAILED, NULL, "%s: %s; will be tried again", what,
                              strerror(-error));
        else if (!d->discovery_failed)
                journal_event(&d->journal, EVENT_DISCOVERY_FAILED, NULL, "%s: %s; will be tried again", what,
                              strerror(-error));
        d->discovery_failed = p->step == STEP_DISCOVER;
        daemon_set_status(d, "%s: %s", what, strerror(-error));
        pass_end(p, PASS_ERROR);
}

/* --- verify ----------------------------------------------------------------------------------------------------- */

/* Without a judgement, what was known of the tables that could be read stays. */
static void count_ports(struct daemon *d, const struct watch_report *report, bool judged)
{
        d->ports.managed = report->n_ports;
        d->ports.unreachable = report->n_unreachable;
        if (judged) {
                d->ports.right = report->n_right;
                d->ports.differ = report->n_differ;
        }
}

/* judge: compare tables with the decision; else only who is there and who answers. */
static int look(struct pass *p, bool judge, struct watch_report *ret)
{
        struct daemon *d = p->d;
        bool same_policy = p->generation && d->watched_generation == p->generation->number;
        struct verification *v = NULL;
        int r;

        if (judge) {
                r = verify_compare(p->arena, p->decision.desired, d->picture->observed, &p->options, &v);
                if (r < 0)
                        return r;
        }
        r = watch_look(d->watch, p->arena, d->picture->observed, v, same_policy, ret);
        if (r < 0)
                return r;
        metrics_file_looked(d->metrics, ret, judge);
        count_ports(d, ret, judge);
        if (judge)
                d->watched_generation = p->generation->number;
        if (judge && p->kind == PASS_FULL) /* one moment of the whole fabric */
                head_compare(d, p->generation, v);
        say_look(&d->journal, p->generation ? p->generation : d->generation, ret,
                 d->picture->subnet, p->generation && !head_may_write(d, p->generation));
        return 0;
}

static void describe_outcome(struct pass *p, const struct watch_report *report)
{
        char differ[64] = "", unreachable[64] = "", role[192] = "";

        if (report->n_differ > 0)
                (void) snprintf(differ, sizeof(differ), ", %u differ%s", report->n_differ,
                                report->n_differ == 1 ? "s" : "");
        if (report->n_unreachable > 0)
                (void) snprintf(unreachable, sizeof(unreachable), ", %u unreachable", report->n_unreachable);
        if (!head_may_write(p->d, p->generation)) {
                head_describe(p->d, role, sizeof(role) - 2);
                strcat(role, "; ");
        }
        daemon_set_status(p->d, "%sgeneration %" PRIu64 "%s: %u ports verified%s%s", role, p->generation->number,
                          p->generation->settings->mode == MODE_AUDIT ? " (audit)" : "", report->n_right, differ,
                          unreachable);
}

static void verify(struct pass *p)
{
        struct watch_report report;
        bool first = !p->generation->carried_out;
        int r;

        p->step = STEP_VERIFY;
        r = look(p, true, &report);
        if (r < 0) {
                pass_fail(p, "tables could not be compared with the policy", r);
                return;
        }
        if (p->generation->settings->mode == MODE_ENFORCE &&
            (p->generation->settings->writer == WRITER_DIRECT || !head_may_write(p->d, p->generation)))
                opensm_writer_mirror(p->d->opensm_writer, p->generation, &p->decision);
        describe_outcome(p, &report);
        p->generation->carried_out = true;
        kernel_expect(p->d->kernel, p->generation, p->decision.desired, p->d->picture);
        if (first)
                journal_event(&p->d->journal, EVENT_VERIFIED,
                              &(struct journal_about) { .generation = p->generation->number }, "%s", p->d->status);
        pass_end(p, picture_n_failed(p->d->picture) > 0 ? PASS_PARTIAL : PASS_DONE);
}

/* --- apply ------------------------------------------------------------------------------------------------------ */

static void mark_failed_ports(struct pass *p)
{
        const struct plan *plan = p->decision.plan;

        for (int phase = 0; phase < PLAN_N_PHASES; phase++)
                for (uint32_t i = 0; i < plan->steps[phase].n_writes; i++) {
                        const struct apply_outcome *o = apply_outcome(p->apply, (enum plan_phase) phase, i);

                        if (o->state == APPLY_FAILED)
                                p->d->picture->failed[plan->steps[phase].writes[i].port] = true;
                }
}

static void end_apply(void *userdata)
{
        struct pass *p = userdata;

        p->ended = true;
        apply_abort(p->apply);
}

static void on_applied(int r, void *userdata)
{
        struct pass *p = userdata;
        struct daemon *d = p->d;
        struct apply_summary summary;

        state_save_memory(&d->state);
        apply_get_summary(p->apply, &summary);
        metrics_file_applied(d->metrics, clock_now() - p->apply_began, r < 0 || p->ended, &summary);
        if (r < 0) {
                pass_fail(p, "writing was cut short", r);
                return;
        }
        if (p->ended) {
                journal_debug(&d->journal, "generation %" PRIu64 ": writing was ended early", p->generation->number);
                pass_end(p, PASS_ENDED);
                return;
        }
        mark_failed_ports(p);
        say_apply(&d->journal, p->generation, p->decision.plan, d->picture->observed, p->apply,
                  clock_now() - p->apply_began, &d->failures);
        verify(p);
}

/* Writing ends when the role does. */
static void guard(struct pass *p, struct mad_stage *stage)
{
        if (p->generation->settings->role != ROLE_FOLLOW_SM)
                return;
        p->guard = (struct head_guard) {
                .d = p->d, .inner = *stage, .asked_at = p->role_seen, .end = end_apply, .userdata = p,
                .m_key = m_keys_get(p->generation->m_keys, fabric_local_port(p->d->fabric)->port_guid),
        };
        *stage = head_guard_stage(&p->guard);
}

static void apply(struct pass *p)
{
        struct apply_options options = { .m_keys = p->generation->m_keys, .retries = STAGE_RETRIES };
        struct daemon *d = p->d;
        struct mad_stage stage;
        int r;

        p->step = STEP_APPLY;
        p->apply_began = clock_now();
        r = apply_new(p->arena, p->decision.plan, d->picture->observed, d->state.memory, &options, &p->apply);
        if (r == 0) {
                stage = apply_stage(p->apply);
                guard(p, &stage);
                r = fabric_run(d->fabric, &stage, on_applied, p);
        }
        if (r < 0)
                pass_fail(p, "the plan could not be carried out", r);
}

/* What went wrong was said. */
static void on_written(int r, void *userdata)
{
        struct pass *p = userdata;

        if (r == 0)
                verify(p);
        else
                pass_end(p, r == -ECANCELED ? PASS_ENDED : PASS_ERROR);
}

static void write_through_opensm(struct pass *p)
{
        p->step = STEP_OPENSM;
        opensm_writer_start(p->d->opensm_writer, p->generation, &p->decision, on_written, p);
}

/* --- reconcile -------------------------------------------------------------------------------------------------- */

static void carry_out(struct pass *p)
{
        struct watch_report report;
        bool judged_before = p->d->watched_generation == p->generation->number;
        int r;

        /* what drifted must be said before it is mended; what a new policy changes did not drift */
        if (p->surveyed) {
                r = look(p, judged_before, &report);
                if (r < 0) {
                        pass_fail(p, "tables could not be compared with the policy", r);
                        return;
                }
        }
        if (!head_may_write(p->d, p->generation))
                state_save_memory(&p->d->state); /* what was learned of the other one's writing is for the day we write */
        if (p->generation->settings->mode == MODE_AUDIT || !head_may_write(p->d, p->generation))
                verify(p);
        else if (p->generation->settings->writer == WRITER_OPENSM)
                write_through_opensm(p);
        else if (plan_is_empty(p->decision.plan))
                verify(p);
        else
                apply(p);
}

/* Nothing can be in force on this fabric; the next sweep may find another one. */
static void refuse(struct pass *p, const struct findings *findings)
{
        struct watch_report report;
        struct daemon *d = p->d;

        (void) (p->surveyed ? look(p, false, &report) : 0);
        if (p->generation->n_refused != findings->n_errors)
                journal_event(&d->journal, EVENT_POLICY_REFUSED,
                              &(struct journal_about) { .generation = p->generation->number },
                              "%zu error%s: the policy cannot be carried out on this fabric; nothing was written",
                              findings->n_errors, findings->n_errors == 1 ? "" : "s");
        p->generation->n_refused = findings->n_errors;
        daemon_set_status(d, "the policy cannot be carried out on this fabric: %zu error%s; nothing is written",
                          findings->n_errors, findings->n_errors == 1 ? "" : "s");
        daemon_cannot(d, findings);
        pass_end(p, PASS_REFUSED);
}

/* One try with one generation. Returns 0, -EAGAIN: it was a candidate and is refused, there is another one; -EBADMSG:
 * refused, there is none; -ENOMEM. */
static int decide(struct pass *p, struct findings *findings)
{
        struct daemon *d = p->d;
        bool is_candidate = p->generation == d->candidate;
        usec_t began = clock_now();
        int r;

        plan_options_from_settings(p->generation->settings, &p->options);
        r = reconcile(p->arena, p->generation->policy, d->picture->observed, d->state.memory, &p->options, findings,
                      &p->decision);
        metrics_file_planned(d->metrics, clock_now() - began);
        if (r == 0 && p->generation->settings->mode == MODE_ENFORCE)
                r = opensm_writer_judge(p->generation, &p->decision, findings);
        if (r == -ENOMEM || findings->out_of_memory)
                return -ENOMEM;
        if (r == 0 && is_candidate)
                daemon_accept(d);
        if (r < 0 && is_candidate && d->generation) {
                daemon_refuse(d, findings); /* frees the candidate */
                p->generation = NULL;
                return -EAGAIN;
        }
        say_plan_findings(&d->journal, p->generation, findings);
        if (r == 0)
                bus_note_findings(d->bus, findings, false);
        if (r == 0)
                p->generation->n_refused = 0;
        return r;
}

static void reconcile_step(struct pass *p)
{
        int r;

        p->step = STEP_RECONCILE;
        picture_reset_failed(p->d->picture);
        do {
                _cleanup_findings_ struct findings findings;

                findings_init(&findings, p->arena);
                p->generation = daemon_to_decide(p->d);
                if (!p->generation) {
                        pass_end(p, PASS_STALE); /* wanted is one for another port */
                        return;
                }
                r = decide(p, &findings);
                if (r == -EBADMSG) {
                        refuse(p, &findings);
                        return;
                }
        } while (r == -EAGAIN);
        if (r < 0)
                pass_fail(p, "no plan could be made", r);
        else
                carry_out(p);
}

/* --- role ------------------------------------------------------------------------------------------------------- */

static void ask_own_port(struct pass *p, enum pass_step step, fabric_done_t done)
{
        uint64_t m_key = m_keys_get(p->m_keys, fabric_local_port(p->d->fabric)->port_guid);
        struct mad_stage stage = own_port_stage(&p->own_port, m_key);
        int r;

        p->step = step;
        r = fabric_run(p->d->fabric, &stage, done, p);
        if (r < 0)
                pass_fail(p, "the port could not be asked for its state", r);
}

/* False: the pass has ended, the port is good for nothing now. */
static bool port_is_good(struct pass *p, int r)
{
        const char *why;

        if (r < 0) {
                pass_fail(p, "the port could not be asked for its state", r);
                return false;
        }
        why = own_port_why_wait(&p->own_port);
        if (why) {
                daemon_port_waits(p->d, why);
                pass_end(p, PASS_WAIT);
        }
        return !why;
}

static int on_role_due(sd_event_source *timer, uint64_t scheduled, void *userdata)
{
        (void) timer;
        (void) scheduled;
        pass_end(userdata, PASS_STALE); /* what was read is from before the other one stopped */
        return 0;
}

static void wait_for_role(struct pass *p, usec_t at)
{
        struct daemon *d = p->d;
        char text[192];
        int r;

        head_describe(d, text, sizeof(text));
        daemon_set_status(d, "%s", text);
        r = sd_event_add_time(d->event, &p->role_timer, CLOCK_MONOTONIC, at, 0, on_role_due, p);
        if (r < 0)
                pass_fail(p, "the other head node cannot be waited for", r);
}

static void on_role(int r, void *userdata)
{
        struct pass *p = userdata;
        usec_t at;

        if (!port_is_good(p, r))
                return;
        p->role_seen = clock_now();
        switch (head_see(p->d, &p->own_port.info, p->kind == PASS_FULL, &at)) {
        case HEAD_GO_ON:
                reconcile_step(p);
                return;
        case HEAD_LOOK_AGAIN:
                pass_end(p, PASS_STALE);
                return;
        case HEAD_WAIT:
                wait_for_role(p, at);
                return;
        }
}

static void role_step(struct pass *p)
{
        if (head_follows(p->d))
                ask_own_port(p, STEP_ROLE, on_role);
        else
                reconcile_step(p);
}

/* --- lock ------------------------------------------------------------------------------------------------------- */

/* Where an answer is not needed: the lock is still somebody else's. */
static bool try_lock(struct pass *p)
{
        int pid = 0;

        if (state_lock(&p->d->state, &pid) == 0)
                return true;
        if (!p->lock_timer)
                journal_event(&p->d->journal, EVENT_LOCK_WAIT, NULL,
                              "process %d is writing P_Key tables with the same state directory; waiting for it", pid);
        return false;
}

static int on_lock_due(sd_event_source *timer, uint64_t scheduled, void *userdata)
{
        struct pass *p = userdata;

        (void) scheduled;
        if (!try_lock(p)) {
                (void) sd_event_source_set_time(timer, clock_now() + LOCK_RETRY);
                (void) sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
                return 0;
        }
        /* what was read before is what the other process changed */
        pass_end(p, PASS_STALE);
        return 0;
}

static void lock(struct pass *p)
{
        struct daemon *d = p->d;
        int r;

        p->step = STEP_LOCK;
        if (try_lock(p)) {
                role_step(p);
                return;
        }
        daemon_set_status(d, "waiting for another process that writes P_Key tables");
        r = sd_event_add_time_relative(d->event, &p->lock_timer, CLOCK_MONOTONIC, LOCK_RETRY, 0, on_lock_due, p);
        if (r < 0)
                pass_fail(p, "the lock of the state directory cannot be waited for", r);
}

/* --- survey ----------------------------------------------------------------------------------------------------- */

static bool any_unknown(const struct observed *o)
{
        for (uint32_t i = 0; i < o->subnet->n_ports; i++)
                if (o->tables[i].entries && o->tables[i].source == TABLE_UNKNOWN)
                        return true;
        return false;
}

/* What the generation in force gives the ports of this picture; NULL if there is none, or it does not fit this fabric. */
static int desired_in_force(struct pass *p, const struct picture *picture, struct desired **ret)
{
        _cleanup_findings_ struct findings ignored;
        const struct generation *g = p->d->generation;
        struct memberships *memberships;
        int r;

        *ret = NULL;
        findings_init(&ignored, p->arena);
        if (!g)
                return 0;
        r = policy_resolve(p->arena, g->policy, picture->subnet, &ignored, &memberships);
        if (r < 0)
                return r == -EBADMSG ? 0 : r;
        return desired_compute(p->arena, memberships, ret);
}

/* What somebody else freed was used, too. If that is the pkeyd of the other head node, it did what the policy says. Memory
 * being out loses a hint, not correctness. */
static void learn(struct pass *p, const struct observed *now, const struct desired *desired)
{
        struct daemon *d = p->d;
        bool other_sm = d->picture->subnet->sm_lid.v != now->subnet->sm_lid.v;
        bool by_other_pkeyd = d->generation && d->generation->settings->role == ROLE_FOLLOW_SM &&
                              (other_sm || !head_may_write(d, d->generation));

        (void) index_memory_learn_written(d->state.memory, d->picture->observed, now, by_other_pkeyd ? desired : NULL);
}

static int adopt_picture(struct pass *p)
{
        struct daemon *d = p->d;
        struct desired *desired = NULL;
        int r = 0;

        if (head_follows(d) || any_unknown(p->new_picture->observed))
                r = desired_in_force(p, p->new_picture, &desired);
        if (r < 0)
                return r;
        if (d->picture) {
                observed_assume_from(p->new_picture->observed, d->picture->observed);
                learn(p, p->new_picture->observed, desired);
        }
        /* ports that nobody could read so far are taken to hold what the generation in force gave them */
        if (desired)
                (void) desired_assume_unread(p->new_picture->observed, desired);
        monitor_forget(d->monitor);
        picture_free(d->picture);
        d->picture = STEAL(p->new_picture);
        state_learn_ports(&d->state, d->picture->subnet);
        monitor_look(d->monitor, d->generation, d->picture);
        return 0;
}

/* A part of the known picture was read again. What went there is to be put back where it was, so that must be learned, too:
 * after this nobody sees the difference. */
static int adopt_seen(struct pass *p)
{
        struct daemon *d = p->d;
        struct desired *desired = NULL;
        int r = head_follows(d) ? desired_in_force(p, d->picture, &desired) : 0;

        if (r < 0)
                return r;
        learn(p, p->seen, desired);
        picture_merge(d->picture, p->seen);
        return 0;
}

static void on_surveyed(int r, void *userdata)
{
        struct pass *p = userdata;

        if (r == 0)
                r = p->new_picture ? adopt_picture(p) : adopt_seen(p);
        if (r < 0) {
                pass_fail(p, "the P_Key tables could not be read", r);
                return;
        }
        p->surveyed = true;
        lock(p);
}

/* All of a new picture, or the ports of a known one that failed; all of them where OpenSM writes: it does not read first. */
static int prepare_survey(struct pass *p, struct survey_options *options)
{
        uint32_t *ports;
        int r;

        if (p->new_picture)
                return survey_new(p->arena, p->new_picture->observed, options, &p->survey);
        if (p->kind == PASS_RETRY) {
                r = picture_failed_ports(p->d->picture, p->arena, &ports, &options->n_ports);
                if (r < 0)
                        return r;
                options->ports = ports;
        }
        r = observed_new(p->arena, p->d->picture->subnet, &p->seen);
        if (r < 0)
                return r;
        return survey_new(p->arena, p->seen, options, &p->survey);
}

static void survey(struct pass *p)
{
        struct survey_options options = { .m_keys = p->m_keys, .retries = STAGE_RETRIES };
        struct mad_stage stage;
        int r;

        p->step = STEP_SURVEY;
        r = prepare_survey(p, &options);
        if (r == 0) {
                stage = survey_stage(p->survey);
                r = fabric_run(p->d->fabric, &stage, on_surveyed, p);
        }
        if (r < 0)
                pass_fail(p, "the P_Key tables could not be read", r);
}

/* --- discover --------------------------------------------------------------------------------------------------- */

static void on_discovered(int r, void *userdata)
{
        struct pass *p = userdata;

        if (p->d->stopping) {
                pass_end(p, PASS_ENDED);
                return;
        }
        if (r == 0)
                r = picture_prepare(p->new_picture);
        if (r == 0 && p->new_picture->subnet->sm_lid.v && p->new_picture->subnet->sm == SUBNET_NONE)
                r = -ENODATA; /* the master SM's port is missing: answers were lost, see reconcile.c */
        if (r < 0) {
                pass_fail(p, "the fabric could not be discovered", r);
                return;
        }
        p->d->discovery_failed = false;
        journal_debug(&p->d->journal, "discovered: %u nodes, %u ports that matter", p->new_picture->subnet->n_nodes,
                      p->new_picture->subnet->n_ports);
        survey(p);
}

static void discover(struct pass *p)
{
        int r;

        p->step = STEP_DISCOVER;
        fabric_set_m_key(p->d->fabric, m_keys_common(p->m_keys));
        p->new_picture = picture_new();
        r = p->new_picture ? fabric_discover(p->d->fabric, p->new_picture->arena, &p->new_picture->subnet,
                                             on_discovered, p)
                           : -ENOMEM;
        if (r < 0)
                pass_fail(p, "the fabric could not be discovered", r);
}

/* --- own port --------------------------------------------------------------------------------------------------- */

static void on_own_port(int r, void *userdata)
{
        struct pass *p = userdata;

        if (!port_is_good(p, r))
                return;
        daemon_port_works(p->d, p->own_port.info.lid);
        monitor_port(p->d->monitor, &p->own_port.info);
        discover(p);
}

/* --- from outside ----------------------------------------------------------------------------------------------- */

int pass_start(struct daemon *d, enum pass_kind kind)
{
        struct pass *p = calloc(1, sizeof(*p));

        if (!p)
                return -ENOMEM;
        *p = (struct pass) { .d = d, .kind = kind, .began = clock_now(), .arena = arena_new() };
        if (!p->arena) {
                free(p);
                return -ENOMEM;
        }
        p->m_keys = m_keys_ref(daemon_wanted(d)->m_keys);
        d->pass = p;
        switch (kind) {
        case PASS_FULL:
                ask_own_port(p, STEP_OWN_PORT, on_own_port);
                break;
        case PASS_KNOWN:
                if (daemon_wanted(d)->settings->writer == WRITER_OPENSM)
                        survey(p);
                else
                        lock(p);
                break;
        case PASS_RETRY:
                survey(p);
                break;
        }
        return 0;
}

void pass_end_apply(struct pass *p)
{
        if (p->step == STEP_OPENSM)
                opensm_writer_end(p->d->opensm_writer);
        if (p->step == STEP_APPLY)
                end_apply(p);
}

bool pass_must_be_awaited(const struct pass *p)
{
        return p->step == STEP_APPLY || p->step == STEP_DISCOVER;
}

static unsigned percent(const struct mad_stage *stage)
{
        uint64_t done, total;

        stage->progress(stage->state, &done, &total);
        return total > 0 ? (unsigned) (done * 100 / total) : 0;
}

void pass_describe(const struct pass *p, char *ret, size_t size)
{
        struct mad_stage stage;

        switch (p->step) {
        case STEP_OWN_PORT:
        case STEP_DISCOVER:
                (void) snprintf(ret, size, "discovering the fabric");
                break;
        case STEP_SURVEY:
                stage = survey_stage(p->survey);
                (void) snprintf(ret, size, "reading P_Key tables, %u %% done", percent(&stage));
                break;
        case STEP_LOCK:
                (void) snprintf(ret, size, "waiting for another process that writes P_Key tables");
                break;
        case STEP_ROLE:
                head_describe(p->d, ret, size);
                break;
        case STEP_APPLY:
                stage = apply_stage(p->apply);
                (void) snprintf(ret, size, "generation %" PRIu64 ": writing P_Key tables (%s), %u %% done",
                                p->generation->number, plan_phase_to_string(apply_phase(p->apply)), percent(&stage));
                break;
        case STEP_OPENSM:
                (void) snprintf(ret, size, "generation %" PRIu64 ": OpenSM writes P_Key tables (%s)", p->generation->number,
                                opensm_writer_phase(p->d->opensm_writer));
                break;
        case STEP_RECONCILE:
        case STEP_VERIFY:
                (void) snprintf(ret, size, "comparing");
                break;
        }
}
