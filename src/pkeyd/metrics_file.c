/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd/metrics_file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "metrics/metrics.h"
#include "shell/file.h"

#define EVERY (60 * USEC_PER_SEC)
#define SOON  USEC_PER_SEC

struct metrics_file {
        struct daemon *d;
        sd_event_source *due;
        struct metrics known;              /* what passes told */
        struct mad_engine_counters before; /* of fabrics that are gone */
        struct violations *violations;
        const struct notices *notices;
        const struct violation_poll *poll;
        char *path;                        /* where it was last written or tried; NULL: nowhere */
        bool trouble;                      /* was said of that path */
};

static uint64_t seconds_since_1970(void)
{
        return clock_wall() / USEC_PER_SEC;
}

/* --- what passes tell ------------------------------------------------------------------------------------------- */

void metrics_file_looked(struct metrics_file *f, const struct watch_report *report, bool judged)
{
        struct metrics *m = &f->known;

        m->looked |= judged;
        m->n_managed = report->n_ports;
        m->n_unreachable = report->n_unreachable;
        if (judged) {
                m->n_verified = report->n_right;
                m->n_drifted = report->n_differ;
                m->n_drifts += report->n_of[WATCH_DRIFTED];
        }
}

void metrics_file_planned(struct metrics_file *f, usec_t duration)
{
        f->known.planned = true;
        f->known.plan_duration = duration;
}

void metrics_file_applied(struct metrics_file *f, usec_t duration, bool ended_early, const struct apply_summary *summary)
{
        struct metrics *m = &f->known;

        m->n_writes += summary->written;
        m->n_writes_failed += summary->failed;
        if (ended_early)
                return;
        m->applied = true;
        m->apply_duration = duration;
        if (summary->failed + summary->held == 0)
                m->last_apply = seconds_since_1970();
}

void metrics_file_passed(struct metrics_file *f, enum pass_result result, bool full, usec_t duration)
{
        struct metrics *m = &f->known;
        bool whole = result == PASS_DONE || result == PASS_PARTIAL;

        m->passes.done += result == PASS_DONE;
        m->passes.partial += result == PASS_PARTIAL;
        m->passes.refused += result == PASS_REFUSED;
        m->passes.failed += result == PASS_ERROR;
        if (whole)
                m->last_pass = seconds_since_1970();
        if (result == PASS_DONE)
                m->last_success = m->last_pass;
        if (whole && full) {
                m->swept = true;
                m->sweep_duration = duration;
        }
}

static void add_counters(struct mad_engine_counters *sum, const struct mad_engine_counters *c)
{
        sum->sent += c->sent;
        sum->retried += c->retried;
        sum->timed_out += c->timed_out;
        sum->answered += c->answered;
        sum->busy += c->busy;
        sum->malformed += c->malformed;
}

/* Counters of Prometheus do not go back to 0 because a port was opened again. */
void metrics_file_keep_counters(struct metrics_file *f, const struct fabric *fabric)
{
        struct mad_engine_counters c;

        if (!f || !fabric)
                return;
        fabric_get_counters(fabric, &c);
        add_counters(&f->before, &c);
}

/* --- writing ---------------------------------------------------------------------------------------------------- */

static void collect_daemon(const struct metrics_file *f, struct metrics *m)
{
        const struct daemon *d = f->d;
        const struct generation *g = d->generation ? d->generation : d->candidate;
        struct mad_engine_counters c;

        m->generation = d->generation ? d->generation->number : 0;
        m->audit = g && g->settings->mode == MODE_AUDIT;
        m->stands_by = g && !head_may_write(d, g);
        m->n_policy_errors = d->n_file_errors + (g ? g->n_refused : 0);
        m->subnet = d->picture ? d->picture->subnet : NULL;
        m->mads = f->before;
        if (d->fabric) {
                fabric_get_counters(d->fabric, &c);
                add_counters(&m->mads, &c);
        }
}

static void collect_violations(const struct metrics_file *f, struct metrics *m)
{
        m->has_violations = f->violations != NULL;
        if (!f->violations)
                return;
        m->records = violations_records(f->violations, &m->n_records);
        for (int source = 0; source < VIOLATION_N_SOURCES; source++)
                m->violations[source] = violations_total(f->violations, (enum violation_source) source);
}

static int write_file(const struct metrics_file *f, const char *path)
{
        _cleanup_free_ char *text = NULL;
        struct metrics m = f->known;
        struct violation_poll_counters poll;
        struct notices_status notices;
        size_t n;
        int r;

        collect_daemon(f, &m);
        collect_violations(f, &m);
        if (f->notices) {
                notices_get_status(f->notices, &notices);
                m.notices = &notices;
        }
        if (f->poll) {
                violation_poll_get_counters(f->poll, &poll);
                m.poll = &poll;
        }
        m.now = clock_now();
        m.realtime = clock_wall();
        r = metrics_print(&m, &text, &n);
        return r < 0 ? r : file_write_public(path, text, n);
}

/* The settings name another file than before, or none. What stands in the old one would be taken for news for ever. */
static int move_to(struct metrics_file *f, const char *path)
{
        char *copy = NULL;

        if (f->path && path && strcmp(f->path, path) == 0)
                return 0;
        if (path) {
                copy = strdup(path);
                if (!copy)
                        return -ENOMEM;
        }
        if (f->path && !f->trouble)
                (void) unlink(f->path);
        free(f->path);
        f->path = copy;
        f->trouble = false;
        return 0;
}

void metrics_file_write(struct metrics_file *f)
{
        struct daemon *d = f->d;
        const struct generation *g = d->generation ? d->generation : d->candidate;
        const char *path = g ? g->settings->metrics_textfile : NULL;
        int r;

        (void) sd_event_source_set_time(f->due, clock_now() + EVERY);
        (void) sd_event_source_set_enabled(f->due, SD_EVENT_ONESHOT);
        r = move_to(f, path);
        if (!path)
                return;
        if (r == 0)
                r = write_file(f, path);
        if (r < 0 && !f->trouble)
                journal_event(&d->journal, EVENT_METRICS_FILE, NULL, "%s: the metrics cannot be written: %s; going on "
                              "without", path, strerror(-r));
        else if (r == 0 && f->trouble)
                journal_event(&d->journal, EVENT_METRICS_WRITTEN, NULL, "%s: the metrics can be written again", path);
        f->trouble = r < 0;
}

void metrics_file_write_soon(struct metrics_file *f)
{
        uint64_t due, soon = clock_now() + SOON;

        if (sd_event_source_get_time(f->due, &due) >= 0 && due > soon)
                (void) sd_event_source_set_time(f->due, soon);
}

static int on_due(sd_event_source *timer, uint64_t scheduled, void *userdata)
{
        (void) timer;
        (void) scheduled;
        metrics_file_write(userdata);
        return 0;
}

/* --- life ------------------------------------------------------------------------------------------------------- */

void metrics_file_set_monitor(struct metrics_file *f, struct violations *violations, const struct notices *notices,
                              const struct violation_poll *poll)
{
        f->violations = violations;
        f->notices = notices;
        f->poll = poll;
}

struct metrics_file *metrics_file_free(struct metrics_file *f)
{
        if (!f)
                return NULL;
        sd_event_source_disable_unref(f->due);
        free(f->path);
        free(f);
        return NULL;
}

int metrics_file_new(struct daemon *d, struct metrics_file **ret)
{
        struct metrics_file *f = calloc(1, sizeof(*f));
        int r;

        if (!f)
                return -ENOMEM;
        f->d = d;
        f->known.version = PACKAGE_VERSION;
        f->known.started = seconds_since_1970();
        r = sd_event_add_time(d->event, &f->due, CLOCK_MONOTONIC, clock_now() + EVERY, 0, on_due, f);
        if (r < 0) {
                metrics_file_free(f);
                return r;
        }
        *ret = f;
        return 0;
}
