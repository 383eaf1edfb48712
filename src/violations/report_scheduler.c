/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which reports come when. See violations.h for the rules, violation_table.h for the lists. */

#include <string.h>

#include "violations/violation_table.h"

static usec_t usec_add(usec_t a, usec_t b)
{
        return a > USEC_INFINITY - b ? USEC_INFINITY : a + b;
}

static usec_t cool_at(const struct violations *v, const struct violation_entry *e)
{
        return usec_add(e->reported_at, v->config.interval);
}

static usec_t calm_at(const struct violations *v, const struct violation_entry *e)
{
        if (v->config.interval > USEC_INFINITY / VIOLATIONS_QUIET_INTERVALS)
                return USEC_INFINITY;
        return usec_add(e->record.last, v->config.interval * VIOLATIONS_QUIET_INTERVALS);
}

static usec_t window_ends(const struct violations *v)
{
        return v->window_open ? usec_add(v->window_began, v->config.interval) : USEC_INFINITY;
}

static void open_window(struct violations *v, usec_t now)
{
        if (v->window_open)
                return;
        v->window_open = true;
        v->window_began = now;
        v->n_reported = v->n_calm_reported = 0;
}

static bool is_ripe(const struct violations *v, const struct violation_entry *e)
{
        return e->record.unreported > 0 && e->in_interval >= v->config.threshold;
}

void report_scheduler_update(struct violations *v, uint32_t entry)
{
        const struct violation_entry *e = &v->entries[entry];
        bool is_free = e->report_state == REPORT_NONE || (e->report_state == REPORT_COOLING && !e->is_reported);

        if (e->report_saturated && e->report_state == REPORT_COOLING)
                is_free = true;
        if (is_free && (e->report_saturated || is_ripe(v, e)))
                violation_table_set_report_state(v, entry, REPORT_DUE);
}

static struct violation_entry *first_of(const struct violations *v, enum report_state state)
{
        uint32_t i = v->report_lists[state].first;

        return i == VIOLATION_NONE ? NULL : &v->entries[i];
}

static void cool_down(struct violations *v, usec_t now)
{
        const struct violation_entry *e;

        while ((e = first_of(v, REPORT_COOLING)) && cool_at(v, e) <= now) {
                uint32_t i = v->report_lists[REPORT_COOLING].first;

                violation_table_set_report_state(v, i, REPORT_NONE);
                report_scheduler_update(v, i);
        }
}

/* What is new with the entry was reported. */
static void set_reported(struct violations *v, usec_t now, uint32_t entry, bool in_sum)
{
        struct violation_entry *e = &v->entries[entry];

        e->record.unreported = 0;
        e->report_saturated = false;
        e->is_reported = e->record.episode > 0;
        e->in_sum = in_sum;
        e->reported_at = e->interval_began = now;
        e->in_interval = 0;
        violation_table_set_report_state(v, entry, REPORT_COOLING);
}

static void end_episode(struct violations *v, uint32_t entry)
{
        struct violation_record *r = &v->entries[entry].record;

        r->episode = r->unreported = 0;
        violation_table_set_life(v, entry, LIFE_IDLE);
}

static void report_alone(struct violations *v, usec_t now, uint32_t entry, struct violation_report *ret)
{
        struct violation_entry *e = &v->entries[entry];

        memset(ret, 0, sizeof(*ret));
        ret->kind = e->report_saturated ? VIOLATION_SATURATED : e->is_reported ? VIOLATION_MORE : VIOLATION_FIRST;
        ret->count = e->record.unreported;
        ret->since = e->record.unreported > 0 ? e->since : 0;
        ret->n_ports = 1;
        set_reported(v, now, entry, false);
        ret->record = e->record;
        open_window(v, now);
        v->n_reported++;
}

static void report_quiet(struct violations *v, usec_t now, uint32_t entry, struct violation_report *ret)
{
        struct violation_entry *e = &v->entries[entry];

        memset(ret, 0, sizeof(*ret));
        ret->kind = VIOLATION_QUIET;
        ret->count = e->record.episode;
        ret->since = e->record.episode_began;
        ret->n_ports = 1;
        end_episode(v, entry);
        ret->record = e->record;
        open_window(v, now);
        v->n_calm_reported++;
}

/* --- sums ------------------------------------------------------------------------------------------------------------ */

/* Keeps the worst, the most first; equal ones in the order of records, whatever the order they come in. */
static void add_worst(struct violation_report *report, const struct violation_record *r)
{
        uint32_t i;

        for (i = report->n_worst; i > 0; i--) {
                const struct violation_record *other = &report->worst[i - 1];

                if (other->unreported > r->unreported ||
                    (other->unreported == r->unreported && violation_compare_records(other, r) < 0))
                        break;
                if (i < VIOLATIONS_WORST)
                        report->worst[i] = *other;
        }
        if (i == VIOLATIONS_WORST)
                return;
        report->worst[i] = *r;
        report->n_worst = MIN(report->n_worst + 1, (uint32_t) VIOLATIONS_WORST);
}

static void add_to_sum(struct violations *v, struct violation_report *report, const struct violation_record *r,
                       usec_t since)
{
        report->count = add_capped(report->count, r->unreported);
        if (since != 0 && (report->since == 0 || since < report->since))
                report->since = since;
        add_worst(report, r);
        /* ports are counted when all of them are there */
        v->ports[report->n_ports++] = r->port;
}

static void count_ports(struct violations *v, struct violation_report *report)
{
        uint32_t n = 0;

        qsort(v->ports, report->n_ports, sizeof(*v->ports), violation_port_compare);
        for (uint32_t i = 0; i < report->n_ports; i++)
                n += i == 0 || !violation_port_equal(v->ports[i - 1], v->ports[i]);
        report->n_ports = n;
}

static void sum_held(struct violations *v, usec_t now, struct violation_report *ret)
{
        struct violation_entry *e;

        memset(ret, 0, sizeof(*ret));
        ret->kind = VIOLATION_STORM;
        while ((e = first_of(v, REPORT_HELD))) {
                add_to_sum(v, ret, &e->record, e->record.unreported > 0 ? e->since : 0);
                ret->n_saturated += e->report_saturated;
                set_reported(v, now, v->report_lists[REPORT_HELD].first, true);
        }
        count_ports(v, ret);
}

static void sum_calmed(struct violations *v, struct violation_report *ret)
{
        memset(ret, 0, sizeof(*ret));
        ret->kind = VIOLATION_ALL_QUIET;
        while (v->lives[LIFE_CALMED].n > 0) {
                uint32_t i = v->lives[LIFE_CALMED].first;
                struct violation_record *r = &v->entries[i].record;

                r->unreported = r->episode;
                add_to_sum(v, ret, r, r->episode_began);
                end_episode(v, i);
        }
        count_ports(v, ret);
}

/* --- the interval's end ---------------------------------------------------------------------------------------------- */

static bool is_storm(uint32_t n_reported, uint32_t n_held)
{
        return n_held > 1 && n_reported + n_held > VIOLATIONS_STORM_PORTS;
}

static void release_held(struct violations *v)
{
        while (v->report_lists[REPORT_HELD].n > 0)
                violation_table_set_report_state(v, v->report_lists[REPORT_HELD].first, REPORT_RELEASED);
}

/* One step of closing the window that has ended. True: with a report. False: it is closed, or the next one is open. */
static bool close_window(struct violations *v, usec_t now, struct violation_report *ret)
{
        bool storm = is_storm(v->n_reported, v->report_lists[REPORT_HELD].n);

        if (is_storm(v->n_calm_reported, v->lives[LIFE_CALMED].n)) {
                sum_calmed(v, ret);
                return true;
        }
        v->window_open = false;
        v->in_storm = storm;
        v->n_calm_released = v->lives[LIFE_CALMED].n;
        if (!storm) {
                release_held(v);
                return false;
        }
        sum_held(v, now, ret);
        open_window(v, now);
        return true;
}

/* --- the next report ------------------------------------------------------------------------------------------------- */

/* In a storm only what is new. */
static bool has_room(const struct violations *v, const struct violation_entry *e)
{
        bool is_new = e->report_saturated || !e->is_reported;

        return (!v->window_open || v->n_reported < VIOLATIONS_STORM_PORTS) && (is_new || !v->in_storm);
}

static bool report_due(struct violations *v, usec_t now, struct violation_report *ret)
{
        const struct violation_entry *e;

        if (first_of(v, REPORT_RELEASED)) {
                report_alone(v, now, v->report_lists[REPORT_RELEASED].first, ret);
                return true;
        }
        while ((e = first_of(v, REPORT_DUE))) {
                uint32_t i = v->report_lists[REPORT_DUE].first;

                if (has_room(v, e)) {
                        report_alone(v, now, i, ret);
                        return true;
                }
                violation_table_set_report_state(v, i, REPORT_HELD);
                open_window(v, now);
        }
        return false;
}

/* Whose episode is to end first. A move ends it at once; what is held is reported before that. */
static uint32_t first_to_calm(const struct violations *v)
{
        uint32_t moved = v->lives[LIFE_MOVED].first;

        return moved != VIOLATION_NONE && v->entries[moved].report_state != REPORT_HELD ? moved : v->lives[LIFE_ACTIVE].first;
}

static usec_t calm_due(const struct violations *v, uint32_t entry)
{
        const struct violation_entry *e = &v->entries[entry];

        if (e->report_state == REPORT_HELD)
                return USEC_INFINITY;
        return e->life == LIFE_MOVED ? 0 : calm_at(v, e);
}

/* One whose episode is over is reported alone, or held back, or (of which nothing was reported) forgotten. */
static bool report_calm(struct violations *v, usec_t now, struct violation_report *ret)
{
        uint32_t i;

        while ((i = first_to_calm(v)) != VIOLATION_NONE) {
                const struct violation_entry *e = &v->entries[i];

                if (calm_due(v, i) > now)
                        return false;
                if (!e->is_reported) {
                        end_episode(v, i);
                } else if (e->in_sum || (v->window_open && v->n_calm_reported >= VIOLATIONS_STORM_PORTS)) {
                        violation_table_set_life(v, i, LIFE_CALMED);
                        open_window(v, now);
                } else {
                        report_quiet(v, now, i, ret);
                        return true;
                }
        }
        return false;
}

/* Those that were held back and were too few for a sum. */
static bool report_released_calm(struct violations *v, usec_t now, struct violation_report *ret)
{
        if (v->lives[LIFE_CALMED].n == 0 || v->n_calm_released == 0)
                return false;
        v->n_calm_released--;
        report_quiet(v, now, v->lives[LIFE_CALMED].first, ret);
        return true;
}

bool violations_next_report(struct violations *v, usec_t now, struct violation_report *ret)
{
        cool_down(v, now);
        /* What goes on in a storm belongs to the sum that is due now; else it is the first of the next interval. */
        if (v->in_storm && report_due(v, now, ret))
                return true;
        if (window_ends(v) <= now && close_window(v, now, ret))
                return true;
        return report_due(v, now, ret) || report_released_calm(v, now, ret) || report_calm(v, now, ret);
}

usec_t violations_due(const struct violations *v)
{
        const struct violation_entry *e;
        usec_t due = window_ends(v);

        if (v->report_lists[REPORT_DUE].n > 0 || v->report_lists[REPORT_RELEASED].n > 0 ||
            (v->n_calm_released > 0 && v->lives[LIFE_CALMED].n > 0))
                return 0;
        e = first_of(v, REPORT_COOLING);
        if (e)
                due = MIN(due, cool_at(v, e));
        if (first_to_calm(v) != VIOLATION_NONE)
                due = MIN(due, calm_due(v, first_to_calm(v)));
        return due;
}
