/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "control/leasing.h"

#include <errno.h>

#include "control/lease_sweep.h"
#include "policy/policy_select.h"

#define RETRY         (5 * USEC_PER_SEC)  /* while a caller waits */
#define EACH_STRANGER (10 * USEC_PER_SEC) /* how often a standby passes on what users ask whom no pool allows */

/* --- requests -------------------------------------------------------------------------------------------------------- */

/* Why no lease can change now, a clause; NULL: it can. */
static const char *describe_obstacle(const struct control *c)
{
        const struct generation *g = c->in_force;

        if (c->status.stopping)
                return "it is stopping";
        if (!g)
                return "no policy is in force yet";
        if (g->audits && g->settings->mode == MODE_AUDIT)
                return "it is in audit mode, and writes no table";
        if (g->audits)
                return "it writes no table, because a subnet manager runs, or ran since pkeyd loaded its files, " CONTROL_SM_UNEXPECTED;
        if (g->settings->role == ROLE_FOLLOW_SM && !c->config.shares_store)
                return "with role: follow-sm and no shared store, the other head node would not know the leases and would revoke their P_Keys "
                       "when it takes over";
        if (c->other_fabric.v)
                return "its port leads to another fabric";
        if (!c->snapshot)
                return "it has not seen the fabric yet";
        return NULL;
}

/* selection: owned by the caller. */
static struct lease_view view_of(const struct control *c, const struct generation *g, struct policy_selection *selection)
{
        return (struct lease_view) {
                .policy = g ? g->policy : NULL, .selection = selection, .obstacle = describe_obstacle(c),
                .subnet = c->snapshot ? c->snapshot->subnet : NULL,
                .knowledge = c->knowledge, .now = c->now, .wall = c->wall / USEC_PER_SEC,
        };
}

static struct policy_selection *make_selection(const struct control *c, const struct generation *g)
{
        const struct policy_memory memory = { .known = &c->known, .pins = control_pins(c, g) };

        return c->snapshot ? policy_selection_new(g->policy, c->snapshot->subnet, &memory) : NULL;
}

/* As long as sweeps for leases are possible, the fabric, the policy and the names stay as they are. */
static struct policy_selection *get_selection(struct control *c)
{
        struct kept_policy *kept = &c->kept_policy;

        if (kept->selection && policy_selection_size(kept->selection) > KEPT_POLICY_MAX)
                kept->selection = policy_selection_free(kept->selection);
        if (!kept->selection)
                kept->selection = make_selection(c, c->in_force);
        return kept->selection;
}

/* Between two sweeps the lock is not held, and another process may have taken over unnoticed. */
static bool may_lack_leases(const void *userdata)
{
        const struct control *c = userdata;

        return c->may_lack_leases || (c->config.is_outdated && c->config.is_outdated(c->config.store_userdata));
}

/* Requests that look up ports. */
static int carry_out_with_ports(struct control *c, const struct lease_request *q, struct findings *findings)
{
        _cleanup_(policy_selection_free_p) struct policy_selection *own = NULL;
        struct lease_view view;

        if (c->in_force && !lease_sweep_is_possible(c))
                own = make_selection(c, c->in_force);
        view = view_of(c, c->in_force, own || !c->in_force ? own : get_selection(c));
        view.is_old = may_lack_leases;
        view.userdata = c;
        if (q->kind == LEASE_EDIT)
                return leases_edit(c->leases, &view, &q->by, q->id, &q->edit, c->log, findings);
        return leases_create(c->leases, &view, &q->by, q->id, &q->wish, q->timeout, c->log, findings);
}

/* The answer may come from memory, without a commit: there is no such lease, it is as it should be, or is being released. */
static bool may_be_answered_from_memory(const struct control *c, const struct lease_request *q)
{
        const struct lease *lease = leases_find(c->leases, q->id);

        if (!lease)
                return q->kind != LEASE_CREATE;
        return q->kind == LEASE_EDIT || q->kind == LEASE_CREATE || lease->state == LEASE_RELEASING;
}

/* Other requests make the lease if there is none. */
static bool needs_lease(const struct lease_request *q)
{
        if (q->kind == LEASE_EDIT)
                return q->edit.kind == LEASE_REMOVE_MEMBERS || q->edit.options.must_exist;
        return q->kind != LEASE_CREATE;
}

static int carry_out(struct control *c, const struct lease_request *q, struct findings *findings)
{
        const struct lease_view view = view_of(c, c->in_force, NULL);

        if (may_be_answered_from_memory(c, q) && may_lack_leases(c))
                return leases_refuse_old(findings);
        if (needs_lease(q) && leases_is_ending(c->leases, q->id))
                return findings_error(findings, FINDING_LEASE_NOT_NOW, NULL, "lease %s has ended, but that is not stored yet", q->id);
        switch (q->kind) {
        case LEASE_CREATE:
        case LEASE_EDIT:
                return carry_out_with_ports(c, q, findings);
        case LEASE_RENEW:
                return leases_renew(c->leases, &view, &q->by, q->id, q->seconds, c->log, findings);
        case LEASE_RELEASE:
                return leases_release(c->leases, &view, &q->by, q->id, c->log, findings);
        }
        return -EINVAL;
}

static void answer_at_once(struct control *c, uint64_t request, enum lease_outcome outcome)
{
        struct lease_refusal *refusal = &c->lease_refusal;

        refusal->reply = (struct lease_reply) {
                .answer = { .request = request, .outcome = outcome }, .findings = &refusal->findings,
        };
        if (outcome == LEASE_REFUSED)
                (void) snprintf(refusal->reply.answer.text, sizeof(refusal->reply.answer.text), "refused; nothing was changed");
        control_request(c, &(struct control_action) { .kind = CONTROL_ANSWER_LEASE, .lease = &refusal->reply });
}

static bool is_stranger(const struct policy *policy, const struct lease_caller *by)
{
        for (uint32_t i = 0; i < policy->n_pools; i++)
                if (leases_allow(&policy->pools[i], by))
                        return false;
        return true;
}

/* A request that is passed on is stored in etcd, so the rate of those of strangers is limited. They are not refused: the policy of
 * this host may be older than that of the writer. */
static int pass_on(struct control *c, const struct lease_request *q, struct findings *findings)
{
        if (c->in_force && is_stranger(c->in_force->policy, &q->by)) {
                if (c->now < c->next_stranger)
                        return findings_error(findings, FINDING_LEASE_ACCESS, "if `allow` was changed just now, try again later",
                                              "user %s (uid %u) may not use any pool of the policy on this host",
                                              q->by.origin.user, q->by.origin.uid);
                c->next_stranger = c->now + EACH_STRANGER;
        }
        answer_at_once(c, q->by.request, LEASE_ELSEWHERE);
        return 0;
}

void leasing_request(struct control *c, const struct control_event *event)
{
        struct lease_refusal *refusal = &c->lease_refusal;
        int r;

        arena_free(refusal->arena);
        findings_done(&refusal->findings);
        refusal->arena = arena_new();
        refusal->findings = (struct findings) { .arena = refusal->arena };
        if (!refusal->arena)
                r = -ENOMEM;
        else if (control_is_guest(c) && !c->status.stopping)
                r = pass_on(c, &event->lease, &refusal->findings);
        else
                r = carry_out(c, &event->lease, &refusal->findings);
        refusal->findings.out_of_memory |= r == -ENOMEM;
        if (r < 0)
                answer_at_once(c, event->lease.by.request, LEASE_REFUSED);
}

/* --- of a sweep ------------------------------------------------------------------------------------------------------ */

/* Admits the ports that were named as members of open leases before the pool had them. */
static int admit(struct control *c, const struct generation *g)
{
        _cleanup_(policy_selection_free_p) struct policy_selection *selection = NULL;
        struct lease_view view;

        if (!control_serves(c) || g != c->in_force || !c->snapshot || !leases_have_appeared(c->leases, c->snapshot->subnet))
                return 0;
        selection = make_selection(c, g);
        view = view_of(c, g, selection);
        return leases_admit(c->leases, &view, c->log);
}

/* Finds the unseen members that the policy certainly has. They get into OpenSM's file, from which a VF, which discovery does not
 * find, gets its P_Key. A port of which only the GUID is known counts as that of a CA, as a VF does. */
static int expect(struct control *c, const struct generation *g)
{
        _cleanup_(policy_selection_free_p) struct policy_selection *selection = NULL;
        struct arena *a = c->sweep.arena;
        struct subnet *larger = NULL;
        struct lease_view view;
        const struct guid *unseen;
        uint32_t n = 0;
        int r = leases_list_unseen(a, c->leases, &unseen, &n);

        if (r == 0 && n > 0 && c->snapshot && settings_opensm_file(g->settings)) {
                r = known_extend_named(a, &c->known, c->snapshot->subnet, unseen, n, NODE_CA, &larger);
                if (r < 0)
                        return r;
                selection = policy_selection_new(g->policy, larger, &(struct policy_memory) { .pins = control_pins(c, g) });
                if (!selection)
                        return -ENOMEM;
        }
        view = view_of(c, g, selection);
        view.subnet = larger;
        return r ?: leases_expect(c->leases, &view);
}

int leasing_extend(struct control *c, const struct generation *g, const struct policy **ret)
{
        return admit(c, g) ?: expect(c, g) ?: leases_extend(c->sweep.arena, c->leases, g->policy, ret);
}

/* An undo is not refused because of leases that were made since. */
int leasing_check(struct control *c, const struct generation *g, struct findings *findings)
{
        _cleanup_(policy_selection_free_p) struct policy_selection *selection = make_selection(c, g);
        _cleanup_(policy_selection_free_p) struct policy_selection *before = c->in_force ? make_selection(c, c->in_force) : NULL;
        const struct lease_view view = view_of(c, g, selection), in_force = view_of(c, c->in_force, before);

        return leases_check(c->leases, &view, &in_force, g->facts.releases_stranded || g->facts.undoes > 0, findings);
}

bool leasing_planned(struct control *c)
{
        const struct plan *plan = c->sweep.decision.plan;

        c->status.lease_changes += leases_planned(c->leases);
        return !leases_give_up_frozen(c->leases, plan->subnet, plan->frozen, c->now, c->log);
}

void leasing_accepted(struct control *c)
{
        leases_release_stranded(c->leases, c->now, c->log);
}

void leasing_refused(struct control *c)
{
        leases_keep_stranded(c->leases);
}

void leasing_note_confirmed(struct control *c)
{
        if (control_is_guest(c) && c->snapshot)
                leases_confirm(c->leases, c->snapshot->observed);
}

/* A sweep that was stopped, or found its snapshot stale, is followed by another one at once. */
void leasing_swept(struct control *c)
{
        enum sweep_result result = c->sweep.result;
        bool decided = c->sweep.generation && c->snapshot && result != SWEEP_STOPPED && result != SWEEP_STALE &&
                       result != SWEEP_WAITS;

        if (control_serves(c) && decided && control_writes(c, c->sweep.generation) &&
            leases_see(c->leases, c->snapshot->observed, c->knowledge, c->sweep.kind == SWEEP_LEASE, c->now, c->wall / USEC_PER_SEC,
                       c->log) < 0)
                log_debug(c->log, "leases: out of memory; pkeyd checks them after the next sweep");
        leasing_note_confirmed(c);
}

/* --- time ------------------------------------------------------------------------------------------------------------ */

static bool has_failed(const struct control *c, const struct lease *lease)
{
        const struct subnet *s = c->snapshot->subnet;

        for (uint32_t i = 0; i < lease->n_members; i++) {
                uint32_t port = subnet_find_endport(s, lease->members[i].port);
                uint32_t leaf = port == SUBNET_NONE ? SUBNET_NONE : subnet_leaf_port(s, port);

                if ((port != SUBNET_NONE && c->snapshot->failed[port]) || (leaf != SUBNET_NONE && c->snapshot->failed[leaf]))
                        return true;
        }
        return false;
}

bool leasing_has_failed_ports(const struct control *c)
{
        size_t n;
        const struct lease *const *leases = leases_list(c->leases, &n);

        for (size_t i = 0; i < n; i++)
                if (leases[i]->state == LEASE_GRANTING && leases[i]->progress < LEASE_PLANNED && has_failed(c, leases[i]))
                        return true;
        return false;
}

/* A caller waits for a lease, of which the last sweep could not confirm all ports. */
static bool has_to_retry(const struct control *c)
{
        size_t n;
        const struct lease *const *leases = leases_list(c->leases, &n);

        for (size_t i = 0; i < n; i++)
                if (leases[i]->state == LEASE_GRANTING && leases[i]->progress == LEASE_TRIED)
                        return true;
        return false;
}

void leasing_tick(struct control *c)
{
        if (!control_serves(c) || c->state == CONTROL_ENDED || c->status.stopping)
                return;
        if (control_is_guest(c)) {
                leases_pass_on(c->leases, c->leases);
                return;
        }
        if (c->now >= leases_due(c->leases))
                leases_tick(c->leases, c->now, c->log);
        leases_answer(c->leases);
        if (!leases_need_plan(c->leases))
                c->lease_sweep_asked = false;
        else if (!c->lease_sweep_asked && c->in_force && c->snapshot) {
                c->lease_sweep_asked = true; /* once: a sweep that fails is repeated later, each time later */
                schedule_lease(&c->schedule);
        }
        if (c->state == CONTROL_IDLE && has_to_retry(c))
                schedule_port(&c->schedule, c->now + RETRY); /* however long other ports have failed */
}

usec_t leasing_due(const struct control *c)
{
        return control_serves(c) && !c->status.stopping && !control_is_guest(c) ? leases_due(c->leases) : USEC_INFINITY;
}
