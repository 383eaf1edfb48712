/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "control/confirm.h"
#include "control/lease_sweep.h"
#include "control/leasing.h"
#include "control/reload.h"
#include "control/sweep_steps.h"
#include "events/event_text.h"
#include "reach/reach_text.h"
#include "util/text.h"

/* How long after discovery a port that was absent counts as absent: reading the tables of others may take longer. */
#define DISCOVERY_GETS_OLD (8 * USEC_PER_SEC)
#define LOCK_RETRY         USEC_PER_SEC

/* --- plan --------------------------------------------------------------------------------------------------------- */

/* No generation can be carried out on this fabric; the next sweep may find it changed. */
static void refuse(struct control *c, const struct findings *findings)
{
        struct generation *g = c->sweep.generation;
        size_t n = findings->n_errors;
        struct watch_report report;

        if (c->sweep.surveyed)
                (void) sweep_watch(c, false, &report);
        control_set_status(c, "the policy cannot be carried out on this fabric: %zu error%s; nothing is written", n, text_plural(n));
        if (g->n_refused != n)
                log_add(c->log, LOG_EVENT_POLICY_REFUSED, &(struct log_about) { .generation = g->number },
                        "%zu error%s: the policy cannot be carried out on this fabric; nothing was written", n, text_plural(n));
        g->n_refused = n;
        reload_refuse_all(c, findings);
        sweep_end(c, SWEEP_REFUSED);
}

static bool is_for_this_port(const struct control *c, const struct generation *g)
{
        return g && port_key_is_of(&c->sweep.port, g->settings);
}

/* The generation by which to decide on the port that the sweep works through; NULL: it takes another sweep, through another port. */
static struct generation *choose_generation(const struct control *c)
{
        if (is_for_this_port(c, c->candidate))
                return c->candidate;
        return is_for_this_port(c, c->in_force) ? c->in_force : NULL;
}

static bool has_missing_ports(const struct knowledge *k, const struct subnet *s)
{
        for (uint32_t i = 0; i < knowledge_n_records(k); i++)
                if (knowledge_get(k, i)->presence != KNOWLEDGE_THERE && !knowledge_get(k, i)->expired)
                        return true;
        for (uint32_t i = 0; i < s->n_nodes; i++)
                if (s->nodes[i].incomplete)
                        return true;
        return false;
}

/* What a policy gives all ports, also those that are not in the snapshot, or incomplete there. */
static int resolve_for_all(struct control *c, const struct generation *g, struct memberships **ret_memberships,
                           struct desired **ret)
{
        struct subnet *larger;
        int r = known_extend(c->sweep.arena, &c->known, c->snapshot->subnet, &larger);

        return r < 0 ? r : sweep_resolve(c, g, larger, ret_memberships, ret);
}

/* The same for the generation to decide by; NULL: no port is missing. */
static int resolve_missing(struct control *c, struct memberships **ret_memberships, struct desired **ret)
{
        int r;

        *ret = NULL;
        if (!has_missing_ports(c->knowledge, c->snapshot->subnet))
                return 0;
        r = resolve_for_all(c, c->sweep.generation, ret_memberships, ret);
        if (r == 0)
                (*ret)->frozen = (*ret_memberships)->frozen;
        return r;
}

static int set_policy(struct control *c)
{
        struct memberships *memberships = NULL;
        const struct desired *limited;
        struct desired *all;
        int r;

        knowledge_hold_absent(c->knowledge, c->now, c->sweep.generation->settings->absent_hold);
        if (c->sweep.kind != SWEEP_FULL || c->now - c->discovered > DISCOVERY_GETS_OLD)
                knowledge_doubt_absence(c->knowledge);
        r = resolve_missing(c, &memberships, &all);
        if (r == 0)
                r = freezer_limit(c->freezer, c->sweep.arena, &c->sweep.decision, memberships, all, &limited);
        return r < 0 ? r : knowledge_set_policy(c->knowledge, limited);
}

/* Is the policy of this generation in force? With CONTROL_SERVE that of a candidate is not, even if it is equal. An undo counts as
 * in force, because it was: what concerns single ports does not refuse it. */
static bool is_in_force(const struct control *c, const struct generation *g)
{
        if (g->facts.undoes > 0)
                return true;
        if (control_serves(c))
                return g == c->in_force;
        return c->in_force && generation_has_policy(c->in_force, g->policy_bytes, g->n_policy_bytes);
}

static int plan_as(struct control *c, bool in_force, struct findings *findings)
{
        struct sweep *s = &c->sweep;
        int r;

        s->options.in_force = in_force;
        findings_append_all(findings, &s->conf_findings);
        r = leasing_extend(c, s->generation, &s->policy) ?:
            reconcile(s->arena, s->policy, c->snapshot->observed, c->indexes, &s->options, findings, &s->decision);
        if (r == 0 && control_serves(c) && !s->generation->audits)
                r = opensm_writer_check(s->generation, &s->conf, &s->decision, findings);
        if (r == -ENOMEM || findings->out_of_memory)
                return -ENOMEM;
        return s->conf_findings.n_errors > 0 ? -EBADMSG : r;
}

/* --- a new policy on a fabric where ports are frozen --------------------------------------------------------------- */

static bool has_text(const struct findings *findings, const struct finding *f)
{
        for (size_t i = 0; i < findings->n; i++)
                if (findings->items[i].code == f->code && strcmp(findings->items[i].text, f->text) == 0)
                        return true;
        return false;
}

/* Errors that freeze ports are compared by port. The others are about ports that are not in the fabric. */
static bool is_error_of_frozen(const struct finding *f)
{
        return f->code == FINDING_POLICY_AMBIGUOUS || f->code == FINDING_PLAN_CAPACITY ||
               f->code == FINDING_PLAN_CAPACITY_TRANSITION || f->code == FINDING_PORT_FROZEN;
}

/* Not counting ports whose name another port has, too: they are frozen, but refuse no new policy. */
static bool has_new_frozen(const struct plan *candidate, const struct plan *in_force)
{
        for (uint32_t i = 0; i < candidate->subnet->n_ports; i++)
                if (candidate->frozen[i] > FREEZE_NAME && candidate->frozen[i] != in_force->frozen[i])
                        return true;
        return false;
}

static bool has_new_errors(const struct findings *candidate, const struct findings *in_force)
{
        for (size_t i = 0; i < candidate->n; i++)
                if (candidate->items[i].severity == FINDING_ERROR && !is_error_of_frozen(&candidate->items[i]) &&
                    !has_text(in_force, &candidate->items[i]))
                        return true;
        return false;
}

/* The candidate has errors, but perhaps no other ones than the policy in force: one hostile host must not refuse every edit. Errors
 * that the policy in force has, too, for the same ports, are no reason to refuse. Returns 0: there are no others, and `findings`
 * are those of the candidate with these ports frozen; -EBADMSG; -ENOMEM. */
static int plan_like_in_force(struct control *c, struct findings *findings)
{
        struct sweep *s = &c->sweep;
        _cleanup_findings_ struct findings others = { .arena = s->arena };
        const struct generation *g = c->in_force;
        struct plan_options options = s->options;
        const struct policy *policy;
        struct reconciled decision;
        int r = plan_as(c, true, findings);

        if (r < 0)
                return r;
        if (control_serves(c)) { /* else only its policy is known, from the store */
                plan_options_from_settings(g->settings, &options);
                options.pins = control_pins(c, g);
        }
        options.in_force = true;
        options.known = &c->known;
        r = leasing_extend(c, g, &policy) ?:
            reconcile(s->arena, policy, c->snapshot->observed, c->indexes, &options, &others, &decision);
        if (r < 0)
                return r;
        return has_new_frozen(s->decision.plan, decision.plan) || has_new_errors(findings, &others) ? -EBADMSG : 0;
}

/* Errors refuse a new policy. */
static int plan_new(struct control *c, struct findings *findings)
{
        _cleanup_findings_ struct findings strict = { .arena = c->sweep.arena }, frozen = strict;
        const struct findings *out = &strict;
        int r = plan_as(c, false, &strict);

        if (r == -EBADMSG && is_for_this_port(c, c->in_force)) {
                r = plan_like_in_force(c, &frozen);
                if (r == 0)
                        out = &frozen;
        }
        findings_append_all(findings, out);
        return findings->out_of_memory ? -ENOMEM : r;
}

/* An undo takes back what was written beside this SM, also if the older settings would not allow pkeyd to write there. */
static bool has_to_undo(const struct generation *g)
{
        return g->facts.undoes > 0 && strcmp(g->facts.outcome, reload_outcome_to_string(RELOAD_CARRIED_OUT)) != 0;
}

/* A generation that saw a master SM stays in audit mode: an SM that is gone may return at any time. */
static void check_beside_sm(struct control *c)
{
        struct sweep *s = &c->sweep;

        if (s->options.beside_sm == BESIDE_SM_ACCEPTED || has_to_undo(s->generation))
                return;
        if (c->config.goal == CONTROL_APPLY)
                s->options.beside_sm = BESIDE_SM_REFUSED;
        if (!control_serves(c))
                return;
        s->generation->audits |= subnet_has_master(c->snapshot->subnet);
        if (s->generation->settings->mode == MODE_ENFORCE)
                s->options.beside_sm = BESIDE_SM_AUDITED;
}

/* New names are bound before the plan, so that ports that are absent are judged by them, too. The pins are provisional until the
 * generation is in force. */
static int bind_names(struct control *c)
{
        int r = 0;

        c->sweep.options.pins = control_pins(c, c->sweep.generation);
        if (c->sweep.options.pins)
                r = pins_bind(&c->pins, c->snapshot->subnet, c->wall / USEC_PER_SEC);
        return r < 0 ? r : 0;
}

/* Ports that a lease would freeze are given up by the lease; what the first plan found about them is not reported. */
static int plan_with_leases(struct control *c, struct findings *findings)
{
        const struct generation *g = c->sweep.generation;
        _cleanup_findings_ struct findings found = {};
        int r;

        c->sweep.leases_changed = leases_need_plan(c->leases);
        do {
                findings_done(&found);
                findings_init(&found, c->sweep.arena);
                r = is_in_force(c, g) ? plan_as(c, true, &found) : plan_new(c, &found);
        } while (r == 0 && control_serves(c) && !leasing_planned(c));
        findings_append_all(findings, &found);
        return findings->out_of_memory ? -ENOMEM : r;
}

static int make_plan(struct control *c, struct generation *g, struct findings *findings)
{
        struct sweep *s = &c->sweep;
        int r;

        generation_unref(s->generation);
        s->generation = generation_ref(g);
        plan_options_from_settings(g->settings, &s->options);
        s->options.known = &c->known;
        s->options.layout = g->layout;
        check_beside_sm(c);
        c->status.numbers.n_plans++;
        r = bind_names(c);
        if (r == 0 && g != c->in_force)
                r = leasing_check(c, g, findings);
        if (r == 0)
                r = plan_with_leases(c, findings);
        if (r == 0)
                r = set_policy(c);
        (r == 0 && c->config.goal != CONTROL_PLAN ? pins_keep : pins_take_back)(&c->pins);
        return r;
}

/* --- decide -------------------------------------------------------------------------------------------------------- */

/* The findings from `first` on become what the generation changed. If out of memory, they are not known. */
static void keep_changes(struct generation *g, const struct findings *findings, size_t first)
{
        size_t n = MIN(findings->n - first, (size_t) GENERATION_MAX_CHANGES);
        const char **changes = arena_new_array(g->arena, const char *, n);

        g->facts.changes = changes;
        g->facts.n_changes = 0;
        for (size_t i = 0; changes && i < n; i++)
                if ((changes[i] = arena_strdup(g->arena, findings->items[first + i].text)))
                        g->facts.n_changes++;
}

/* Which ports a new policy connects or disconnects: for the journal, the caller of the reload, and the history. */
static void note_reach(struct control *c, struct findings *findings)
{
        size_t first = findings->n;
        const struct generation *before = c->in_force;
        const struct reach_names names = { c->sweep.generation->policy, before ? before->policy : NULL };
        struct reach_changes changes;

        if (reach_of_plan(c->sweep.arena, c->sweep.decision.plan, c->snapshot->observed, &changes) == 0)
                reach_report(c->snapshot->subnet, &names, &changes, findings);
        else
                findings->out_of_memory = true;
        keep_changes(c->sweep.generation, findings, first);
}

/* --- a plan for a person ------------------------------------------------------------------------------------------- */

void sweep_lock(struct control *c)
{
        if (control_stands_by(c)) {
                sweep_query_port(c, CONTROL_FINDING_SM);
                return;
        }
        c->sweep.lock_at = USEC_INFINITY;
        control_await(c, CONTROL_LOCKING, &(struct control_action) { .kind = CONTROL_LOCK });
}

/* Does the plan have exactly the writes that a person confirmed? */
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
        /* other processes need not wait for a person */
        if (c->config.confirm)
                sweep_unlock(c);
        control_await(c, CONTROL_CONFIRMING, &(struct control_action) { .kind = CONTROL_CONFIRM });
}

/* Plans; what that changes is noted for the history only, because a person is shown the plan. */
static int plan_to_show(struct control *c, struct findings *findings)
{
        _cleanup_findings_ struct findings shown = { .arena = c->sweep.arena };
        struct generation *g = c->candidate;
        int r = make_plan(c, g, findings);

        if (r < 0 || c->config.goal != CONTROL_APPLY || is_in_force(c, g))
                return r;
        g->facts.n_changes = 0;
        if (c->in_force)
                note_reach(c, &shown);
        return 0;
}

/* Findings of a second plan are those of the first one, unless it is a different plan. */
static int plan_once(struct control *c)
{
        _cleanup_findings_ struct findings again = { .arena = c->sweep.arena };
        int r;

        if (!c->sweep.confirmed)
                return plan_to_show(c, c->config.findings);
        r = plan_to_show(c, &again);
        for (size_t i = 0; i < again.n && (r < 0 || !is_confirmed(c)); i++)
                findings_append(c->config.findings, &again.items[i]);
        return r;
}

/* What pkeyctl brings into force may have to wait for what waits to be confirmed already. */
static int admit_once(struct control *c)
{
        const struct generation *g = c->candidate;

        if (c->config.goal != CONTROL_APPLY || (g->facts.undoes == 0 && is_in_force(c, g)))
                return 0;
        return confirm_admits(c, g, c->config.findings) ? 0 : -EBADMSG;
}

static void decide_once(struct control *c)
{
        struct sweep *s = &c->sweep;
        int r = admit_once(c) ?: plan_once(c);

        if (r < 0) {
                sweep_end_with(c, r == -EBADMSG ? SWEEP_REFUSED : SWEEP_FAILED, r);
                return;
        }
        c->results.decision = &s->decision;
        sweep_foresee_held(c);
        if (c->config.goal == CONTROL_PLAN)
                sweep_end(c, SWEEP_DONE);
        else if (!plan_is_empty(s->decision.plan) && !is_confirmed(c))
                confirm(c);
        else if (!s->locked)
                sweep_lock(c);
        else if (plan_is_empty(s->decision.plan))
                sweep_verify(c);
        else
                sweep_apply(c);
}

void sweep_confirmed(struct control *c, const struct control_event *event)
{
        c->sweep.confirmed = event->yes ? c->sweep.decision.plan : NULL;
        if (!event->yes)
                sweep_end_with(c, SWEEP_REFUSED, -ECANCELED);
        else if (c->sweep.locked)
                sweep_apply(c);
        else
                sweep_lock(c);
}

static bool same_text(const char *x, const char *y)
{
        return x == y || (x && y && strcmp(x, y) == 0);
}

/* The policy in force is that of the writer. */
static void refuse_as_guest(struct control *c)
{
        _cleanup_findings_ struct findings findings = { .arena = c->sweep.arena };

        (void) findings_error(&findings, FINDING_RELOAD_STANDBY, "reload pkeyd on the host of the master SM: its policy is in force on both",
                              "this host stands by, and its files differ from what is in force");
        reload_refuse(c, &findings);
        c->in_force->is_off_file = true;
}

/* The candidate comes into force. */
static void accept(struct control *c, struct findings *findings)
{
        note_reach(c, findings);
        reload_accept(c);
        leasing_accepted(c);
}

/* A generation in force has a plan: which ports it freezes, and which nodes claim a name. */
static int report_frozen_and_claims(struct control *c)
{
        const struct sweep *s = &c->sweep;
        uint64_t number = s->generation->number, wall = c->wall / USEC_PER_SEC;

        return freezer_see(c->freezer, &s->decision, number, wall, c->log) ?:
               identity_see(c->identity, s->options.pins, c->snapshot->subnet, number, wall, c->log);
}

/* Plans by a generation that may serve, and carries out the plan. False: it was a candidate, which was refused and dropped; the
 * generation in force is next. */
static bool serve_by(struct control *c, struct generation *g)
{
        _cleanup_findings_ struct findings findings = { .arena = c->sweep.arena };
        bool is_candidate = g == c->candidate;
        int r = make_plan(c, g, &findings);

        if (r == 0 && is_candidate)
                accept(c, &findings);
        if (r == -EBADMSG)
                leasing_refused(c);
        if (r == -EBADMSG && is_candidate && c->in_force) {
                reload_refuse(c, &findings);
                return false;
        }
        if (r != -ENOMEM)
                event_text_plan_findings(c->log, g, &findings);
        if (r == -EBADMSG) {
                refuse(c, &findings);
                return true;
        }
        r = r ?: report_frozen_and_claims(c);
        if (r < 0) {
                sweep_fail(c, "no plan could be made", r);
                return true;
        }
        g->n_refused = 0;
        c->status.n_errors = findings.n_errors;
        reload_note_findings(c, &findings);
        sweep_carry_out(c);
        return true;
}

static void decide_to_serve(struct control *c)
{
        struct generation *first;
        const char *conf;

        if (control_is_guest(c) && c->candidate && c->in_force)
                refuse_as_guest(c);
        reload_admit_again(c);
        first = choose_generation(c);
        conf = first ? first->settings->opensm_config : NULL;
        if (first && serve_by(c, first))
                return;
        /* the settings in force may name another port or opensm.conf than those of a candidate that was refused */
        if (!is_for_this_port(c, c->in_force) || !same_text(conf, c->in_force->settings->opensm_config))
                sweep_end(c, SWEEP_STALE);
        else
                (void) serve_by(c, c->in_force);
}

/* Returns false: the whole fabric is to be decided about. */
static bool decide_for_leases(struct control *c)
{
        int r = lease_sweep_decide(c);

        if (r == -EAGAIN) {
                c->sweep.kind = SWEEP_KNOWN;
                control_drop_kept_policy(c);
                return false;
        }
        if (r < 0)
                sweep_fail(c, "no plan could be made", r);
        else if (!c->sweep.locked)
                sweep_fail_without_store(c);
        else if (plan_is_empty(c->sweep.decision.plan))
                sweep_verify(c);
        else
                sweep_apply(c);
        return true;
}

static void decide(struct control *c)
{
        if (c->sweep.kind == SWEEP_LEASE && decide_for_leases(c))
                return;
        snapshot_reset_failed(c->snapshot);
        c->sweep.decided_serial = c->reloads.last_serial + 1;
        if (control_serves(c))
                decide_to_serve(c);
        else
                decide_once(c);
}

/* --- opensm.conf --------------------------------------------------------------------------------------------------- */

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
                sweep_fail(c, "opensm.conf could not be read", r);
        else
                decide(c);
}

/* opensm.conf decides how OpenSM carries out a partition file. Where none is named, OpenSM's defaults count. */
void sweep_decide(struct control *c)
{
        const struct generation *g = choose_generation(c);
        struct sweep *s = &c->sweep;

        s->conf = (struct opensm_conf) {};
        findings_done(&s->conf_findings);
        findings_init(&s->conf_findings, s->arena);
        if (!g || !control_serves(c) || g->audits || !settings_opensm_file(g->settings) || !g->settings->opensm_config) {
                decide(c);
                return;
        }
        control_await(c, CONTROL_READING_CONF, &(struct control_action) {
                .kind = CONTROL_READ_FILES, .files = { { .path = g->settings->opensm_config } },
        });
}

/* --- SM tracking --------------------------------------------------------------------------------------------------- */

static void name_sm(struct control *c)
{
        const struct subnet *s = c->snapshot->subnet;
        const struct subnet_node *node = s->sm == SUBNET_NONE ? NULL : subnet_port_node(s, &s->ports[s->sm]);
        char name[SUBNET_NAME_SIZE];

        (void) snprintf(c->sm_name, sizeof(c->sm_name), "%s", node ? subnet_node_name(node, name) : "");
}

static void report_sm(struct control *c)
{
        struct log_about about = { .lid = c->sm.sm_lid, .generation = c->in_force ? c->in_force->number : 0 };
        char text[192];

        sm_follow_describe(&c->sm, c->sm_name, text, sizeof(text));
        if (c->sm.state == SM_FOLLOW_STANDBY)
                log_add(c->log, LOG_EVENT_STANDBY, &about, "%s; this host writes nothing", text);
        else if (c->sm.state == SM_FOLLOW_WRITER)
                log_add(c->log, LOG_EVENT_WRITES, &about, "%s", text);
        else
                log_debug(c->log, "%s", text);
}

/* Notes what this policy gives all ports, in the fabric or not. A policy that cannot be carried out is refused by the other head
 * node, too. */
static int suspect_policy(struct control *c, const struct generation *g)
{
        struct memberships *memberships;
        struct desired *desired;
        int r = resolve_for_all(c, g, &memberships, &desired);

        if (r == 0)
                r = knowledge_set_policy(c->knowledge, desired);
        if (r == 0)
                r = knowledge_suspect_policy(c->knowledge);
        knowledge_drop_policy(c->knowledge);
        return r == -EBADMSG ? 0 : r;
}

/* The other head node has written until now, by the policy that is in force here or by the candidate, also if no sweep of this
 * standby ended meanwhile. */
static int suspect_other(struct control *c)
{
        int r = c->in_force ? suspect_policy(c, c->in_force) : 0;

        return r == 0 && c->candidate ? suspect_policy(c, c->candidate) : r;
}

static void wait_for_other(struct control *c)
{
        char text[192];

        sm_follow_describe(&c->sm, c->sm_name, text, sizeof(text));
        control_set_status(c, "%s", text);
        c->state = CONTROL_TAKING_OVER;
}

void sweep_found_sm(struct control *c, const struct control_event *event)
{
        const struct port_info *info = &c->sweep.query.info;
        struct sm_view view;
        bool changed;

        if (!sweep_port_works(c, event->r))
                return;
        c->sweep.sm_seen_at = c->now;
        if (info->sm_lid.v != c->snapshot->subnet->sm_lid.v) {
                sweep_end(c, SWEEP_STALE); /* the snapshot is older than the SM */
                return;
        }
        sweep_view_others(c, &view);
        sm_view_add(&view, info->lid, info->lmc);
        view.sm_lid = info->sm_lid;
        if (c->sweep.is_outdated && sm_is_here(&view)) {
                sweep_end(c, SWEEP_STALE); /* a host that has not read the tables since must not become the writer */
                return;
        }
        changed = sm_follow_see(&c->sm, &view, sweep_sm_hold(c), c->now);
        name_sm(c);
        if (changed) {
                c->standby_reported = 0;
                report_sm(c);
        }
        if (c->sweep.is_outdated) {
                sweep_end(c, SWEEP_STALE);
                return;
        }
        /* with a store in common, the other one's writes are in it */
        if (changed && c->sm.state == SM_FOLLOW_TAKING_OVER && !c->config.shares_store && suspect_other(c) < 0) {
                sweep_fail(c, "pkeyd could not record what the other head node may have written", -ENOMEM);
                return;
        }
        if (c->sm.state == SM_FOLLOW_TAKING_OVER)
                wait_for_other(c);
        else if (changed && c->sweep.kind != SWEEP_FULL)
                sweep_end(c, SWEEP_STALE);
        else
                sweep_decide(c);
}

/* --- lock ---------------------------------------------------------------------------------------------------------- */

static void wait_for_lock(struct control *c, const char *holder)
{
        if (!control_serves(c)) {
                (void) snprintf(c->results.lock_holder, sizeof(c->results.lock_holder), "%s", holder);
                sweep_fail(c, "another process writes P_Key tables", -EWOULDBLOCK);
                return;
        }
        if (!c->sweep.waited_for_lock)
                log_add(c->log, LOG_EVENT_LOCK_WAIT, NULL, "%s is writing P_Key tables; waiting for its lock", holder);
        c->sweep.waited_for_lock = true;
        c->sweep.lock_at = c->now + LOCK_RETRY;
        control_set_status(c, "waiting for another process that writes P_Key tables");
}

void sweep_locked(struct control *c, const struct control_event *event)
{
        struct sweep *s = &c->sweep;
        bool queries;

        c->may_lack_leases = event->lock.r < 0 && c->config.shares_store;
        if (event->lock.r == -EWOULDBLOCK) {
                wait_for_lock(c, event->lock.holder);
                return;
        }
        if (event->lock.r == -EUCLEAN && !s->store_was_lost) {
                s->store_was_lost = true;
                control_unstore(c);
                sweep_lock(c);
                return;
        }
        s->locked = event->lock.r == 0;
        s->lock_r = event->lock.r;
        (void) snprintf(s->lock_why, sizeof(s->lock_why), "%s", event->lock.why ?: "");
        /* a host that has not read what the other head node stored must not become the writer */
        if (!s->locked && (!control_serves(c) || control_is_guest(c))) {
                sweep_fail_without_store(c);
                return;
        }
        confirm_take_changed(c, &event->lock);
        /* the tables were read before the other process changed them */
        s->is_outdated = s->waited_for_lock || (event->lock.changed && control_serves(c));
        /* two guests that both lock would outdate each other's sweeps for ever, if none queried where the SM is */
        queries = control_is_guest(c) && c->was_outdated;
        c->was_outdated = s->is_outdated;
        if (s->is_outdated && !queries)
                sweep_end(c, SWEEP_STALE);
        else if (!control_serves(c) && (c->config.confirm || event->lock.changed))
                sweep_discover(c); /* filters may have changed, too */
        else if (control_follows_sm(c))
                sweep_query_port(c, CONTROL_FINDING_SM);
        else
                sweep_decide(c);
}
