/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd/monitor.h"

#include <errno.h>
#include <string.h>

#include "notices/notices.h"
#include "pkeyd/violation_text.h"
#include "shell/timer.h"
#include "violations/notice_ends.h"
#include "violations/poll.h"

#define DEFAULT_INTERVAL (60 * USEC_PER_SEC) /* before there is a generation */
#define REST             9 /* times the duration of a learning, so that leases take at most a tenth of the daemon's time for it */

struct monitor {
        const struct control *control;
        const struct journal *journal;
        struct verbs_host *verbs;
        struct monitor_handlers handlers;
        struct violations *violations;
        struct violation_poll *poll;
        struct notices *notices;
        struct membership_history *history;
        struct mad_background_task tasks[2];  /* poll and notices */
        sd_event_source *timer;               /* when the next report is due */
        sd_event_source *local;               /* reads the counters of this host's kernel */
        usec_t began;                         /* when counting began, CLOCK_MONOTONIC */
        usec_t since;                         /* the same as CLOCK_REALTIME, as it was last shown */
        uint64_t total;                       /* when handlers.counted was last called */

        struct snapshot *snapshot;            /* a reference; NULL here and below: there is none */
        struct generation *generation;        /* a reference */
        bool writing;
        uint64_t lease_changes;               /* of control, as they were noticed last */
        usec_t leases_changed;                /* when that was */
        usec_t learn_due;                     /* when they must be in memberships and history; USEC_INFINITY: they are */
        usec_t may_learn;                     /* not before this */
        struct arena *arena;                  /* of memberships and lids */
        struct memberships *memberships;
        struct lid_map *lids;

        struct port_session *session;         /* borrowed; NULL: none is open */
        uint64_t n_opened;                    /* its number */
        bool attached;                        /* it runs our tasks */
        bool listening;                       /* it receives Reports */
        bool resubscribe;
        uint64_t sm_changes;
        enum notices_state reported_state;    /* of the subscription */
        int reported_sa_error;
        bool reported_late;                   /* polling takes longer than the interval */
        struct notices_sa sa;                 /* lid and sl as PortInfo has them, sm_key of the generation */
        struct violation_poll_counters poll_counters; /* what monitor_collect() returned, as notices_status */
        struct notices_status notices_status;
};

static bool clears_saturated(const struct monitor *m)
{
        const struct settings *s = m->generation ? m->generation->settings : NULL;

        return s && s->violations_clear_saturated && s->mode == MODE_ENFORCE && m->writing;
}

/* *ret borrows m until the next update. */
static void make_context(const struct monitor *m, struct attribution_input *ret)
{
        *ret = (struct attribution_input) {
                .subnet = m->snapshot ? m->snapshot->subnet : NULL,
                .memberships = m->memberships,
                .observed = m->snapshot ? m->snapshot->observed : NULL,
                .history = m->history,
                .now = clock_now(),
                .clears_saturated = clears_saturated(m),
        };
}

/* --- what the texts need beside the snapshot -------------------------------------------------------------------- */

/* Resolves the policy with the leases and adds the result to the history. NULL: out of memory. */
static struct memberships *learn_memberships(struct monitor *m, usec_t when, const struct generation *g, struct findings *ignored)
{
        const struct control_status *s = control_get_status(m->control);
        const struct policy_memory names = { .pins = s->pins };
        struct memberships *memberships = NULL;
        const struct policy *policy;

        if (leases_extend(m->arena, s->leases, g->policy, &policy) < 0 ||
            policy_resolve_with_memory(m->arena, policy, m->snapshot->subnet, &names, true, ignored, &memberships) < 0)
                return NULL;
        (void) membership_history_learn(m->history, when, g->number, memberships);
        return memberships;
}

static void drop_learned(struct monitor *m)
{
        m->memberships = NULL;
        m->lids = NULL;
        m->arena = arena_free(m->arena);
        m->learn_due = USEC_INFINITY;
}

/* If out of memory, the texts are shorter. when: the time of the last change. before: the generation that was in force until now,
 * or NULL. */
static void learn(struct monitor *m, usec_t when, const struct generation *before)
{
        _cleanup_findings_ struct findings ignored = {};
        usec_t began = clock_now();

        drop_learned(m);
        m->arena = arena_new();
        if (!m->arena)
                return;
        ignored.arena = m->arena;
        m->lids = lid_map_new(m->arena, m->snapshot->subnet);
        if (before && before->number != m->generation->number)
                (void) learn_memberships(m, when, before, &ignored);
        m->memberships = learn_memberships(m, when, m->generation, &ignored);
        m->may_learn = clock_now();
        m->may_learn += REST * (m->may_learn - began);
}

/* Before a text, or when it is time, learns the leases that have changed. */
static void learn_leases(struct monitor *m, usec_t due)
{
        if (m->learn_due < USEC_INFINITY && MIN(m->learn_due, due) <= clock_now())
                learn(m, m->leases_changed, NULL);
}

/* --- reports ------------------------------------------------------------------------------------------------------ */

static uint64_t total_of(const struct monitor *m)
{
        uint64_t total = 0;

        for (enum violation_source s = 0; s < VIOLATION_N_SOURCES; s++)
                total += violations_total(m->violations, s);
        return total;
}

static void log_report(struct monitor *m, const struct attribution_input *context, const struct violation_report *report)
{
        uint64_t generation = m->generation ? m->generation->number : 0;
        _cleanup_arena_ struct arena *a = arena_new();
        struct violation_item item;

        if (violation_text_log(m->journal, a, generation, context, report, &item))
                m->handlers.reported(&item, m->handlers.userdata);
}

static void set_timer(struct monitor *m)
{
        (void) timer_set(m->timer, MIN(violations_due(m->violations), m->learn_due));
}

static void log_reports(struct monitor *m)
{
        struct attribution_input context;
        struct violation_report report;
        bool any = false;

        learn_leases(m, violations_due(m->violations));
        make_context(m, &context);
        while (violations_next_report(m->violations, clock_now(), &report)) {
                log_report(m, &context, &report);
                any = true;
        }
        if (any || total_of(m) != m->total) /* not every violation is reported on its own */
                m->handlers.counted(any, m->handlers.userdata);
        m->total = total_of(m);
        set_timer(m);
}

static void take_notices(struct monitor *m, usec_t now)
{
        const struct subnet *subnet = m->snapshot ? m->snapshot->subnet : NULL;
        struct violation_ends ends;
        struct notice n;

        while (notices_next(m->notices, &n)) {
                _cleanup_arena_ struct arena *a = arena_new();

                if (a && violation_ends_of_notice(a, subnet, m->lids, &n, &ends) == 0)
                        (void) violations_see_notice(m->violations, now, violation_port_of_notice(subnet, m->lids, &n), &n, &ends);
        }
}

static void log_subscription(struct monitor *m)
{
        struct notices_status s;

        notices_get_status(m->notices, &s);
        if (s.state == m->reported_state || s.state == NOTICES_OFF || s.state == NOTICES_SUBSCRIBING)
                return;
        violation_text_notices(m->journal, &s, m->sa.sm_key != 0);
        m->reported_state = s.state;
}

static void log_poll(struct monitor *m)
{
        if (violation_poll_is_late(m->poll) == m->reported_late)
                return;
        violation_poll_get_counters(m->poll, &m->poll_counters);
        violation_text_poll(m->journal, &m->poll_counters);
        m->reported_late = m->poll_counters.is_late;
}

void monitor_turn(struct monitor *m)
{
        usec_t now = clock_now();

        violations_set_observed(m->violations, m->snapshot ? m->snapshot->subnet : NULL,
                                m->snapshot ? m->snapshot->observed : NULL);
        (void) violations_take_samples(m->violations, now, m->poll);
        violations_set_observed(m->violations, NULL, NULL);
        take_notices(m, now);
        log_subscription(m);
        log_poll(m);
        log_reports(m);
}

/* --- the session -------------------------------------------------------------------------------------------------- */

static void set_sa(struct monitor *m)
{
        struct notices_sa sa = m->sa;

        if (!m->listening)
                sa.lid.v = 0;
        notices_set_sa(m->notices, clock_now(), &sa, m->resubscribe);
        m->resubscribe = false;
        port_session_wake(m->session);
}

/* Registers at the port and starts the tasks. Called again for each snapshot while another program receives the Reports, since that
 * program may have ended. */
static void attach(struct monitor *m)
{
        int r, sa = 0;

        if (m->attached && m->listening)
                return;
        r = port_session_use_gsi(m->session, true, &sa);
        if (r < 0 || sa < 0) {
                violation_text_no_gsi(m->journal, r, sa, &m->reported_sa_error);
                m->reported_state = NOTICES_OFF; /* a later subscription is news */
        } else {
                m->reported_sa_error = 0;
        }
        m->listening = r == 0 && sa == 0;
        if (r == 0 && !m->attached)
                port_session_set_tasks(m->session, m->tasks, ELEMENTS(m->tasks));
        m->attached = m->attached || r == 0;
        set_sa(m);
}

/* A packet to QP 1 needs a P_Key of the default partition, or its receiver drops it. */
static void set_p_key_index(struct monitor *m)
{
        uint32_t self = m->snapshot->subnet->self;

        if (self != SUBNET_NONE)
                port_session_set_p_key_index(m->session, (unsigned) MAX(observed_default_index(m->snapshot->observed, self), 0));
}

/* Returns whether the address of the SA, the SM_Key or the SM has changed. */
static bool follow_sm(struct monitor *m, const struct control_status *s)
{
        const struct port_info *info = s->port_info;
        bool changed = m->sm_changes != s->sm_changes;

        m->resubscribe |= changed;
        m->sm_changes = s->sm_changes;
        if (info && (info->sm_lid.v != m->sa.lid.v || info->sm_sl != m->sa.sl)) {
                m->sa.lid = info->sm_lid;
                m->sa.sl = info->sm_sl;
                changed = true;
        }
        if (m->generation && m->sa.sm_key != m->generation->sm_key) {
                m->sa.sm_key = m->generation->sm_key;
                m->resubscribe = changed = true;
        }
        return changed;
}

/* --- snapshot and generation -------------------------------------------------------------------------------------- */

static void configure(struct monitor *m)
{
        const struct settings *s = m->generation->settings;
        struct violations_config config = { .interval = s->violations_interval, .threshold = s->violations_threshold };
        struct violation_poll_config poll = {
                .interval = s->violations_interval,
                .clear_saturated = clears_saturated(m),
                .check_hosts = true,
                .m_keys = m->generation->m_keys,
        };
        usec_t local;

        violations_set_config(m->violations, &config);
        violation_poll_set_config(m->poll, clock_now(), &poll);
        /* what waits since the interval was longer comes in time */
        set_timer(m);
        if (sd_event_source_get_time(m->local, &local) >= 0)
                (void) timer_set(m->local, MIN(local, clock_now() + s->violations_interval));
}

static void forget(struct monitor *m)
{
        m->snapshot = snapshot_unref(m->snapshot);
        m->generation = generation_unref(m->generation);
        drop_learned(m);
}

/* Returns whether there is another snapshot or generation, and neither is missing. */
static bool follow_control(struct monitor *m, const struct control_status *s)
{
        _cleanup_generation_ struct generation *before = NULL;
        bool new_snapshot = s->snapshot && s->snapshot != m->snapshot;

        if (s->snapshot == m->snapshot && s->in_force == m->generation && s->writing == m->writing)
                return false;
        if (new_snapshot || m->learn_due < USEC_INFINITY)
                before = generation_ref(m->generation);
        forget(m);
        m->snapshot = snapshot_ref(s->snapshot);
        m->generation = generation_ref(s->in_force);
        m->writing = s->writing;
        if (!m->snapshot || !m->generation)
                return false;
        configure(m);
        learn(m, clock_now(), before);
        /* Out of memory: a port may have no host until the next snapshot, and others keep the one that they had. */
        if (new_snapshot)
                (void) violations_set_subnet(m->violations, m->snapshot->subnet);
        if (new_snapshot && violation_poll_set_subnet(m->poll, clock_now(), m->snapshot->subnet) < 0)
                journal_event(m->journal, LOG_EVENT_DEBUG, NULL,
                              "out of memory: pkeyd does not poll counters of new ports yet");
        return true;
}

static void follow_leases(struct monitor *m, const struct control_status *s)
{
        if (s->lease_changes == m->lease_changes || !m->arena)
                return;
        m->lease_changes = s->lease_changes;
        m->leases_changed = clock_now();
        if (m->learn_due == USEC_INFINITY)
                m->learn_due = MAX(m->leases_changed, m->may_learn);
        set_timer(m);
}

/* A new session runs no tasks and receives nothing, and the SA knows the address of the one before. */
static void follow_session(struct monitor *m, struct port_session *session, uint64_t n_opened)
{
        if (!session || n_opened != m->n_opened)
                m->attached = m->listening = false;
        m->resubscribe |= n_opened != m->n_opened;
        m->n_opened = n_opened;
        m->session = session;
}

void monitor_update(struct monitor *m, struct port_session *session, uint64_t n_opened)
{
        const struct control_status *s = control_get_status(m->control);
        bool changed;

        follow_session(m, session, n_opened);
        follow_leases(m, s);
        changed = follow_control(m, s);
        if (follow_sm(m, s) && m->attached)
                set_sa(m);
        if (!m->session || !m->snapshot || !m->generation || (m->attached && !changed))
                return;
        attach(m);
        set_p_key_index(m);
        port_session_wake(m->session);
}

/* --- timers ------------------------------------------------------------------------------------------------------- */

static int on_timer(sd_event_source *, uint64_t, void *userdata)
{
        log_reports(userdata);
        return 0;
}

static void count_local_port(const struct verbs_port *port, struct monitor *m)
{
        struct violation_port at = { .node_guid = port->node_guid, .number = (uint8_t) port->number };

        /* the kernel's counter has 32 bits, but adapters copy it from the 16 bits of PortInfo, which stop at their maximum */
        unsigned bits = port->bad_p_key_counter > UINT16_MAX ? 32 : 16;

        if (port->has_bad_p_key_counter)
                (void) violations_see_counter(m->violations, clock_now(), at, VIOLATION_BAD_PKEY_CNTR, bits,
                                              port->bad_p_key_counter);
}

static int on_local(sd_event_source *s, uint64_t, void *userdata)
{
        struct monitor *m = userdata;
        struct verbs_port port;
        usec_t interval = m->generation ? m->generation->settings->violations_interval : DEFAULT_INTERVAL;

        /* before the first snapshot it is not known which host a port is: what is counted then would belong to none for ever */
        for (size_t i = 0; m->snapshot && i < verbs_host_n_ports(m->verbs); i++)
                if (verbs_host_query(m->verbs, i, &port) == 0 && port.is_infiniband)
                        count_local_port(&port, m);
        log_reports(m);
        (void) timer_set(s, clock_now() + interval);
        return 0;
}

/* --- the list ----------------------------------------------------------------------------------------------------- */

DEFINE_COMPARE(compare_last, __typeof__(const struct violation_record *), ORDER((*b)->last, (*a)->last))

/* A record that counted something within this time, or whose counter stands at its maximum, since an unknown time. A counter that
 * stood there without counting, and was cleared, is not shown any more. */
static bool is_chosen(const struct violation_record *r, usec_t now, usec_t age)
{
        return r->total == 0 ? r->saturated : now - MIN(now, r->last) <= age;
}

/* The records to show since then, the latest first. */
static int choose_records(struct monitor *m, struct arena *a, usec_t since, const struct violation_record ***ret,
                          uint32_t *ret_n)
{
        usec_t wall = clock_wall(), age = wall - MIN(since, wall), now = clock_now();
        uint32_t n, kept = 0;
        const struct violation_record *records = violations_records(m->violations, &n);
        const struct violation_record **chosen = arena_new_array(a, const struct violation_record *, n);

        if (!chosen)
                return -ENOMEM;
        for (uint32_t i = 0; i < n; i++)
                if (is_chosen(&records[i], now, age))
                        chosen[kept++] = &records[i];
        SORT(chosen, kept, compare_last);
        *ret = chosen;
        *ret_n = kept;
        return 0;
}

static int list_records(void *userdata, struct arena *a, usec_t since, uint32_t max, struct violation_item **ret,
                        uint32_t *ret_n, uint32_t *ret_all)
{
        const struct violation_record **records;
        struct attribution_input context;
        struct violation_item *items;
        struct monitor *m = userdata;
        int r = choose_records(m, a, since, &records, ret_all);

        if (r < 0)
                return r;
        *ret_n = MIN(*ret_all, max);
        items = arena_new_array(a, struct violation_item, *ret_n);
        if (!items)
                return -ENOMEM;
        learn_leases(m, 0);
        make_context(m, &context);
        for (uint32_t i = 0; i < *ret_n; i++) {
                r = violation_item_of_record(a, records[i], &context, &items[i]);
                if (r < 0)
                        return r;
        }
        *ret = items;
        return 0;
}

/* The two clocks cannot be read at once, so times that differ by less than a second are the same time. */
static void summarize(void *userdata, struct violation_summary *ret)
{
        struct monitor *m = userdata;
        usec_t since = clock_to_wall(m->began);
        struct notices_status s;

        if (since > m->since + USEC_PER_SEC || m->since > since + USEC_PER_SEC)
                m->since = since;
        notices_get_status(m->notices, &s);
        *ret = (struct violation_summary) {
                .total = total_of(m), .since = m->since, .notices = notices_state_to_string(s.state),
        };
}

void monitor_list(struct monitor *m, struct violation_list *ret)
{
        *ret = (struct violation_list) { .userdata = m, .records = list_records, .summarize = summarize };
}

void monitor_collect(struct monitor *m, struct metrics *ret)
{
        violation_poll_get_counters(m->poll, &m->poll_counters);
        notices_get_status(m->notices, &m->notices_status);
        ret->poll = &m->poll_counters;
        ret->notices = &m->notices_status;
        ret->has_violations = true;
        ret->records = violations_records(m->violations, &ret->n_records);
        for (int source = 0; source < VIOLATION_N_SOURCES; source++)
                ret->violations[source] = violations_total(m->violations, (enum violation_source) source);
}

/* --- life --------------------------------------------------------------------------------------------------------- */

int monitor_new(sd_event *event, const struct control *control, struct verbs_host *verbs, const struct journal *journal,
                const struct monitor_handlers *handlers, struct monitor **ret)
{
        struct violations_config config = { .interval = DEFAULT_INTERVAL, .threshold = 1 };
        struct violation_poll_config poll = { .interval = DEFAULT_INTERVAL, .check_hosts = true };
        _cleanup_(monitor_free_p) struct monitor *m = calloc(1, sizeof(*m));
        int r = -ENOMEM;

        if (!m)
                return r;
        *m = (struct monitor) {
                .control = control, .journal = journal, .verbs = verbs, .handlers = *handlers, .began = clock_now(),
                .violations = violations_new(&config), .poll = violation_poll_new(&poll), .notices = notices_new(),
                .history = membership_history_new(), .learn_due = USEC_INFINITY,
        };
        if (m->violations && m->poll && m->notices && m->history)
                r = sd_event_add_time(event, &m->timer, CLOCK_MONOTONIC, USEC_INFINITY, 1, on_timer, m);
        if (r >= 0)
                r = sd_event_add_time(event, &m->local, CLOCK_MONOTONIC, 0, USEC_PER_SEC, on_local, m);
        if (r < 0)
                return r;
        m->tasks[0] = violation_poll_task(m->poll);
        m->tasks[1] = notices_task(m->notices);
        *ret = STEAL(m);
        return 0;
}

struct monitor *monitor_free(struct monitor *m)
{
        if (!m)
                return NULL;
        forget(m);
        sd_event_source_disable_unref(m->timer);
        sd_event_source_disable_unref(m->local);
        membership_history_free(m->history);
        notices_free(m->notices);
        violation_poll_free(m->poll);
        violations_free(m->violations);
        free(m);
        return NULL;
}
