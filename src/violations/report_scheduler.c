/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "violations/report_scheduler.h"

#include <assert.h>
#include <string.h>

static struct violation_entry *entry_at(const struct report_scheduler *s, uint32_t entry)
{
        return entry == VIOLATION_NONE ? NULL : &s->table->entries[entry];
}

static uint32_t first_of(const struct report_scheduler *s, enum report_state state)
{
        return s->table->reports[state].first;
}

static usec_t cool_at(const struct report_scheduler *s, const struct violation_entry *e)
{
        return e->reported_at + s->config.interval;
}

void report_scheduler_set_config(struct report_scheduler *s, const struct violations_config *config)
{
        s->config.interval = MAX(config->interval, UINT64_C(1));
        s->config.threshold = MAX(config->threshold, UINT64_C(1));
        if (s->ends != USEC_INFINITY)
                s->ends = MIN(s->ends, s->opened + s->config.interval);
}

/* --- what is new ------------------------------------------------------------------------------------------------------ */

void report_scheduler_count(struct report_scheduler *s, usec_t now, uint32_t entry, uint64_t n, usec_t since)
{
        struct violation_entry *e = entry_at(s, entry);
        struct violation_record *r = &e->record;

        assert(entry < s->table->n && n > 0);
        if (r->episode == 0) {
                r->episode_began = now;
                e->is_reported = e->in_sum = false;
        }
        if (r->episode == 0 || now - e->interval_began >= s->config.interval) {
                e->interval_began = now;
                e->in_interval = 0;
        }
        if (r->unreported == 0)
                e->since = e->is_reported ? e->reported_at : since;
        e->in_interval = add_capped(e->in_interval, n);
        r->unreported = add_capped(r->unreported, n);
        r->episode = add_capped(r->episode, n);
        violation_table_set_life(s->table, entry, LIFE_ACTIVE);
}

void report_scheduler_consider(struct report_scheduler *s, uint32_t entry)
{
        const struct violation_entry *e = entry_at(s, entry);
        bool exceeds_threshold = e->record.unreported > 0 && e->in_interval >= s->config.threshold;
        bool is_free = e->report_state == REPORT_NONE ||
                       (e->report_state == REPORT_COOLING && (!e->is_reported || e->report_saturated));

        if (is_free && (e->report_saturated || exceeds_threshold))
                violation_table_set_report_state(s->table, entry, REPORT_DUE);
}

void report_scheduler_end_stay(struct report_scheduler *s, uint32_t entry)
{
        const struct violation_entry *e = entry_at(s, entry);

        if (e->life != LIFE_ACTIVE)
                return;
        violation_table_set_life(s->table, entry, LIFE_MOVED);
        if (e->is_reported && e->report_state == REPORT_COOLING && e->record.unreported > 0)
                violation_table_set_report_state(s->table, entry, REPORT_DUE);
}

static void cool_down(struct report_scheduler *s, usec_t now)
{
        uint32_t i;

        while ((i = first_of(s, REPORT_COOLING)) != VIOLATION_NONE && cool_at(s, entry_at(s, i)) <= now) {
                violation_table_set_report_state(s->table, i, REPORT_NONE);
                report_scheduler_consider(s, i);
        }
}

/* --- one entry -------------------------------------------------------------------------------------------------------- */

static void open_interval(struct report_scheduler *s, usec_t now)
{
        if (s->ends != USEC_INFINITY)
                return;
        s->opened = now;
        s->ends = now + s->config.interval;
        s->n_reported = s->n_quiet = 0;
}

/* Marks all that is new about the entry as reported. */
static void set_reported(struct report_scheduler *s, usec_t now, uint32_t entry, bool in_sum)
{
        struct violation_entry *e = entry_at(s, entry);

        e->record.unreported = 0;
        e->report_saturated = false;
        e->is_reported = e->record.episode > 0;
        e->in_sum = in_sum;
        e->reported_at = e->interval_began = now;
        e->in_interval = 0;
        violation_table_set_report_state(s->table, entry, REPORT_COOLING);
}

static void end_episode(struct report_scheduler *s, uint32_t entry)
{
        struct violation_record *r = &entry_at(s, entry)->record;

        r->episode = r->unreported = 0;
        violation_table_set_life(s->table, entry, LIFE_IDLE);
}

static void report_alone(struct report_scheduler *s, usec_t now, uint32_t entry, struct violation_report *ret)
{
        struct violation_entry *e = entry_at(s, entry);

        *ret = (struct violation_report) {
                .kind = e->report_saturated ? VIOLATION_SATURATED : e->is_reported ? VIOLATION_MORE : VIOLATION_FIRST,
                .count = e->record.unreported, .since = e->record.unreported > 0 ? e->since : 0, .n_ports = 1,
        };
        set_reported(s, now, entry, false);
        ret->record = e->record;
        open_interval(s, now);
        s->n_reported++;
}

static void report_quiet(struct report_scheduler *s, usec_t now, uint32_t entry, struct violation_report *ret)
{
        struct violation_entry *e = entry_at(s, entry);

        *ret = (struct violation_report) {
                .kind = VIOLATION_QUIET, .count = e->record.episode, .since = e->record.episode_began, .n_ports = 1,
        };
        end_episode(s, entry);
        ret->record = e->record;
        open_interval(s, now);
        s->n_quiet++;
}

/* --- summaries -------------------------------------------------------------------------------------------------------- */

/* Adds a record to the summary, of which n others are in table->sorted. */
static void add_to_sum(struct report_scheduler *s, struct violation_report *report, uint32_t n, const struct violation_record *r,
                       usec_t since)
{
        report->count = add_capped(report->count, r->unreported);
        if (since != 0 && (report->since == 0 || since < report->since))
                report->since = since;
        s->table->sorted[n] = *r;
}

DEFINE_COMPARE(compare_worst_first, struct violation_record, ORDER(b->unreported, a->unreported) ?: violation_compare_records(a, b))

static void finish_sum(struct report_scheduler *s, struct violation_report *report, uint32_t n)
{
        struct violation_record *all = s->table->sorted;

        qsort(all, n, sizeof(*all), compare_worst_first);
        report->n_worst = MIN(n, (uint32_t) VIOLATIONS_WORST);
        memcpy(report->worst, all, report->n_worst * sizeof(*all));
        qsort(all, n, sizeof(*all), violation_compare_records);
        for (uint32_t i = 0; i < n; i++)
                report->n_ports += i == 0 || !violation_port_equal(all[i - 1].port, all[i].port);
}

static void sum_held(struct report_scheduler *s, usec_t now, struct violation_report *ret)
{
        uint32_t i, n = 0;

        *ret = (struct violation_report) { .kind = VIOLATION_STORM };
        while ((i = first_of(s, REPORT_HELD)) != VIOLATION_NONE) {
                const struct violation_entry *e = entry_at(s, i);

                add_to_sum(s, ret, n++, &e->record, e->record.unreported > 0 ? e->since : 0);
                ret->n_saturated += e->report_saturated;
                set_reported(s, now, i, true);
        }
        finish_sum(s, ret, n);
}

static void sum_quiet(struct report_scheduler *s, struct violation_report *ret)
{
        uint32_t i, n = 0;

        *ret = (struct violation_report) { .kind = VIOLATION_ALL_QUIET };
        while ((i = s->table->lives[LIFE_QUIET].first) != VIOLATION_NONE) {
                struct violation_record *r = &entry_at(s, i)->record;

                r->unreported = r->episode;
                add_to_sum(s, ret, n++, r, r->episode_began);
                end_episode(s, i);
        }
        finish_sum(s, ret, n);
}

/* --- the interval's end ----------------------------------------------------------------------------------------------- */

static bool exceeds_limit(uint32_t n_reported, uint32_t n_waiting)
{
        return n_waiting > 1 && n_reported + n_waiting > VIOLATIONS_STORM_PORTS;
}

/* One step at the end of an interval. True: with a report. False: the interval is over, and what waits is reported one by one. */
static bool end_interval(struct report_scheduler *s, usec_t now, struct violation_report *ret)
{
        uint32_t n_held = s->table->reports[REPORT_HELD].n, n_quiet = s->table->lives[LIFE_QUIET].n;

        if (exceeds_limit(s->n_quiet, n_quiet)) {
                sum_quiet(s, ret);
                return true;
        }
        s->ends = USEC_INFINITY;
        s->releases_quiet = true;
        s->in_storm = exceeds_limit(s->n_reported, n_held);
        s->releases_held = !s->in_storm;
        if (!s->in_storm)
                return false;
        sum_held(s, now, ret);
        open_interval(s, now);
        return true;
}

static bool report_released(struct report_scheduler *s, usec_t now, struct violation_report *ret)
{
        const struct record_list *held = &s->table->reports[REPORT_HELD], *quiet = &s->table->lives[LIFE_QUIET];

        s->releases_held = s->releases_held && held->n > 0;
        s->releases_quiet = s->releases_quiet && quiet->n > 0;
        if (s->releases_held)
                report_alone(s, now, held->first, ret);
        else if (s->releases_quiet)
                report_quiet(s, now, quiet->first, ret);
        else
                return false;
        return true;
}

/* --- the next report -------------------------------------------------------------------------------------------------- */

/* True if the entry may be reported on its own in this interval. In a storm, only new violations may. */
static bool has_room(const struct report_scheduler *s, const struct violation_entry *e)
{
        bool is_new = e->report_saturated || !e->is_reported;

        return (s->ends == USEC_INFINITY || s->n_reported < VIOLATIONS_STORM_PORTS) && (is_new || !s->in_storm);
}

static bool report_due(struct report_scheduler *s, usec_t now, struct violation_report *ret)
{
        uint32_t i;

        while ((i = first_of(s, REPORT_DUE)) != VIOLATION_NONE) {
                if (has_room(s, entry_at(s, i))) {
                        report_alone(s, now, i, ret);
                        return true;
                }
                violation_table_set_report_state(s->table, i, REPORT_HELD);
                open_interval(s, now);
        }
        return false;
}

/* When the episode is over. A move ends it at once; what waits is reported before that. */
static usec_t quiet_at(const struct report_scheduler *s, const struct violation_entry *e)
{
        if (e->report_state == REPORT_HELD)
                return USEC_INFINITY;
        return e->life == LIFE_MOVED ? 0 : e->record.last + s->config.interval * VIOLATIONS_QUIET_INTERVALS;
}

static uint32_t first_to_be_quiet(const struct report_scheduler *s)
{
        const struct violation_entry *moved = entry_at(s, s->table->lives[LIFE_MOVED].first);

        return s->table->lives[moved && quiet_at(s, moved) == 0 ? LIFE_MOVED : LIFE_ACTIVE].first;
}

/* An entry whose episode is over is reported alone or waits for the summary; one of which nothing was reported is not mentioned. */
static bool report_ended(struct report_scheduler *s, usec_t now, struct violation_report *ret)
{
        uint32_t i;

        while ((i = first_to_be_quiet(s)) != VIOLATION_NONE) {
                const struct violation_entry *e = entry_at(s, i);

                if (quiet_at(s, e) > now)
                        return false;
                if (!e->is_reported) {
                        end_episode(s, i);
                } else if (e->in_sum || (s->ends != USEC_INFINITY && s->n_quiet >= VIOLATIONS_STORM_PORTS)) {
                        violation_table_set_life(s->table, i, LIFE_QUIET);
                        open_interval(s, now);
                } else {
                        report_quiet(s, now, i, ret);
                        return true;
                }
        }
        return false;
}

bool report_scheduler_next(struct report_scheduler *s, usec_t now, struct violation_report *ret)
{
        cool_down(s, now);
        /* What goes on in a storm belongs to the summary that is due now; else it is the first of the next interval. */
        if (s->in_storm && report_due(s, now, ret))
                return true;
        if (s->ends <= now && end_interval(s, now, ret))
                return true;
        return report_released(s, now, ret) || report_due(s, now, ret) || report_ended(s, now, ret);
}

usec_t report_scheduler_due(const struct report_scheduler *s)
{
        const struct violation_entry *cooling = entry_at(s, first_of(s, REPORT_COOLING));
        const struct violation_entry *ending = entry_at(s, first_to_be_quiet(s));
        usec_t due = s->ends;

        if (first_of(s, REPORT_DUE) != VIOLATION_NONE || (s->releases_held && s->table->reports[REPORT_HELD].n > 0) ||
            (s->releases_quiet && s->table->lives[LIFE_QUIET].n > 0))
                return 0;
        if (cooling)
                due = MIN(due, cool_at(s, cooling));
        if (ending)
                due = MIN(due, quiet_at(s, ending));
        return due;
}
