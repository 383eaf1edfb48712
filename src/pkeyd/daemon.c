/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd/daemon.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "pkeyd/bus.h"
#include "pkeyd/kernel.h"
#include "pkeyd/metrics_file.h"
#include "pkeyd/monitor.h"
#include "pkeyd/notify.h"
#include "pkeyd/opensm_writer.h"
#include "pkeyd/pass.h"
#include "pkeyd/say.h"
#include "watch/backoff.h"

#define WAIT_FOR_PORT  (3 * USEC_PER_SEC)  /* how often a port that is down is looked at */
#define EVENT_SOON     (300 * USEC_PER_MSEC) /* the sweep after an event of a local port */
#define EVENT_GAP      (5 * USEC_PER_SEC)  /* between two of them */
#define SOON           (5 * USEC_PER_SEC)  /* the full sweep after a reload */
#define PATIENCE_EVERY (2 * USEC_PER_SEC)  /* how often more time is asked for */
#define PATIENCE       (30 * USEC_PER_SEC)
#define MAX_TROUBLE    (60 * USEC_PER_SEC) /* the longest wait after a pass that failed */

void daemon_set_status(struct daemon *d, const char *format, ...)
{
        va_list ap;
        size_t n;

        va_start(ap, format);
        (void) vsnprintf(d->status, sizeof(d->status), format, ap);
        va_end(ap);
        if (d->n_file_errors > 0) {
                n = strlen(d->status);
                (void) snprintf(d->status + n, sizeof(d->status) - n,
                                " (the files as they are were refused: %zu error%s)", d->n_file_errors,
                                d->n_file_errors == 1 ? "" : "s");
        }
        notify_status(d->status);
}

/* --- what the next pass is, and when ---------------------------------------------------------------------------- */

static const struct settings *settings_wanted(struct daemon *d)
{
        return daemon_wanted(d)->settings;
}

static void arm(struct daemon *d)
{
        usec_t at = d->reload_due ? 0 : MIN(d->sweep_at, d->retry_at);

        (void) sd_event_source_set_time(d->due, at);
        (void) sd_event_source_set_enabled(d->due, SD_EVENT_ONESHOT);
}

/* A short step aside after trouble: 5 s, 10 s, ... */
static void back_off(struct daemon *d)
{
        d->trouble_delay = backoff_next(d->trouble_delay, MIN(MAX_TROUBLE, settings_wanted(d)->sweep_interval));
        d->sweep_at = clock_now() + d->trouble_delay;
        d->retry_at = USEC_INFINITY;
}

static void end_reload(struct daemon *d, enum reload_outcome outcome, const char *text, const struct findings *findings)
{
        struct reload_end end = {
                .outcome = outcome, .generation = d->generation ? d->generation->number : 0, .findings = findings,
        };

        (void) snprintf(end.text, sizeof(end.text), "%s", text);
        d->reload_pending = false;
        bus_tell_reload(d->bus, &end);
        bus_answer_reload(d->bus, &end);
}

static enum reload_outcome outcome_of(const struct daemon *d, enum pass_result result)
{
        if (d->candidate || result == PASS_WAIT || result == PASS_ERROR)
                return RELOAD_WAITS;
        if (result == PASS_PARTIAL)
                return RELOAD_PARTIAL;
        return d->reload_unchanged ? RELOAD_UNCHANGED : RELOAD_CARRIED_OUT;
}

/* Here a reload has ended, if it was not refused before. The service manager hears READY then, and once at the start. */
static void tell_ready(struct daemon *d, enum pass_result result)
{
        if (d->reload_pending)
                end_reload(d, outcome_of(d, result), d->status, NULL);
        if (!d->ready || d->reloading)
                notify_ready(d->status);
        d->ready = true;
        d->reloading = false;
        (void) sd_event_source_set_enabled(d->patience, SD_EVENT_OFF);
}

static int on_patience(sd_event_source *timer, uint64_t scheduled, void *userdata)
{
        struct daemon *d = userdata;
        char what[128];

        (void) scheduled;
        notify_extend(PATIENCE);
        if (d->pass) {
                pass_describe(d->pass, what, sizeof(what));
                daemon_set_status(d, "%s", what);
        }
        (void) sd_event_source_set_time(timer, clock_now() + PATIENCE_EVERY);
        (void) sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
        return 0;
}

static void ask_patience(struct daemon *d)
{
        (void) sd_event_source_set_time(d->patience, clock_now() + PATIENCE_EVERY);
        (void) sd_event_source_set_enabled(d->patience, SD_EVENT_ONESHOT);
}

/* --- the port --------------------------------------------------------------------------------------------------- */

static void make_fabric_key(const struct settings *s, struct fabric_key *ret)
{
        *ret = (struct fabric_key) { .port = s->port, .window = s->window, .timeout = s->timeout };
        if (s->ca)
                (void) snprintf(ret->ca, sizeof(ret->ca), "%s", s->ca);
}

static bool same_port(const struct fabric_key *a, const struct fabric_key *b)
{
        return strcmp(a->ca, b->ca) == 0 && a->port == b->port;
}

static void close_fabric(struct daemon *d)
{
        monitor_detach(d->monitor);
        metrics_file_keep_counters(d->metrics, d->fabric);
        d->fabric = fabric_free(d->fabric);
}

/* Makes d->fabric as the settings want it. Errors as local_port_find. */
static int open_fabric(struct daemon *d, const struct settings *settings)
{
        struct fabric_key key;
        int r;

        make_fabric_key(settings, &key);
        if (d->fabric && same_port(&key, &d->fabric_key) && key.window == d->fabric_key.window &&
            key.timeout == d->fabric_key.timeout)
                return fabric_refresh_port(d->fabric);
        close_fabric(d);
        if (!same_port(&key, &d->fabric_key)) {
                monitor_forget(d->monitor);
                d->picture = picture_free(d->picture);
        }
        r = fabric_new(d->event, settings, &d->fabric);
        if (r < 0)
                return r;
        fabric_discover_apart(d->fabric);
        d->fabric_key = key;
        return 0;
}

static const char *settings_port(const struct settings *s, char *buffer, size_t size)
{
        if (!s->ca)
                return "an InfiniBand port";
        (void) snprintf(buffer, size, "%s%s%.0u", s->ca, s->port ? "/" : "", s->port);
        return buffer;
}

void daemon_port_waits(struct daemon *d, const char *why)
{
        char buffer[CA_NAME_SIZE + 16];

        daemon_set_status(d, "waiting for %s: %s", settings_port(settings_wanted(d), buffer, sizeof(buffer)), why);
        if (!d->waiting)
                journal_event(&d->journal, EVENT_WAITING_FOR_PORT, NULL, "%s", d->status);
        d->waiting = true;
}

void daemon_port_works(struct daemon *d, struct lid lid)
{
        const struct local_port *lp = fabric_local_port(d->fabric);

        if (d->waiting)
                journal_event(&d->journal, EVENT_PORT_FOUND, &(struct journal_about) { .lid = lid },
                              "%s port %u is up, LID %u", lp->ca, lp->port, (unsigned) lid.v);
        d->waiting = false;
}

static void wait_for_port(struct daemon *d)
{
        d->sweep_at = clock_now() + WAIT_FOR_PORT;
        d->retry_at = USEC_INFINITY;
        close_fabric(d); /* the next look may find another one */
}

/* True if there is a port to work through. Else it is said once, and looked for again soon. */
static bool find_port(struct daemon *d)
{
        int r = open_fabric(d, settings_wanted(d));

        if (r == 0)
                return true;
        daemon_port_waits(d, r == -ENETDOWN  ? "its link is down"
                             : r == -ENODEV ? "there is no such device"
                                            : strerror(-r));
        wait_for_port(d);
        return false;
}

/* --- passes ----------------------------------------------------------------------------------------------------- */

static bool picture_is_of_wanted_port(struct daemon *d)
{
        struct fabric_key key;

        make_fabric_key(settings_wanted(d), &key);
        return d->picture && same_port(&key, &d->fabric_key);
}

static enum pass_kind choose_kind(struct daemon *d, usec_t now)
{
        if (!picture_is_of_wanted_port(d) || d->waiting)
                return PASS_FULL;
        if (d->reload_due)
                return PASS_KNOWN;
        return now >= d->sweep_at ? PASS_FULL : PASS_RETRY;
}

static int on_due(sd_event_source *timer, uint64_t scheduled, void *userdata)
{
        struct daemon *d = userdata;
        usec_t now = clock_now(); /* the timer may have been late, or set to the past */
        enum pass_kind kind;

        (void) timer;
        (void) scheduled;
        if (d->pass || d->stopping)
                return 0;
        if (!d->reload_due && now < MIN(d->sweep_at, d->retry_at)) {
                arm(d);
                return 0;
        }
        kind = choose_kind(d, now);
        d->reload_due = false;
        if (!find_port(d)) {
                metrics_file_write(d->metrics);
                tell_ready(d, PASS_WAIT);
                arm(d);
                return 0;
        }
        if (kind == PASS_FULL)
                d->sweep_at = now + settings_wanted(d)->sweep_interval;
        if (pass_start(d, kind) < 0) {
                journal_event(&d->journal, EVENT_PASS_FAILED, NULL, "out of memory; will be tried again");
                back_off(d);
                tell_ready(d, PASS_ERROR);
                arm(d);
        }
        return 0;
}

static void schedule_retry(struct daemon *d)
{
        d->retry_delay = backoff_next(d->retry_delay, settings_wanted(d)->sweep_interval);
        d->retry_at = clock_now() + d->retry_delay;
        journal_debug(&d->journal, "%u ports failed; they are tried again in %.0f s", picture_n_failed(d->picture),
                      (double) d->retry_delay / (double) USEC_PER_SEC);
}

void daemon_pass_ended(struct daemon *d, enum pass_result result)
{
        d->pass = pass_free(d->pass);
        if (result != PASS_STALE && result != PASS_ENDED)
                d->last_result = result;
        if (result == PASS_ERROR)
                back_off(d);
        else
                d->trouble_delay = 0;
        if (result == PASS_PARTIAL)
                schedule_retry(d);
        else
                d->retry_at = USEC_INFINITY;
        if (result == PASS_DONE) {
                d->retry_delay = 0;
                d->last_success = clock_wall();
        }
        if (result == PASS_STALE)
                d->sweep_at = 0;
        if (result == PASS_WAIT)
                wait_for_port(d);
        if (result == PASS_ENDED && !d->stopping)
                d->reload_due = true;
        metrics_file_write(d->metrics);
        if (d->stopping) {
                (void) sd_event_exit(d->event, 0);
                return;
        }
        /* a known fabric that was written by it is soon looked at as a whole */
        if (d->sweep_soon && result != PASS_ENDED && result != PASS_STALE) {
                d->sweep_at = MIN(d->sweep_at, clock_now() + SOON);
                d->sweep_soon = false;
        }
        if (!d->reload_due && result != PASS_STALE)
                tell_ready(d, result);
        arm(d);
}

/* --- events of local ports -------------------------------------------------------------------------------------- */

void daemon_look_at_port(struct daemon *d, struct guid port_guid, usec_t at)
{
        uint32_t port = d->picture ? subnet_find_endport(d->picture->subnet, port_guid) : SUBNET_NONE;

        if (d->pass || d->stopping || port == SUBNET_NONE)
                return; /* a pass looks at all that matters at its end */
        d->picture->failed[port] = true;
        d->retry_at = MIN(d->retry_at, at);
        arm(d);
}

/* A link that flaps must not make one sweep after the other. */
void daemon_look_soon(struct daemon *d)
{
        usec_t now = clock_now(), at = MAX(now + EVENT_SOON, d->event_sweep_at + EVENT_GAP);

        if (d->stopping || d->sweep_at <= at)
                return;
        d->event_sweep_at = at;
        d->sweep_at = at;
        arm(d);
}

void daemon_sm_changed(struct daemon *d)
{
        head_doubt(d);
        if (d->pass && head_follows(d))
                pass_end_apply(d->pass);
        daemon_look_soon(d);
}

/* --- generations ------------------------------------------------------------------------------------------------ */

struct generation *daemon_wanted(struct daemon *d)
{
        return d->candidate ? d->candidate : d->generation;
}

struct generation *daemon_to_decide(struct daemon *d)
{
        struct fabric_key key;

        if (!d->candidate)
                return d->generation;
        make_fabric_key(d->candidate->settings, &key);
        return same_port(&key, &d->fabric_key) ? d->candidate : d->generation;
}

void daemon_accept(struct daemon *d)
{
        if (d->candidate->number == 0)
                d->candidate->number = ++d->last_number;
        kernel_forget(d->kernel);
        monitor_forget(d->monitor);
        generation_free(d->generation);
        d->generation = STEAL(d->candidate);
        d->reload_due = false;
        d->n_file_errors = 0;
        monitor_look(d->monitor, d->generation, d->picture);
        journal_event(&d->journal, EVENT_GENERATION,
                      &(struct journal_about) { .generation = d->generation->number },
                      "generation %" PRIu64 " is in force: %u partition%s, mode %s%s", d->generation->number,
                      d->generation->policy->n_partitions, d->generation->policy->n_partitions == 1 ? "" : "s",
                      d->generation->settings->mode == MODE_AUDIT ? "audit" : "enforce",
                      d->generation->settings->role == ROLE_FOLLOW_SM ? ", role follow-sm" : "");
        if (d->generation->settings->mode == MODE_ENFORCE)
                state_save_policy(&d->state, d->generation);
}

/* All findings, and as the last line what stays in force, which is given back as well. */
static void say_refused(struct daemon *d, const struct findings *findings, char *ret_line, size_t size)
{
        struct journal_about about = { .generation = d->generation ? d->generation->number : 0 };
        size_t n = findings->n_errors;
        char what[64], in_force[64] = "nothing is in force";

        if (findings->out_of_memory)
                (void) snprintf(what, sizeof(what), "out of memory");
        else
                (void) snprintf(what, sizeof(what), "%zu error%s", n, n == 1 ? "" : "s");
        if (d->generation)
                (void) snprintf(in_force, sizeof(in_force), "generation %" PRIu64 " stays in force", about.generation);
        (void) snprintf(ret_line, size, "%s; %s", what, in_force);
        say_findings(&d->journal, findings);
        journal_event(&d->journal, EVENT_RELOAD_REFUSED, &about, "%s", ret_line);
        d->n_file_errors = MAX(n, (size_t) 1);
        daemon_set_status(d, "%s", in_force);
        metrics_file_write(d->metrics);
}

void daemon_refuse(struct daemon *d, const struct findings *findings)
{
        char line[128];

        say_refused(d, findings, line, sizeof(line));
        d->candidate = generation_free(d->candidate);
        d->reload_due = false;
        end_reload(d, RELOAD_REFUSED, line, findings);
}

void daemon_cannot(struct daemon *d, const struct findings *findings)
{
        if (d->reload_pending)
                end_reload(d, RELOAD_REFUSED, d->status, findings);
}

/* --- reload ----------------------------------------------------------------------------------------------------- */

/* Settings that name a device this host does not have would leave the fabric without a daemon. */
static int check_port(struct daemon *d, const struct generation *g, struct findings *findings)
{
        struct fabric_key key;
        struct local_port lp;
        int r;

        make_fabric_key(g->settings, &key);
        if (same_port(&key, &d->fabric_key))
                return 0;
        r = local_port_find(g->settings->ca, g->settings->port, &lp);
        if (r != -ENODEV)
                return 0;
        (void) findings_add(findings, FINDING_ERROR, FINDING_HOST_NO_DEVICE, NULL,
                            "this host has no InfiniBand port %s/%u", g->settings->ca ? g->settings->ca : "(any)",
                            g->settings->port);
        return -EBADMSG;
}

static void take_candidate(struct daemon *d, struct generation *g, const struct findings *findings)
{
        say_findings(&d->journal, findings);
        bus_note_findings(d->bus, findings, true);
        d->reload_pending = true;
        d->reload_unchanged = false;
        if (generation_equal(g, daemon_wanted(d))) {
                d->reload_unchanged = !d->candidate;
                journal_event(&d->journal, EVENT_RELOAD_UNCHANGED,
                              &(struct journal_about) { .generation = daemon_wanted(d)->number },
                              "both files are as they were; looking at the whole fabric");
                d->n_file_errors = 0;
                d->sweep_at = 0;
                generation_free(g);
                return;
        }
        generation_free(d->candidate);
        d->candidate = g;
        d->reload_due = true;
        d->sweep_soon = true;
        if (d->pass)
                pass_end_apply(d->pass);
}

/* Nobody else is concerned: a reload that is pending goes on. */
static void refuse_at_once(struct daemon *d, const struct findings *findings, struct reload_end *ret)
{
        *ret = (struct reload_end) {
                .outcome = RELOAD_REFUSED, .generation = d->generation ? d->generation->number : 0, .findings = findings,
        };
        say_refused(d, findings, ret->text, sizeof(ret->text));
        bus_tell_reload(d->bus, ret);
}

int daemon_reload(struct daemon *d, struct findings *findings, struct reload_end *ret_end)
{
        struct generation *g = NULL;
        bool pending = d->reloading;
        int r;

        if (d->ready && !pending) {
                d->reloading = true;
                notify_reloading();
                ask_patience(d);
        }
        r = generation_load(d->options, findings, &g);
        if (r == 0)
                r = check_port(d, g, findings);
        if (r == 0) {
                take_candidate(d, g, findings);
        } else {
                findings->out_of_memory |= r == -ENOMEM;
                generation_free(g);
                refuse_at_once(d, findings, ret_end);
                if (d->reloading && !pending)
                        tell_ready(d, d->last_result);
        }
        arm(d);
        return r == 0 ? 0 : -EBADMSG;
}

static int on_reload(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata)
{
        _cleanup_arena_ struct arena *a = arena_new();
        _cleanup_findings_ struct findings findings;
        struct reload_end end;
        struct daemon *d = userdata;

        (void) source;
        (void) si;
        findings_init(&findings, a);
        if (!a)
                journal_event(&d->journal, EVENT_PASS_FAILED, NULL, "out of memory; the files were not loaded again");
        else if (!d->stopping)
                (void) daemon_reload(d, &findings, &end);
        return 0;
}

/* --- the end ---------------------------------------------------------------------------------------------------- */

static int on_stop(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata)
{
        struct daemon *d = userdata;

        (void) source;
        if (d->stopping)
                _exit(1); /* asked twice: no more waiting */
        d->stopping = true;
        (void) snprintf(d->status, sizeof(d->status), "stopping");
        notify_stopping(d->status);
        journal_debug(&d->journal, "stopping on signal %u", si->ssi_signo);
        if (!d->pass || !pass_must_be_awaited(d->pass))
                return sd_event_exit(d->event, 0);
        pass_end_apply(d->pass); /* daemon_pass_ended leaves the loop */
        return 0;
}

/* --- the beginning ---------------------------------------------------------------------------------------------- */

/* The policy that was in force when pkeyd last ran, with the settings as they are now. NULL: none, or it is no good. */
static struct generation *load_last(struct daemon *d, struct arena *a, const char **ret_bytes, size_t *ret_n)
{
        _cleanup_findings_ struct findings ignored;
        struct generation *g = NULL;

        findings_init(&ignored, a);
        if (state_load_policy(&d->state, a, ret_bytes, ret_n, &d->last_number) < 0)
                return NULL;
        if (generation_load_remembered(d->options, *ret_bytes, *ret_n, d->last_number, &ignored, &g) < 0)
                return NULL;
        return g;
}

/* The files are no good. Then what was in force stays in force, if that is known. */
static int start_with_last(struct daemon *d, const struct findings *findings)
{
        size_t n = findings->n_errors;

        say_findings(&d->journal, findings);
        if (!d->generation) {
                journal_event(&d->journal, EVENT_CANNOT_START, NULL, "%zu error%s; nothing is in force", n,
                              n == 1 ? "" : "s");
                return -EBADMSG;
        }
        d->n_file_errors = MAX(n, (size_t) 1);
        journal_event(&d->journal, EVENT_LAST_POLICY,
                      &(struct journal_about) { .generation = d->generation->number },
                      "%zu error%s; the last policy in force, generation %" PRIu64 ", stays in force", n,
                      n == 1 ? "" : "s", d->generation->number);
        return 0;
}

static int load_first(struct daemon *d)
{
        _cleanup_arena_ struct arena *a = arena_new();
        _cleanup_findings_ struct findings findings;
        struct generation *g = NULL;
        const char *bytes;
        size_t n;
        int r;

        findings_init(&findings, a);
        if (!a)
                return -ENOMEM;
        d->generation = load_last(d, a, &bytes, &n);
        r = generation_load(d->options, &findings, &g);
        if (r == -EBADMSG)
                return start_with_last(d, &findings);
        if (r < 0)
                return r;
        say_findings(&d->journal, &findings);
        if (d->generation && generation_has_policy(g, bytes, n)) {
                /* the file's own name in its messages from now on */
                g->number = d->generation->number;
                generation_free(d->generation);
                d->generation = g;
        } else {
                d->candidate = g;
        }
        return 0;
}

static void say_no_port(struct daemon *d, int error)
{
        char buffer[CA_NAME_SIZE + 16];
        const char *port = settings_port(settings_wanted(d), buffer, sizeof(buffer));

        if (error == -ENODEV)
                journal_event(&d->journal, EVENT_CANNOT_START, NULL, "%s: this host has no such device", port);
        else if (error == -EACCES || error == -EPERM)
                journal_event(&d->journal, EVENT_CANNOT_START, NULL,
                              "%s: no permission to use /dev/infiniband/umad*; pkeyd must be run as root", port);
        else if (error == -EOPNOTSUPP)
                journal_event(&d->journal, EVENT_CANNOT_START, NULL, "%s: the kernel module ib_umad is not loaded", port);
        else
                journal_event(&d->journal, EVENT_CANNOT_START, NULL, "%s: %s", port, strerror(-error));
}

static int add_sources(struct daemon *d)
{
        int r;

        r = sd_event_default(&d->event);
        if (r < 0)
                return r;
        r = sd_event_add_signal(d->event, NULL, SIGHUP, on_reload, d);
        if (r >= 0)
                r = sd_event_add_signal(d->event, NULL, SIGTERM, on_stop, d);
        if (r >= 0)
                r = sd_event_add_signal(d->event, NULL, SIGINT, on_stop, d);
        if (r >= 0)
                r = sd_event_add_time(d->event, &d->due, CLOCK_MONOTONIC, 0, 1, on_due, d);
        if (r >= 0)
                r = sd_event_add_time(d->event, &d->patience, CLOCK_MONOTONIC, clock_now() + PATIENCE_EVERY, 0,
                                      on_patience, d);
        if (r >= 0)
                r = sd_event_set_watchdog(d->event, true);
        return r < 0 ? r : 0;
}

int daemon_init(struct daemon *d, const struct options *options)
{
        int r;

        *d = (struct daemon) { .options = options, .retry_at = USEC_INFINITY };
        journal_init(&d->journal, options->verbose);
        d->watch = watch_new();
        r = d->watch ? state_open(&d->state, options->state_dir, &d->journal) : -ENOMEM;
        if (r == 0)
                r = add_sources(d);
        if (r == 0)
                r = kernel_new(d, &d->kernel);
        if (r == 0)
                r = metrics_file_new(d, &d->metrics);
        if (r == 0)
                r = monitor_new(d, &d->monitor);
        if (r == 0)
                r = bus_new(d, &d->bus);
        if (r == 0)
                r = opensm_writer_new(d, &d->opensm_writer);
        if (r < 0) {
                journal_event(&d->journal, EVENT_CANNOT_START, NULL, "%s", strerror(-r));
                return r;
        }
        return load_first(d);
}

/* The device is opened once, so that a missing permission or module is told at the start and not by libibnetdisc. */
static int check_permission(struct daemon *d)
{
        struct mad_port *port = NULL;
        int r;

        r = umad_port_open(fabric_local_port(d->fabric), &port);
        umad_port_close(port);
        return r == -EACCES || r == -EPERM || r == -EOPNOTSUPP ? r : 0;
}

int daemon_run(struct daemon *d)
{
        int r;

        r = open_fabric(d, settings_wanted(d));
        if (r == 0)
                r = check_permission(d);
        if (r < 0 && r != -ENETDOWN) {
                say_no_port(d, r);
                return r;
        }
        journal_event(&d->journal, EVENT_STARTED, NULL, "pkeyd %s started, policy %s", PACKAGE_VERSION,
                      d->options->policy_file);
        daemon_set_status(d, "starting");
        r = sd_event_loop(d->event);
        if (r < 0)
                return r;
        journal_event(&d->journal, EVENT_STOPPED, NULL, "stopped; the fabric stays as it is");
        return 0;
}

void daemon_done(struct daemon *d)
{
        close_fabric(d); /* first: a job of it may use what follows */
        d->pass = pass_free(d->pass);
        d->monitor = monitor_free(d->monitor);
        d->kernel = kernel_free(d->kernel);
        d->metrics = metrics_file_free(d->metrics);
        d->bus = bus_free(d->bus);
        d->opensm_writer = opensm_writer_free(d->opensm_writer);
        watch_free(d->watch);
        picture_free(d->picture);
        generation_free(d->candidate);
        generation_free(d->generation);
        state_close(&d->state);
        sd_event_source_disable_unref(d->due);
        sd_event_source_disable_unref(d->patience);
        sd_event_unref(d->event);
}
