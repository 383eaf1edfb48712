/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "control/sweep_steps.h"

#include <errno.h>
#include <string.h>

#include "control/lease_sweep.h"
#include "control/leasing.h"
#include "control/store_sync.h"

static void note_error(struct control *c, int error)
{
        c->results.r = error;
        c->results.failed = c->state;
}

void sweep_end(struct control *c, enum sweep_result result)
{
        c->sweep.ended = true;
        c->sweep.result = result;
        if (result == SWEEP_STALE && !control_serves(c))
                note_error(c, -ESTALE); /* no other sweep follows */
}

void sweep_end_with(struct control *c, enum sweep_result result, int error)
{
        note_error(c, error);
        sweep_end(c, result);
}

/* why: what the error means here. */
static void fail_because(struct control *c, const char *what, const char *why, int error)
{
        bool discovering = c->state == CONTROL_DISCOVERING;

        note_error(c, error);
        control_set_status(c, "%s: %s", what, why);
        if (!discovering)
                log_add(c->log, LOG_EVENT_SWEEP_FAILED, NULL, "%s; pkeyd tries again", c->text);
        else if (!c->discovery_failed)
                log_add(c->log, LOG_EVENT_DISCOVERY_FAILED, NULL, "%s; pkeyd tries again", c->text);
        c->discovery_failed = discovering;
        sweep_end(c, SWEEP_FAILED);
}

void sweep_fail(struct control *c, const char *what, int error)
{
        fail_because(c, what, strerror(-error), error);
}

void sweep_fail_without_store(struct control *c)
{
        struct sweep_lock *lock = &c->sweep.lock;
        int r = lock->r ?: -ENOLCK;

        if (c->not_loaded && lock->r == 0)
                (void) snprintf(lock->why, sizeof(lock->why), "generation %" PRIu64 ", which is in force, cannot be loaded", c->not_loaded);
        fail_because(c, "nothing is written, because the store cannot be used", *lock->why ? lock->why : strerror(-r), r);
}

void sweep_unlock(struct control *c)
{
        if (c->sweep.lock.held)
                control_request(c, &(struct control_action) { .kind = CONTROL_UNLOCK });
        c->sweep.lock.held = false;
}

int sweep_resolve(struct control *c, const struct generation *g, const struct subnet *subnet, struct memberships **ret_memberships,
                  struct desired **ret)
{
        _cleanup_findings_ struct findings ignored = { .arena = c->sweep.arena };
        const struct policy_memory names = { .pins = control_pins(c, g) };
        const struct policy *policy;
        int r = leasing_extend(c, g, &policy) ?:
                policy_resolve_with_memory(c->sweep.arena, policy, subnet, &names, true, &ignored, ret_memberships);

        return r < 0 ? r : desired_compute(c->sweep.arena, *ret_memberships, ret);
}

int sweep_resolve_all(struct control *c, const struct generation *g, struct memberships **ret_memberships, struct desired **ret)
{
        struct subnet *larger;
        int r = known_extend(c->sweep.arena, &c->known, c->snapshot->subnet, &larger);

        return r < 0 ? r : sweep_resolve(c, g, larger, ret_memberships, ret);
}

struct observed *sweep_observed(const struct control *c)
{
        return c->sweep.part.subnet ? c->sweep.part.observed : c->snapshot->observed;
}

/* --- the store ----------------------------------------------------------------------------------------------------- */

int sweep_record_freed(struct control *c)
{
        const struct subnet *s = c->snapshot ? sweep_observed(c)->subnet : NULL;
        int r = 0;

        for (uint32_t p = 0; s && r == 0 && p < s->n_ports; p++) {
                const struct observed_table *was = &sweep_observed(c)->tables[p];
                const struct knowledge_record *is = knowledge_get(c->knowledge, knowledge_find_port(c->knowledge, s, p));

                if (!was->entries || !is || !is->entries)
                        continue;
                for (uint16_t i = 0; r == 0 && i < MIN(was->capacity, is->capacity); i++)
                        if (p_key_is_used(was->entries[i]) && !p_key_is_used(is->entries[i]))
                                r = index_memory_note_open(c->indexes, s->nodes[s->ports[p].node].guid, s->ports[p].number, i,
                                                           was->entries[i]);
        }
        return r;
}

static struct history_limits history_limits(const struct control *c)
{
        const struct settings *s = control_wanted(c)->settings;

        return (struct history_limits) { .keep = s->history_keep, .seconds = (uint64_t) s->history_days * 24 * 3600 };
}

uint64_t sweep_number(const struct control *c)
{
        const struct generation *g = c->sweep.generation;

        return g && g->number > 0 ? g->number : c->last_number + 1;
}

static void put_all(struct control *c, struct store_transaction *t)
{
        const struct history_limits limits = history_limits(c);

        (void) sweep_record_freed(c); /* if out of memory, index memory is less complete */
        knowledge_store(c->knowledge, c->boot, t);
        records_put_indexes(t, c->indexes);
        records_put_known(t, &c->known);
        records_put_pins(t, &c->pins);
        sync_put(c);
        if (c->unstored_before)
                records_put_generation(t, &c->history, c->unstored_before, &limits);
        if (c->unstored)
                records_put_generation(t, &c->history, c->unstored, &limits);
        records_put_before(t, &c->before, sweep_number(c), &c->sweep.before);
}

int sweep_store(struct control *c, enum control_state state)
{
        struct store_transaction *t = sync_begin(c);

        if (!t)
                return -ENOMEM;
        put_all(c, t);
        return sync_commit(c, state);
}

int sweep_take_stored(struct control *c, const struct control_event *event)
{
        struct history_limits limits;
        int r = sync_end(c, event->r);

        if (r < 0)
                return r;
        knowledge_stored(c->knowledge);
        index_memory_stored(c->indexes);
        known_stored(&c->known);
        pins_stored(&c->pins);
        limits = history_limits(c);
        if (c->unstored_before)
                generation_history_stored(&c->history, c->unstored_before, &limits);
        if (c->unstored)
                generation_history_stored(&c->history, c->unstored, &limits);
        c->unstored_before = generation_unref(c->unstored_before);
        c->unstored = generation_unref(c->unstored);
        before_records_stored(&c->before, sweep_number(c), &c->sweep.before);
        c->sweep.before = (struct layout) {};
        c->store_failed = false;
        return 0;
}

/* --- the end ------------------------------------------------------------------------------------------------------- */

void sweep_free(struct control *c)
{
        struct sweep *s = &c->sweep;

        sweep_unlock(c);
        gate_close(c->gate);
        lease_sweep_keep(c); /* else it is borrowed from the arena */
        opensm_writer_drop(c->writer);
        findings_done(&s->conf_findings);
        s->discovery = discovery_free(s->discovery);
        snapshot_unref(s->new_snapshot);
        snapshot_unref(s->shown);
        generation_unref(s->generation);
        (void) m_keys_free(s->m_keys);
        arena_free(s->arena);
        *s = (struct sweep) {};
}

void sweep_run_stage(struct control *c, enum control_state state, struct mad_stage stage)
{
        c->sweep.stage = stage;
        control_await(c, state, &(struct control_action) { .kind = CONTROL_RUN_STAGE, .stage = &c->sweep.stage });
}

void sweep_query_port(struct control *c, enum control_state state)
{
        sweep_run_stage(c, state, port_query_stage(&c->sweep.query, m_keys_get(c->sweep.m_keys, c->port_guid)));
}

void sweep_lock(struct control *c)
{
        if (control_stands_by(c)) {
                sweep_query_port(c, CONTROL_FINDING_SM);
                return;
        }
        c->sweep.lock.retry_at = USEC_INFINITY;
        control_await(c, CONTROL_LOCKING, &(struct control_action) { .kind = CONTROL_LOCK });
}

void sweep_view_others(const struct control *c, struct sm_view *ret)
{
        *ret = (struct sm_view) {};
        for (size_t i = 0; i < c->n_host_guids; i++)
                if (c->host_guids[i].v != c->port_guid.v)
                        sm_view_add_known(ret, c->snapshot->subnet, &c->host_guids[i], 1);
}

usec_t sweep_sm_hold(const struct control *c)
{
        return SM_HOLD + control_wanted(c)->settings->timeout;
}

/* --- held bases ----------------------------------------------------------------------------------------------------- */

void sweep_set_held(struct control *c, const struct apply *apply)
{
        struct arena *a = arena_new();
        struct held_list *l = a ? held_list_new(a) : NULL;

        if (l && apply && apply_collect_held(apply, l) < 0)
                l = NULL;
        arena_free(c->held_arena);
        c->held_arena = a;
        c->status.held = c->results.held = l;
}

static int simulate_apply(struct control *c, struct knowledge *copy, struct apply **ret)
{
        struct sweep *s = &c->sweep;
        const struct apply_options options = { .knowledge = copy };
        struct observed *observed = observed_copy(s->arena, c->snapshot->observed);
        int r = observed ? apply_new(s->arena, s->decision.plan, observed, NULL, &options, ret) : -ENOMEM;

        return r == 0 ? apply_simulate(*ret) : r;
}

void sweep_predict_held(struct control *c)
{
        _cleanup_(knowledge_free_p) struct knowledge *copy = NULL;
        struct apply *apply = NULL;

        /* if every table is known for certain, no base is held */
        if (!plan_is_empty(c->sweep.decision.plan) && !knowledge_is_certain(c->knowledge)) {
                copy = knowledge_copy(c->knowledge);
                if (!copy || simulate_apply(c, copy, &apply) < 0)
                        apply = NULL;
        }
        sweep_set_held(c, apply);
}

/* --- discovery ----------------------------------------------------------------------------------------------------- */

/* Runs once for each generation; if out of memory, the next sweep tries again. Lines that cannot be used are ignored. */
static void take_neighbors(struct control *c, struct generation *g)
{
        uint32_t n_ignored;

        if (g->neighbors && discovery_links_add_neighbors(c->links, g->neighbors, g->n_neighbors, &n_ignored) != -ENOMEM)
                g->neighbors = NULL;
}

void sweep_discover(struct control *c)
{
        struct sweep *s = &c->sweep;
        const struct discovery_config config = {
                .m_keys = s->m_keys, .expected = c->links, .before = c->snapshot ? c->snapshot->subnet : NULL,
                .known = &c->known, .interrupted = c->interrupted.discovery, .local_port = c->port_guid, .retries = STAGE_RETRIES,
        };
        int r = -ENOMEM;

        take_neighbors(c, control_wanted(c));
        s->discovery = discovery_free(s->discovery);
        s->new_snapshot = snapshot_new();
        if (s->new_snapshot)
                r = discovery_new(&config, &s->discovery);
        c->state = CONTROL_DISCOVERING;
        if (r < 0)
                sweep_fail(c, "the fabric could not be discovered", r);
        else
                sweep_run_stage(c, CONTROL_DISCOVERING, discovery_stage(s->discovery));
}

/* --- the port ------------------------------------------------------------------------------------------------------ */

void sweep_port_waits(struct control *c, const char *why)
{
        char port[PORT_KEY_NAME];

        control_set_status(c, "waiting for %s: %s", port_key_name(control_wanted(c)->settings, port), why);
        if (!c->status.waiting)
                log_add(c->log, LOG_EVENT_WAITING_FOR_PORT, NULL, "%s", c->text);
        c->status.waiting = true;
        sweep_end(c, SWEEP_WAITS);
}

bool sweep_port_works(struct control *c, int r)
{
        const char *problem;

        if (r < 0) {
                sweep_fail(c, "PortInfo of the local port could not be queried", r);
                return false;
        }
        problem = port_query_problem(&c->sweep.query);
        if (problem)
                sweep_port_waits(c, problem);
        return !problem;
}
