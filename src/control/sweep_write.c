/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "control/lease_sweep.h"
#include "control/leasing.h"
#include "control/reload.h"
#include "control/sweep_steps.h"
#include "control/store_sync.h"
#include "events/event_text.h"
#include "util/text.h"

/* --- compare ------------------------------------------------------------------------------------------------------- */

/* Without a comparison, the numbers of tables that match or differ stay as they were. */
static void count_ports(struct control *c, const struct watch_report *report, bool compared)
{
        struct port_counts *ports = &c->status.ports;

        ports->managed = report->n_ports;
        ports->unreachable = report->n_unreachable;
        ports->silent = subnet_count_silent(c->snapshot->subnet);
        if (!compared)
                return;
        ports->right = report->n_right;
        ports->differ = report->n_differ;
        c->status.numbers.compared = true;
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

int sweep_watch(struct control *c, bool compare, struct watch_report *ret)
{
        struct sweep *s = &c->sweep;
        struct verification *v = NULL;
        int r;

        if (compare) {
                r = verify_compare(s->arena, s->decision.desired, c->snapshot->observed, &s->options, &v);
                if (r < 0)
                        return r;
                c->results.verification = v;
        }
        r = watch_update(c->watch, s->arena, c->snapshot->observed, v, sweep_number(c), &c->known, ret);
        if (r < 0)
                return r;
        known_reported(&c->known);
        count_ports(c, ret, compare);
        if (compare)
                c->watched_generation = s->generation->number;
        if (compare && s->kind == SWEEP_FULL) /* the whole fabric at one time */
                report_standby(c, v);
        event_text_watch(c->log, s->generation ? s->generation : c->in_force, ret, c->snapshot->subnet,
                         s->generation && !control_may_write(c, s->generation));
        return 0;
}

/* Nothing was written, or not everything: tables are compared with the policy nevertheless, because it is in force. */
static void compare_unwritten(struct control *c)
{
        struct watch_report report;

        if (control_serves(c) && !c->sweep.part.subnet) /* the sweep after one for leases compares the whole fabric */
                (void) sweep_watch(c, true, &report); /* out of memory: with the next sweep */
}

static void fail_to_write(struct control *c, const char *what, int error)
{
        compare_unwritten(c);
        sweep_fail(c, what, error);
}

/* "", or why nothing is written. */
static const char *describe_audit(const struct control *c, const struct generation *g)
{
        if (!g->audits)
                return "";
        if (g->settings->mode == MODE_AUDIT)
                return " (audit)";
        return subnet_has_master(c->snapshot->subnet) ? " (audit: a subnet manager runs, " CONTROL_SM_UNEXPECTED ")"
                                                      : " (audit: a subnet manager ran since pkeyd loaded its files, " CONTROL_SM_UNEXPECTED
                                                        "; until the files change or pkeyd is restarted)";
}

static size_t n_held(const struct control *c)
{
        size_t n = 0;

        if (c->status.held)
                (void) held_list_items(c->status.held, &n);
        return n;
}

static void set_outcome_status(struct control *c, const struct watch_report *report)
{
        const struct generation *g = c->sweep.generation;
        uint32_t n_silent = c->status.ports.silent;
        size_t held = n_held(c), n_errors = c->status.n_errors;
        _cleanup_text_ struct text t = {};
        char role[192];

        if (!control_may_write(c, g)) {
                sm_follow_describe(&c->sm, c->sm_name, role, sizeof(role));
                text_add(&t, "%s; ", role);
                if (*c->follow_problem)
                        text_add(&t, "the activity of the other head node is not known, because the store cannot be read: %s; ",
                                 c->follow_problem);
        }
        text_add(&t, "generation %" PRIu64 "%s: %u port%s verified", g->number, describe_audit(c, g), report->n_right,
                 text_plural(report->n_right));
        if (report->n_differ > 0)
                text_add(&t, ", %u differ%s", report->n_differ, report->n_differ == 1 ? "s" : "");
        if (report->n_unreachable > 0)
                text_add(&t, ", %u unreachable", report->n_unreachable);
        if (n_silent > 0)
                text_add(&t, ", %u silent link%s", n_silent, text_plural(n_silent));
        if (held > 0)
                text_add(&t, ", %zu base%s held", held, text_plural(held));
        if (n_errors > 0)
                text_add(&t, "; the policy has %zu error%s on this fabric: pkeyctl plan lists %s", n_errors, text_plural(n_errors),
                         n_errors == 1 ? "it" : "them");
        control_set_status(c, "%s", t.bytes ?: "out of memory");
}

/* Of pkeyctl. */
static void bring_into_force(struct control *c, struct generation *g)
{
        c->results.generation = g->number = ++c->last_number;
        g->facts.time = c->wall / USEC_PER_SEC;
        g->facts.confirm_until = g->facts.confirm_for > 0 ? g->facts.time + g->facts.confirm_for : 0;
        sync_will_store(c, g);
        leasing_accepted(c);
}

/* On all ports that are known and not frozen. */
static bool is_carried_out(const struct control *c)
{
        const struct verification *v = c->results.verification;
        struct apply_summary summary = {};

        if (c->sweep.apply)
                apply_get_summary(c->sweep.apply, &summary);
        return summary.failed + summary.held + summary.n_held_bases == 0 && !c->sweep.apply_stopped && v->n_differ == 0 &&
               v->n_unreachable == 0;
}

/* The generation was stored before its writes; now it is stored again, with its outcome. */
static void store_outcome(struct control *c, struct generation *g)
{
        bool all = is_carried_out(c) && c->status.ports.silent == 0 && !plan_has_frozen_ports(c->sweep.decision.plan);

        (void) reload_set_outcome(c, g, all ? RELOAD_CARRIED_OUT : RELOAD_PARTIAL);
        sync_will_store(c, g);
}

/* A policy is stored as in force only after it was carried out completely, if nothing waits for it. */
static void store_policy(struct control *c)
{
        struct generation *g = c->candidate;

        if (g->number > 0) {
                store_outcome(c, g);
                return;
        }
        if (!is_carried_out(c))
                return;
        if (c->in_force && generation_has_policy(c->in_force, g->policy_bytes, g->n_policy_bytes)) {
                c->results.generation = c->in_force->number;
                return;
        }
        g->facts.confirm_for = 0; /* no table was written, else it is in the store already: there is nothing to undo */
        bring_into_force(c, g);
        (void) reload_set_outcome(c, g, RELOAD_CARRIED_OUT);
}

/* A change that can be undone in time, and an undo, are stored before their first write. */
static void store_before_writing(struct control *c)
{
        struct generation *g = c->candidate;

        if (c->config.goal == CONTROL_APPLY && (g->facts.confirm_for > 0 || g->facts.undoes > 0) && g->number == 0)
                bring_into_force(c, g);
}

static void finish(struct control *c)
{
        bool failed = snapshot_n_failed(c->snapshot) > 0;
        bool waits = n_held(c) > 0 && control_writes(c, c->sweep.generation); /* in audit mode, and on a standby, no write waits */

        if (c->config.goal == CONTROL_APPLY)
                store_policy(c);
        c->sweep.only_waits = !failed;
        sweep_end(c, failed || waits ? SWEEP_PARTIAL : SWEEP_DONE);
}

/* False: the sweep has ended with a problem. */
static bool compare_and_report(struct control *c)
{
        struct generation *g = c->sweep.generation;
        struct watch_report report;
        bool first = !g->carried_out;
        int r = sweep_watch(c, true, &report);

        if (r < 0) {
                sweep_fail(c, "tables could not be compared with the policy", r);
                return false;
        }
        if (control_serves(c) && c->status.held && control_writes(c, g))
                event_text_held(c->log, g, c->snapshot->subnet, &c->known, c->status.held, c->wall / USEC_PER_SEC,
                                &c->held_reported);
        reload_announce(c);
        set_outcome_status(c, &report);
        g->carried_out = true;
        verbs_check_expect(c->verbs, c->now, g, c->sweep.decision.desired, c->snapshot->observed, c->host_guids, c->n_host_guids);
        if (first)
                log_add(c->log, LOG_EVENT_VERIFIED, &(struct log_about) { .generation = g->number }, "%s", c->text);
        return true;
}

/* --- OpenSM's file ------------------------------------------------------------------------------------------------- */

/* The knowledge has the writes that the writer expects of OpenSM. */
static void store_for_writer(struct control *c)
{
        int r = sweep_store(c, c->state);

        if (r <= 0)
                opensm_writer_answer(c->writer, c->now, &(struct control_event) { .kind = CONTROL_EVENT_STORED, .r = r });
}

/* The tables match the policy, but not the file of OpenSM. It is written again like a port that failed. */
static void end_with_old_mirror(struct control *c, int r)
{
        const char *problem = opensm_writer_problem(c->writer);
        char tables[sizeof(c->text)];

        memcpy(tables, c->text, sizeof(tables));
        control_set_status(c, "OpenSM's file does not match the policy: %s; %s", *problem ? problem : strerror(-r), tables);
        sweep_end(c, SWEEP_PARTIAL);
}

void sweep_follow_writer(struct control *c)
{
        struct control_action action;
        int r;

        while (opensm_writer_next_action(c->writer, &action)) {
                if (action.kind == CONTROL_STORE)
                        store_for_writer(c);
                else
                        control_request(c, &action);
        }
        if (!opensm_writer_take_end(c->writer, &r))
                return;
        if (r < 0 && c->state == CONTROL_WRITING_OPENSM) {
                if (r != -ECANCELED && r != -ESTALE)
                        compare_unwritten(c);
                if (*opensm_writer_problem(c->writer))
                        control_set_status(c, "%s", opensm_writer_problem(c->writer));
                sweep_end(c, r == -ECANCELED ? SWEEP_STOPPED : r == -ESTALE ? SWEEP_STALE : SWEEP_FAILED);
        } else if (c->state == CONTROL_MIRRORING && r < 0) {
                end_with_old_mirror(c, r);
        } else if (c->state == CONTROL_MIRRORING || compare_and_report(c)) {
                finish(c);
        }
}

static void start_writer(struct control *c, enum control_state state)
{
        const struct opensm_job job = {
                .fabric = c->config.fabric,
                .generation = c->sweep.generation, .decision = &c->sweep.decision, .snapshot = c->snapshot,
                .knowledge = c->knowledge, .known = &c->known, .pins = c->sweep.options.pins, .conf = &c->sweep.conf,
                .mirror = state == CONTROL_MIRRORING,
                .stores = !control_is_guest(c),
                .in_force = control_may_write(c, c->sweep.generation) || c->status.ports.differ == 0,
        };

        c->state = state;
        opensm_writer_start(c->writer, c->now, &job);
        sweep_follow_writer(c);
}

void sweep_writer_answered(struct control *c, const struct control_event *event)
{
        struct control_event answer = *event;

        if (event->kind == CONTROL_EVENT_STORED)
                answer.r = sweep_take_stored(c, event);
        opensm_writer_answer(c->writer, c->now, &answer);
        sweep_follow_writer(c);
}

/* --- verify -------------------------------------------------------------------------------------------------------- */

/* What OpenSM may write by the file is stored before the file is written; a guest, whose store is the other head node's, only
 * remembers it. */
static bool mirrors(const struct control *c)
{
        const struct generation *g = c->sweep.generation;

        return (c->sweep.lock.held || control_is_guest(c)) && control_serves(c) && !g->audits &&
               settings_opensm_file(g->settings) && (g->settings->writer == WRITER_DIRECT || !control_may_write(c, g));
}

static void verify_leases(struct control *c)
{
        enum sweep_result result;
        int r = lease_sweep_verify(c, &result);

        if (r < 0)
                sweep_fail(c, "tables could not be compared with the policy", r);
        else
                sweep_end(c, result);
}

void sweep_verify(struct control *c)
{
        if (c->sweep.part.subnet) {
                verify_leases(c);
                return;
        }
        if (!compare_and_report(c))
                return;
        if (mirrors(c))
                start_writer(c, CONTROL_MIRRORING);
        else
                finish(c);
}

/* --- apply --------------------------------------------------------------------------------------------------------- */

static uint32_t index_in_snapshot(const struct control *c, uint32_t port)
{
        return c->sweep.part.subnet ? c->sweep.part.ports[port] : port;
}

static void mark_failed_ports(struct control *c)
{
        const struct plan *plan = c->sweep.decision.plan;

        for (int phase = 0; phase < PLAN_N_PHASES; phase++)
                for (uint32_t i = 0; i < plan->steps[phase].n_writes; i++)
                        if (apply_outcome(c->sweep.apply, (enum plan_phase) phase, i)->state == APPLY_FAILED)
                                c->snapshot->failed[index_in_snapshot(c, plan->steps[phase].writes[i].port)] = true;
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

static void report_gate(struct control *c)
{
        uint64_t n = gate_n_refused(c->gate) - c->status.numbers.n_refused_by_gate;
        char text[512];

        if (n == 0)
                return;
        c->status.numbers.n_refused_by_gate += n;
        (void) snprintf(text, sizeof(text), "pkeyd did not send %" PRIu64 " write%s that could break a promise (the last one: %s); either "
                        "a table changed at that moment, or this is a bug in pkeyd: if it happens again, please report it", n,
                        text_plural(n), gate_refusal(c->gate));
        log_add(c->log, LOG_EVENT_GATE_REFUSED, &(struct log_about) { .generation = c->sweep.generation->number }, "%s", text);
        if (!control_serves(c))
                (void) findings_add(c->config.findings, FINDING_ERROR, FINDING_BUG, NULL, "%s", text);
}

/* The lock ended while tables were written. */
static void report_lost_lock(struct control *c)
{
        uint64_t n = gate_n_late(c->gate) - c->sweep.n_late_before;

        if (n > 0)
                log_add(c->log, LOG_EVENT_LOCK_LOST, &(struct log_about) { .generation = c->sweep.generation->number },
                        "pkeyd lost the lock in etcd, because its lease ended; %" PRIu64 " write%s not sent; pkeyd takes the lock again "
                        "and then reads all tables", n, n == 1 ? " was" : "s were");
}

/* All phases have ended. r < 0: writing was interrupted, and why. */
static void applied(struct control *c, int r, const char *why)
{
        struct sweep *s = &c->sweep;
        struct apply_summary summary;

        knowledge_withdraw(c->knowledge);
        report_gate(c);
        report_lost_lock(c);
        if (s->part.subnet)
                lease_sweep_merge(c);
        apply_get_summary(s->apply, &summary);
        count_writes(c, &summary);
        c->results.apply = s->apply;
        c->results.stopped = s->apply_stopped;
        if (r < 0) {
                fail_to_write(c, why, r);
        } else if (s->apply_stopped && control_serves(c)) {
                log_debug(c->log, "generation %" PRIu64 ": writing was ended early", s->generation->number);
                sweep_end(c, SWEEP_STOPPED);
        } else if (apply_is_stale(s->apply)) {
                log_debug(c->log, "generation %" PRIu64 ": a port is no longer at its address", s->generation->number);
                sweep_end(c, SWEEP_STALE);
        } else {
                mark_failed_ports(c);
                if (!s->part.subnet || summary.n_held_bases > 0)
                        sweep_set_held(c, s->apply);
                /* sweep_watch() does not see the ports of a part */
                event_text_apply(c->log, s->generation, s->decision.plan, s->part.subnet ? NULL : sweep_observed(c), s->apply,
                                 c->now - s->apply_began, &c->apply_failures);
                sweep_verify(c);
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
        if (c->state == CONTROL_APPLYING || c->state == CONTROL_STORING)
                stop_apply(c);
        else if (c->state == CONTROL_WRITING_OPENSM)
                opensm_writer_stop(c->writer);
}

/* The apply ends when the master SM leaves this host. */
static void prepare_guard(struct control *c)
{
        struct sweep *s = &c->sweep;

        s->guard = (struct sm_guard) {
                .inner = apply_stage(s->apply), .asked_at = s->query.asked_at, .end = stop_apply, .userdata = c,
                .m_key = m_keys_get(s->generation->m_keys, c->port_guid),
        };
        sweep_view_others(c, &s->guard.others);
}

static void run_phase(struct control *c)
{
        struct sweep *s = &c->sweep;
        bool is_guarded = control_serves(c) && s->generation->settings->role == ROLE_FOLLOW_SM;

        reload_announce(c);
        gate_open(c->gate, c->knowledge, s->policy);
        sweep_run_stage(c, CONTROL_APPLYING, is_guarded ? sm_guard_stage(&s->guard) : apply_stage(s->apply));
}

/* Stores the possible writes of the next phase before its first MAD is sent. The phases before may have taken long. */
static void next_phase(struct control *c)
{
        int prepared = knowledge_apply_doubt(c->knowledge, c->now) ?: apply_prepare(c->sweep.apply);
        int r = prepared > 0 ? sweep_store(c, CONTROL_STORING) : prepared;

        if (r < 0)
                applied(c, r, "writing was interrupted");
        else if (prepared == 0)
                applied(c, 0, NULL);
        else if (r == 0)
                run_phase(c);
}

void sweep_stored(struct control *c, const struct control_event *event)
{
        int r = sweep_take_stored(c, event);

        if (r == 0)
                run_phase(c);
        else
                applied(c, r, "the next writes could not be stored, so they are not sent");
}

void sweep_phase_applied(struct control *c, const struct control_event *event)
{
        gate_close(c->gate);
        if (event->r < 0) {
                applied(c, event->r, "writing was interrupted");
                return;
        }
        if (apply_is_stale(c->sweep.apply))
                apply_abort(c->sweep.apply);
        next_phase(c);
}

/* Notes the tables that the plan will write, as they are, unless the generation wrote them before; the next transaction has them.
 * Returns 0 or -ENOMEM. */
static int note_before(struct control *c)
{
        struct sweep *s = &c->sweep;
        const struct subnet *subnet = sweep_observed(c)->subnet;
        bool *done = arena_new_array(s->arena, bool, subnet->n_ports);

        if (!done)
                return -ENOMEM;
        s->before.arena = s->arena;
        before_records_mark(&c->before, sweep_number(c), subnet, done);
        for (const struct plan_step *step = s->decision.plan->steps; step < s->decision.plan->steps + PLAN_N_PHASES; step++)
                for (uint32_t i = 0; i < step->n_writes; i++) {
                        uint32_t port = step->writes[i].port;
                        const struct observed_table *t = &sweep_observed(c)->tables[port];
                        const struct subnet_port *p = &subnet->ports[port];

                        if (done[port] || t->source == TABLE_UNKNOWN)
                                continue;
                        done[port] = true;
                        if (layout_add(&s->before, subnet->nodes[p->node].guid, p->number, t->entries, t->capacity) < 0)
                                return -ENOMEM;
                }
        return 0;
}

void sweep_apply(struct control *c)
{
        struct sweep *s = &c->sweep;
        struct apply_options options = {
                .knowledge = c->knowledge, .m_keys = s->generation->m_keys, .retries = STAGE_RETRIES,
        };
        int r;

        s->apply_began = c->now;
        s->n_late_before = gate_n_late(c->gate);
        store_before_writing(c);
        r = note_before(c) ?: apply_new(s->arena, s->decision.plan, sweep_observed(c), c->indexes, &options, &s->apply);
        if (r < 0) {
                fail_to_write(c, "the plan could not be carried out", r);
                return;
        }
        prepare_guard(c);
        next_phase(c);
}

/* --- carry out ----------------------------------------------------------------------------------------------------- */

void sweep_carry_out(struct control *c)
{
        struct sweep *s = &c->sweep;
        const struct settings *settings = s->generation->settings;
        bool compared_before = c->watched_generation == s->generation->number, writes, is_direct;
        struct watch_report report;
        int r = 0;

        /* drift is reported before it is repaired; a difference to a new policy is no drift */
        if (s->surveyed)
                r = sweep_watch(c, compared_before, &report);
        if (r < 0) {
                sweep_fail(c, "tables could not be compared with the policy", r);
                return;
        }
        /* while this host stands by the other head node carries out the policy: ports that do not answer may have been written */
        if (!control_may_write(c, s->generation) && !c->config.shares_store && knowledge_suspect_policy(c->knowledge) < 0) {
                sweep_fail(c, "pkeyd could not record what the other head node may have written", -ENOMEM);
                return;
        }
        writes = control_writes(c, s->generation);
        is_direct = settings->writer == WRITER_DIRECT;
        if (writes && s->lock.held && is_direct && !plan_is_empty(s->decision.plan)) {
                sweep_apply(c); /* sets the held bases at its end */
                return;
        }
        sweep_predict_held(c);
        if (writes && !s->lock.held) {
                compare_unwritten(c);
                sweep_fail_without_store(c);
        } else if (writes && !is_direct) {
                start_writer(c, CONTROL_WRITING_OPENSM);
        } else {
                sweep_verify(c);
        }
}
