/* SPDX-License-Identifier: GPL-2.0-or-later */
/* simulate --seed N [--trace] [--fail-allocations N [--in-reload]]
 * simulate --first S --seeds N [-j JOBS] [--all] [--writer opensm|direct] */

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim.h"
#include "../unit/fail_alloc.h"

#define MAX_JOBS 64

void sim_fail(struct sim *s, const char *format, ...)
{
        va_list ap;

        if (s->failed)
                return;
        s->failed = true;
        va_start(ap, format);
        (void) vsnprintf(s->failure, sizeof(s->failure), format, ap);
        va_end(ap);
        sim_trace(s, "FAILED: %s", s->failure);
}

void sim_trace(struct sim *s, const char *format, ...)
{
        va_list ap;

        if (!s->trace)
                return;
        printf("%4" PRIu64 ".%06" PRIu64 " ", s->now / USEC_PER_SEC, s->now % USEC_PER_SEC);
        va_start(ap, format);
        (void) vprintf(format, ap);
        va_end(ap);
        putchar('\n');
}

void sim_digest(struct sim *s, const char *text)
{
        for (; *text; text++)
                s->digest = (s->digest ^ (unsigned char) *text) * UINT64_C(0x100000001b3);
}

/* --- one history ----------------------------------------------------------------------------------------------------- */

#define MAX_EVENTS   3000000
#define FULL_SWEEPS  3 /* in peace, before everything must be right */

/* What reaches a process that is paused waits for it. */
static bool waits(struct sim *s, const struct event *e)
{
        const struct sim_answer *a = e->data;
        unsigned number = e->kind == EVENT_ANSWER ? a->process : e->process;
        usec_t until = s->processes[number].paused_until;
        struct event *later;

        if ((e->kind != EVENT_ANSWER && e->kind != EVENT_DELIVER && e->kind != EVENT_MAIL) || s->now >= until)
                return false;
        later = events_add(&s->events, until, e->kind);
        *later = (struct event) {
                .at = later->at, .sequence = later->sequence, .kind = e->kind, .place = e->place, .hops = e->hops,
                .frame = e->frame,
                .process = e->process, .life = e->life, .sent_at = e->sent_at, .answered_at = e->answered_at, .data = e->data,
                .revision = e->revision, .what = e->what, .x = e->x,
        };
        return true;
}

static void happen(struct sim *s, struct event *e)
{
        if (waits(s, e)) {
                free(e);
                return;
        }
        switch (e->kind) {
        case EVENT_ARRIVE:
                wire_arrive(s, e);
                break;
        case EVENT_DELIVER:
                wire_deliver(s, e);
                break;
        case EVENT_ANSWER:
                process_answer(s, e->data);
                break;
        case EVENT_OPENSM:
                opensm_event(s, e);
                break;
        case EVENT_EXTERNAL:
                world_external(s, e);
                break;
        case EVENT_SCENE:
                scenes_event(s, e);
                break;
        case EVENT_CONF:
                opensm_edit(s, e);
                break;
        case EVENT_STORE:
                head_event(s, e);
                break;
        case EVENT_CLOCK:
                clocks_event(s, e);
                break;
        case EVENT_MAIL:
                mailbox_event(s, e);
                break;
        }
        free(e->data);
        free(e);
}

/* The next thing that happens. */
static void step(struct sim *s)
{
        usec_t next = events_next_at(&s->events);
        struct process *first = NULL;

        for (unsigned i = 0; i < SIM_MAX_PROCESSES; i++) {
                usec_t due = process_due(&s->processes[i]);

                if (due < next) {
                        next = due;
                        first = &s->processes[i];
                }
        }
        if (next == USEC_INFINITY || ++s->counters.events > MAX_EVENTS) {
                sim_fail(s, next == USEC_INFINITY ? "nothing happens any more" : "no end");
                return;
        }
        if (!s->quiet && next >= s->quiet_at) {
                world_be_quiet(s);
                return;
        }
        s->now = MAX(s->now, next);
        if (first)
                process_tick(s, first);
        else
                happen(s, events_take(&s->events));
}

static bool is_settled(const struct sim *s)
{
        for (unsigned i = 0; i < s->n_heads; i++)
                if (!s->processes[i].control || s->processes[i].n_quiet < FULL_SWEEPS)
                        return false;
        return true;
}

static void finish(struct sim *s)
{
        struct judgement *j;
        struct basis *b;

        for (unsigned i = 0; i < SIM_MAX_PROCESSES; i++)
                process_kill(s, &s->processes[i]);
        for (unsigned i = 0; i < s->n_heads; i++)
                head_done(&s->heads[i]);
        while ((j = s->judgements)) {
                s->judgements = j->next;
                free(j);
        }
        while ((b = s->bases)) {
                s->bases = b->next;
                free(b);
        }
        for (struct event *e; s->events.n > 0;) {
                e = events_take(&s->events);
                if (e->kind == EVENT_ANSWER)
                        process_drop(e->data);
                free(e->data);
                free(e);
        }
        events_done(&s->events);
        mailbox_done(s);
        s->m_keys = m_keys_free(s->m_keys);
        free(s->neighbors);
}

static bool lives_with[] = { [WRITER_DIRECT] = true, [WRITER_OPENSM] = true }; /* which histories; OpenSM writes in one of five */

/* fail_in_reload: which allocation of the first reload fails; 0: none. False: it is no such history. */
static bool simulate(struct sim *s, uint64_t seed, bool trace, unsigned fail_in_reload)
{
        bool lives;

        *s = (struct sim) {
                .seed = seed, .rng.state = seed, .undo_rng.state = ~seed, .lease_rng.state = ~seed * 3,
                .share_rng.state = ~seed * 5, .mail_rng.state = ~seed * 7, .trace = trace, .digest = UINT64_C(0xcbf29ce484222325),
                .fail_in_reload = fail_in_reload,
        };
        for (unsigned i = 0; i < SIM_MAX_PROCESSES; i++)
                s->processes[i].number = i;
        world_make(s);
        keys_make(s);
        scenes_make(s);
        clocks_make(s);
        head_schedule(s);
        opensm_schedule_edits(s);
        lives = lives_with[s->writer];
        while (lives && !s->failed && s->now < s->end_at && !is_settled(s))
                step(s);
        for (unsigned i = 0; lives && i < s->n_heads && !s->failed; i++) {
                if (s->processes[i].control)
                        promises_converged(s, &s->processes[i]);
                else if (!s->intents[s->heads[i].intent_on_file].is_broken)
                        sim_fail(s, "pkeyd %u does not run", i);
        }
        finish(s);
        return lives;
}

/* --- many ------------------------------------------------------------------------------------------------------------ */

struct totals {
        struct sim_counters sum;
        uint64_t n_seeds;
};

static void add(struct totals *t, const struct sim *s)
{
        const uint64_t *from = (const uint64_t *) &s->counters;
        uint64_t *to = (uint64_t *) &t->sum;

        for (size_t i = 0; i < sizeof(t->sum) / sizeof(*to); i++)
                to[i] += from[i];
        t->n_seeds++;
}

static void print_totals(const struct totals *t)
{
        const struct sim_counters *c = &t->sum;

        printf("%" PRIu64 " seeds: %" PRIu64 " events, %" PRIu64 " MADs, %" PRIu64 " Sets, %" PRIu64 " writes of OpenSM, %" PRIu64
               " pairs checked, %" PRIu64 " sweeps, %" PRIu64 " tables called right, %" PRIu64 " indexes passed on, %" PRIu64
               " ends of processes, %" PRIu64 " reloads, %" PRIu64 " hand-overs; %" PRIu64 " converged, %" PRIu64
               " refused, %" PRIu64 " converged but for ports without their M_Key; %" PRIu64 " changes waited, %" PRIu64
               " confirmed, %" PRIu64 " undone, %" PRIu64 " requests for leases, %" PRIu64 " granted, %" PRIu64 " granted in part, %" PRIu64
               " edited, %" PRIu64 " given index 0, %" PRIu64 " renewed, %" PRIu64 " released, %" PRIu64
               " not granted, %" PRIu64 " requests refused, %" PRIu64 " leases restored, %" PRIu64 " ended by their time, %" PRIu64
               " requests passed on, %" PRIu64 " passed back, %" PRIu64 " without an answer, %" PRIu64 " carried out again, %" PRIu64
               " not stored in time, %" PRIu64 " take-overs",
               t->n_seeds, c->events, c->frames, c->sets, c->opensm_writes, c->pairs_checked, c->sweeps, c->verified,
               c->passed_on_checked, c->kills, c->reloads, c->hand_overs, c->converged, c->refused, c->unconverged,
               c->waited, c->confirmed, c->undone, c->lease_requests, c->leases_granted, c->leases_partial, c->leases_edited,
               c->leases_at_index0, c->leases_renewed, c->leases_released, c->leases_failed, c->leases_refused, c->leases_restored,
               c->leases_expired, c->passed_on, c->passed_back, c->unanswered, c->carried_out_again, c->leases_unstored,
               c->taken_over);
        printf(", %" PRIu64 " lies", c->lies);
        printf(", %" PRIu64 " clocks set, %" PRIu64 " boots of head nodes", c->clocks_set, c->boots);
        printf(", %" PRIu64 " loads failed", c->loads_failed);
        printf(", %" PRIu64 " edits of partitions.conf", c->conf_edits);
        printf(", %" PRIu64 " late answers", c->late);
        printf("\n");
        (void) fflush(stdout);
}

static void print_failure(const struct sim *s)
{
        printf("seed %" PRIu64 " (writer %s): %s\n", s->seed, s->writer == WRITER_OPENSM ? "opensm" : "direct", s->failure);
        (void) fflush(stdout);
}

/* Seeds first, first + step, ..., to the first one that fails, or all; 0, or 1 when one failed. *current is always the one at hand,
 * should it crash, at last the first one that failed. */
static int run_seeds(uint64_t first, uint64_t n, uint64_t step, bool all, struct totals *totals, volatile uint64_t *current)
{
        struct sim *s = malloc(sizeof(*s));
        uint64_t failed = 0;

        if (!s)
                return -ENOMEM;
        for (uint64_t i = 0; i < n && (all || !failed); i += step) {
                *current = first + i;
                if (!simulate(s, first + i, false, 0))
                        continue;
                add(totals, s);
                if (!s->failed)
                        continue;
                print_failure(s);
                failed = failed ?: s->seed;
        }
        free(s);
        if (!failed)
                return 0;
        *current = failed;
        return 1;
}

struct report {
        struct totals totals;
        int r;
};

static int start_job(uint64_t first, uint64_t n, unsigned jobs, bool all, volatile uint64_t *current, pid_t *ret_pid)
{
        struct report report = {};
        int fds[2];

        if (pipe(fds) < 0)
                return -errno;
        (void) fflush(stdout);
        *ret_pid = fork();
        if (*ret_pid < 0)
                return -errno;
        if (*ret_pid > 0) {
                (void) close(fds[1]);
                return fds[0];
        }
        (void) close(fds[0]);
        report.r = run_seeds(first, n, jobs, all, &report.totals, current);
        /* not _exit, so that the sanitizer reports leaks, and gcov writes its counts */
        exit(write(fds[1], &report, sizeof(report)) == (ssize_t) sizeof(report) ? EXIT_SUCCESS : EXIT_FAILURE);
}

static int run_jobs(uint64_t first, uint64_t n, unsigned jobs, bool all)
{
        struct totals totals = {};
        uint64_t failed = UINT64_MAX;
        int fds[MAX_JOBS], status, result = EXIT_SUCCESS;
        pid_t pids[MAX_JOBS];
        volatile uint64_t *current = mmap(NULL, MAX_JOBS * sizeof(*current), PROT_READ | PROT_WRITE,
                                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        if (current == MAP_FAILED)
                return EXIT_FAILURE;
        for (unsigned j = 0; j < jobs; j++) {
                fds[j] = start_job(first + j, n > j ? n - j : 0, jobs, all, &current[j], &pids[j]);
                if (fds[j] < 0)
                        return EXIT_FAILURE;
        }
        for (unsigned j = 0; j < jobs; j++) {
                struct report report = { .r = -EIO };
                const uint64_t *from = (const uint64_t *) &report.totals;
                uint64_t *to = (uint64_t *) &totals;

                if (read(fds[j], &report, sizeof(report)) != (ssize_t) sizeof(report))
                        report.r = -EIO; /* it crashed and printed the reason */
                (void) close(fds[j]);
                if (waitpid(pids[j], &status, 0) < 0 || status != 0)
                        report.r = -EIO; /* or leaked */
                for (size_t i = 0; i < sizeof(totals) / sizeof(*to); i++)
                        to[i] += from[i];
                if (report.r == 0)
                        continue;
                result = EXIT_FAILURE;
                failed = MIN(failed, current[j]);
        }
        print_totals(&totals);
        if (result != EXIT_SUCCESS)
                printf("failed: seed %" PRIu64 "\n", failed);
        return result;
}

static int run_one(uint64_t seed, bool trace)
{
        struct totals totals = {};
        struct sim *s = malloc(sizeof(*s));
        int r;

        if (!s)
                return EXIT_FAILURE;
        if (trace)
                (void) setvbuf(stdout, NULL, _IOLBF, 0); /* a crash loses no line */
        (void) simulate(s, seed, trace, 0);
        add(&totals, s);
        print_totals(&totals);
        printf("history %016" PRIx64 "\n", s->digest);
        if (s->failed) {
                print_failure(s);
                printf("failed: seed %" PRIu64 "\n", seed);
        }
        r = s->failed ? EXIT_FAILURE : EXIT_SUCCESS;
        free(s);
        return r;
}

/* The history again and again, each time with another allocation of pkeyd's failing: the first n of all, or of a reload. */
static int run_without_memory(uint64_t seed, unsigned n, bool in_reload)
{
        struct sim *s = malloc(sizeof(*s));
        int r = EXIT_SUCCESS;

        if (!s)
                return EXIT_FAILURE;
        for (unsigned i = 1; i <= n; i++) {
                fail_alloc_at(in_reload ? 0 : i);
                (void) simulate(s, seed, false, in_reload ? i : 0);
                if (!fail_alloc_happened())
                        sim_fail(s, "there are no %u allocations", i);
                if (!s->failed)
                        continue;
                printf("allocation %u: ", i);
                print_failure(s);
                r = EXIT_FAILURE;
        }
        free(s);
        return r;
}

int main(int argc, char **argv)
{
        static const struct option options[] = {
                { "seed", required_argument, NULL, 's' },  { "trace", no_argument, NULL, 't' },
                { "first", required_argument, NULL, 'f' }, { "seeds", required_argument, NULL, 'n' },
                { "jobs", required_argument, NULL, 'j' },  { "all", no_argument, NULL, 'a' },
                { "fail-allocations", required_argument, NULL, 'm' }, { "in-reload", no_argument, NULL, 'r' },
                { "writer", required_argument, NULL, 'w' }, { NULL, 0, NULL, 0 },
        };
        uint64_t seed = 0, first = 1, n = 1500;
        unsigned jobs = 1, n_failing = 0;
        bool one = false, trace = false, all = false, in_reload = false;
        int c;

        while ((c = getopt_long(argc, argv, "j:", options, NULL)) != -1)
                switch (c) {
                case 's':
                        seed = strtoull(optarg, NULL, 0);
                        one = true;
                        break;
                case 't':
                        trace = true;
                        break;
                case 'f':
                        first = strtoull(optarg, NULL, 0);
                        break;
                case 'n':
                        n = strtoull(optarg, NULL, 0);
                        break;
                case 'j':
                        jobs = (unsigned) strtoul(optarg, NULL, 0);
                        break;
                case 'a':
                        all = true;
                        break;
                case 'm':
                        n_failing = (unsigned) strtoul(optarg, NULL, 0);
                        break;
                case 'r':
                        in_reload = true;
                        break;
                case 'w':
                        lives_with[strcmp(optarg, "opensm") == 0 ? WRITER_DIRECT : WRITER_OPENSM] = false;
                        break;
                default:
                        fprintf(stderr, "usage: simulate --seed N [--trace] [--fail-allocations N [--in-reload]]\n"
                                        "       simulate --first S --seeds N [-j JOBS] [--all] [--writer opensm|direct]\n");
                        return EXIT_FAILURE;
                }
        if (jobs < 1 || jobs > MAX_JOBS)
                jobs = 1;
        if (n_failing > 0)
                return run_without_memory(seed, n_failing, in_reload);
        return one ? run_one(seed, trace) : run_jobs(first, n, jobs, all);
}
