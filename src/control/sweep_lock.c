/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "control/sweep_steps.h"
#include "control/store_sync.h"
#include "events/event_text.h"

#define LOCK_RETRY USEC_PER_SEC

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
        int r = sweep_resolve_all(c, g, &memberships, &desired);

        r = r ?: knowledge_set_policy(c->knowledge, desired) ?: knowledge_suspect_policy(c->knowledge);
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
        changed = sm_follow_see(&c->sm, &view, c->now, sweep_sm_hold(c));
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
        if (!c->sweep.lock.has_waited)
                log_add(c->log, LOG_EVENT_LOCK_WAIT, NULL, "%s is writing P_Key tables; waiting for its lock", holder);
        c->sweep.lock.has_waited = true;
        c->sweep.lock.retry_at = c->now + LOCK_RETRY;
        control_set_status(c, "waiting for another process that writes P_Key tables");
}

/* While pkeyctl waited for a person or for the lock, another policy came into force, by which it would have to decide. */
static bool is_superseded(const struct control *c, const struct control_lock *lock)
{
        return !control_serves(c) && lock->changed && lock->changed->generation > c->last_number;
}

static void end_superseded(struct control *c)
{
        (void) findings_error(c->config.findings, FINDING_RELOAD_WITHDRAWN, "run the command again",
                              "generation %" PRIu64 " came into force meanwhile; nothing was written", c->last_number);
        sweep_end_with(c, SWEEP_REFUSED, -EBADMSG);
}

void sweep_locked(struct control *c, const struct control_event *event)
{
        struct sweep *s = &c->sweep;
        bool superseded = is_superseded(c, &event->lock), queries;

        c->may_lack_leases = event->lock.r < 0 && c->config.shares_store;
        sync_take_changed(c, &event->lock);
        if (event->lock.r == -EWOULDBLOCK) {
                wait_for_lock(c, event->lock.holder);
                return;
        }
        if (event->lock.r == -EUCLEAN && !s->lock.store_was_lost) {
                s->lock.store_was_lost = true;
                sync_store_was_lost(c);
                sweep_lock(c);
                return;
        }
        s->lock.held = event->lock.r == 0;
        s->lock.r = event->lock.r;
        (void) snprintf(s->lock.why, sizeof(s->lock.why), "%s", event->lock.why ?: "");
        if (c->not_loaded)
                sweep_unlock(c);
        /* a host that has not read what the other head node stored must not become the writer */
        if (c->not_loaded || (!s->lock.held && (!control_serves(c) || control_is_guest(c)))) {
                sweep_fail_without_store(c);
                return;
        }
        if (superseded) {
                end_superseded(c);
                return;
        }
        /* the tables were read before the other process changed them */
        s->is_outdated = s->lock.has_waited || (event->lock.changed && control_serves(c));
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
