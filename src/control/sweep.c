/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "control/sweep.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "control/event_text.h"
#include "control/reload.h"
#include "desired/assume.h"

#define LOCK_RETRY USEC_PER_SEC

/* --- the end ------------------------------------------------------------------------------------------------------ */

static void end(struct control *c, enum sweep_result result)
{
        c->sweep.ended = true;
        c->sweep.result = result;
}

/* A problem of this host: nothing that a policy could be blamed for. */
static void fail(struct control *c, const char *what, int error)
{
        bool discovering = c->state == CONTROL_DISCOVERING;

        c->results.r = error;
        c->results.failed = c->state;
        control_say(c, "%s: %s", what, strerror(-error));
        if (!discovering)
                log_add(c->log, LOG_EVENT_PASS_FAILED, NULL, "%s; will be tried again", c->text);
        else if (!c->discovery_failed)
                log_add(c->log, LOG_EVENT_DISCOVERY_FAILED, NULL, "%s; will be tried again", c->text);
        c->discovery_failed = discovering;
        end(c, SWEEP_FAILED);
}

static void unlock(struct control *c)
{
        if (c->sweep.locked)
                control_do(c, &(struct control_action) { .kind = CONTROL_UNLOCK });
        c->sweep.locked = false;
}

void sweep_free(struct control *c)
{
        struct sweep *s = &c->sweep;

        unlock(c);
        opensm_writer_drop(c->writer);
        findings_done(&s->conf_findings);
        s->discovery = discovery_free(s->discovery);
        snapshot_unref(s->new_snapshot);
        generation_unref(s->generation);
        (void) m_keys_free(s->m_keys);
        arena_free(s->arena);
        *s = (struct sweep) {};
}

static bool serves(const struct control *c)
{
        return c->config.goal == CONTROL_SERVE;
}

static void go_to(struct control *c, enum control_state state)
{
        c->state = state;
}

static void run_stage(struct control *c, enum control_state state, struct mad_stage stage)
{
        go_to(c, state);
        c->sweep.stage = stage;
        control_do(c, &(struct control_action) { .kind = CONTROL_RUN_STAGE, .stage = &c->sweep.stage });
}

static uint64_t local_m_key(const struct control *c, const struct m_keys *keys)
{
        return m_keys_get(keys, c->port_guid);
}

/* --- survey ------------------------------------------------------------------------------------------------------- */

/* All tables of a new snapshot, or those that were chosen; of a known one the ports that failed, or all again. */
static int prepare_survey(struct control *c)
{
        struct sweep *s = &c->sweep;
        struct survey_options options = { .m_keys = s->m_keys, .retries = STAGE_RETRIES };
        uint32_t *ports = s->chosen;
        int r = 0;

        options.n_ports = s->n_chosen;
        if (!s->new_snapshot && s->kind == SWEEP_RETRY)
                r = snapshot_failed_ports(c->snapshot, s->arena, &ports, &options.n_ports);
        if (r == 0 && !s->new_snapshot)
                r = observed_new(s->arena, c->snapshot->subnet, &s->seen);
        options.ports = ports;
        if (r == 0)
                r = survey_new(s->arena, s->new_snapshot ? s->new_snapshot->observed : s->seen, &options, &s->survey);
        return r;
}

static void survey(struct control *c)
{
        int r = prepare_survey(c);

        if (r < 0)
                fail(c, "the P_Key tables could not be read", r);
        else
                run_stage(c, CONTROL_SURVEYING, survey_stage(c->sweep.survey));
}

/* --- compare ------------------------------------------------------------------------------------------------------ */

/* Without a judgement, what was known of the tables that could be read stays. */
static void count_ports(struct control *c, const struct watch_report *report, bool judged)
{
        struct port_counts *ports = &c->status.ports;

        ports->managed = report->n_ports;
        ports->unreachable = report->n_unreachable;
        if (!judged)
                return;
        ports->right = report->n_right;
        ports->differ = report->n_differ;
        c->status.numbers.looked = true;
        c->status.numbers.n_drifts += report->n_of[WATCH_DRIFTED];
}

static void report_standby(struct control *c, const struct verification *v)
{
        const struct generation *g = c->sweep.generation;

        if (control_may_write(c, g))
                c->standby_reported = 0;
        else
                event_text_standby(c->log, g, c->snapshot->subnet, v, &c->standby_reported);
}

/* judge: compare tables with the decision; else only who is there and who answers. */
static int watch(struct control *c, bool judge, struct watch_report *ret)
{
        struct sweep *s = &c->sweep;
        bool same_policy = s->generation && c->watched_generation == s->generation->number;
        struct verification *v = NULL;
        int r;

        if (judge) {
                r = verify_compare(s->arena, s->decision.desired, c->snapshot->observed, &s->options, &v);
                if (r < 0)
                        return r;
                c->results.verification = v;
        }
        r = watch_look(c->watch, s->arena, c->snapshot->observed, v, same_policy, ret);
        if (r < 0)
                return r;
        count_ports(c, ret, judge);
        if (judge)
                c->watched_generation = s->generation->number;
        if (judge && s->kind == SWEEP_FULL) /* one moment of the whole fabric */
                report_standby(c, v);
        event_text_watch(c->log, s->generation ? s->generation : c->in_force, ret, c->snapshot->subnet,
                         s->generation && !control_may_write(c, s->generation));
        return 0;
}

static void describe_outcome(struct control *c, const struct watch_report *report)
{
        const struct generation *g = c->sweep.generation;
        char differ[64] = "", unreachable[64] = "", role[192] = "";
        bool may_write = control_may_write(c, g);

        if (report->n_differ > 0)
                (void) snprintf(differ, sizeof(differ), ", %u differ%s", report->n_differ, report->n_differ == 1 ? "s" : "");
        if (report->n_unreachable > 0)
                (void) snprintf(unreachable, sizeof(unreachable), ", %u unreachable", report->n_unreachable);
        if (!may_write)
                sm_follow_describe(&c->sm, c->sm_name, role, sizeof(role));
        control_say(c, "%s%sgeneration %" PRIu64 "%s: %u ports verified%s%s", role, may_write ? "" : "; ", g->number,
                    g->settings->mode == MODE_AUDIT ? " (audit)" : "", report->n_right, differ, unreachable);
}

/* Only a policy that is wholly in force is remembered as such. */
static void store_policy(struct control *c)
{
        const struct verification *v = c->results.verification;
        struct apply_summary summary = {};
        struct generation *g = c->candidate;

        if (c->sweep.apply)
                apply_get_summary(c->sweep.apply, &summary);
        if (summary.failed + summary.held + summary.n_held_bases > 0 || c->sweep.apply_stopped || v->n_differ > 0 ||
            v->n_unreachable > 0)
                return;
        if (c->in_force && generation_has_policy(c->in_force, g->policy_bytes, g->n_policy_bytes)) {
                c->results.generation = c->in_force->number;
                return;
        }
        c->results.generation = g->number = ++c->last_number;
        control_do(c, &(struct control_action) { .kind = CONTROL_STORE, .record = { .generation = g } });
}

static void finish(struct control *c)
{
        if (c->config.goal == CONTROL_APPLY)
                store_policy(c);
        end(c, snapshot_n_failed(c->snapshot) > 0 ? SWEEP_PARTIAL : SWEEP_DONE);
}

/* True: the tables were compared. False: the sweep has ended with a problem. */
static bool compare(struct control *c)
{
        struct generation *g = c->sweep.generation;
        struct watch_report report;
        bool first = !g->carried_out;
        int r = watch(c, true, &report);

        if (r < 0) {
                fail(c, "tables could not be compared with the policy", r);
                return false;
        }
        describe_outcome(c, &report);
        g->carried_out = true;
        verbs_check_expect(c->verbs, c->now, g, c->sweep.decision.desired, c->snapshot, c->host_guids, c->n_host_guids);
        if (first)
                log_add(c->log, LOG_EVENT_VERIFIED, &(struct log_about) { .generation = g->number }, "%s", c->text);
        return true;
}

/* --- OpenSM's file ------------------------------------------------------------------------------------------------ */

/* After each step of the writer. */
static void follow_writer(struct control *c)
{
        struct control_action action;
        int r;

        while (opensm_writer_next_action(c->writer, &action))
                control_do(c, &action);
        if (!opensm_writer_take_end(c->writer, &r))
                return;
        if (r < 0 && c->state == CONTROL_WRITING_OPENSM) {
                if (*opensm_writer_problem(c->writer))
                        control_say(c, "%s", opensm_writer_problem(c->writer));
                end(c, r == -ECANCELED ? SWEEP_STOPPED : SWEEP_FAILED);
        } else if (c->state == CONTROL_MIRRORING || compare(c)) {
                finish(c);
        }
}

static void start_writer(struct control *c, enum control_state state)
{
        const struct opensm_job job = {
                .generation = c->sweep.generation, .decision = &c->sweep.decision, .snapshot = c->snapshot,
                .known = &c->known, .conf = &c->sweep.conf, .mirror = state == CONTROL_MIRRORING,
        };

        go_to(c, state);
        opensm_writer_start(c->writer, c->now, &job);
        follow_writer(c);
}

void sweep_writer_files(struct control *c, const struct control_event *event)
{
        opensm_writer_files_read(c->writer, c->now, event->files);
        follow_writer(c);
}

void sweep_writer_written(struct control *c, const struct control_event *event)
{
        opensm_writer_file_written(c->writer, c->now, event->r);
        follow_writer(c);
}

void sweep_writer_signalled(struct control *c, const struct control_event *event)
{
        opensm_writer_signalled(c->writer, c->now, event->opensm.r, event->opensm.why);
        follow_writer(c);
}

void sweep_writer_surveyed(struct control *c, const struct control_event *event)
{
        opensm_writer_surveyed(c->writer, c->now, event->r);
        follow_writer(c);
}

/* --- verify ------------------------------------------------------------------------------------------------------- */

static bool mirrors(const struct control *c)
{
        const struct generation *g = c->sweep.generation;

        return serves(c) && g->settings->mode == MODE_ENFORCE && opensm_writer_path(g) &&
               (g->settings->writer == WRITER_DIRECT || !control_may_write(c, g));
}

static void verify(struct control *c)
{
        if (!compare(c))
                return;
        if (mirrors(c))
                start_writer(c, CONTROL_MIRRORING);
        else
                finish(c);
}

/* --- apply -------------------------------------------------------------------------------------------------------- */

static void store_indexes(struct control *c)
{
        uint64_t digest = index_memory_digest(c->indexes);

        if (digest == c->indexes_stored)
                return;
        c->indexes_stored = digest;
        control_do(c, &(struct control_action) { .kind = CONTROL_STORE, .record = { .indexes = c->indexes } });
}

static void mark_failed_ports(struct control *c)
{
        const struct plan *plan = c->sweep.decision.plan;

        for (int phase = 0; phase < PLAN_N_PHASES; phase++)
                for (uint32_t i = 0; i < plan->steps[phase].n_writes; i++)
                        if (apply_outcome(c->sweep.apply, (enum plan_phase) phase, i)->state == APPLY_FAILED)
                                c->snapshot->failed[plan->steps[phase].writes[i].port] = true;
}

static void count_writes(struct control *c, const struct apply_summary *summary)
{
        struct control_numbers *n = &c->status.numbers;

        n->n_writes += summary->written;
        n->n_writes_failed += summary->failed;
        if (c->sweep.apply_stopped)
                return;
        n->apply_duration = c->now - c->sweep.apply_began;
        if (summary->failed + summary->held == 0)
                n->last_apply = c->wall;
}

void sweep_applied(struct control *c, const struct control_event *event)
{
        struct sweep *s = &c->sweep;
        struct apply_summary summary;

        store_indexes(c);
        apply_get_summary(s->apply, &summary);
        count_writes(c, &summary);
        c->results.apply = s->apply;
        c->results.stopped = s->apply_stopped;
        if (event->r < 0) {
                fail(c, "writing was cut short", event->r);
        } else if (s->apply_stopped && serves(c)) {
                log_debug(c->log, "generation %" PRIu64 ": writing was ended early", s->generation->number);
                end(c, SWEEP_STOPPED);
        } else {
                mark_failed_ports(c);
                event_text_apply(c->log, s->generation, s->decision.plan, c->snapshot->observed, s->apply,
                                 c->now - s->apply_began, &c->apply_failures);
                verify(c);
        }
}

static void stop_apply(void *userdata)
{
        struct control *c = userdata;

        c->sweep.apply_stopped = true;
        apply_abort(c->sweep.apply);
}

void sweep_stop_writing(struct control *c)
{
        if (c->state == CONTROL_APPLYING)
                stop_apply(c);
        else if (c->state == CONTROL_WRITING_OPENSM)
                opensm_writer_stop(c->writer);
}

/* The ports of this host but the local one, whose LID the query brings. */
static void view_others(const struct control *c, struct sm_view *ret)
{
        *ret = (struct sm_view) {};
        for (size_t i = 0; i < c->n_host_guids; i++)
                if (c->host_guids[i].v != c->port_guid.v)
                        sm_view_add_known(ret, c->snapshot->subnet, &c->host_guids[i], 1);
}

/* Writing ends when this host is not the master SM's any more. */
static struct mad_stage guard(struct control *c, struct mad_stage stage)
{
        struct sweep *s = &c->sweep;

        s->guard = (struct sm_guard) {
                .inner = stage, .asked_at = s->sm_seen_at, .end = stop_apply, .userdata = c,
                .m_key = local_m_key(c, s->generation->m_keys),
        };
        view_others(c, &s->guard.others);
        return sm_guard_stage(&s->guard);
}

static void apply(struct control *c)
{
        struct sweep *s = &c->sweep;
        struct apply_options options = { .m_keys = s->generation->m_keys, .retries = STAGE_RETRIES };
        struct mad_stage stage;
        int r;

        s->apply_began = c->now;
        r = apply_new(s->arena, s->decision.plan, c->snapshot->observed, c->indexes, &options, &s->apply);
        if (r < 0) {
                fail(c, "the plan could not be carried out", r);
                return;
        }
        stage = apply_stage(s->apply);
        if (serves(c) && s->generation->settings->role == ROLE_FOLLOW_SM)
                stage = guard(c, stage);
        run_stage(c, CONTROL_APPLYING, stage);
}

/* --- decide ------------------------------------------------------------------------------------------------------- */

static void carry_out(struct control *c)
{
        struct sweep *s = &c->sweep;
        bool judged_before = c->watched_generation == s->generation->number, may_write;
        struct watch_report report;
        int r = 0;

        /* drift is reported before it is repaired; what a new policy changes did not drift */
        if (s->surveyed)
                r = watch(c, judged_before, &report);
        if (r < 0) {
                fail(c, "tables could not be compared with the policy", r);
                return;
        }
        may_write = control_may_write(c, s->generation);
        if (!may_write)
                store_indexes(c); /* what was learned of the other one's writing is for the day when this one writes */
        if (s->generation->settings->mode == MODE_AUDIT || !may_write)
                verify(c);
        else if (s->generation->settings->writer == WRITER_OPENSM)
                start_writer(c, CONTROL_WRITING_OPENSM);
        else if (plan_is_empty(s->decision.plan))
                verify(c);
        else
                apply(c);
}

/* Nothing can be in force on this fabric; the next sweep may find another one. */
static void refuse(struct control *c, const struct findings *findings)
{
        struct generation *g = c->sweep.generation;
        size_t n = findings->n_errors;
        struct watch_report report;

        if (c->sweep.surveyed)
                (void) watch(c, false, &report);
        control_say(c, "the policy cannot be carried out on this fabric: %zu error%s; nothing is written", n, n == 1 ? "" : "s");
        if (g->n_refused != n)
                log_add(c->log, LOG_EVENT_POLICY_REFUSED, &(struct log_about) { .generation = g->number },
                        "%zu error%s: the policy cannot be carried out on this fabric; nothing was written", n, n == 1 ? "" : "s");
        g->n_refused = n;
        reload_cannot(c, findings);
        end(c, SWEEP_REFUSED);
}

/* The generation to decide by on the port that the sweep works through; NULL: what is wanted is for another port. */
static struct generation *to_decide(const struct control *c)
{
        struct port_key key;

        if (!c->candidate)
                return c->in_force;
        port_key_make(c->candidate->settings, &key);
        return port_key_equal(&key, &c->sweep.port) ? c->candidate : c->in_force;
}

static int judge(struct control *c, struct findings *findings)
{
        struct sweep *s = &c->sweep;
        int r;

        plan_options_from_settings(s->generation->settings, &s->options);
        c->status.numbers.n_plans++;
        for (size_t i = 0; i < s->conf_findings.n; i++)
                findings_append(findings, &s->conf_findings.items[i]);
        r = reconcile(s->arena, s->generation->policy, c->snapshot->observed, c->indexes, &s->options, findings, &s->decision);
        if (r == 0 && serves(c) && s->generation->settings->mode == MODE_ENFORCE)
                r = opensm_writer_judge(s->generation, &s->conf, &s->decision, findings);
        if (r == -ENOMEM || findings->out_of_memory)
                return -ENOMEM;
        return findings->n_errors > 0 ? -EBADMSG : r;
}

/* One try with one generation. Returns 0, -EAGAIN: it was a candidate and is refused, what is in force is next; -EBADMSG:
 * refused; -ENOMEM. */
static int decide_by(struct control *c, struct generation *g, struct findings *findings)
{
        struct sweep *s = &c->sweep;
        bool is_candidate = g == c->candidate;
        int r;

        generation_unref(s->generation);
        s->generation = generation_ref(g);
        r = judge(c, findings);
        if (r == -ENOMEM)
                return r;
        if (!serves(c))
                return r;
        if (r == 0 && is_candidate)
                reload_accept(c);
        if (r < 0 && is_candidate && c->in_force) {
                reload_refuse(c, findings);
                return -EAGAIN;
        }
        event_text_plan_findings(c->log, g, findings);
        if (r < 0)
                return r;
        g->n_refused = 0;
        reload_note_findings(c, findings);
        return 0;
}

/* --- a plan for a person ------------------------------------------------------------------------------------------ */

/* An answer that stands: the same writes as those that were confirmed. */
static bool is_confirmed(const struct control *c)
{
        const struct plan *now = c->sweep.decision.plan, *then = c->sweep.confirmed;

        for (int p = 0; then && p < PLAN_N_PHASES; p++)
                if (now->steps[p].n_writes != then->steps[p].n_writes ||
                    memcmp(now->steps[p].writes, then->steps[p].writes, now->steps[p].n_writes * sizeof(struct plan_write)) != 0)
                        return false;
        return then != NULL;
}

static void confirm(struct control *c)
{
        /* nobody else has to wait for a person */
        if (c->config.confirm)
                unlock(c);
        go_to(c, CONTROL_CONFIRMING);
        control_do(c, &(struct control_action) { .kind = CONTROL_CONFIRM });
}

static void lock(struct control *c)
{
        go_to(c, CONTROL_LOCKING);
        c->sweep.lock_at = USEC_INFINITY;
        control_do(c, &(struct control_action) { .kind = CONTROL_LOCK });
}

/* What a second plan has to be told, the first one had, unless it is another plan. */
static int plan_once(struct control *c)
{
        _cleanup_findings_ struct findings again = {};
        int r;

        findings_init(&again, c->sweep.arena);
        if (!c->sweep.confirmed)
                return decide_by(c, c->candidate, c->config.findings);
        r = decide_by(c, c->candidate, &again);
        for (size_t i = 0; i < again.n && (r < 0 || !is_confirmed(c)); i++)
                findings_append(c->config.findings, &again.items[i]);
        return r;
}

static void decide_once(struct control *c)
{
        struct sweep *s = &c->sweep;
        int r = plan_once(c);

        if (r < 0) {
                c->results.r = r;
                c->results.failed = c->state;
                end(c, r == -EBADMSG ? SWEEP_REFUSED : SWEEP_FAILED);
                return;
        }
        c->results.decision = &s->decision;
        if (c->config.goal == CONTROL_PLAN)
                end(c, SWEEP_DONE);
        else if (!plan_is_empty(s->decision.plan) && !is_confirmed(c))
                confirm(c);
        else if (!s->locked)
                lock(c);
        else if (plan_is_empty(s->decision.plan))
                verify(c);
        else
                apply(c);
}

void sweep_confirmed(struct control *c, const struct control_event *event)
{
        if (!event->yes) {
                c->results.r = -ECANCELED;
                c->results.failed = c->state;
                end(c, SWEEP_REFUSED);
                return;
        }
        c->sweep.confirmed = c->sweep.decision.plan;
        if (c->sweep.locked)
                apply(c);
        else
                lock(c);
}

static bool same_text(const char *x, const char *y)
{
        return x == y || (x && y && strcmp(x, y) == 0);
}

static void decide_to_serve(struct control *c)
{
        struct generation *g = to_decide(c);
        const char *conf = g ? g->settings->opensm_config : NULL;
        int r = -EAGAIN;

        /* what is in force may be about another opensm.conf than the candidate that was refused */
        while (r == -EAGAIN && g && same_text(conf, g->settings->opensm_config)) {
                _cleanup_findings_ struct findings findings = {};

                findings_init(&findings, c->sweep.arena);
                r = decide_by(c, g, &findings);
                if (r == -EBADMSG)
                        refuse(c, &findings);
                g = to_decide(c);
        }
        if (r == -EAGAIN)
                end(c, SWEEP_STALE);
        else if (r == 0)
                carry_out(c);
        else if (r != -EBADMSG)
                fail(c, "no plan could be made", r);
}

static void decide(struct control *c)
{
        snapshot_reset_failed(c->snapshot);
        c->sweep.decided_serial = c->reloads.last_serial + 1;
        if (serves(c))
                decide_to_serve(c);
        else
                decide_once(c);
}

/* --- opensm.conf -------------------------------------------------------------------------------------------------- */

void sweep_read_conf(struct control *c, const struct control_event *event)
{
        const struct control_file *file = &event->files[0];
        struct sweep *s = &c->sweep;
        int r = 0;

        if (file->r < 0)
                (void) findings_add(&s->conf_findings, FINDING_ERROR, FINDING_FILE_UNREADABLE,
                                    &(struct location) { .file = file->path }, "%s", strerror(-file->r));
        else
                r = opensm_conf_parse(s->arena, file->path, file->bytes, file->n, &s->conf_findings, &s->conf);
        if (r < 0)
                fail(c, "opensm.conf could not be read", r);
        else
                decide(c);
}

/* What OpenSM will make of a partition file depends on it. Its defaults are in force where none is named. */
static void read_conf(struct control *c)
{
        const struct generation *g = to_decide(c);
        struct sweep *s = &c->sweep;

        opensm_conf_default(&s->conf);
        findings_done(&s->conf_findings);
        findings_init(&s->conf_findings, s->arena);
        if (!g || !serves(c) || g->settings->mode == MODE_AUDIT || !opensm_writer_path(g) || !g->settings->opensm_config) {
                decide(c);
                return;
        }
        go_to(c, CONTROL_READING_CONF);
        control_do(c, &(struct control_action) {
                .kind = CONTROL_READ_FILES, .files = { { .path = g->settings->opensm_config } },
        });
}

/* --- the port ----------------------------------------------------------------------------------------------------- */

static void port_waits(struct control *c, const char *why)
{
        char port[CONTROL_PORT_NAME];

        control_say(c, "waiting for %s: %s", control_port_name(control_wanted(c)->settings, port), why);
        if (!c->waiting)
                log_add(c->log, LOG_EVENT_WAITING_FOR_PORT, NULL, "%s", c->text);
        c->waiting = true;
        end(c, SWEEP_WAITS);
}

/* False: the sweep has ended, the port is good for nothing now. */
static bool port_works(struct control *c, int r)
{
        const char *problem;

        if (r < 0) {
                fail(c, "the port could not be asked for its state", r);
                return false;
        }
        problem = port_query_problem(&c->sweep.query);
        if (problem)
                port_waits(c, problem);
        return !problem;
}

/* --- who writes --------------------------------------------------------------------------------------------------- */

static void name_sm(struct control *c)
{
        const struct subnet *s = c->snapshot->subnet;
        const struct subnet_node *node = s->sm == SUBNET_NONE ? NULL : subnet_port_node(s, &s->ports[s->sm]);

        (void) snprintf(c->sm_name, sizeof(c->sm_name), "%s", !node ? "" : *node->name ? node->name : node->description);
}

static void report_sm(struct control *c)
{
        struct log_about about = { .lid = c->sm.sm_lid, .generation = c->in_force ? c->in_force->number : 0 };
        char text[192];

        sm_follow_describe(&c->sm, c->sm_name, text, sizeof(text));
        switch (c->sm.state) {
        case SM_FOLLOW_STANDBY:
                log_add(c->log, LOG_EVENT_STANDS_BY, &about, "%s; nothing is written from here", text);
                return;
        case SM_FOLLOW_WRITER:
                log_add(c->log, LOG_EVENT_WRITES, &about, "%s", text);
                return;
        case SM_FOLLOW_UNKNOWN:
        case SM_FOLLOW_TAKING_OVER:
                log_debug(c->log, "%s", text);
                return;
        }
}

static usec_t sm_hold(const struct control *c)
{
        return SM_HOLD + control_wanted(c)->settings->timeout;
}

static void wait_for_other(struct control *c)
{
        char text[192];

        sm_follow_describe(&c->sm, c->sm_name, text, sizeof(text));
        control_say(c, "%s", text);
        go_to(c, CONTROL_TAKING_OVER);
}

void sweep_found_sm(struct control *c, const struct control_event *event)
{
        const struct port_info *info = &c->sweep.query.info;
        struct sm_view view;
        bool changed;

        if (!port_works(c, event->r))
                return;
        c->sweep.sm_seen_at = c->now;
        if (info->sm_lid.v != c->snapshot->subnet->sm_lid.v) {
                end(c, SWEEP_STALE); /* the snapshot is older than the SM */
                return;
        }
        view_others(c, &view);
        sm_view_add(&view, info->lid, info->lmc);
        view.sm_lid = info->sm_lid;
        changed = sm_follow_see(&c->sm, &view, sm_hold(c), c->now);
        name_sm(c);
        if (changed) {
                c->standby_reported = 0;
                report_sm(c);
        }
        if (c->sm.state == SM_FOLLOW_TAKING_OVER)
                wait_for_other(c);
        else if (changed && c->sweep.kind != SWEEP_FULL)
                end(c, SWEEP_STALE);
        else
                read_conf(c);
}

static void query_port(struct control *c, enum control_state state)
{
        run_stage(c, state, port_query_stage(&c->sweep.query, local_m_key(c, c->sweep.m_keys)));
}

/* --- lock --------------------------------------------------------------------------------------------------------- */

static void wait_for_lock(struct control *c, int pid)
{
        if (!serves(c)) {
                c->results.lock_pid = pid;
                fail(c, "another process writes P_Key tables", -EWOULDBLOCK);
                return;
        }
        if (!c->sweep.waited_for_lock)
                log_add(c->log, LOG_EVENT_LOCK_WAIT, NULL,
                        "process %d is writing P_Key tables with the same state directory; waiting for it", pid);
        c->sweep.waited_for_lock = true;
        c->sweep.lock_at = c->now + LOCK_RETRY;
        control_say(c, "waiting for another process that writes P_Key tables");
}

void sweep_locked(struct control *c, const struct control_event *event)
{
        struct sweep *s = &c->sweep;

        if (event->lock.r == -EWOULDBLOCK) {
                wait_for_lock(c, event->lock.pid);
                return;
        }
        /* without a state directory there is no lock, and nothing is remembered: that was logged */
        s->locked = event->lock.r == 0;
        if (event->lock.indexes) {
                (void) index_memory_free(c->indexes);
                c->indexes = event->lock.indexes;
                c->indexes_stored = index_memory_digest(c->indexes);
        }
        if (s->waited_for_lock)
                end(c, SWEEP_STALE); /* what was read before is what the other process changed */
        else if (!serves(c) && c->config.confirm)
                survey(c);
        else if (control_follows_sm(c))
                query_port(c, CONTROL_FINDING_SM);
        else
                read_conf(c);
}

/* --- what was read ------------------------------------------------------------------------------------------------ */

static bool any_unknown(const struct observed *o)
{
        for (uint32_t i = 0; i < o->subnet->n_ports; i++)
                if (o->tables[i].entries && o->tables[i].source == TABLE_UNKNOWN)
                        return true;
        return false;
}

/* What the generation in force gives the ports of this subnet; NULL if there is none, or it does not fit this fabric. */
static int desired_in_force(const struct control *c, const struct subnet *subnet, struct desired **ret)
{
        _cleanup_findings_ struct findings ignored = {};
        struct arena *a = c->sweep.arena;
        struct memberships *memberships;
        int r;

        findings_init(&ignored, a);
        *ret = NULL;
        if (!c->in_force)
                return 0;
        r = policy_resolve(a, c->in_force->policy, subnet, &ignored, &memberships);
        if (r < 0)
                return r == -EBADMSG ? 0 : r;
        return desired_compute(a, memberships, ret);
}

/* What somebody else freed was used, too. If that is the pkeyd of the other head node, it did what the policy says. Memory
 * being out loses a hint, not correctness. */
static void learn(struct control *c, const struct observed *now, const struct desired *desired)
{
        bool other_sm = c->snapshot->subnet->sm_lid.v != now->subnet->sm_lid.v;
        bool by_other_pkeyd = c->in_force && c->in_force->settings->role == ROLE_FOLLOW_SM &&
                              (other_sm || !control_may_write(c, c->in_force));

        (void) index_memory_learn_written(c->indexes, c->snapshot->observed, now, by_other_pkeyd ? desired : NULL);
}

static void learn_known(struct control *c)
{
        if (!serves(c) || known_learn(&c->known, c->snapshot->subnet, c->wall / USEC_PER_SEC) <= 0)
                return;
        control_do(c, &(struct control_action) { .kind = CONTROL_STORE, .record = { .known = &c->known } });
}

static int adopt_snapshot(struct control *c)
{
        struct snapshot *new = c->sweep.new_snapshot;
        struct desired *desired = NULL;
        int r = 0;

        if (control_follows_sm(c) || any_unknown(new->observed))
                r = desired_in_force(c, new->subnet, &desired);
        if (r < 0)
                return r;
        if (c->snapshot) {
                observed_assume_from(new->observed, c->snapshot->observed);
                learn(c, new->observed, desired);
        }
        /* ports that could not be read so far are taken to hold what the generation in force gave them */
        if (desired)
                (void) desired_assume_unread(new->observed, desired);
        snapshot_unref(c->snapshot);
        c->snapshot = STEAL(c->sweep.new_snapshot);
        learn_known(c);
        return 0;
}

/* A part of the known snapshot was read again. What went there is to be put back where it was, so that must be learned, too:
 * after this the difference is gone. */
static int adopt_seen(struct control *c)
{
        struct desired *desired = NULL;
        int r = control_follows_sm(c) ? desired_in_force(c, c->snapshot->subnet, &desired) : 0;

        if (r < 0)
                return r;
        learn(c, c->sweep.seen, desired);
        snapshot_merge(c->snapshot, c->sweep.seen);
        return 0;
}

void sweep_surveyed(struct control *c, const struct control_event *event)
{
        int r = event->r;

        if (r == 0)
                r = c->sweep.new_snapshot ? adopt_snapshot(c) : adopt_seen(c);
        if (r < 0) {
                fail(c, "the P_Key tables could not be read", r);
                return;
        }
        c->sweep.surveyed = true;
        c->results.observed = c->snapshot->observed;
        if (c->config.goal == CONTROL_LOOK)
                end(c, SWEEP_DONE);
        else if (serves(c) || !c->config.confirm)
                lock(c);
        else
                read_conf(c);
}

void sweep_chosen(struct control *c, const struct control_event *event)
{
        struct sweep *s = &c->sweep;

        if (event->chosen.ports) {
                s->n_chosen = event->chosen.n;
                s->chosen = arena_new_array(s->arena, uint32_t, s->n_chosen);
                if (!s->chosen) {
                        fail(c, "the P_Key tables could not be read", -ENOMEM);
                        return;
                }
                if (s->n_chosen > 0)
                        memcpy(s->chosen, event->chosen.ports, s->n_chosen * sizeof(*s->chosen));
        }
        survey(c);
}

/* --- discovery ---------------------------------------------------------------------------------------------------- */

static int take_discovered(struct control *c)
{
        struct sweep *s = &c->sweep;
        struct snapshot *new = s->new_snapshot;
        int r;

        r = discovery_finish(s->discovery, new->arena, &new->subnet);
        if (r < 0)
                return r;
        /* where memory is out, the M_Keys of the next discovery are worse guesses */
        (void) discovery_learn_links(s->discovery, c->links);
        s->discovery = discovery_free(s->discovery);
        /* the master SM's port is missing: answers were lost, see reconcile.c */
        if (serves(c) && new->subnet->sm_lid.v && new->subnet->sm == SUBNET_NONE)
                return -ENODATA;
        return snapshot_prepare(new);
}

void sweep_discovered(struct control *c, const struct control_event *event)
{
        struct subnet *subnet;
        int r = event->r < 0 ? event->r : take_discovered(c);

        if (r < 0) {
                fail(c, "the fabric could not be discovered", r);
                return;
        }
        subnet = c->sweep.new_snapshot->subnet;
        c->discovery_failed = false;
        c->results.subnet = subnet;
        log_debug(c->log, "discovered: %u nodes, %u ports that matter", subnet->n_nodes, subnet->n_ports);
        if (!c->config.choose_tables) {
                survey(c);
                return;
        }
        go_to(c, CONTROL_CHOOSING);
        control_do(c, &(struct control_action) { .kind = CONTROL_CHOOSE_TABLES });
}

/* Once for each generation. What is wrong with them, or that memory is out, makes the M_Keys worse guesses. */
static void take_neighbors(struct control *c, struct generation *g)
{
        uint32_t n_ignored;

        if (g->neighbors)
                (void) discovery_links_add_neighbors(c->links, g->neighbors, g->n_neighbors, &n_ignored);
        g->neighbors = NULL;
}

static void discover(struct control *c)
{
        struct sweep *s = &c->sweep;
        const struct discovery_config config = {
                .m_keys = s->m_keys, .expected = c->links, .local_port = c->port_guid, .retries = STAGE_RETRIES,
        };
        int r = -ENOMEM;

        take_neighbors(c, control_wanted(c));
        s->new_snapshot = snapshot_new();
        if (s->new_snapshot)
                r = discovery_new(&config, &s->discovery);
        go_to(c, CONTROL_DISCOVERING);
        if (r < 0)
                fail(c, "the fabric could not be discovered", r);
        else
                run_stage(c, CONTROL_DISCOVERING, discovery_stage(s->discovery));
}

/* --- the beginning ------------------------------------------------------------------------------------------------ */

void sweep_queried(struct control *c, const struct control_event *event)
{
        if (!port_works(c, event->r))
                return;
        c->port_info = c->sweep.query.info;
        c->has_port_info = true;
        if (c->waiting)
                log_add(c->log, LOG_EVENT_PORT_FOUND, &(struct log_about) { .lid = c->port_info.lid }, "%s is up, LID %u",
                        c->port_name, (unsigned) c->port_info.lid.v);
        c->waiting = false;
        discover(c);
}

static const char *port_problem(int r)
{
        switch (r) {
        case -ENETDOWN:
                return "its link is down";
        case -ENODEV:
                return "there is no such device";
        }
        return strerror(-r);
}

/* Of another port the snapshot says nothing. */
static void take_port(struct control *c, const struct control_port *port)
{
        if (c->snapshot && port->guid.v != c->port_guid.v) {
                c->snapshot = snapshot_unref(c->snapshot);
                c->sweep.kind = SWEEP_FULL;
        }
        c->port = c->sweep.port;
        c->port_guid = port->guid;
        (void) snprintf(c->port_name, sizeof(c->port_name), "%s", port->name);
        c->n_host_guids = MIN(port->n_host_guids, (size_t) SM_MAX_PORTS);
        if (c->n_host_guids > 0)
                memcpy(c->host_guids, port->host_guids, c->n_host_guids * sizeof(*c->host_guids));
}

void sweep_port(struct control *c, const struct control_event *event)
{
        if (event->port.r < 0 && serves(c)) {
                port_waits(c, port_problem(event->port.r));
                return;
        }
        if (event->port.r < 0) {
                fail(c, "the port cannot be used", event->port.r);
                return;
        }
        take_port(c, &event->port);
        if (c->sweep.kind == SWEEP_FULL && serves(c))
                query_port(c, CONTROL_QUERYING_PORT);
        else if (c->sweep.kind == SWEEP_FULL)
                discover(c);
        else if (c->sweep.kind == SWEEP_RETRY || control_wanted(c)->settings->writer == WRITER_OPENSM)
                survey(c); /* OpenSM does not read a table before it writes it, so that is done here */
        else
                lock(c);
}

void sweep_begin(struct control *c, enum sweep_kind kind)
{
        const struct generation *g = control_wanted(c);

        c->sweep = (struct sweep) {
                .kind = kind, .began = c->now, .arena = arena_new(), .m_keys = m_keys_ref(g->m_keys),
                .first_serial = c->reloads.last_serial + 1,
        };
        port_key_make(g->settings, &c->sweep.port);
        go_to(c, CONTROL_OPENING_PORT);
        if (c->sweep.arena)
                control_do(c, &(struct control_action) { .kind = CONTROL_OPEN_PORT, .settings = g->settings });
        else
                fail(c, "no sweep could begin", -ENOMEM);
}

/* --- time --------------------------------------------------------------------------------------------------------- */

usec_t sweep_due(const struct control *c)
{
        switch (c->state) {
        case CONTROL_LOCKING:
                return c->sweep.lock_at;
        case CONTROL_TAKING_OVER:
                return sm_follow_due(&c->sm, sm_hold(c));
        case CONTROL_WRITING_OPENSM:
                return opensm_writer_due(c->writer);
        case CONTROL_IDLE:
        case CONTROL_OPENING_PORT:
        case CONTROL_QUERYING_PORT:
        case CONTROL_DISCOVERING:
        case CONTROL_CHOOSING:
        case CONTROL_SURVEYING:
        case CONTROL_CONFIRMING:
        case CONTROL_FINDING_SM:
        case CONTROL_READING_CONF:
        case CONTROL_APPLYING:
        case CONTROL_MIRRORING:
        case CONTROL_ENDED:
        case CONTROL_N_STATES:
                break;
        }
        return USEC_INFINITY;
}

void sweep_tick(struct control *c)
{
        if (c->now < sweep_due(c))
                return;
        if (c->state == CONTROL_LOCKING) {
                lock(c);
        } else if (c->state == CONTROL_TAKING_OVER) {
                end(c, SWEEP_STALE); /* what was read is from before the other one stopped */
        } else if (c->state == CONTROL_WRITING_OPENSM) {
                opensm_writer_tick(c->writer, c->now);
                follow_writer(c);
        }
}
