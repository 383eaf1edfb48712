/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "control/leasing.h"
#include "control/sweep_steps.h"
#include "reach/reach_text.h"
#include "util/text.h"
#include "verify/changes.h"

/* How long after discovery a port that was absent counts as absent: reading and writing the tables of others may take longer. */
#define DISCOVERY_GETS_OLD (8 * USEC_PER_SEC)

bool sweep_is_for_port(const struct control *c, const struct generation *g)
{
        return g && port_key_is_of(&c->sweep.port, g->settings);
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

/* The same for the generation to decide by; NULL: no port is missing. */
static int resolve_missing(struct control *c, struct memberships **ret_memberships, struct desired **ret)
{
        int r;

        *ret = NULL;
        if (!has_missing_ports(c->knowledge, c->snapshot->subnet))
                return 0;
        r = sweep_resolve_all(c, c->sweep.generation, ret_memberships, ret);
        if (r == 0)
                (*ret)->frozen = (*ret_memberships)->frozen;
        return r;
}

static int set_policy(struct control *c)
{
        struct sweep *s = &c->sweep;
        struct memberships *memberships = NULL;
        const struct desired *limited;
        struct desired *all;
        int r;

        knowledge_hold_absent(c->knowledge, c->now, s->generation->settings->absent_hold);
        knowledge_doubt_absence_after(c->knowledge, c->now, s->kind == SWEEP_FULL ? c->discovered + DISCOVERY_GETS_OLD : 0);
        r = resolve_missing(c, &memberships, &all);
        r = r ?: freezer_limit(c->freezer, s->arena, &s->decision, memberships, all, &limited);
        return r < 0 ? r : knowledge_set_policy(c->knowledge, limited);
}

bool sweep_is_in_force(const struct control *c, const struct generation *g)
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

/* Of two plans these errors are compared by the ports that they freeze (has_new_frozen), all others by their texts. */
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

        if (r == -EBADMSG && sweep_is_for_port(c, c->in_force)) {
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

/* Puts the generation in audit mode for good if there is a master SM: an SM that is gone may return at any time. */
static void audit_beside_sm(struct control *c)
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

/* Leases give up members on ports that the plan freezes; then pkeyd plans again, and reports only what the last plan found. */
static int plan_with_leases(struct control *c, struct findings *findings)
{
        const struct generation *g = c->sweep.generation;
        _cleanup_findings_ struct findings found = {};
        int r;

        do {
                findings_done(&found);
                found = (struct findings) { .arena = c->sweep.arena };
                r = sweep_is_in_force(c, g) ? plan_as(c, true, &found) : plan_new(c, &found);
        } while (r == 0 && control_serves(c) && !leasing_planned(c));
        findings_append_all(findings, &found);
        return findings->out_of_memory ? -ENOMEM : r;
}

int sweep_plan(struct control *c, struct generation *g, struct findings *findings)
{
        struct sweep *s = &c->sweep;
        int r;

        generation_unref(s->generation);
        s->generation = generation_ref(g);
        plan_options_from_settings(g->settings, &s->options);
        s->options.known = &c->known;
        s->options.layout = g->layout;
        audit_beside_sm(c);
        c->status.numbers.n_plans++;
        r = bind_names(c);
        if (r == 0 && g != c->in_force)
                r = leasing_check(c, g, findings);
        r = r ?: plan_with_leases(c, findings) ?: set_policy(c);
        (r == 0 && c->config.goal != CONTROL_PLAN ? pins_keep : pins_take_back)(&c->pins);
        return r;
}

/* --- what it changes ------------------------------------------------------------------------------------------------ */

/* These findings become what the generation changed. If out of memory, they are not known. */
static void keep_changes(struct generation *g, const struct findings *findings)
{
        size_t n = MIN(findings->n, (size_t) GENERATION_MAX_CHANGES);
        const char **changes = arena_new_array(g->arena, const char *, n);

        g->facts.changes = changes;
        g->facts.n_changes = 0;
        for (size_t i = 0; changes && i < n; i++)
                if ((changes[i] = arena_strdup(g->arena, findings->items[i].text)))
                        g->facts.n_changes++;
}

/* "storage: 4 ports lost it (limited)" */
static void note_membership(const struct reach_names *names, const struct change *m, struct findings *to)
{
        const char *name = reach_name(to->arena, names, m->base) ?: "?", *before = membership_to_string(m->before);
        const char *after = membership_to_string(m->after), *plural = text_plural(m->n_ports);
        char mark = change_mark(m);

        if (mark == '+' || mark == '-')
                (void) findings_add(to, FINDING_NOTE, FINDING_PLAN_REACH, NULL, "%s: %u port%s %s it (%s)", name, m->n_ports, plural,
                                    mark == '+' ? "gained" : "lost", mark == '+' ? after : before);
        else
                (void) findings_add(to, FINDING_NOTE, FINDING_PLAN_REACH, NULL, "%s: %u port%s changed (%s to %s)", name, m->n_ports,
                                    plural, before, after);
}

/* For a change that neither connects nor disconnects a pair of ports: notes who joins and leaves which partition. */
static void note_memberships(struct control *c, const struct reach_names *names, const struct reach_changes *reach,
                             struct findings *to)
{
        struct changes changes;

        if (changes_compute(c->sweep.arena, c->sweep.decision.plan, c->snapshot->observed, &changes) < 0 || changes.n == 0)
                return;
        (void) findings_add(to, FINDING_NOTE, FINDING_PLAN_REACH, NULL, "%s", reach_summarize(c->sweep.arena, reach));
        for (uint32_t i = 0; i < MIN(changes.n, (uint32_t) GENERATION_MAX_CHANGES); i++)
                note_membership(names, &changes.items[i], to);
}

void sweep_note_reach(struct control *c, struct findings *findings)
{
        _cleanup_findings_ struct findings changed = { .arena = c->sweep.arena };
        const struct generation *before = c->in_force;
        const struct reach_names names = { c->sweep.generation->policy, before ? before->policy : NULL };
        struct reach_changes changes;

        if (reach_of_plan(c->sweep.arena, c->sweep.decision.plan, c->snapshot->observed, &changes) < 0) {
                findings->out_of_memory = true;
                return;
        }
        reach_report(c->snapshot->subnet, &names, &changes, &changed);
        findings_append_all(findings, &changed);
        if (changed.n == 0)
                note_memberships(c, &names, &changes, &changed);
        keep_changes(c->sweep.generation, &changed);
}
