/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "control/lease_sweep.h"
#include "control/leasing.h"
#include "control/reload.h"
#include "control/sweep_steps.h"
#include "events/event_text.h"
#include "util/text.h"

/* The generation by which to decide at the port that the sweep works through; NULL: it takes a sweep through another port. */
static struct generation *choose_generation(const struct control *c)
{
        if (sweep_is_for_port(c, c->candidate))
                return c->candidate;
        return sweep_is_for_port(c, c->in_force) ? c->in_force : NULL;
}

/* --- the daemon's decision ------------------------------------------------------------------------------------------ */

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

static bool same_text(const char *x, const char *y)
{
        return x == y || (x && y && strcmp(x, y) == 0);
}

/* The policy in force is that of the writer. */
static void refuse_as_guest(struct control *c)
{
        _cleanup_findings_ struct findings findings = { .arena = c->sweep.arena };

        (void) findings_error(&findings, FINDING_RELOAD_STANDBY, "reload pkeyd on the host of the master SM: its policy applies to both hosts",
                              "this host stands by, and its files differ from what is in force");
        reload_refuse(c, &findings);
        c->in_force->is_off_file = true;
}

/* The candidate comes into force. If this host does not write, who can talk to whom does not change because of it. */
static void accept(struct control *c, struct findings *findings)
{
        if (control_writes(c, c->sweep.generation))
                sweep_note_reach(c, findings);
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
        int r = sweep_plan(c, g, &findings);

        if (r == 0 && is_candidate)
                accept(c, &findings);
        if (r < 0)
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

/* The opensm.conf by which to decide about this generation; NULL: none. */
static const char *conf_of(const struct generation *g)
{
        return !g->audits && settings_opensm_file(g->settings) ? g->settings->opensm_config : NULL;
}

/* A candidate may have come, or was refused, after opensm.conf was read for another generation. */
static bool can_decide_by(const struct control *c, const struct generation *g)
{
        return sweep_is_for_port(c, g) && same_text(c->sweep.conf_path, conf_of(g));
}

/* The store may have a confirmation that pkeyd has not read. */
static bool is_undo_without_lock(const struct control *c)
{
        const struct generation *g = c->candidate;

        return g && g->facts.undoes > 0 && control_may_write(c, g) && !c->sweep.lock.held;
}

static void decide_to_serve(struct control *c)
{
        struct generation *first;

        if (control_is_guest(c) && c->candidate && c->in_force)
                refuse_as_guest(c);
        reload_admit_again(c);
        if (is_undo_without_lock(c)) {
                sweep_fail_without_store(c);
                return;
        }
        first = choose_generation(c);
        if (can_decide_by(c, first) && serve_by(c, first))
                return;
        if (c->candidate || !can_decide_by(c, c->in_force) || !serve_by(c, c->in_force))
                sweep_end(c, SWEEP_STALE);
}

/* --- which decision ------------------------------------------------------------------------------------------------- */

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
        else if (!c->sweep.lock.held)
                sweep_fail_without_store(c);
        else if (plan_is_empty(c->sweep.decision.plan))
                sweep_verify(c);
        else
                sweep_apply(c);
        return true;
}

static void decide(struct control *c)
{
        assert(!c->sweep.is_outdated); /* no plan comes from tables that another process may have changed since */
        if (c->not_loaded) {
                sweep_fail_without_store(c);
                return;
        }
        if (c->sweep.kind == SWEEP_LEASE && decide_for_leases(c))
                return;
        snapshot_reset_failed(c->snapshot);
        c->sweep.decided_serial = c->reloads.last_serial + 1;
        if (control_serves(c))
                decide_to_serve(c);
        else
                sweep_decide_once(c);
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
        const char *path = g && control_serves(c) ? conf_of(g) : NULL;
        struct sweep *s = &c->sweep;

        s->conf = (struct opensm_conf) {};
        findings_done(&s->conf_findings);
        s->conf_findings = (struct findings) { .arena = s->arena };
        s->conf_path = path ? arena_strdup(s->arena, path) : NULL;
        if (!path)
                decide(c);
        else if (!s->conf_path)
                sweep_fail(c, "opensm.conf could not be read", -ENOMEM);
        else
                control_await(c, CONTROL_READING_CONF, &(struct control_action) {
                        .kind = CONTROL_READ_FILES, .files = { { .path = s->conf_path } },
                });
}
