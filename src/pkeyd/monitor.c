/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd/monitor.h"

#include <errno.h>
#include <string.h>

#include "notices/notices.h"
#include "pkeyd/daemon.h"
#include "pkeyd/kernel.h"
#include "pkeyd/metrics_file.h"
#include "pkeyd/say_violation.h"
#include "violations/intake.h"

struct monitor {
        struct daemon *d;
        struct violations *book;
        struct violation_poll *poll;
        struct notices *notices;
        struct membership_history *history;
        struct mad_background_task tasks[2];  /* poll and notices */
        sd_event_source *timer;               /* reports that are due */
        sd_event_source *local;               /* counters of this host's kernel */
        usec_t since;
        uint64_t total;                       /* as the metrics know it, or will within a second */

        /* Borrowed while they are in force; NULL: there is none. */
        const struct picture *picture;
        const struct generation *generation;
        struct arena *arena;                  /* of memberships */
        struct memberships *memberships;
        struct lid_map *lids;

        bool attached;                        /* to d->fabric */
        bool listening;                       /* Reports come to us */
        bool resubscribe;
        enum notices_state said;              /* of the subscription */
        int said_sa_error;
        struct notices_sa sa;                 /* as the port last said; its sm_key is ours */
};

static bool clears_saturated(const struct settings *s)
{
        return s->violations_clear_saturated && s->mode == MODE_ENFORCE;
}

/* What is known now. Borrowed until monitor_look or monitor_forget. */
static void monitor_context(const struct monitor *m, struct attribution_context *ret)
{
        *ret = (struct attribution_context) {
                .subnet = m->picture ? m->picture->subnet : NULL,
                .memberships = m->memberships,
                .observed = m->picture ? m->picture->observed : NULL,
                .lids = m->lids,
                .history = m->history,
                .now = clock_now(),
                .clears_saturated = m->generation && clears_saturated(m->generation->settings),
        };
}

/* --- what was found ----------------------------------------------------------------------------------------------- */

static void arm(struct monitor *m)
{
        (void) sd_event_source_set_time(m->timer, violations_due(m->book));
        (void) sd_event_source_set_enabled(m->timer, violations_due(m->book) == USEC_INFINITY ? SD_EVENT_OFF
                                                                                             : SD_EVENT_ONESHOT);
}

static uint64_t total_of(const struct monitor *m)
{
        uint64_t total = 0;

        for (enum violation_source s = 0; s < VIOLATION_N_SOURCES; s++)
                total += violations_total(m->book, s);
        return total;
}

static void say_reports(struct monitor *m)
{
        struct attribution_context context;
        struct violation_report report;
        bool any = false;

        monitor_context(m, &context);
        while (violations_next_report(m->book, clock_now(), &report)) {
                say_violation(m->d, &context, &report);
                any = true;
        }
        if (any)
                metrics_file_write(m->d->metrics);
        else if (total_of(m) != m->total)
                metrics_file_write_soon(m->d->metrics); /* not every violation is a line of its own */
        m->total = total_of(m);
        arm(m);
}

static void take_notices(struct monitor *m, usec_t now)
{
        const struct subnet *subnet = m->picture ? m->picture->subnet : NULL;
        struct notice n;

        while (notices_next(m->notices, &n))
                (void) violations_see_notice(m->book, now, violation_port_of_notice(subnet, m->lids, &n), &n);
}

static void say_subscription(struct monitor *m)
{
        struct notices_status s;

        notices_get_status(m->notices, &s);
        if (s.state == m->said || s.state == NOTICES_OFF || s.state == NOTICES_SUBSCRIBING)
                return;
        say_notices(m->d, &s, m->sa.sm_key != 0);
        m->said = s.state;
}

/* At the end of each turn of the dispatcher. */
static void on_turn_ended(void *userdata)
{
        struct monitor *m = userdata;
        usec_t now = clock_now();

        violations_take_samples(m->book, now, m->poll);
        take_notices(m, now);
        say_subscription(m);
        say_reports(m);
}

/* --- the port ----------------------------------------------------------------------------------------------------- */

static void tell_sa(struct monitor *m)
{
        struct notices_sa sa = m->sa;

        if (!m->listening)
                sa.lid.v = 0;
        notices_set_sa(m->notices, clock_now(), &sa, m->resubscribe);
        m->resubscribe = false;
        if (m->d->fabric)
                fabric_wake_tasks(m->d->fabric);
}

/* Only now: until the first picture is there nothing is asked, and whoever opened the port to see whether it may is done.
 * Who had the Reports before us may be gone by the next picture. */
static void attach(struct monitor *m)
{
        int r, sa = 0;

        if ((m->attached && m->listening) || !m->d->fabric)
                return;
        r = fabric_use_gsi(m->d->fabric, true, &sa);
        if (r < 0 || sa < 0)
                say_no_gsi(m->d, r, sa, &m->said_sa_error);
        else
                m->said_sa_error = 0;
        m->listening = r == 0 && sa == 0;
        if (r == 0 && !m->attached)
                r = fabric_set_tasks(m->d->fabric, m->tasks, ELEMENTS(m->tasks), on_turn_ended, m);
        m->attached = r == 0;
        tell_sa(m);
}

void monitor_detach(struct monitor *m)
{
        if (!m)
                return;
        m->attached = false;
}

void monitor_port(struct monitor *m, const struct port_info *info)
{
        m->sa.lid = info->sm_lid;
        m->sa.sl = info->sm_sl;
        if (m->attached)
                tell_sa(m);
}

void monitor_resubscribe(struct monitor *m)
{
        m->resubscribe = true;
}

/* A packet to QP 1 needs the default partition: what is at another index is refused by whoever gets it. */
static void set_p_key_index(struct monitor *m)
{
        uint32_t self = m->picture->subnet->self;

        if (self != SUBNET_NONE)
                fabric_set_p_key_index(m->d->fabric, (unsigned) MAX(observed_default_index(m->picture->observed, self), 0));
}

/* --- picture and generation --------------------------------------------------------------------------------------- */

void monitor_forget(struct monitor *m)
{
        m->picture = NULL;
        m->generation = NULL;
        m->memberships = NULL;
        m->lids = NULL;
        m->arena = arena_free(m->arena);
}

static void configure(struct monitor *m)
{
        const struct settings *s = m->generation->settings;
        struct violations_config book = { .interval = s->violations_interval, .threshold = s->violations_threshold };
        struct violation_poll_config poll = {
                .interval = s->violations_interval,
                .clear_saturated = s->violations_clear_saturated && s->mode == MODE_ENFORCE &&
                                   head_may_write(m->d, m->generation),
                .m_keys = m->generation->m_keys,
        };

        violations_set_config(m->book, &book);
        violation_poll_set_config(m->poll, clock_now(), &poll);
        if (m->sa.sm_key != m->generation->sm_key) {
                m->sa.sm_key = m->generation->sm_key;
                m->resubscribe = true;
                if (m->attached)
                        tell_sa(m);
        }
}

/* Where memory is out, sentences say less. */
static void learn(struct monitor *m)
{
        _cleanup_findings_ struct findings ignored;

        m->arena = arena_new();
        if (!m->arena)
                return;
        findings_init(&ignored, m->arena);
        if (lid_map_new(m->arena, m->picture->subnet, &m->lids) < 0)
                m->lids = NULL;
        if (policy_resolve(m->arena, m->generation->policy, m->picture->subnet, &ignored, &m->memberships) < 0) {
                m->memberships = NULL;
                return;
        }
        (void) membership_history_learn(m->history, clock_now(), m->generation->number, m->memberships);
}

void monitor_look(struct monitor *m, const struct generation *g, const struct picture *picture)
{
        bool new_picture = picture && picture != m->picture;

        monitor_forget(m);
        m->picture = picture;
        m->generation = g;
        if (!g || !picture)
                return;
        configure(m);
        learn(m);
        if (new_picture && violation_poll_set_subnet(m->poll, clock_now(), picture->subnet) < 0)
                journal_debug(&m->d->journal, "out of memory: counters of ports that are new are not polled yet");
        attach(m);
        if (m->d->fabric) {
                set_p_key_index(m);
                fabric_wake_tasks(m->d->fabric);
        }
}

/* --- timers ------------------------------------------------------------------------------------------------------- */

static int on_timer(sd_event_source *s, uint64_t scheduled, void *userdata)
{
        (void) s;
        (void) scheduled;
        say_reports(userdata);
        return 0;
}

static void see_local_port(const struct verbs_port *port, void *userdata)
{
        struct violation_port at = { .node_guid = port->node_guid, .number = (uint8_t) port->number };
        struct monitor *m = userdata;

        /* the kernel gives 32 bits, but adapters copy it from the 16 of PortInfo, which stop at their maximum */
        unsigned bits = port->bad_p_key_counter > UINT16_MAX ? 32 : 16;

        if (port->has_bad_p_key_counter)
                (void) violations_see_counter(m->book, clock_now(), at, VIOLATION_BAD_PKEY_CNTR, bits,
                                              port->bad_p_key_counter);
}

static int on_local(sd_event_source *s, uint64_t scheduled, void *userdata)
{
        struct monitor *m = userdata;
        usec_t interval = m->generation ? m->generation->settings->violations_interval : 60 * USEC_PER_SEC;

        (void) scheduled;
        kernel_each_port(m->d->kernel, see_local_port, m);
        say_reports(m);
        (void) sd_event_source_set_time(s, clock_now() + interval);
        (void) sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
        return 0;
}

/* --- the list ----------------------------------------------------------------------------------------------------- */

static int compare_last(const void *pa, const void *pb)
{
        const struct violation_record *a = *(const struct violation_record *const *) pa;
        const struct violation_record *b = *(const struct violation_record *const *) pb;

        return (a->last < b->last) - (a->last > b->last);
}

/* It counted something in this time, or it stands at its maximum and nobody knows since when. What only stood there, and was
 * cleared, tells of nothing any more. */
static bool is_chosen(const struct violation_record *r, usec_t now, usec_t age)
{
        return r->total == 0 ? r->saturated : now - MIN(now, r->last) <= age;
}

/* The records that tell of something since then, the latest first. */
static int choose_records(struct monitor *m, struct arena *a, usec_t since, const struct violation_record ***ret,
                          uint32_t *ret_n)
{
        usec_t wall = clock_wall(), age = wall - MIN(since, wall), now = clock_now();
        const struct violation_record *records, **chosen;
        uint32_t n, kept = 0;

        records = violations_records(m->book, &n);
        chosen = arena_new_array(a, const struct violation_record *, n);
        if (!chosen)
                return -ENOMEM;
        for (uint32_t i = 0; i < n; i++)
                if (is_chosen(&records[i], now, age))
                        chosen[kept++] = &records[i];
        if (kept > 0)
                qsort(chosen, kept, sizeof(*chosen), compare_last);
        *ret = chosen;
        *ret_n = kept;
        return 0;
}

static int list_records(void *userdata, struct arena *a, usec_t since, uint32_t max, struct violation_item **ret,
                        uint32_t *ret_n, uint32_t *ret_all)
{
        const struct violation_record **records;
        struct attribution_context context;
        struct violation_item *items;
        struct monitor *m = userdata;
        int r;

        r = choose_records(m, a, since, &records, ret_all);
        if (r < 0)
                return r;
        *ret_n = MIN(*ret_all, max);
        items = arena_new_array(a, struct violation_item, *ret_n);
        if (!items)
                return -ENOMEM;
        monitor_context(m, &context);
        for (uint32_t i = 0; i < *ret_n; i++) {
                r = violation_item_of_record(a, records[i], &context, &items[i]);
                if (r < 0)
                        return r;
        }
        *ret = items;
        return 0;
}

static uint64_t list_total(void *userdata)
{
        return total_of(userdata);
}

static const char *list_notices(void *userdata)
{
        const struct monitor *m = userdata;
        struct notices_status s;

        notices_get_status(m->notices, &s);
        return notices_state_to_string(s.state);
}

/* --- life --------------------------------------------------------------------------------------------------------- */

int monitor_new(struct daemon *d, struct monitor **ret)
{
        struct violations_config book = { .interval = 60 * USEC_PER_SEC, .threshold = 1 };
        struct violation_poll_config poll = { .interval = 60 * USEC_PER_SEC };
        struct monitor *m = calloc(1, sizeof(*m));
        int r = -ENOMEM;

        if (!m)
                return r;
        m->d = d;
        m->since = clock_now();
        m->book = violations_new(&book);
        m->poll = violation_poll_new(&poll);
        m->notices = notices_new();
        m->history = membership_history_new();
        if (m->book && m->poll && m->notices && m->history)
                r = sd_event_add_time(d->event, &m->timer, CLOCK_MONOTONIC, 0, 1, on_timer, m);
        if (r >= 0)
                r = sd_event_add_time(d->event, &m->local, CLOCK_MONOTONIC, 0, USEC_PER_SEC, on_local, m);
        if (r < 0) {
                monitor_free(m);
                return r;
        }
        (void) sd_event_source_set_enabled(m->timer, SD_EVENT_OFF);
        m->tasks[0] = violation_poll_task(m->poll);
        m->tasks[1] = notices_task(m->notices);
        d->violations = (struct violation_list) {
                .userdata = m, .records = list_records, .total = list_total, .notices = list_notices, .since = clock_wall(),
        };
        metrics_file_set_monitor(d->metrics, m->book, m->notices, m->poll);
        *ret = m;
        return 0;
}

struct monitor *monitor_free(struct monitor *m)
{
        if (!m)
                return NULL;
        m->d->violations = (struct violation_list) {};
        metrics_file_set_monitor(m->d->metrics, NULL, NULL, NULL);
        monitor_forget(m);
        sd_event_source_disable_unref(m->timer);
        sd_event_source_disable_unref(m->local);
        membership_history_free(m->history);
        notices_free(m->notices);
        violation_poll_free(m->poll);
        violations_free(m->book);
        free(m);
        return NULL;
}

