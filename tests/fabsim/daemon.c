/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The daemon without its shell: the same stages in the same order as src/pkeyd/pass.c and daemon.c run them, over the same
 * core, but one after the other instead of by callbacks. pkeyd's pictures (src/pkeyd/picture.c) are the daemon's own.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "desired/assume.h"
#include "discover.h"
#include "sim.h"
#include "subnet/survey.h"
#include "watch/backoff.h"

#define DISCOVERY_TAKES (20 * USEC_PER_MSEC)
#define SOON            (5 * USEC_PER_SEC)
#define MAX_EVENTS      3000000

/* --- generations ----------------------------------------------------------------------------------------------------- */

static struct sim_generation *generation_free(struct sim_generation *g)
{
        if (g)
                arena_free(g->arena);
        free(g);
        return NULL;
}

static struct sim_generation *generation_load(struct sim *s, const struct intent *intent)
{
        struct sim_generation *g = calloc(1, sizeof(*g));
        struct findings findings;
        char text[16384];
        int r;

        g->arena = arena_new();
        g->intent = intent;
        plan_options_from_settings(&intent->settings, &g->options);
        intent_print(s, intent, text, sizeof(text));
        sim_trace(s, "policy:\n%s", text);
        findings_init(&findings, g->arena);
        r = policy_parse(g->arena, "partitions.yaml", text, strlen(text), &findings, &g->policy);
        if (r == 0 && intent->is_broken)
                sim_fail(s, "a broken policy was taken");
        else if (r < 0 && !intent->is_broken)
                sim_fail(s, "a policy was refused: %s", findings.n ? findings.items[0].text : "no reason");
        findings_done(&findings);
        return r == 0 ? g : generation_free(g);
}

static struct index_memory *copy_memory(const struct index_memory *from)
{
        struct index_memory *m = index_memory_new();
        const struct freed_index *all;
        size_t n;

        all = index_memory_all(from, &n);
        for (size_t i = 0; i < n; i++)
                (void) index_memory_restore(m, &all[i]);
        return m;
}

void daemon_hup(struct sim *s)
{
        struct sim_daemon *d = &s->daemon;
        struct sim_generation *g;

        if (!d->engine)
                return; /* it is not running */
        g = generation_load(s, &s->intents[s->intent_on_file]);
        if (!g)
                return;
        if ((d->candidate ? d->candidate : d->generation) &&
            (d->candidate ? d->candidate : d->generation)->intent == g->intent) {
                d->sweep_at = 0;
                (void) generation_free(g);
                return;
        }
        (void) generation_free(d->candidate);
        d->candidate = g;
        d->reload_due = d->sweep_soon = true;
        if (d->applying) {
                d->ended = true;
                apply_abort(d->applying);
        }
}

/* --- life ------------------------------------------------------------------------------------------------------------ */

void daemon_start(struct sim *s)
{
        struct sim_daemon *d = &s->daemon;
        static const unsigned windows[] = { 1, 4, 16, 128 };
        static const uint8_t retries[] = { 0, 1, 4, STAGE_RETRIES }; /* the fewer, the more remains unconfirmed */
        struct mad_engine_config config = {
                .window = windows[prng_below(&s->rng, 4)],
                .timeout = 500 * USEC_PER_MSEC,
                .first_tid = (uint32_t) prng_next(&s->rng),
        };

        if (!d->disk)
                d->disk = index_memory_new();
        d->memory = copy_memory(d->disk);
        d->watch = watch_new();
        if (mad_engine_new(&config, &d->engine) < 0)
                abort();
        wire_forget(s);
        d->retries = retries[prng_below(&s->rng, 4)];
        d->sweep_at = s->now;
        d->retry_at = USEC_INFINITY;
        d->retry_delay = 0;
        if (d->disk_intent)
                d->generation = generation_load(s, d->disk_intent);
        if (d->generation)
                d->generation->number = ++d->last_number;
        d->candidate = generation_load(s, &s->intents[s->intent_on_file]);
        sim_trace(s, "pkeyd starts, window %u", config.window);
}

void daemon_stop(struct sim *s)
{
        struct sim_daemon *d = &s->daemon;
        struct index_memory *disk = d->disk;

        d->engine = mad_engine_free(d->engine);
        d->picture = picture_free(d->picture);
        d->generation = generation_free(d->generation);
        d->candidate = generation_free(d->candidate);
        d->memory = index_memory_free(d->memory);
        d->watch = watch_free(d->watch);
        d->applying = NULL;
        d->reload_due = d->sweep_soon = d->killed = d->ended = false;
        d->watched = 0;
        if (s->failed || s->now >= s->end_at || d->n_full >= 3)
                d->disk = index_memory_free(disk);
}

/* --- the dispatcher -------------------------------------------------------------------------------------------------------- */

static bool give_results(struct sim *s, const struct mad_stage *stage)
{
        struct mad_result result;
        bool any = false;

        while (mad_engine_next_result(s->daemon.engine, &result)) {
                stage->result(stage->state, s->now, &result);
                any = true;
        }
        return any;
}

static void take_and_send(struct sim *s, const struct mad_stage *stage)
{
        struct mad_engine *e = s->daemon.engine;
        struct mad_request request;
        struct mad_frame frame;

        for (unsigned n = mad_engine_wants(e); n > 0 && stage->next(stage->state, s->now, &request); n--)
                (void) mad_engine_submit(e, &request);
        while (!s->daemon.killed && mad_engine_next_send(e, s->now, &frame)) {
                if (!s->quiet && prng_permille(&s->rng, 1))
                        mad_engine_send_failed(e, s->now, &frame, ENOBUFS);
                else
                        wire_send(s, &frame);
        }
}

/* As mad_engine/dispatcher.c does it. 0, -EINTR: pkeyd was killed, -ECANCELED: a promise is broken. */
static int run_stage(struct sim *s, const struct mad_stage *stage)
{
        for (;;) {
                (void) give_results(s, stage);
                do
                        take_and_send(s, stage);
                while (give_results(s, stage));
                if (s->counters.events > MAX_EVENTS)
                        sim_fail(s, "no end");
                if (s->failed || s->daemon.killed)
                        return s->failed ? -ECANCELED : -EINTR;
                if (mad_engine_is_idle(s->daemon.engine)) {
                        if (!stage->done(stage->state))
                                sim_fail(s, "a stage waits for nothing");
                        return s->failed ? -ECANCELED : 0;
                }
                if (!sim_step(s, USEC_INFINITY))
                        sim_fail(s, "the engine waits for nothing");
        }
}

/* --- passes ---------------------------------------------------------------------------------------------------------- */

struct pass {
        struct sim *s;
        struct sim_daemon *d;
        struct arena *arena;
        struct sim_generation *generation;
        bool surveyed;
};

static enum sim_result result_of(int r)
{
        return r == -EINTR ? SIM_KILLED : SIM_ERROR;
}

static bool any_unknown(const struct observed *o)
{
        for (uint32_t i = 0; i < o->subnet->n_ports; i++)
                if (o->tables[i].entries && o->tables[i].source == TABLE_UNKNOWN)
                        return true;
        return false;
}

static void assume_in_force(struct pass *p, struct picture *picture)
{
        struct memberships *memberships;
        struct findings ignored;
        struct desired *desired;

        if (!p->d->generation || !any_unknown(picture->observed))
                return;
        findings_init(&ignored, p->arena);
        if (policy_resolve(p->arena, p->d->generation->policy, picture->subnet, &ignored, &memberships) == 0 &&
            desired_compute(p->arena, memberships, &desired) == 0)
                (void) desired_assume_unread(picture->observed, desired);
        findings_done(&ignored);
}

static int survey_all(struct pass *p)
{
        struct sim *s = p->s;
        struct sim_daemon *d = p->d;
        struct survey_options options = { .m_keys = s->m_keys, .retries = d->retries };
        struct picture *picture = picture_new();
        usec_t began = s->now;
        struct mad_stage stage;
        struct survey *survey;
        int r;

        while (sim_step(s, began + DISCOVERY_TAKES))
                continue;
        began = s->now;
        r = sim_discover(s, picture->arena, &picture->subnet);
        if (r == 0)
                r = picture_prepare(picture);
        if (r == 0)
                r = survey_new(p->arena, picture->observed, &options, &survey);
        if (r < 0)
                abort();
        stage = survey_stage(survey);
        r = run_stage(s, &stage);
        if (r < 0) {
                (void) picture_free(picture);
                return r;
        }
        promises_read(s, picture->observed, began, true);
        if (d->picture) {
                observed_assume_from(picture->observed, d->picture->observed);
                (void) index_memory_learn(d->memory, d->picture->observed, picture->observed);
        }
        assume_in_force(p, picture);
        (void) picture_free(d->picture);
        d->picture = picture;
        return 0;
}

static int survey_failed(struct pass *p)
{
        struct survey_options options = { .m_keys = p->s->m_keys, .retries = p->d->retries };
        usec_t began = p->s->now;
        struct observed *seen;
        struct mad_stage stage;
        struct survey *survey;
        uint32_t *ports;
        int r;

        if (picture_failed_ports(p->d->picture, p->arena, &ports, &options.n_ports) < 0)
                abort();
        options.ports = ports;
        if (observed_new(p->arena, p->d->picture->subnet, &seen) < 0 || survey_new(p->arena, seen, &options, &survey) < 0)
                abort();
        stage = survey_stage(survey);
        r = run_stage(p->s, &stage);
        if (r < 0)
                return r;
        promises_read(p->s, seen, began, false);
        picture_merge(p->d->picture, seen);
        return 0;
}

static void look(struct pass *p, bool judge)
{
        struct sim_daemon *d = p->d;
        struct verification *v = NULL;
        struct watch_report report;
        bool same = p->generation && d->watched == p->generation->number;

        if (judge && verify_compare(p->arena, d->decision.desired, d->picture->observed, &p->generation->options, &v) < 0)
                abort();
        if (watch_look(d->watch, p->arena, d->picture->observed, v, same, &report) < 0)
                abort();
        if (v && report.n_right + v->n_differ + v->n_unreachable != v->n_ports)
                sim_fail(p->s, "%u right, %u differ, %u unreachable are not %u", report.n_right, v->n_differ,
                         v->n_unreachable, v->n_ports);
        if (judge) {
                d->watched = p->generation->number;
                promises_verified(p->s, v);
        }
}

static void mark_failed_ports(struct pass *p)
{
        const struct plan *plan = p->d->decision.plan;

        for (int phase = 0; phase < PLAN_N_PHASES; phase++)
                for (uint32_t i = 0; i < plan->steps[phase].n_writes; i++)
                        if (apply_outcome(p->d->applying, phase, i)->state == APPLY_FAILED)
                                p->d->picture->failed[plan->steps[phase].writes[i].port] = true;
}

/* From the second sweep on that began without faults nothing but a wrong key is in the way. */
static void check_failures(struct pass *p)
{
        const struct plan *plan = p->d->decision.plan;

        for (int phase = 0; phase < PLAN_N_PHASES; phase++)
                for (uint32_t i = 0; i < plan->steps[phase].n_writes; i++) {
                        const struct apply_outcome *o = apply_outcome(p->d->applying, phase, i);

                        if (o->state == APPLY_FAILED && p->d->n_quiet > 1)
                                keys_check_failure(p->s, promises_place_of(p->s, plan->subnet, plan->steps[phase].writes[i].port),
                                                   o);
                }
}

static void note_held(struct sim_daemon *d)
{
        const uint16_t *bases = apply_held_bases(d->applying, &d->n_held);

        memset(d->held, 0, sizeof(d->held));
        for (uint32_t i = 0; i < d->n_held; i++)
                d->held[bases[i]] = true;
}

static void save_memory(struct sim *s)
{
        (void) index_memory_free(s->daemon.disk);
        s->daemon.disk = copy_memory(s->daemon.memory);
        promises_saved(s);
}

static enum sim_result carry_out(struct pass *p)
{
        struct sim_daemon *d = p->d;
        struct apply_options options = { .m_keys = p->s->m_keys, .retries = d->retries };
        struct apply_summary summary;
        struct mad_stage stage;
        int r;

        promises_begin(p->s);
        d->ended = false;
        if (apply_new(p->arena, d->decision.plan, d->picture->observed, d->memory, &options, &d->applying) < 0)
                abort();
        stage = apply_stage(d->applying);
        sim_trace(p->s, "apply: %u block writes, %u enforcement writes", d->decision.plan->n_block_writes,
                  d->decision.plan->n_enforcement_writes);
        r = run_stage(p->s, &stage);
        if (r == -EINTR)
                return SIM_KILLED; /* what is in flight may still arrive: the transition goes on until it starts again */
        apply_get_summary(d->applying, &summary);
        sim_trace(p->s, "applied: %u written, %u failed, %u held, %u bases held", summary.written, summary.failed,
                  summary.held, summary.n_held_bases);
        mark_failed_ports(p);
        check_failures(p);
        note_held(d);
        d->applying = NULL;
        promises_end(p->s, r == 0 && summary.failed == 0 && summary.held == 0 && !d->ended);
        if (r < 0)
                return SIM_ERROR;
        save_memory(p->s);
        return d->ended ? SIM_ENDED : SIM_DONE;
}

/* The generation to go by, as pkeyd's decide() finds it; NULL: none, *ret says what the pass comes to. */
static int decide(struct pass *p)
{
        struct sim_daemon *d = p->d;
        struct findings findings;
        bool is_candidate;
        int r;

        do {
                is_candidate = d->candidate;
                p->generation = is_candidate ? d->candidate : d->generation;
                if (!p->generation)
                        return -ENOENT;
                findings_init(&findings, p->arena);
                r = reconcile(p->arena, p->generation->policy, d->picture->observed, d->memory, &p->generation->options,
                              &findings, &d->decision);
                sim_trace(p->s, "generation %u: %s", p->generation->number,
                          r == 0          ? "planned" :
                          findings.n > 0 ? findings.items[0].text :
                                           "refused");
                findings_done(&findings);
                if (r == 0 && is_candidate) {
                        p->generation->number = ++d->last_number;
                        (void) generation_free(d->generation);
                        d->generation = STEAL(d->candidate);
                        d->reload_due = false;
                        if (d->generation->intent->settings.mode == MODE_ENFORCE)
                                d->disk_intent = d->generation->intent;
                } else if (r < 0 && is_candidate && d->generation) {
                        d->candidate = generation_free(d->candidate);
                        d->reload_due = false;
                        continue;
                }
                return r;
        } while (true);
}

static enum sim_result reconcile_step(struct pass *p)
{
        struct sim_daemon *d = p->d;
        enum sim_result result;
        unsigned before = d->watched;
        int r;

        picture_reset_failed(d->picture);
        memset(d->held, 0, sizeof(d->held));
        d->n_held = 0;
        r = decide(p);
        if (r < 0)
                return SIM_REFUSED;
        if (p->surveyed)
                look(p, before == p->generation->number);
        if (p->generation->intent->settings.mode == MODE_ENFORCE && !plan_is_empty(d->decision.plan)) {
                result = carry_out(p);
                if (result != SIM_DONE)
                        return result;
        }
        look(p, true);
        return picture_n_failed(d->picture) > 0 ? SIM_PARTIAL : SIM_DONE;
}

static enum sim_result run_pass(struct sim *s, enum sim_pass kind)
{
        struct pass p = { .s = s, .d = &s->daemon, .arena = arena_new() };
        struct mad_engine_counters counters;
        enum sim_result result;
        int r = 0;

        if (kind == SIM_FULL)
                r = survey_all(&p);
        else if (kind == SIM_RETRY)
                r = survey_failed(&p);
        p.surveyed = kind != SIM_KNOWN;
        result = r < 0 ? result_of(r) : reconcile_step(&p);
        mad_engine_get_counters(s->daemon.engine, &counters);
        if (counters.slots > 1024 || arena_size(p.arena) > (8u << 20))
                sim_fail(s, "memory grows: %zu slots, %zu bytes", counters.slots, arena_size(p.arena));
        memset(&s->daemon.decision, 0, sizeof(s->daemon.decision));
        arena_free(p.arena);
        return result;
}

/* --- what is due ----------------------------------------------------------------------------------------------------- */

static void come_back(struct sim *s)
{
        usec_t until = s->now + USEC_PER_SEC + prng_below(&s->rng, 5000000);

        sim_trace(s, "pkeyd was killed");
        daemon_stop(s);
        while (!s->failed && sim_step(s, until))
                continue;
        promises_end(s, false);
        promises_lost(s);
        daemon_start(s);
}

static void pass_ended(struct sim *s, enum sim_result result)
{
        struct sim_daemon *d = &s->daemon;

        d->last_result = result;
        d->retry_at = USEC_INFINITY;
        if (result == SIM_PARTIAL) {
                d->retry_delay = backoff_next(d->retry_delay, 60 * USEC_PER_SEC);
                d->retry_at = s->now + d->retry_delay;
        }
        if (result == SIM_DONE)
                d->retry_delay = 0;
        if (result == SIM_ENDED)
                d->reload_due = true;
        if (d->sweep_soon && result != SIM_ENDED) {
                d->sweep_at = MIN(d->sweep_at, s->now + SOON);
                d->sweep_soon = false;
        }
}

void daemon_step(struct sim *s)
{
        struct sim_daemon *d = &s->daemon;
        enum sim_pass kind;
        bool was_quiet;

        while (!d->reload_due && s->now < MIN(d->sweep_at, d->retry_at) && !s->failed)
                (void) sim_step(s, MIN(d->sweep_at, d->retry_at));
        if (s->failed)
                return;
        kind = !d->picture ? SIM_FULL : d->reload_due ? SIM_KNOWN : s->now >= d->sweep_at ? SIM_FULL : SIM_RETRY;
        d->reload_due = false;
        if (kind == SIM_FULL)
                d->sweep_at = s->now + 60 * USEC_PER_SEC;
        was_quiet = s->quiet;
        d->n_quiet += was_quiet && kind == SIM_FULL;
        sim_trace(s, "pass: %s", kind == SIM_FULL ? "full" : kind == SIM_KNOWN ? "known" : "retry");
        pass_ended(s, run_pass(s, kind));
        sim_trace(s, "pass ended: %d", (int) d->last_result);
        if (d->last_result == SIM_KILLED && !s->failed)
                come_back(s);
        else if (was_quiet && kind == SIM_FULL && (d->last_result == SIM_DONE || d->last_result == SIM_REFUSED ||
                                                     (d->last_result == SIM_PARTIAL && s->n_wrong_keys > 0)))
                d->n_full++;
}
