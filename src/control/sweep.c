/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "control/sweep.h"

#include <errno.h>
#include <string.h>

#include "control/leasing.h"
#include "control/sweep_steps.h"
#include "control/store_sync.h"

/* --- survey -------------------------------------------------------------------------------------------------------- */

/* Tables that are known for certain need not be read again. If out of memory, all are read. */
static struct observed *recall_certain(const struct control *c)
{
        const struct sweep *s = &c->sweep;
        struct observed *certain;

        if (!s->new_snapshot || observed_new(s->arena, s->new_snapshot->subnet, &certain) < 0)
                return NULL;
        knowledge_recall_certain(c->knowledge, certain);
        return certain;
}

static int prepare_survey(struct control *c)
{
        struct sweep *s = &c->sweep;
        struct survey_options options = {
                .m_keys = s->m_keys, .retries = STAGE_RETRIES, .before = c->snapshot ? c->snapshot->observed : NULL,
                .certain = recall_certain(c), .interrupted = c->interrupted.survey, .identify = !s->new_snapshot,
                .ports = s->chosen, .n_ports = s->n_chosen,
        };
        int r = 0;

        if (!s->new_snapshot && s->kind == SWEEP_RETRY) {
                options.n_ports = snapshot_n_failed(c->snapshot);
                options.ports = snapshot_failed_ports(c->snapshot, s->arena);
                r = options.ports ? 0 : -ENOMEM;
        }
        if (r == 0 && !s->new_snapshot)
                r = observed_new(s->arena, c->snapshot->subnet, &s->seen);
        return r < 0 ? r : survey_new(s->arena, s->new_snapshot ? s->new_snapshot->observed : s->seen, &options, &s->survey);
}

/* Reads the tables of a new snapshot (all, or those that were chosen), or of the known one (those that failed, or all). */
static void start_survey(struct control *c)
{
        int r = prepare_survey(c);

        if (r < 0)
                sweep_fail(c, "the P_Key tables could not be read", r);
        else
                sweep_run_stage(c, CONTROL_SURVEYING, survey_stage(c->sweep.survey));
}

/* --- interrupted --------------------------------------------------------------------------------------------------- */

static void forget_survey(struct control *c)
{
        snapshot_unref(c->interrupted.snapshot);
        arena_free(c->interrupted.arena);
        c->interrupted = (struct interrupted) { .discovery = c->interrupted.discovery };
}

/* Ends the sweep because a reload is more urgent. Keeps which ports did not answer, for the next sweep. */
static void interrupted(struct control *c)
{
        struct interrupted *i = &c->interrupted;
        struct sweep *s = &c->sweep;

        sweep_end(c, SWEEP_STOPPED);
        if (s->kind != SWEEP_FULL || !control_serves(c))
                return;
        (void) discovery_free(i->discovery);
        i->discovery = STEAL(s->discovery);
        if (!s->survey)
                return;
        forget_survey(c);
        i->arena = STEAL(s->arena);
        i->snapshot = STEAL(s->new_snapshot);
        i->survey = STEAL(s->survey);
}

void sweep_forget_interrupted(struct control *c)
{
        forget_survey(c);
        c->interrupted.discovery = discovery_free(c->interrupted.discovery);
}

/* --- tables ------------------------------------------------------------------------------------------------- */

/* Records as freed the indexes that are free now, but where an unconfirmed write may have put an entry. */
static int record_freed_of_open_writes(struct control *c, const struct observed *before, const struct observed *now)
{
        const struct subnet *s = now->subnet;
        struct observed *used;
        int r;

        if (!knowledge_has_open_writes(c->knowledge))
                return 0;
        r = observed_new(c->sweep.arena, s, &used);
        if (r < 0)
                return r;
        knowledge_recall_used(c->knowledge, used);
        for (uint32_t p = 0; r == 0 && p < s->n_ports; p++) {
                const struct observed_table *was = &before->tables[p], *is = &now->tables[p], *may_be = &used->tables[p];

                if (is->source != TABLE_READ || may_be->source != TABLE_ASSUMED)
                        continue;
                for (uint16_t i = 0; r == 0 && i < is->capacity; i++)
                        if (!p_key_is_used(was->entries[i]) && !p_key_is_used(is->entries[i]) && p_key_is_used(may_be->entries[i]))
                                r = index_memory_note_open(c->indexes, s->nodes[s->ports[p].node].guid, s->ports[p].number, i,
                                                           may_be->entries[i]);
        }
        return r;
}

/* Records indexes that another writer freed. If that may have been the pkeyd of the other head node, it followed the policy. */
static int record_freed(struct control *c, const struct observed *now)
{
        bool other_sm = c->snapshot && c->snapshot->subnet->sm_lid.v != now->subnet->sm_lid.v;
        bool by_other_pkeyd = control_serves(c) && c->in_force && c->in_force->settings->role == ROLE_FOLLOW_SM &&
                              (other_sm || !control_may_write(c, c->in_force));
        struct memberships *memberships;
        struct desired *desired = NULL;
        struct observed *before;
        int r = observed_new(c->sweep.arena, now->subnet, &before);

        if (r == 0 && by_other_pkeyd)
                r = sweep_resolve(c, c->in_force, now->subnet, &memberships, &desired);
        if (r < 0)
                return r;
        knowledge_recall(c->knowledge, before);
        for (uint32_t i = 0; i < now->subnet->n_ports; i++)
                if (before->tables[i].source == TABLE_ASSUMED)
                        before->tables[i].source = TABLE_READ; /* at an earlier time */
        r = sweep_record_freed(c) ?: index_memory_note_changes(c->indexes, before, now, desired);
        return r < 0 ? r : record_freed_of_open_writes(c, before, now);
}

/* The old snapshot stays until the end in pkeyctl: a person was asked about it, and the results borrow from it. */
static void replace_snapshot(struct control *c)
{
        struct snapshot *old = c->snapshot;

        c->snapshot = STEAL(c->sweep.new_snapshot);
        if (!control_serves(c)) {
                snapshot_unref(c->sweep.shown);
                c->sweep.shown = STEAL(old);
        }
        snapshot_unref(old);
}

/* pkeyctl stores nothing when it only reads. */
static bool stores(const struct control *c)
{
        return control_serves(c) || c->config.goal == CONTROL_APPLY;
}

static int adopt_snapshot(struct control *c)
{
        usec_t wall = c->wall / USEC_PER_SEC, absent_hold = control_wanted(c)->settings->absent_hold;
        struct snapshot *new = c->sweep.new_snapshot;
        int r = knowledge_see_subnet(c->knowledge, new->subnet, c->now, wall, absent_hold);

        r = r ?: record_freed(c, new->observed) ?: snapshot_learn(new, c->knowledge, new->observed, wall);
        if (r < 0)
                return r;
        c->discovered_hold = absent_hold;
        c->knowledge_is_new = false;
        replace_snapshot(c);
        if (stores(c)) /* if out of memory fewer absent ports have a name */
                (void) known_learn(&c->known, c->snapshot->subnet, c->now, wall);
        return 0;
}

/* A part of the known snapshot was read again. Entries that are gone must be recorded before the merge, so that they can be put
 * back at the same index. */
static int adopt_seen(struct control *c)
{
        int r = record_freed(c, c->sweep.seen);

        if (r < 0)
                return r;
        snapshot_merge(c->snapshot, c->sweep.seen);
        return snapshot_learn(c->snapshot, c->knowledge, c->sweep.seen, c->wall / USEC_PER_SEC);
}

/* A LID belongs to another port than at discovery, so that nothing that was read is valid. But one such port must not stop all
 * others: if that is so again right after another discovery, these ports count as not read. In pkeyctl, which has one sweep, they
 * do at once. */
static bool is_stale(const struct control *c)
{
        return survey_is_stale(c->sweep.survey) && (!c->sweep.new_snapshot || (control_serves(c) && !c->schedule.is_stale));
}

void sweep_surveyed(struct control *c, const struct control_event *event)
{
        int r = event->r;

        if (r == -ECANCELED) {
                interrupted(c);
                return;
        }
        if (r == 0 && is_stale(c)) {
                log_debug(c->log, "a port is no longer at its address");
                sweep_end(c, SWEEP_STALE);
                return;
        }
        r = r ?: (c->sweep.new_snapshot ? adopt_snapshot(c) : adopt_seen(c));
        if (r < 0) {
                sweep_fail(c, "the P_Key tables could not be read", r);
                return;
        }
        c->sweep.surveyed = true;
        c->results.observed = c->snapshot->observed;
        if (c->config.goal == CONTROL_READ)
                sweep_end(c, SWEEP_DONE);
        else if (!c->sweep.lock.held && (control_serves(c) || !c->config.confirm))
                sweep_lock(c);
        else
                sweep_decide(c);
}

void sweep_chosen(struct control *c, const struct control_event *event)
{
        struct sweep *s = &c->sweep;

        if (event->chosen.ports) {
                s->n_chosen = event->chosen.n;
                s->chosen = arena_copy(s->arena, event->chosen.ports, s->n_chosen);
                if (!s->chosen) {
                        sweep_fail(c, "the P_Key tables could not be read", -ENOMEM);
                        return;
                }
        }
        start_survey(c);
}

/* --- discovery ----------------------------------------------------------------------------------------------------- */

static int take_discovered(struct control *c)
{
        struct sweep *s = &c->sweep;
        struct snapshot *new = s->new_snapshot;
        int r = discovery_finish(s->discovery, new->arena, &new->subnet);

        if (r < 0)
                return r;
        if (stores(c) && knowledge_is_of_other_fabric(c->knowledge, new->subnet))
                return -EXDEV;
        /* if out of memory, the M_Keys of the next discovery are worse guesses */
        (void) discovery_learn_links(s->discovery, c->links);
        /* the port of the master SM is missing: answers were lost, see reconcile.c */
        if (control_serves(c) && new->subnet->sm_lid.v && new->subnet->sm == SUBNET_NONE)
                return -ENODATA;
        knowledge_complete_subnet(c->knowledge, new->subnet);
        return snapshot_prepare(new);
}

static const char *discovery_problem(const struct control *c, int r)
{
        if (r != -ENODATA)
                return "the fabric could not be discovered";
        return c->sweep.new_snapshot->subnet ? "the port of the master SM did not answer discovery"
                                             : "this host's own port did not answer discovery";
}

/* Ends the sweep in pkeyd. Drops the snapshot before it, too: it may be of the other fabric, if another process has stored since
 * which fabric is its own. */
static void leave_fabric(struct control *c)
{
        control_set_status(c, "%s leads to another fabric, of which pkeyd knows no port; nothing is written", c->port_name);
        if (c->other_fabric.v != c->port_guid.v)
                log_add(c->log, LOG_EVENT_OTHER_FABRIC, &(struct log_about) { .port_guid = c->port_guid },
                        "%s, and the tables stay as they are; set ca and port in pkeyd.yaml, or run a pkeyd for each fabric; if the "
                        "fabric was replaced, remove what is stored of the old one; see SEVERAL FABRICS in pkeyd(8)", c->text);
        c->other_fabric = c->port_guid;
        c->snapshot = snapshot_unref(c->snapshot);
        sweep_end(c, SWEEP_FAILED);
}

/* Ends the sweep: otherwise the ports that pkeyd knows, which are in another fabric, would be stored as absent. */
static void refuse_fabric(struct control *c)
{
        if (control_serves(c)) {
                leave_fabric(c);
                return;
        }
        (void) findings_error(c->config.findings, FINDING_HOST_STATE_DIR, "give each fabric a state directory of its own: --state-dir DIR",
                              "the state directory belongs to another fabric: none of its ports is in this one");
        sweep_end_with(c, SWEEP_REFUSED, -EBADMSG);
}

/* With a store in common, what comes into force here does so on the other head node, too. */
static bool is_of_other_head(const struct control *c, const struct subnet *s)
{
        struct sm_view view = { .sm_lid = s->sm_lid };

        sm_view_add_known(&view, s, &c->port_guid, 1);
        sm_view_add_known(&view, s, c->host_guids, c->n_host_guids);
        return c->config.shares_store && control_is_in_pair(c) && !sm_is_here(&view);
}

static void refuse_standby(struct control *c, const struct subnet *s)
{
        const struct subnet_node *node = s->sm == SUBNET_NONE ? NULL : subnet_port_node(s, &s->ports[s->sm]);
        char name[SUBNET_NAME_SIZE];

        if (s->sm_lid.v == 0)
                (void) findings_error(c->config.findings, FINDING_HOST_STANDS_BY, "start the subnet manager",
                                      "there is no master SM: with store: etcd only the head node that has it writes; nothing was written");
        else
                (void) findings_error(c->config.findings, FINDING_HOST_STANDS_BY, "run the command on the head node that has the master SM",
                                      "the master SM is at LID %u%s%s%s, not on this host: with store: etcd only the head node that has it "
                                      "writes; nothing was written", (unsigned) s->sm_lid.v, node ? " (node " : "",
                                      node ? subnet_node_name(node, name) : "", node ? ")" : "");
        sweep_end_with(c, SWEEP_REFUSED, -EBADMSG);
}

void sweep_discovered(struct control *c, const struct control_event *event)
{
        struct subnet *subnet;
        int r = event->r < 0 ? event->r : take_discovered(c);

        if (r == -ECANCELED) {
                interrupted(c);
                return;
        }
        if (r == -EXDEV) {
                refuse_fabric(c);
                return;
        }
        if (r < 0) {
                sweep_fail(c, discovery_problem(c, r), r);
                return;
        }
        subnet = c->sweep.new_snapshot->subnet;
        if (c->config.goal == CONTROL_APPLY && is_of_other_head(c, subnet)) {
                refuse_standby(c, subnet);
                return;
        }
        c->discovered = c->now;
        c->discovery_failed = false;
        c->other_fabric = (struct guid) {};
        c->results.subnet = subnet;
        log_debug(c->log, "discovered: %u nodes, %u ports", subnet->n_nodes, subnet->n_ports);
        if (c->sweep.abandoned)
                interrupted(c); /* the stage ended before the action reached it */
        else if (!c->config.choose_tables)
                start_survey(c);
        else
                control_await(c, CONTROL_CHOOSING, &(struct control_action) { .kind = CONTROL_CHOOSE_TABLES });
}

/* --- the beginning ------------------------------------------------------------------------------------------------- */

void sweep_queried(struct control *c, const struct control_event *event)
{
        if (!sweep_port_works(c, event->r))
                return;
        c->port_info = c->sweep.query.info;
        c->status.port_info = &c->port_info;
        if (c->status.waiting)
                log_add(c->log, LOG_EVENT_PORT_FOUND, &(struct log_about) { .lid = c->port_info.lid }, "%s is up, LID %u",
                        c->port_name, (unsigned) c->port_info.lid.v);
        c->status.waiting = false;
        sweep_discover(c);
}

/* The snapshot is dropped if it is of another port. */
static void use_port(struct control *c, const struct control_port *port)
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
        if (event->port.r < 0 && control_serves(c)) {
                sweep_port_waits(c, port_key_problem(event->port.r));
                return;
        }
        if (event->port.r < 0) {
                sweep_fail(c, "the port cannot be used", event->port.r);
                return;
        }
        use_port(c, &event->port);
        if (c->sweep.kind == SWEEP_FULL && control_serves(c))
                sweep_query_port(c, CONTROL_QUERYING_PORT);
        else if (c->sweep.kind == SWEEP_FULL)
                sweep_discover(c);
        else if (c->sweep.kind == SWEEP_RETRY || control_wanted(c)->settings->writer == WRITER_OPENSM)
                start_survey(c); /* OpenSM does not read a table before it writes it, so pkeyd does */
        else
                sweep_lock(c);
}

static void open_port(struct control *c)
{
        const struct settings *settings = control_wanted(c)->settings;

        port_key_make(settings, &c->sweep.port);
        control_await(c, CONTROL_OPENING_PORT, &(struct control_action) { .kind = CONTROL_OPEN_PORT, .settings = settings });
}

void sweep_begin(struct control *c, enum sweep_kind kind)
{
        const struct generation *g = control_wanted(c);

        c->sweep = (struct sweep) {
                .kind = kind, .began = c->now, .arena = arena_new(), .m_keys = m_keys_ref(g->m_keys),
                .first_serial = c->reloads.last_serial + 1,
        };
        if (!c->sweep.arena)
                sweep_fail(c, "a sweep could not be started", -ENOMEM);
        else if ((kind == SWEEP_FULL || c->candidate) && control_stands_by(c)) /* a candidate may be in force by now */
                control_await(c, CONTROL_FOLLOWING, &(struct control_action) { .kind = CONTROL_FOLLOW_STORE });
        else
                open_port(c);
}

/* pkeyd reads the fabric also if the store could not be read. */
void sweep_followed(struct control *c, const struct control_event *event)
{
        const struct control_lock *lock = &event->lock;
        bool sweeps = c->sweep.arena, changed = lock->changed;

        (void) snprintf(c->follow_problem, sizeof(c->follow_problem), "%s", lock->r < 0 ? lock->why ?: strerror(-lock->r) : "");
        sync_take_changed(c, lock);
        leasing_note_confirmed(c);
        if (!sweeps)
                c->state = CONTROL_IDLE;
        else if (changed && c->sweep.kind != SWEEP_FULL)
                sweep_end(c, SWEEP_STALE); /* what is known was read by the other head node */
        else
                open_port(c);
}

/* --- time ---------------------------------------------------------------------------------------------------------- */

usec_t sweep_due(const struct control *c)
{
        if (c->state == CONTROL_LOCKING)
                return c->sweep.lock.retry_at;
        if (c->state == CONTROL_TAKING_OVER)
                return sm_follow_due(&c->sm, sweep_sm_hold(c));
        return c->state == CONTROL_WRITING_OPENSM ? opensm_writer_due(c->writer) : USEC_INFINITY;
}

void sweep_tick(struct control *c)
{
        if (c->now < sweep_due(c))
                return;
        if (c->state == CONTROL_LOCKING) {
                sweep_lock(c);
        } else if (c->state == CONTROL_TAKING_OVER) {
                sweep_end(c, SWEEP_STALE); /* the tables were read before the other pkeyd stopped */
        } else if (c->state == CONTROL_WRITING_OPENSM) {
                opensm_writer_tick(c->writer, c->now);
                sweep_follow_writer(c);
        }
}
