/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "control/reload.h"

#include <assert.h>
#include <string.h>

#include "control/confirm.h"
#include "control/store_sync.h"
#include "events/event_text.h"
#include "util/text.h"

#define MAX_FINDINGS 256 /* for each answer */

/* --- findings for the answers ------------------------------------------------------------------------------------- */

static void copy_findings(const struct findings *from, struct findings *to)
{
        if (!to->arena)
                to->arena = arena_new();
        for (size_t i = 0; to->arena && i < from->n && to->n < MAX_FINDINGS; i++)
                findings_append(to, &from->items[i]);
}

static void forget_findings(struct findings *f)
{
        struct arena *arena = f->arena;

        findings_done(f);
        arena_free(arena);
        *f = (struct findings) {};
}

void reload_done(struct control *c)
{
        forget_findings(&c->reloads.findings);
        forget_findings(&c->answer.findings);
}

void reload_note_findings(struct control *c, const struct findings *findings)
{
        if (c->reloads.n_pending > 0)
                copy_findings(findings, &c->reloads.findings);
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

/* Answers the first n of c->answer.requests. No event causes two such answers. */
static void answer(struct control *c, enum reload_outcome outcome, const struct findings *findings, size_t n)
{
        forget_findings(&c->answer.findings);
        copy_findings(findings, &c->answer.findings);
        control_answer(c, &c->answer, outcome, c->text, n);
}

/* Answers the request that brought this candidate, if there is one. */
static void answer_one(struct control *c, const struct control_candidate *loaded, enum reload_outcome outcome)
{
        c->answer.requests[0] = loaded->request;
        answer(c, outcome, loaded->findings, loaded->request ? 1 : 0);
}

/* Has the sweep that ends now carried out this request? */
static bool is_carried_out(const struct control *c, const struct reload_request *q)
{
        if (q->unchanged)
                return c->sweep.kind == SWEEP_FULL && q->serial < c->sweep.first_serial;
        return q->serial < c->sweep.decided_serial;
}

static size_t take_requests(struct control *c, bool all)
{
        struct reloads *r = &c->reloads;
        size_t n = 0, kept = 0;

        for (size_t i = 0; i < r->n_pending; i++) {
                if (!all && !is_carried_out(c, &r->pending[i]))
                        r->pending[kept++] = r->pending[i];
                else if (r->pending[i].id)
                        c->answer.requests[n++] = r->pending[i].id;
        }
        r->n_pending = kept;
        return n;
}

static void end_requests(struct control *c, enum reload_outcome outcome, const struct findings *findings, bool all)
{
        size_t before = c->reloads.n_pending, n = take_requests(c, all);

        if (c->reloads.n_pending < before)
                answer(c, outcome, findings ? findings : &c->reloads.findings, n);
}

static enum reload_outcome outcome_of(const struct control *c, enum sweep_result result)
{
        if (c->candidate || result == SWEEP_WAITS || result == SWEEP_FAILED)
                return RELOAD_WAITS;
        /* a port behind a silent link was not compared, like one that could not be read */
        if (result == SWEEP_PARTIAL || c->status.n_frozen > 0 || c->status.ports.silent > 0)
                return RELOAD_PARTIAL;
        return RELOAD_CARRIED_OUT;
}

/* The bases that are held now. */
static void note_held(const struct control *c, struct generation_facts *f)
{
        size_t n = 0;
        const struct held *const *items = c->status.held ? held_list_items(c->status.held, &n) : NULL;

        f->n_held = (uint32_t) n;
        for (size_t i = 0; i < MIN(n, (size_t) GENERATION_MAX_HELD); i++)
                f->held[i] = items[i]->base;
}

bool reload_set_outcome(const struct control *c, struct generation *g, enum reload_outcome outcome)
{
        const struct generation_facts before = g->facts;
        const char *word = reload_outcome_to_string(outcome);

        note_held(c, &g->facts);
        (void) snprintf(g->facts.outcome, sizeof(g->facts.outcome), "%s", word);
        if (strcmp(before.outcome, word) == 0 && before.n_held == g->facts.n_held &&
            memcmp(before.held, g->facts.held, sizeof(before.held)) == 0)
                return false;
        g->facts.ended = c->wall / USEC_PER_SEC;
        return true;
}

void reload_note_outcome(struct control *c, enum sweep_result result)
{
        struct generation *g = c->in_force;
        bool is_whole = result == SWEEP_DONE || result == SWEEP_PARTIAL;

        if (!control_serves(c) || !g || c->candidate || !control_writes(c, g) || !is_whole ||
            strcmp(g->facts.outcome, reload_outcome_to_string(RELOAD_CARRIED_OUT)) == 0)
                return;
        if (reload_set_outcome(c, g, outcome_of(c, result)))
                control_facts_changed(c);
}

void reload_sweep_ended(struct control *c, enum sweep_result result)
{
        enum reload_outcome outcome = outcome_of(c, result);
        bool all_unchanged = true;

        /* requests do not wait until pkeyd can reach the fabric */
        if (outcome == RELOAD_WAITS) {
                end_requests(c, outcome, NULL, true);
                return;
        }
        for (size_t i = 0; i < c->reloads.n_pending; i++)
                all_unchanged &= c->reloads.pending[i].unchanged;
        end_requests(c, outcome == RELOAD_CARRIED_OUT && all_unchanged ? RELOAD_UNCHANGED : outcome, NULL, false);
}

/* --- refused ------------------------------------------------------------------------------------------------------ */

/* Logs all findings, and last what stays in force. */
static void report_refused(struct control *c, const struct findings *findings, bool is_undo)
{
        struct log_about about = { .generation = c->in_force ? c->in_force->number : 0 };
        char in_force[64] = "no policy is in force";
        size_t n = findings->n_errors;

        if (c->in_force)
                (void) snprintf(in_force, sizeof(in_force), "generation %" PRIu64 " stays in force", about.generation);
        event_text_findings(c->log, findings);
        if (findings->out_of_memory)
                control_set_status(c, "out of memory; %s", in_force);
        else
                control_set_status(c, "%zu error%s; %s", n, text_plural(n), in_force);
        log_add(c->log, LOG_EVENT_RELOAD_REFUSED, &about, "%s", c->text);
        if (!is_undo) /* an undo is not about the present files */
                c->status.n_file_errors = MAX(n, (size_t) 1);
}

void reload_refuse(struct control *c, const struct findings *findings)
{
        bool is_undo = c->candidate && c->candidate->facts.undoes > 0;

        report_refused(c, findings, is_undo);
        if (is_undo)
                confirm_undo_failed(c);
        c->candidate = generation_unref(c->candidate);
        schedule_no_candidate(&c->schedule);
        end_requests(c, RELOAD_REFUSED, findings, true);
}

void reload_withdraw(struct control *c, const char *why)
{
        _cleanup_arena_ struct arena *a = arena_new();
        _cleanup_findings_ struct findings findings = { .arena = a };

        (void) findings_error(&findings, FINDING_RELOAD_WITHDRAWN, NULL, "%s", why);
        reload_refuse(c, &findings);
}

void reload_refuse_all(struct control *c, const struct findings *findings)
{
        end_requests(c, RELOAD_REFUSED, findings, true);
}

/* --- accepted ----------------------------------------------------------------------------------------------------- */

/* For the caller of the reload; the journal has it. */
static void note_no_wait(struct control *c, const char *why)
{
        _cleanup_arena_ struct arena *a = arena_new();
        _cleanup_findings_ struct findings findings = { .arena = a };

        (void) findings_add(&findings, FINDING_WARNING, FINDING_CONFIRM_NOT, NULL,
                            "generation %" PRIu64 " is in force without confirmation: %s", c->in_force->number, why);
        reload_note_findings(c, &findings);
}

void reload_accept(struct control *c)
{
        struct generation *g = c->candidate;
        const char *why;

        if (g->number == 0)
                g->number = ++c->last_number;
        verbs_check_forget(c->verbs);
        generation_unref(c->in_force);
        c->in_force = STEAL(c->candidate);
        schedule_no_candidate(&c->schedule);
        c->status.n_file_errors = 0;
        c->unannounced = true;
        why = confirm_accepted(c);
        if (why)
                note_no_wait(c, why);
        if (!g->audits && control_serves(c))
                sync_will_store(c, g);
}

/* Why this host only compares tables with the generation; NULL: it writes them, so that it is in force. */
static const char *describe_comparing(const struct control *c, const struct generation *g)
{
        if (g->audits)
                return ": pkeyd compares the tables with it, and writes nothing";
        if (!control_may_write(c, g))
                return ": this host stands by, and only compares the tables with it";
        return NULL;
}

void reload_announce(struct control *c)
{
        const struct generation *g = c->in_force;
        const char *compares;

        if (!c->unannounced)
                return;
        c->unannounced = false;
        compares = describe_comparing(c, g);
        log_add(c->log, LOG_EVENT_GENERATION, &(struct log_about) { .generation = g->number },
                "generation %" PRIu64 "%s: %u partition%s, mode %s%s%s", g->number, compares ? "" : " is in force",
                g->policy->n_partitions, text_plural(g->policy->n_partitions), g->audits ? "audit" : "enforce",
                g->settings->role == ROLE_FOLLOW_SM ? ", role follow-sm" : "", compares ?: "");
}

/* --- loaded ------------------------------------------------------------------------------------------------------- */

/* Of requests that get no answer only the last one is kept. False: there are too many. */
static bool add_request(struct control *c, uint64_t id, bool unchanged)
{
        struct reloads *r = &c->reloads;

        assert(r->n_pending <= MAX_REQUESTS);
        for (size_t i = 0; id == 0 && i < r->n_pending; i++)
                if (r->pending[i].id == 0)
                        r->pending[i] = r->pending[--r->n_pending];
        if (r->n_pending == MAX_REQUESTS)
                return false;
        r->pending[r->n_pending++] = (struct reload_request) { .id = id, .unchanged = unchanged, .serial = ++r->last_serial };
        return true;
}

/* A reload that is pending continues. */
static void refuse_files(struct control *c, const struct control_candidate *loaded)
{
        report_refused(c, loaded->findings, loaded->is_undo);
        answer_one(c, loaded, RELOAD_REFUSED);
}

static void take_unchanged(struct control *c, const struct generation *wanted)
{
        log_add(c->log, LOG_EVENT_RELOAD_UNCHANGED, &(struct log_about) { .generation = wanted->number },
                "both files are unchanged; sweeping the whole fabric");
        c->status.n_file_errors = 0;
        if (!c->candidate)
                c->in_force->is_off_file = false;
        schedule_full_sweep(&c->schedule);
}

/* False: other files are not accepted now. They were refused, with the findings about them and the reason. */
static bool admit(struct control *c, const struct control_candidate *loaded)
{
        _cleanup_arena_ struct arena *a = arena_new();
        _cleanup_findings_ struct findings findings = { .arena = a };
        struct control_candidate refused = *loaded;

        findings_append_all(&findings, loaded->findings);
        if (confirm_admits(c, loaded->generation, &findings))
                return true;
        refused.findings = &findings;
        refuse_files(c, &refused);
        return false;
}

void reload_admit_again(struct control *c)
{
        _cleanup_arena_ struct arena *a = arena_new();
        _cleanup_findings_ struct findings findings = { .arena = a };

        if (!c->in_force || !c->candidate || confirm_admits(c, c->candidate, &findings))
                return;
        reload_refuse(c, &findings);
        c->in_force->is_off_file = true;
}

void reload_candidate(struct control *c, const struct control_candidate *loaded)
{
        struct generation *g = loaded->generation, *wanted = control_wanted(c);
        bool same;

        if (!g) {
                refuse_files(c, loaded);
                if (loaded->is_undo)
                        confirm_undo_failed(c);
                return;
        }
        same = !loaded->is_undo && generation_equal(g, wanted);
        if (!same && !admit(c, loaded)) {
                generation_unref(g);
                return;
        }
        if (c->reloads.n_pending == 0)
                forget_findings(&c->reloads.findings);
        if (!add_request(c, loaded->request, same && !c->candidate)) {
                control_set_status(c, "too many callers already wait for a reload");
                answer_one(c, loaded, RELOAD_WAITS);
        }
        event_text_findings(c->log, loaded->findings);
        reload_note_findings(c, loaded->findings);
        if (same) {
                take_unchanged(c, wanted);
                generation_unref(g);
                return;
        }
        c->passed_over = c->passed_over || c->candidate;
        if (!loaded->is_undo) /* it takes the place of an undo that is not in force yet */
                c->confirm.undoing = false;
        generation_unref(c->candidate);
        c->candidate = g;
        schedule_reload(&c->schedule);
}
