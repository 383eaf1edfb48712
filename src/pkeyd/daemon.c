/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd/daemon.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "opensm/partitions_conf.h"
#include "pkeyd/bus.h"
#include "pkeyd/bus_leases.h"
#include "pkeyd/forward.h"
#include "pkeyd/load.h"
#include "pkeyd/metrics_file.h"
#include "pkeyd/monitor.h"
#include "pkeyd/notify.h"
#include "shell/file.h"
#include "shell/opened_port.h"
#include "shell/opensm_process.h"
#include "shell/timer.h"
#include "state/etcd_place.h"
#include "state/state.h"

struct daemon {
        const struct options *options;
        struct journal journal;
        sd_event *event;
        sd_event_source *due;
        struct control *control;
        struct opened_port port;
        struct port_session_handlers handlers; /* for the sessions of the port */
        struct arena *arena;    /* of the place of the store */
        struct state state;
        char load_problem[320]; /* why the generation in force could not be loaded last; "": it could */
        struct verbs_host *verbs;
        struct notify notify;
        struct bus *bus;
        struct forward forward;
        struct monitor *monitor;
        struct violation_list violations;
        struct metrics_file metrics;
        uint64_t n_plans;
        usec_t plan_duration;   /* of the last plan */
        int r;                  /* from CONTROL_EXIT */
};

/* --- actions ------------------------------------------------------------------------------------------------------ */

static void log_state_reports(struct daemon *d)
{
        static const enum log_event events[] = {
                [STATE_DAMAGED] = LOG_EVENT_STATE_DAMAGED,
                [STATE_UNUSABLE] = LOG_EVENT_STATE_DIR,
                [STATE_USABLE] = LOG_EVENT_STATE_USABLE,
        };
        struct state_report r;

        while (state_next_report(&d->state, &r))
                journal_event(&d->journal, events[r.kind], NULL, "%s; %s%s%s", r.text, r.effect, r.hint ? "; " : "", r.hint ?: "");
}

/* All events go to control through this function. */
static void post(struct daemon *d, struct control_event *event)
{
        const struct control_status *s = control_get_status(d->control);
        usec_t began = clock_now();

        event->wall = clock_wall();
        (void) control_event(d->control, began, event);
        if (s->numbers.n_plans != d->n_plans)
                d->plan_duration = clock_now() - began;
        d->n_plans = s->numbers.n_plans;
}

static void read_local_tables(struct daemon *d, struct arena *a, struct control_event *ret)
{
        struct local_table *tables;
        size_t n, n_tables = 0;

        (void) verbs_host_scan(d->verbs);
        n = verbs_host_n_ports(d->verbs);
        tables = arena_new_array(a, struct local_table, n);
        for (size_t i = 0; tables && i < n; i++) {
                struct local_table *t = &tables[n_tables];
                struct verbs_port port;
                struct p_key *entries;

                if (verbs_host_query(d->verbs, i, &port) < 0 || !port.is_infiniband || port.port_guid.v == 0)
                        continue;
                t->port_guid = port.port_guid;
                /* in other states the table is not valid yet */
                if ((port.state == PORT_STATE_ARMED || port.state == PORT_STATE_ACTIVE) &&
                    verbs_host_read_table(d->verbs, i, a, &entries, &t->n_entries) == 0)
                        t->entries = entries;
                n_tables++;
        }
        ret->kind = CONTROL_EVENT_LOCAL_TABLES;
        ret->local.tables = tables;
        ret->local.n = n_tables;
}

static void write_file(const struct control_file *file, struct control_event *ret)
{
        ret->kind = CONTROL_EVENT_FILE_WRITTEN;
        ret->r = file_write_beside(file->path, file->beside, file->bytes, file->n);
}

static void read_files(struct arena *a, const struct control_action *action, struct control_event *ret)
{
        ret->kind = CONTROL_EVENT_FILES_READ;
        for (size_t i = 0; i < CONTROL_MAX_FILES && action->files[i].path; i++) {
                struct control_file *f = &ret->files[i];

                f->path = action->files[i].path;
                f->r = file_read(a, f->path, PARTITIONS_CONF_MAX_SIZE, &f->bytes, &f->n);
        }
}

static void signal_opensm(struct arena *a, const struct control_action *action, struct control_event *ret)
{
        char *why = arena_new_array(a, char, OPENSM_WHY);

        ret->kind = CONTROL_EVENT_OPENSM_SIGNALLED;
        ret->opensm.r = why ? opensm_process_signal(action->settings, action->signal, why) : -ENOMEM;
        ret->opensm.why = why ?: "out of memory";
}

/* Refuses settings that name a port which this host does not have: with them no daemon could reach the fabric; or that leave a
 * choice of ports of which one may lead to another fabric. */
static int check_port(struct daemon *d, const struct generation *g, struct findings *findings)
{
        const struct settings *now = control_get_status(d->control)->wanted->settings, *s = g->settings;
        struct local_port lp = {};

        if (s->port == now->port && strcmp(s->ca ?: "", now->ca ?: "") == 0)
                return 0;
        if (local_port_find(s->ca, s->port, &lp) == -ENODEV)
                return local_port_complain(s->ca, s->port, findings);
        if (d->port.is_of_several && lp.n_choices > 1)
                return findings_error(findings, FINDING_HOST_NO_DEVICE, "set ca and port in pkeyd.yaml",
                                      "this host has several InfiniBand ports that may lead to fabric %s", d->options->fabric.name);
        return 0;
}

/* The store is opened once. */
static void note_store(const struct daemon *d, const struct generation *g, struct findings *findings)
{
        struct finding *item;

        if (etcd_place_is(d->state.etcd, g->settings))
                return;
        item = findings_add(findings, FINDING_WARNING, FINDING_RELOAD_STORE, NULL,
                            "a change of store or etcd takes effect when pkeyd is started; until then pkeyd uses %s", d->state.name);
        finding_set_hint(findings, item, "systemctl restart pkeyd, after pkeyctl store copy; see pkeyd-etcd(7)");
}

/* The event borrows the findings. */
static void make_candidate(int r, struct generation *g, struct findings *findings, uint64_t request, struct control_event *ret)
{
        findings->out_of_memory |= r == -ENOMEM;
        ret->kind = CONTROL_EVENT_CANDIDATE;
        ret->candidate = (struct control_candidate) {
                .generation = r == 0 ? g : generation_unref(g), .findings = findings, .request = request,
        };
}

static void load_undo_candidate(struct daemon *d, struct findings *findings, const struct control_undo *undo,
                                struct control_event *ret)
{
        struct generation *g = NULL;
        int r = findings->arena ? load_undo(d->options, &d->state, undo, findings, &g) : -ENOMEM;

        r = r ?: check_port(d, g, findings);
        make_candidate(r, g, findings, undo->request, ret);
        ret->candidate.is_undo = true;
}

/* It may be loaded again and again. */
static void log_load_problem(struct daemon *d, uint64_t number, const char *why)
{
        char problem[sizeof(d->load_problem)];

        (void) snprintf(problem, sizeof(problem), "generation %" PRIu64 ", which is in force according to %s, cannot be loaded: %s",
                        number, d->state.name, why);
        if (strcmp(problem, d->load_problem) != 0)
                journal_event(&d->journal, LOG_EVENT_STATE_DIR, NULL, "%s", problem);
        memcpy(d->load_problem, problem, sizeof(problem));
}

/* The generation in force by the store; NULL: it has none, or it cannot be loaded. */
static struct generation *load_stored(struct daemon *d, const struct remembered *m)
{
        _cleanup_arena_ struct arena *a = arena_new();
        _cleanup_findings_ struct findings findings = { .arena = a };
        struct generation *g = NULL;
        int r = a ? 0 : -ENOMEM;

        if (r == 0 && m->policy)
                r = load_in_force(d->options, &d->state, &m->files, &findings, &g);
        else if (r == 0 && m->generation > 0)
                r = -EBADMSG;
        if (r < 0 && d->state.etcd)
                log_load_problem(d, m->generation,
                                 m->policy ? findings_first_error(&findings) ?: strerror(-r)
                                           : "its records are damaged; see pkeyd-etcd(7), THE STANDBY");
        else
                d->load_problem[0] = '\0';
        return g;
}

/* The policy that the other head node brought into force. */
static void load_shared(struct daemon *d, struct control_lock *lock)
{
        lock->by_other_head = lock->changed && state_is_of_other_pkeyd(&d->state);
        if (d->state.etcd && lock->changed)
                lock->in_force = load_stored(d, lock->changed);
}

static void follow_store(struct daemon *d, struct control_event *ret)
{
        ret->kind = CONTROL_EVENT_FOLLOWED;
        if (control_get_status(d->control)->not_loaded)
                state_load_again(&d->state);
        ret->lock.r = state_follow(&d->state, &ret->lock.changed);
        ret->lock.why = state_explain(&d->state, ret->lock.r);
        load_shared(d, &ret->lock);
        log_state_reports(d);
}

static void lock_store(struct daemon *d, struct control_event *ret)
{
        ret->kind = CONTROL_EVENT_LOCK;
        if (control_get_status(d->control)->not_loaded)
                state_load_again(&d->state);
        ret->lock.r = state_lock(&d->state, &ret->lock.holder, &ret->lock.changed);
        ret->lock.why = state_explain(&d->state, ret->lock.r);
        load_shared(d, &ret->lock);
        log_state_reports(d);
}

static void pass_on(struct daemon *d, uint64_t request)
{
        struct bus_leases *leases = bus_get_leases(d->bus);
        const struct lease_request *q = bus_leases_find(leases, request);

        if (q && forward_ask(&d->forward, q) < 0)
                bus_leases_refuse(leases, request, strerror(ENOMEM));
}

static void answer_lease(struct daemon *d, const struct lease_reply *reply)
{
        if (forward_reply(&d->forward, reply))
                return;
        if (reply->answer.outcome == LEASE_ELSEWHERE)
                pass_on(d, reply->answer.request);
        else if (reply->answer.outcome == LEASE_UNSTORED)
                bus_leases_refuse(bus_get_leases(d->bus), reply->answer.request, reply->answer.text);
        else
                bus_leases_answer(bus_get_leases(d->bus), reply);
}

/* True: *ret is the event that answers the action; its bytes are in the arena of the findings, which it may borrow. False: no event
 * follows now. */
static bool run_action(struct daemon *d, struct findings *findings, const struct control_action *action, struct control_event *ret)
{
        struct arena *a = findings->arena;

        switch (action->kind) {
        case CONTROL_OPEN_PORT:
                ret->kind = CONTROL_EVENT_PORT;
                opened_port_open(&d->port, d->event, action->settings, &d->handlers, &ret->port);
                return true;
        case CONTROL_RUN_STAGE:
                port_session_run(d->port.session, action->stage);
                return false;
        case CONTROL_FOLLOW_STORE:
                follow_store(d, ret);
                return true;
        case CONTROL_LOCK:
                lock_store(d, ret);
                return true;
        case CONTROL_STORE:
                ret->kind = CONTROL_EVENT_STORED;
                ret->r = state_commit(&d->state, action->transaction);
                log_state_reports(d);
                return true;
        case CONTROL_READ_LOCAL_TABLES:
                read_local_tables(d, a, ret);
                return true;
        case CONTROL_READ_FILES:
                read_files(a, action, ret);
                return true;
        case CONTROL_WRITE_FILE:
                write_file(&action->files[0], ret);
                return true;
        case CONTROL_SIGNAL_OPENSM:
                signal_opensm(a, action, ret);
                return true;
        case CONTROL_LOAD_UNDO:
                load_undo_candidate(d, findings, action->undo, ret);
                return true;
        case CONTROL_ABANDON_STAGE:
                port_session_abandon(d->port.session);
                return false;
        case CONTROL_CLOSE_PORT:
                opened_port_close(&d->port);
                return false;
        case CONTROL_UNLOCK:
                state_unlock(&d->state);
                return false;
        case CONTROL_LOG:
                journal_entry(&d->journal, action->entry);
                return false;
        case CONTROL_ANSWER:
                bus_answer(d->bus, action->end);
                return false;
        case CONTROL_ANSWER_LEASE:
                answer_lease(d, action->lease);
                return false;
        case CONTROL_EXIT:
                d->r = action->r;
                (void) sd_event_exit(d->event, 0);
                return false;
        case CONTROL_CHOOSE_TABLES: /* only pkeyctl gets these two */
        case CONTROL_ASK_PERSON:
                return false;
        }
        return false;
}

/* Posts an event and runs the actions that follow, until control waits. */
static void feed(struct daemon *d, struct control_event *event)
{
        struct control_action action;

        post(d, event);
        while (control_next_action(d->control, &action)) {
                _cleanup_arena_ struct arena *a = arena_new();
                _cleanup_findings_ struct findings findings = { .arena = a };
                struct control_event answer = {};

                if (run_action(d, &findings, &action, &answer))
                        post(d, &answer);
        }
        (void) timer_set(d->due, control_due(d->control));
        monitor_update(d->monitor, d->port.session, d->port.n_opened);
        metrics_file_update(&d->metrics);
        notify_update(&d->notify);
        forward_update(&d->forward);
}

/* --- event sources ------------------------------------------------------------------------------------------------ */

static void on_turn_ended(void *userdata)
{
        struct daemon *d = userdata;

        monitor_turn(d->monitor);
}

static void on_stage_ended(int r, void *userdata)
{
        feed(userdata, &(struct control_event) { .kind = CONTROL_EVENT_STAGE_ENDED, .r = r });
}

static int on_due(sd_event_source *, uint64_t, void *userdata)
{
        feed(userdata, &(struct control_event) { .kind = CONTROL_EVENT_DUE });
        return 0;
}

static void on_verbs(const struct verbs_event *event, void *userdata)
{
        feed(userdata, &(struct control_event) { .kind = CONTROL_EVENT_VERBS, .verbs = *event });
}

static void reload(struct daemon *d, const struct bus_request *q)
{
        _cleanup_arena_ struct arena *a = arena_new();
        _cleanup_findings_ struct findings findings = { .arena = a };
        struct generation *g = NULL;
        struct control_event event = {};
        int r;

        if (control_get_status(d->control)->stopping)
                return;
        notify_reloading(&d->notify);
        r = a ? load_generation(d->options, NULL, &findings, &g) : -ENOMEM;
        r = r ?: check_port(d, g, &findings);
        if (r == 0) {
                note_store(d, g, &findings);
                g->facts.origin = q->by;
                g->facts.confirm_for = q->confirm_for;
                g->facts.releases_stranded = q->releases_stranded;
        }
        make_candidate(r, g, &findings, q->number, &event);
        feed(d, &event);
}

static int on_hangup(sd_event_source *, const struct signalfd_siginfo *, void *userdata)
{
        reload(userdata, &(struct bus_request) { .by.kind = ORIGIN_SIGNAL });
        return 0;
}

static int on_stop(sd_event_source *, const struct signalfd_siginfo *si, void *userdata)
{
        struct control_event event = { .kind = CONTROL_EVENT_STOP };
        struct daemon *d = userdata;

        if (control_get_status(d->control)->stopping)
                _exit(1); /* the second signal: do not wait any longer */
        journal_event(&d->journal, LOG_EVENT_DEBUG, NULL, "stopping on signal %u", si->ssi_signo);
        feed(d, &event);
        return 0;
}

/* --- handlers for the parts --------------------------------------------------------------------------------------- */

static void on_asked(const struct bus_request *q, void *userdata)
{
        struct daemon *d = userdata;
        struct control_event event = { .asked = { .by = q->by, .request = q->number } };

        switch (q->kind) {
        case BUS_RELOAD:
                reload(d, q);
                return;
        case BUS_CONFIRM:
                event.kind = CONTROL_EVENT_CONFIRM;
                break;
        case BUS_UNDO:
                event.kind = CONTROL_EVENT_UNDO;
                event.asked.generation = q->generation;
                break;
        }
        feed(d, &event);
}

static void on_asked_lease(const struct lease_request *q, void *userdata)
{
        feed(userdata, &(struct control_event) { .kind = CONTROL_EVENT_LEASE, .lease = *q });
}

/* Reads the store first, so that the standby's own List has the lease; during a sweep it does not. */
static void on_other_answered(const struct lease_reply *reply, void *userdata)
{
        struct daemon *d = userdata;

        feed(d, &(struct control_event) { .kind = CONTROL_EVENT_STORE_CHANGED });
        bus_leases_answer(bus_get_leases(d->bus), reply);
}

static void on_unanswered(uint64_t request, const char *why, void *userdata)
{
        struct daemon *d = userdata;

        bus_leases_refuse(bus_get_leases(d->bus), request, why);
}

static void on_settled(void *userdata)
{
        struct daemon *d = userdata;

        notify_settled(&d->notify);
}

static void on_reported(const struct violation_item *item, void *userdata)
{
        struct daemon *d = userdata;

        bus_emit_violation(d->bus, item);
}

static void on_counted(bool logged, void *userdata)
{
        struct daemon *d = userdata;

        metrics_file_violations(&d->metrics, logged);
}

static void collect_metrics(struct metrics *m, void *userdata)
{
        struct daemon *d = userdata;

        opened_port_get_counters(&d->port, &m->mads);
        m->plan_duration = d->plan_duration;
        monitor_collect(d->monitor, m);
}

/* --- start and end ------------------------------------------------------------------------------------------------ */

static int add_sources(struct daemon *d)
{
        int r = sd_event_default(&d->event);

        if (r >= 0)
                r = sd_event_add_signal(d->event, NULL, SIGHUP, on_hangup, d);
        if (r >= 0)
                r = sd_event_add_signal(d->event, NULL, SIGTERM, on_stop, d);
        if (r >= 0)
                r = sd_event_add_signal(d->event, NULL, SIGINT, on_stop, d);
        if (r >= 0)
                r = sd_event_add_time(d->event, &d->due, CLOCK_MONOTONIC, UINT64_MAX, 1, on_due, d);
        if (r >= 0)
                r = sd_event_set_watchdog(d->event, true);
        return r < 0 ? r : 0;
}

static int add_parts(struct daemon *d)
{
        const struct monitor_handlers of_monitor = { .reported = on_reported, .counted = on_counted, .userdata = d };
        const struct forward_handlers of_forward = {
                .asked = on_asked_lease, .answered = on_other_answered, .unanswered = on_unanswered, .userdata = d,
        };
        const struct bus_handlers of_bus = {
                .asked = on_asked, .asked_lease = on_asked_lease, .settled = on_settled, .userdata = d,
        };
        int r = verbs_host_new(d->event, on_verbs, d, &d->verbs) ?: notify_init(&d->notify, d->event, d->control) ?:
                metrics_file_init(&d->metrics, d->event, d->options->fabric.name, d->control, &d->journal, collect_metrics, d) ?:
                monitor_new(d->event, d->control, d->verbs, &d->journal, &of_monitor, &d->monitor);

        if (r < 0)
                return r;
        monitor_list(d->monitor, &d->violations);
        if (d->state.etcd)
                r = forward_init(&d->forward, d->event, d->state.etcd, control_get_status(d->control), &of_forward);
        return r < 0 ? r : bus_new(d->event, &d->options->fabric, d->control, &d->violations, &d->journal, d->options->policy_file,
                       &of_bus, &d->bus);
}

static bool holds_lock(void *userdata)
{
        const struct daemon *d = userdata;

        return state_holds_lock(&d->state);
}

static bool is_outdated(void *userdata)
{
        struct daemon *d = userdata;

        return state_is_outdated(&d->state);
}

/* Without a store pkeyd runs, but writes nothing. */
static int open_state(struct daemon *d)
{
        const struct options *o = d->options;
        _cleanup_findings_ struct findings findings = {};
        struct etcd_config *etcd;
        int r;

        d->arena = arena_new();
        if (!d->arena)
                return -ENOMEM;
        findings.arena = d->arena;
        r = etcd_place_find(d->arena, o->config_file, o->fabric.name, &findings, &etcd);
        for (size_t i = 0; i < findings.n; i++)
                journal_event(&d->journal, LOG_EVENT_STATE_DIR, NULL, "%s%s", location_format(d->arena, &findings.items[i].where) ?: "",
                              findings.items[i].text);
        r = r ?: state_open(&d->state, o->state_dir, STATE_SERVE, etcd);
        return r == -ENOMEM || !d->state.path ? r : 0;
}

static int make_control(struct daemon *d)
{
        const struct control_config config = {
                .goal = CONTROL_SERVE, .fabric = d->options->fabric.name, .program = "pkeyd " PACKAGE_VERSION,
                .shares_store = d->state.etcd, .holds_lock = holds_lock, .is_outdated = is_outdated,
                .store_userdata = d,
        };

        d->control = control_new(&config);
        if (!d->control)
                return -ENOMEM;
        d->handlers.gate = control_gate(d->control);
        return 0;
}

static int init(struct daemon *d, const struct options *options)
{
        int r;

        *d = (struct daemon) {
                .options = options,
                .handlers = { .turn_ended = on_turn_ended, .stage_ended = on_stage_ended, .userdata = d },
                .port = { .serves = true, .is_of_several = options->fabric.name },
        };
        journal_init(&d->journal, options->fabric.name, options->verbose);
        r = open_state(d) ?: make_control(d) ?: add_sources(d) ?: state_attach(&d->state, d->event);
        return r < 0 ? r : add_parts(d);
}

/* Loads the stored records and the files, and passes them to control. */
static int start(struct daemon *d)
{
        _cleanup_arena_ struct arena *a = arena_new();
        _cleanup_findings_ struct findings findings = { .arena = a };
        struct control_event event = { .kind = CONTROL_EVENT_START };
        struct generation *in_force, *candidate = NULL;
        struct load_from from = {};
        struct remembered *m;
        bool is_off;
        int r;

        r = a ? state_load(&d->state, &m) : -ENOMEM;
        if (r < 0)
                return r;
        log_state_reports(d);
        in_force = load_stored(d, m);
        is_off = in_force && load_off_files(d->options, &d->state, a, m, &from);
        findings.out_of_memory |= load_generation(d->options, &from, &findings, &candidate) == -ENOMEM;
        if (in_force)
                in_force->is_off_file = is_off;
        if (candidate)
                candidate->facts.origin.kind = ORIGIN_START;
        event.start = (struct control_start) {
                .remembered = m, .in_force = in_force, .candidate = candidate, .findings = &findings,
        };
        feed(d, &event);
        return 0;
}

static void done(struct daemon *d)
{
        opened_port_close(&d->port); /* first, since its stage may use what is freed below */
        (void) bus_free(d->bus);
        forward_done(&d->forward);
        (void) monitor_free(d->monitor);
        metrics_file_done(&d->metrics);
        notify_done(&d->notify);
        verbs_host_free(d->verbs);
        (void) control_free(d->control);
        state_close(&d->state);
        arena_free(d->arena);
        sd_event_source_disable_unref(d->due);
        sd_event_unref(d->event);
}

int daemon_run(const struct options *options)
{
        struct daemon d;
        int r = init(&d, options);

        r = r ?: start(&d);
        if (r < 0)
                journal_event(&d.journal, LOG_EVENT_CANNOT_START, NULL, "%s",
                              r == -EBADMSG ? "the store that pkeyd.yaml names cannot be used" : strerror(-r));
        r = r ?: sd_event_loop(d.event);
        done(&d);
        return r < 0 ? r : d.r;
}
