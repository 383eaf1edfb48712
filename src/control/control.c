/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "control/control.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "control/confirm.h"
#include "control/lease_sweep.h"
#include "control/leasing.h"
#include "control/reload.h"
#include "control/sweep.h"
#include "control/store_sync.h"
#include "events/event_text.h"
#include "util/text.h"

#define OVERDUE_READING (3 * USEC_PER_SEC)  /* how long a reload does not interrupt a sweep that is overdue */
#define BLIND           (30 * USEC_PER_SEC) /* and two intervals without discovery: a standby may have missed a policy */

/* --- the end -------------------------------------------------------------------------------------------------------- */

/* Without CONTROL_SERVE the data of the sweep stays until control is freed: the results borrow it. */
static void end(struct control *c, int r)
{
        if (control_serves(c))
                sweep_free(c);
        c->state = CONTROL_ENDED;
        control_request(c, &(struct control_action) { .kind = CONTROL_EXIT, .r = r });
}

static void stopped(struct control *c)
{
        if (control_serves(c) && c->started)
                log_add(c->log, LOG_EVENT_STOPPED, NULL, "stopped; the fabric stays as it is");
        end(c, 0);
}

/* --- the local port ----------------------------------------------------------------------------------------------- */

/* At the start pkeyd does not wait for a device that is missing or may not be used: an admin sees the message now. */
static void on_port(struct control *c, const struct control_event *event)
{
        const struct generation *g = control_wanted(c);
        bool first = control_serves(c) && !c->started;
        char port[PORT_KEY_NAME];
        int r = event->port.r;

        if (first && r < 0 && r != -ENETDOWN) {
                log_add(c->log, LOG_EVENT_CANNOT_START, NULL, "%s: %s", port_key_name(g->settings, port),
                        port_key_problem(r));
                end(c, r);
                return;
        }
        if (first)
                log_add(c->log, LOG_EVENT_STARTED, NULL, "%s started, policy %s", c->config.program, g->policy->file);
        c->started = true;
        sweep_port(c, event);
}

/* --- sweeps --------------------------------------------------------------------------------------------------------- */

static bool snapshot_is_of_wanted_port(const struct control *c)
{
        return c->snapshot && port_key_is_of(&c->port, control_wanted(c)->settings);
}

/* The known fabric is not used after a discovery that failed, because the place of the master SM is not known then; nor if
 * absent_hold is longer now than when the last discovery judged which ports are absent. */
static enum sweep_kind next_kind(const struct control *c)
{
        enum sweep_kind kind;
        bool known = snapshot_is_of_wanted_port(c) && !c->status.waiting && !c->discovery_failed && !c->knowledge_is_new &&
                     control_wanted(c)->settings->absent_hold <= c->discovered_hold;

        kind = schedule_kind(&c->schedule, c->now, known);
        if (kind != SWEEP_KNOWN || c->schedule.reload_due)
                return kind;
        if (leasing_has_failed_ports(c))
                return SWEEP_RETRY;
        return lease_sweep_is_possible(c) ? SWEEP_LEASE : kind;
}

/* May the other head node have written by a policy that this one never planned with? */
static bool missed_policy(const struct control *c, usec_t interval)
{
        bool is_blind = c->now - c->discovered > 2 * interval + BLIND;

        return control_follows_sm(c) && c->sm.state != SM_FOLLOW_WRITER && (c->passed_over || is_blind);
}

static void begin_sweep(struct control *c)
{
        usec_t interval = control_wanted(c)->settings->sweep_interval;
        enum sweep_kind kind = next_kind(c);

        if (missed_policy(c, interval) && !c->config.shares_store)
                knowledge_stop_following(c->knowledge);
        c->passed_over = false;
        if (kind != SWEEP_LEASE)
                control_drop_kept_policy(c);
        schedule_begin(&c->schedule, c->now, kind, interval);
        sweep_begin(c, kind);
}

/* False: the next sweep continues this one. */
static bool is_settled(enum sweep_result result)
{
        return result != SWEEP_STOPPED && result != SWEEP_STALE;
}

/* In audit mode, and on a standby, a sweep may be done although tables differ from the policy. */
static bool is_right(const struct port_counts *ports)
{
        return ports->differ == 0 && ports->unreachable == 0 && ports->silent == 0;
}

static void count_sweep(struct control *c, enum sweep_result result)
{
        struct control_numbers *n = &c->status.numbers;
        bool whole = result == SWEEP_DONE || result == SWEEP_PARTIAL;

        n->sweeps[result]++;
        if (whole)
                n->last_sweep = c->wall;
        if (result == SWEEP_DONE && c->sweep.kind != SWEEP_LEASE && is_right(&c->status.ports))
                n->last_success = c->wall;
        if (whole && c->sweep.kind == SWEEP_FULL)
                n->sweep_duration = c->now - c->sweep.began;
        if (is_settled(result))
                c->status.last_result = result;
}

/* A held base is no reason for a retry: it waits for a change in the fabric, such as a host that returns. */
static enum sweep_result get_result_to_schedule(const struct sweep *s)
{
        return s->result == SWEEP_PARTIAL && s->only_waits ? SWEEP_DONE : s->result;
}

/* Ends control after the one sweep of pkeyctl; in pkeyd, schedules the next sweep. */
static void sweep_ended(struct control *c)
{
        enum sweep_result result = c->sweep.result, to_schedule = get_result_to_schedule(&c->sweep);
        enum sweep_kind kind = c->sweep.kind;

        count_sweep(c, result);
        if (!control_serves(c)) {
                end(c, c->results.r);
                return;
        }
        if (c->status.stopping) {
                stopped(c);
                return;
        }
        if (is_settled(result) && !c->schedule.reload_due && kind != SWEEP_LEASE) {
                reload_sweep_ended(c, result);
                c->status.ready = true;
        }
        if (kind == SWEEP_FULL && result != SWEEP_STOPPED) {
                c->swept = c->now;
                sweep_forget_interrupted(c);
        } else if (kind == SWEEP_FULL && c->sweep.abandoned) {
                schedule_full_sweep(&c->schedule);
        }
        sweep_free(c);
        c->state = CONTROL_IDLE;
        schedule_ended(&c->schedule, c->now, kind, to_schedule, control_wanted(c)->settings->sweep_interval);
        if (result == SWEEP_WAITS || c->other_fabric.v) /* the next sweep may find another port */
                control_request(c, &(struct control_action) { .kind = CONTROL_CLOSE_PORT });
}

/* --- events at any time --------------------------------------------------------------------------------------------- */

/* While pkeyd did not run, pkeyd.yaml may have been edited. An undo must return to the settings that were in force last. */
static bool has_other_settings(const struct generation *in_force, const struct stored_files *files)
{
        return in_force && files->has_settings && !generation_has_settings(in_force, files->settings.bytes, files->settings.n);
}

static void take_start(struct control *c, const struct control_start *start)
{
        bool serves = control_serves(c), stores;

        c->candidate = start->candidate;
        c->in_force = serves && start->in_force ? sync_continue(c, start->in_force) : start->in_force;
        stores = serves && has_other_settings(c->in_force, &start->remembered->files);
        sync_take_all(c, start->remembered);
        if (serves)
                reload_admit_again(c);
        if (stores && !c->in_force->audits)
                sync_will_store(c, c->in_force);
}

static bool has_opensm_file(const struct generation *g)
{
        return g && settings_opensm_file(g->settings);
}

/* A shared store has what the other head node wrote; but it has not what the OpenSM of this host wrote by its file, as the master
 * SM. */
static bool store_has_all_writes(const struct control *c)
{
        return c->config.shares_store && !has_opensm_file(c->in_force) && !has_opensm_file(c->candidate);
}

static void on_start(struct control *c, const struct control_event *event)
{
        const struct control_start *start = &event->start;
        size_t n = start->findings->n_errors;

        take_start(c, start);
        confirm_begin(c);
        /* The other head node may have written by policies that this one never saw. A plan of pkeyctl shows what the daemon of this
         * host would do, so only an apply considers that. */
        if (!store_has_all_writes(c) && (control_follows_sm(c) || (c->config.goal == CONTROL_APPLY && control_is_in_pair(c))))
                knowledge_stop_following(c->knowledge);
        event_text_findings(c->log, start->findings);
        if (!control_wanted(c)) {
                log_add(c->log, LOG_EVENT_CANNOT_START, NULL, "%zu error%s; no policy is in force", n, text_plural(n));
                end(c, -EBADMSG);
                return;
        }
        if (!c->candidate && n > 0) {
                c->status.n_file_errors = n;
                log_add(c->log, LOG_EVENT_LAST_POLICY, &(struct log_about) { .generation = c->in_force->number },
                        "%zu error%s; the last policy in force, generation %" PRIu64 ", stays in force", n, text_plural(n),
                        c->in_force->number);
        }
        control_set_status(c, "starting");
        begin_sweep(c);
}

static void on_candidate(struct control *c, const struct control_event *event)
{
        reload_candidate(c, &event->candidate);
        if (c->schedule.reload_due)
                sweep_stop_writing(c);
}

/* An undo that is not in force yet is dropped. */
static void on_confirm(struct control *c, const struct control_event *event)
{
        if (confirm_waits(c) && c->candidate && c->candidate->facts.undoes > 0)
                reload_withdraw(c, "the change was confirmed before it was undone");
        confirm_keep(c, event);
}

/* A reload that is not in force yet is all that there is to undo. */
static void on_undo(struct control *c, const struct control_event *event)
{
        if (c->confirm.undoing || !c->in_force || !c->candidate || confirm_is_past(c, event->asked.generation)) {
                confirm_undo(c, event);
                return;
        }
        reload_withdraw(c, "it was undone before it came into force");
        confirm_withdrawn(c, event->asked.request);
}

static void read_local_tables(struct control *c)
{
        if (c->reading_local || c->now < verbs_check_due(c->verbs))
                return;
        c->reading_local = true;
        control_request(c, &(struct control_action) { .kind = CONTROL_READ_LOCAL_TABLES });
}

/* The verbs check runs between sweeps only: a sweep changes tables, and a check follows at its end. */
static void on_due(struct control *c, const struct control_event *)
{
        if (c->state != CONTROL_IDLE) {
                sweep_tick(c);
                return;
        }
        if (c->now >= schedule_due(&c->schedule))
                begin_sweep(c);
        else
                read_local_tables(c);
}

static void on_local_tables(struct control *c, const struct control_event *event)
{
        struct guid guid;
        usec_t at;

        c->reading_local = false;
        if (c->state != CONTROL_IDLE)
                return;
        verbs_check_see(c->verbs, c->now, event->local.tables, event->local.n, c->log);
        /* a subnet manager that was restarted writes every table, so a sweep of the whole fabric is next */
        while (verbs_check_next_port(c->verbs, &guid, &at)) {
                uint32_t port = c->snapshot ? subnet_find_endport(c->snapshot->subnet, guid) : SUBNET_NONE;

                schedule_event(&c->schedule, c->now);
                if (port == SUBNET_NONE)
                        continue;
                c->snapshot->failed[port] = true;
                schedule_port(&c->schedule, at);
        }
}

static DEFINE_WORDS(verbs_event_to_string, enum verbs_event_kind, "?",
                    [VERBS_P_KEY_CHANGE] = "P_Key change", [VERBS_LID_CHANGE] = "LID change", [VERBS_SM_CHANGE] = "SM change",
                    [VERBS_CLIENT_REREGISTER] = "client reregister", [VERBS_PORT_ACTIVE] = "port active",
                    [VERBS_PORT_ERROR] = "port error", [VERBS_DEVICE_FATAL] = "device fatal")

/* The master SM may have moved. A writer that follows it stops, and queries where it is. */
static void sm_changed(struct control *c)
{
        sm_follow_doubt(&c->sm);
        if (control_follows_sm(c))
                sweep_stop_writing(c);
}

/* Other ports of this host may lead to other fabrics. A port that was down is not in the snapshot, but was seen before. */
static bool may_be_in_fabric(const struct control *c, struct guid port)
{
        return port.v == 0 || !c->snapshot || port.v == c->port_guid.v ||
               subnet_find_endport(c->snapshot->subnet, port) != SUBNET_NONE || known_find(&c->known, port);
}

static void on_verbs(struct control *c, const struct control_event *event)
{
        const struct verbs_event *e = &event->verbs;

        log_debug(c->log, "%s/%u: %s", e->device, e->number, verbs_event_to_string(e->kind));
        if (!may_be_in_fabric(c, e->port_guid))
                return;
        if (e->kind == VERBS_P_KEY_CHANGE) {
                if (c->state == CONTROL_IDLE) /* else a check follows at the end of the sweep */
                        verbs_check_changed(c->verbs, c->now, e->port_guid);
                return;
        }
        if (e->kind == VERBS_DEVICE_FATAL)
                log_add(c->log, LOG_EVENT_DEVICE_GONE, NULL, "%s failed or was removed", e->device);
        if (e->kind == VERBS_SM_CHANGE || e->kind == VERBS_CLIENT_REREGISTER)
                c->status.sm_changes++;
        if (e->kind == VERBS_SM_CHANGE)
                sm_changed(c);
        schedule_event(&c->schedule, c->now);
}

/* pkeyd reads the store between two sweeps. A sweep that is under way may have read it before it changed; the next one reads it
 * again. */
static void on_store_changed(struct control *c, const struct control_event *)
{
        if (c->state != CONTROL_IDLE || !control_stands_by(c))
                return;
        control_await(c, CONTROL_FOLLOWING, &(struct control_action) { .kind = CONTROL_FOLLOW_STORE });
}

/* Records that could not be stored are stored with the next sweep, or before the next write. */
static void on_stored_at_end(struct control *c, const struct control_event *event)
{
        int r = sweep_take_stored(c, event);

        if (r < 0 && !c->store_failed)
                log_add(c->log, LOG_EVENT_STATE_DIR, NULL,
                        "pkeyd could not store its state: %s; it writes no P_Key table until it can", strerror(-r));
        c->store_failed |= r < 0;
        sweep_ended(c);
}

static void on_stop(struct control *c, const struct control_event *)
{
        c->status.stopping = true;
        control_set_status(c, "stopping");
        if (c->state == CONTROL_APPLYING || c->state == CONTROL_STORING || c->state == CONTROL_STORING_END) {
                sweep_stop_writing(c); /* the end of the sweep is the end */
                return;
        }
        c->results.r = -ECANCELED;
        c->results.failed = c->state;
        stopped(c);
}

/* --- events --------------------------------------------------------------------------------------------------------- */

typedef void (*handler)(struct control *c, const struct control_event *event);

static const handler at_any_time[CONTROL_N_EVENTS] = {
        [CONTROL_EVENT_START] = on_start,
        [CONTROL_EVENT_DUE] = on_due,
        [CONTROL_EVENT_CANDIDATE] = on_candidate,
        [CONTROL_EVENT_CONFIRM] = on_confirm,
        [CONTROL_EVENT_UNDO] = on_undo,
        [CONTROL_EVENT_LEASE] = leasing_request,
        [CONTROL_EVENT_STORE_CHANGED] = on_store_changed,
        [CONTROL_EVENT_VERBS] = on_verbs,
        [CONTROL_EVENT_LOCAL_TABLES] = on_local_tables,
        [CONTROL_EVENT_STOP] = on_stop,
};

/* The answers that each state waits for. In other states they are errors of the shell. */
static const handler answers[CONTROL_N_STATES][CONTROL_N_EVENTS] = {
        [CONTROL_FOLLOWING] = { [CONTROL_EVENT_FOLLOWED] = sweep_followed },
        [CONTROL_OPENING_PORT] = { [CONTROL_EVENT_PORT] = on_port },
        [CONTROL_QUERYING_PORT] = { [CONTROL_EVENT_STAGE_ENDED] = sweep_queried },
        [CONTROL_DISCOVERING] = { [CONTROL_EVENT_STAGE_ENDED] = sweep_discovered },
        [CONTROL_CHOOSING] = { [CONTROL_EVENT_TABLES_CHOSEN] = sweep_chosen },
        [CONTROL_SURVEYING] = { [CONTROL_EVENT_STAGE_ENDED] = sweep_surveyed },
        [CONTROL_CONFIRMING] = { [CONTROL_EVENT_PERSON_ANSWERED] = sweep_confirmed },
        [CONTROL_LOCKING] = { [CONTROL_EVENT_LOCK] = sweep_locked },
        [CONTROL_FINDING_SM] = { [CONTROL_EVENT_STAGE_ENDED] = sweep_found_sm },
        [CONTROL_READING_CONF] = { [CONTROL_EVENT_FILES_READ] = sweep_read_conf },
        [CONTROL_STORING] = { [CONTROL_EVENT_STORED] = sweep_stored },
        [CONTROL_APPLYING] = { [CONTROL_EVENT_STAGE_ENDED] = sweep_phase_applied },
        [CONTROL_WRITING_OPENSM] = {
                [CONTROL_EVENT_FILES_READ] = sweep_writer_answered,
                [CONTROL_EVENT_STORED] = sweep_writer_answered,
                [CONTROL_EVENT_FILE_WRITTEN] = sweep_writer_answered,
                [CONTROL_EVENT_OPENSM_SIGNALLED] = sweep_writer_answered,
                [CONTROL_EVENT_STAGE_ENDED] = sweep_writer_answered,
        },
        [CONTROL_MIRRORING] = {
                [CONTROL_EVENT_FILES_READ] = sweep_writer_answered,
                [CONTROL_EVENT_STORED] = sweep_writer_answered,
                [CONTROL_EVENT_FILE_WRITTEN] = sweep_writer_answered,
        },
        [CONTROL_STORING_END] = { [CONTROL_EVENT_STORED] = on_stored_at_end },
        [CONTROL_LOCKING_FACTS] = { [CONTROL_EVENT_LOCK] = sync_locked },
        [CONTROL_STORING_FACTS] = { [CONTROL_EVENT_STORED] = sync_stored },
};

static void update_text(struct control *c)
{
        const struct generation *g = c->in_force;
        size_t n = c->status.n_file_errors;
        char notes[100] = "";

        if (n > 0)
                (void) snprintf(notes, sizeof(notes), " (pkeyd refused the present files: %zu error%s)", n, text_plural(n));
        else if (g && g->is_off_file && g->facts.undoes > 0)
                (void) snprintf(notes, sizeof(notes), " (the present files are not in force: generation %" PRIu64 " was undone)",
                                g->facts.undoes);
        else if (g && generation_waits(&g->facts))
                (void) snprintf(notes, sizeof(notes), " (generation %" PRIu64 " waits to be confirmed)", g->number);
        (void) snprintf(c->status_text, sizeof(c->status_text), "%s%s", c->text, notes);
}

static void update_status(struct control *c)
{
        struct control_status *s = &c->status;

        update_text(c);
        s->state = c->state;
        s->text = c->status_text;
        s->reload_pending = c->reloads.n_pending > 0;
        s->in_force = c->in_force;
        s->wanted = control_wanted(c);
        s->writing = c->in_force && control_writes(c, c->in_force);
        s->standby = s->wanted && !control_may_write(c, c->in_force ? c->in_force : s->wanted);
        s->guest = control_is_guest(c);
        s->not_loaded = c->not_loaded > 0;
        s->snapshot = c->snapshot;
        s->knowledge = c->knowledge;
        s->known = &c->known;
        s->leases = c->leases;
        s->frozen = freezer_ports(c->freezer, &s->n_frozen);
        s->claims = identity_claims(c->identity, &s->n_claims);
        s->pins = NULL;
        if (c->in_force || s->wanted)
                s->pins = control_pins(c, control_serves(c) && c->in_force ? c->in_force : s->wanted);
}

/* A sweep ends when its records are stored. Only the holder of the lock may store: else records that another process stored
 * meanwhile would be lost. */
static void end_sweep(struct control *c)
{
        if (c->sweep.kind != SWEEP_LEASE)
                reload_note_outcome(c, c->sweep.result);
        leasing_swept(c);
        if (!c->sweep.lock.held || sweep_store(c, CONTROL_STORING_END) <= 0) /* out of memory: with the next sweep */
                sweep_ended(c);
}

/* A sweep of this kind writes the known fabric, without reading it first. */
static bool writes_known_fabric(enum sweep_kind kind)
{
        return kind == SWEEP_KNOWN || kind == SWEEP_LEASE;
}

/* When a reload interrupts a sweep that reads. A reload does not wait for ports that do not answer: pkeyd writes the known fabric,
 * and sweeps after that. The interrupted sweep has found out which ports are silent, so that the next one is short. If no full
 * sweep has ended for two intervals, because of many reloads, they wait for OVERDUE_READING. USEC_INFINITY: there is nothing to
 * interrupt. */
static usec_t interruption_due(const struct control *c)
{
        bool reads = c->state == CONTROL_DISCOVERING || c->state == CONTROL_SURVEYING;
        usec_t overdue_at;

        if (!reads || !(c->schedule.reload_due || c->schedule.lease_due) || c->sweep.abandoned ||
            writes_known_fabric(c->sweep.kind) || !writes_known_fabric(next_kind(c)))
                return USEC_INFINITY;
        overdue_at = c->swept + 2 * control_wanted(c)->settings->sweep_interval;
        return c->now < overdue_at ? c->now : MAX(c->now, c->sweep.began + OVERDUE_READING);
}

static void interrupt_reading(struct control *c)
{
        if (interruption_due(c) > c->now)
                return;
        c->sweep.abandoned = true;
        control_request(c, &(struct control_action) { .kind = CONTROL_ABANDON_STAGE });
}

int control_event(struct control *c, usec_t now, const struct control_event *event)
{
        handler handle;

        assert(event->kind < CONTROL_N_EVENTS);
        handle = at_any_time[event->kind] ?: answers[c->state][event->kind];
        if (c->state == CONTROL_ENDED || !handle)
                return -EPROTO;
        c->now = MAX(c->now, now);
        c->wall = event->wall;
        handle(c, event);
        if (c->sweep.ended && c->state != CONTROL_STORING_END && c->state != CONTROL_ENDED)
                end_sweep(c);
        leasing_tick(c);
        confirm_tick(c);
        sync_tick(c);
        interrupt_reading(c);
        update_status(c);
        return 0;
}

bool control_next_action(struct control *c, struct control_action *ret)
{
        const struct log_entry *entry = log_next(c->log);

        if (entry) {
                *ret = (struct control_action) { .kind = CONTROL_LOG, .entry = entry };
                return true;
        }
        if (leases_next_answer(c->leases, &c->lease_reply.answer)) {
                *ret = (struct control_action) { .kind = CONTROL_ANSWER_LEASE, .lease = &c->lease_reply };
                return true;
        }
        if (c->n_actions == 0)
                return false;
        *ret = c->actions[c->first_action];
        c->first_action = (c->first_action + 1) % MAX_ACTIONS;
        c->n_actions--;
        return true;
}

static bool admit(void *state, const struct mad_frame *frame)
{
        struct control *c = state;

        return gate_admit(c->gate, frame);
}

static void see(void *state, const struct mad_result *result)
{
        struct control *c = state;

        gate_see(c->gate, result);
}

struct mad_gate control_gate(struct control *c)
{
        return (struct mad_gate) { .state = c, .admit = admit, .see = see };
}

usec_t control_due(const struct control *c)
{
        usec_t due;

        if (c->state == CONTROL_ENDED)
                return USEC_INFINITY;
        if (c->state == CONTROL_IDLE)
                due = MIN(schedule_due(&c->schedule), c->reading_local ? USEC_INFINITY : verbs_check_due(c->verbs));
        else
                due = MIN(sweep_due(c), interruption_due(c));
        return MIN(MIN(due, sync_due(c)), MIN(confirm_due(c), leasing_due(c)));
}

/* --- status --------------------------------------------------------------------------------------------------------- */

const struct control_status *control_get_status(const struct control *c)
{
        return &c->status;
}

const struct control_results *control_get_results(const struct control *c)
{
        return &c->results;
}

static unsigned percent(const struct mad_stage *stage)
{
        uint64_t done, total;

        stage->progress(stage->state, &done, &total);
        return total > 0 ? (unsigned) (done * 100 / total) : 0;
}

void control_describe(const struct control *c, char *ret, size_t size)
{
        static const char *const words[] = {
                [CONTROL_FOLLOWING] = "reading the records of the other head node",
                [CONTROL_OPENING_PORT] = "querying the local port",
                [CONTROL_QUERYING_PORT] = "querying the local port",
                [CONTROL_DISCOVERING] = "discovering the fabric",
                [CONTROL_STORING] = "storing what pkeyd is about to write",
                [CONTROL_STORING_END] = "storing what is known of the fabric",
                [CONTROL_LOCKING] = "waiting for another process that writes P_Key tables",
        };
        const struct sweep *s = &c->sweep;

        if (c->state == CONTROL_SURVEYING)
                (void) snprintf(ret, size, "reading P_Key tables, %u %% done", percent(&s->stage));
        else if (c->state == CONTROL_FINDING_SM || c->state == CONTROL_TAKING_OVER)
                sm_follow_describe(&c->sm, c->sm_name, ret, size);
        else if (c->state == CONTROL_APPLYING)
                (void) snprintf(ret, size, "generation %" PRIu64 ": writing P_Key tables (%s), %u %% done", s->generation->number,
                                plan_phase_to_string(apply_phase(s->apply)), percent(&s->stage));
        else if (c->state == CONTROL_WRITING_OPENSM)
                (void) snprintf(ret, size, "generation %" PRIu64 ": OpenSM writes P_Key tables (%s)", s->generation->number,
                                opensm_writer_phase(c->writer));
        else
                (void) snprintf(ret, size, "%s", WORD(words, c->state, c->text));
}

/* --- life ----------------------------------------------------------------------------------------------------------- */

struct control *control_new(const struct control_config *config)
{
        _cleanup_(control_free_p) struct control *c = calloc(1, sizeof(*c));

        if (!c)
                return NULL;
        c->config = *config;
        c->confirm.due = c->confirm.warn_at = USEC_INFINITY;
        schedule_init(&c->schedule);
        c->log = log_new();
        c->watch = watch_new();
        c->verbs = verbs_check_new();
        c->links = discovery_links_new();
        c->knowledge = knowledge_new();
        c->freezer = freezer_new();
        c->identity = identity_new();
        c->gate = gate_new();
        c->leases = leases_new();
        c->writer = c->log ? opensm_writer_new(c->log) : NULL;
        if (!c->log || !c->watch || !c->verbs || !c->links || !c->knowledge || !c->freezer || !c->identity || !c->gate ||
            !c->leases || !c->writer)
                return NULL;
        gate_set_lock(c->gate, config->holds_lock, config->store_userdata);
        update_status(c);
        return STEAL(c);
}

struct control *control_free(struct control *c)
{
        if (!c)
                return NULL;
        if (c->writer && c->knowledge && c->gate)
                sweep_free(c);
        sweep_forget_interrupted(c);
        (void) opensm_writer_free(c->writer);
        (void) verbs_check_free(c->verbs);
        watch_free(c->watch);
        discovery_links_free(c->links);
        (void) gate_free(c->gate);
        if (c->knowledge)
                control_drop_kept_policy(c);
        arena_free(c->held_arena);
        (void) freezer_free(c->freezer);
        (void) identity_free(c->identity);
        (void) knowledge_free(c->knowledge);
        snapshot_unref(c->snapshot);
        generation_unref(c->candidate);
        generation_unref(c->in_force);
        (void) index_memory_free(c->indexes);
        known_done(&c->known);
        pins_done(&c->pins);
        (void) leases_free(c->leases);
        arena_free(c->lease_refusal.arena);
        findings_done(&c->lease_refusal.findings);
        generation_history_done(&c->history);
        before_records_done(&c->before);
        arena_free(c->sync.arena);
        generation_unref(c->unstored);
        generation_unref(c->unstored_before);
        reload_done(c);
        (void) log_free(c->log);
        free(c);
        return NULL;
}
