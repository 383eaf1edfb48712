/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "control/confirm.h"

#include <errno.h>
#include <string.h>

#include "events/event_text.h"

#define WARN_BEFORE (60 * USEC_PER_SEC)
#define RETRY_UNDO  (60 * USEC_PER_SEC)

bool confirm_waits(const struct control *c)
{
        return c->in_force && generation_waits(&c->in_force->facts);
}

static struct log_about about(const struct control *c)
{
        return (struct log_about) { .generation = c->in_force->number };
}

/* --- the time ------------------------------------------------------------------------------------------------------ */

static void set_time(struct control *c, usec_t left)
{
        c->confirm.due = c->now + left;
        c->confirm.warn_at = left > WARN_BEFORE ? c->confirm.due - WARN_BEFORE : USEC_INFINITY;
}

static void stop_time(struct control *c)
{
        c->confirm.due = c->confirm.warn_at = USEC_INFINITY;
        c->confirm.undoing = false;
}

void confirm_begin(struct control *c)
{
        const struct generation_facts *f = c->in_force ? &c->in_force->facts : NULL;
        uint64_t wall = c->wall / USEC_PER_SEC;

        stop_time(c);
        if (!control_serves(c) || !confirm_waits(c))
                return;
        /* a clock that was set back does not make the time longer */
        set_time(c, MIN(f->confirm_until > wall ? f->confirm_until - wall : 0, f->confirm_for) * USEC_PER_SEC);
}

/* Why a change could not be undone; NULL: it could. */
static const char *describe_no_undo(const struct control *c, const struct generation *g)
{
        if (g->audits)
                return "there is nothing to undo, because pkeyd is in audit mode and writes no table";
        if (!control_may_write(c, g))
                return "this host is the standby and writes no table: undo it on the other head node";
        return NULL;
}

/* Returns why it does not wait, or NULL. */
static const char *begin_time(struct control *c)
{
        struct generation *g = c->in_force;
        const char *why = describe_no_undo(c, g);
        const struct log_about where = about(c);

        if (why) {
                g->facts.confirm_for = 0;
                log_add(c->log, LOG_EVENT_CONFIRM_NOT, &where, "generation %" PRIu64 " is in force without confirmation: %s",
                        g->number, why);
                return why;
        }
        g->facts.confirm_until = g->facts.time + g->facts.confirm_for;
        set_time(c, g->facts.confirm_for * USEC_PER_SEC);
        log_add(c->log, LOG_EVENT_CONFIRM_WAITS, &where,
                "generation %" PRIu64 " will be undone in %" PRIu64 " s unless pkeyctl confirm keeps it; pkeyctl undo undoes it now", g->number, g->facts.confirm_for);
        return NULL;
}

/* --- answers -------------------------------------------------------------------------------------------------------- */

/* request 0: no caller gets the answer. */
static void answer(struct control *c, enum reload_outcome outcome, const char *text, uint64_t request)
{
        c->confirm.answer.requests[0] = request;
        control_answer(c, &c->confirm.answer, outcome, text, request ? 1 : 0);
}

static void refuse(struct control *c, uint64_t request, const char *text)
{
        answer(c, RELOAD_REFUSED, text, request);
}

/* Answers the caller that waits until the confirmation is stored, if there is one. */
static void answer_confirmation(struct control *c, enum reload_outcome outcome, const char *text)
{
        uint64_t request = c->confirm.request;

        c->confirm.request = 0;
        if (request)
                answer(c, outcome, text, request);
}

void confirm_overtaken(struct control *c)
{
        answer_confirmation(c, RELOAD_REFUSED, "another generation came into force before the confirmation was stored");
}

/* --- confirm -------------------------------------------------------------------------------------------------------- */

void confirm_answer_stored(struct control *c)
{
        char text[96];

        (void) snprintf(text, sizeof(text), "generation %" PRIu64 " is confirmed: it stays in force",
                        c->in_force ? c->in_force->number : 0);
        answer_confirmation(c, RELOAD_CARRIED_OUT, text);
}

void confirm_answer_not_stored(struct control *c, int r)
{
        char text[256];

        (void) snprintf(text, sizeof(text), "the confirmation could not be stored: %s; pkeyd tries again; if pkeyd is restarted "
                        "before then, the change is undone", strerror(-r));
        answer_confirmation(c, RELOAD_WAITS, text);
}

static void confirmed(struct control *c, uint64_t when, const struct origin *by)
{
        struct generation *g = c->in_force;
        const struct log_about where = about(c);

        stop_time(c);
        g->facts.confirmed = when;
        g->facts.confirmed_by = *by;
        log_add(c->log, LOG_EVENT_CONFIRMED, &where, "generation %" PRIu64 " is confirmed: it stays in force", g->number);
}

void confirm_adopt_stored(struct control *c, const struct generation_facts *stored)
{
        if (confirm_waits(c) && stored->confirmed > 0)
                confirmed(c, stored->confirmed, &stored->confirmed_by);
}

void confirm_keep(struct control *c, const struct control_event *event)
{
        struct generation *g = c->in_force;

        if (control_is_guest(c)) {
                refuse(c, event->asked.request, "nothing was done: confirm it on the other head node, because this host is the "
                       "standby");
                return;
        }
        if (!confirm_waits(c)) {
                refuse(c, event->asked.request, "no change waits to be confirmed; nothing was done");
                return;
        }
        confirmed(c, c->wall / USEC_PER_SEC, &event->asked.by);
        c->confirm.request = event->asked.request; /* one caller at most: no other change waits now */
        control_facts_changed(c);
        if (!c->unstored || c->sync.arena) /* control stores it soon */
                return;
        if (generation_history_before(&c->history, g->number + 1) < g->number) /* nothing was written: there is nothing to undo */
                confirm_answer_stored(c);
        else
                answer_confirmation(c, RELOAD_WAITS, "confirmed; the next sweep stores the confirmation; if pkeyd is restarted before then, "
                                    "the change is undone");
}

/* --- undo ----------------------------------------------------------------------------------------------------------- */

/* The generation whose files an undo brings back; 0: there is none. One that is not stored yet cannot be loaded until it is. */
static uint64_t find_target(const struct control *c)
{
        const struct generation *g = c->in_force, *unstored = c->unstored_before;
        uint64_t stored = generation_history_target(&c->history, g->number, g->facts.restores);

        return unstored && g->facts.restores == 0 ? MAX(stored, unstored->number) : stored;
}

static void load(struct control *c, const struct origin *by, uint64_t request)
{
        struct confirm *f = &c->confirm;

        f->undoing = true;
        f->load = (struct control_undo) {
                .number = find_target(c), .undoes = c->in_force->number, .by = *by, .request = request,
        };
        control_request(c, &(struct control_action) { .kind = CONTROL_LOAD_UNDO, .undo = &f->load });
}

/* NULL: it can be undone. */
static const char *describe_problem(const struct control *c)
{
        if (!c->in_force)
                return "no policy is in force; nothing was done";
        if (find_target(c) == 0)
                return generation_history_no_target(c->in_force->facts.restores);
        return describe_no_undo(c, c->in_force);
}

void confirm_withdrawn(struct control *c, uint64_t request)
{
        char text[128];

        (void) snprintf(text, sizeof(text), "the reload was withdrawn before it came into force; generation %" PRIu64 " stays in force",
                        c->in_force->number);
        answer(c, RELOAD_CARRIED_OUT, text, request);
}

bool confirm_is_past(const struct control *c, uint64_t generation)
{
        return generation > 0 && c->in_force && c->in_force->number != generation;
}

static void refuse_past(struct control *c, const struct control_event *event)
{
        char text[128];

        (void) snprintf(text, sizeof(text), "generation %" PRIu64 " is not in force any more: generation %" PRIu64 " is; nothing was "
                        "done", event->asked.generation, c->in_force->number);
        refuse(c, event->asked.request, text);
}

void confirm_undo(struct control *c, const struct control_event *event)
{
        const char *problem = describe_problem(c);

        if (confirm_is_past(c, event->asked.generation))
                refuse_past(c, event);
        else if (c->confirm.undoing)
                refuse(c, event->asked.request, "an undo is already under way");
        else if (problem)
                refuse(c, event->asked.request, problem);
        else
                load(c, &event->asked.by, event->asked.request);
}

void confirm_undo_failed(struct control *c)
{
        c->confirm.undoing = false;
        if (confirm_waits(c))
                c->confirm.due = c->now + RETRY_UNDO;
}

static void undo_unconfirmed(struct control *c)
{
        const struct origin by = { .kind = ORIGIN_TIMEOUT };
        const struct log_about where = about(c);
        uint64_t target = find_target(c);

        if (target == 0) { /* it was deleted by hand: there is nothing to go back to */
                log_add(c->log, LOG_EVENT_UNDO_FAILED, &where, "generation %" PRIu64 " was not confirmed in time, but cannot be undone: "
                        "the store has no generation before it; it stays in force", c->in_force->number);
                c->in_force->facts.confirm_for = 0;
                stop_time(c);
                control_facts_changed(c);
                return;
        }
        log_add(c->log, LOG_EVENT_CONFIRM_OVER, &where, "generation %" PRIu64 " was not confirmed in time: pkeyd returns to the files "
                "of generation %" PRIu64, c->in_force->number, target);
        load(c, &by, 0);
}

/* --- a new generation ----------------------------------------------------------------------------------------------- */

/* In pkeyctl the last generation is in force, whose files may be unreadable. */
static bool undoes_what_is_in_force(const struct control *c, const struct generation *g)
{
        if (control_serves(c))
                return c->confirm.undoing && g->facts.undoes == c->in_force->number;
        if (g->facts.origin.kind == ORIGIN_TIMEOUT && c->in_force && !confirm_waits(c))
                return false;
        return g->facts.undoes == c->last_number;
}

bool confirm_admits(const struct control *c, const struct generation *g, struct findings *findings)
{
        if (g->facts.undoes > 0 && undoes_what_is_in_force(c, g))
                return true;
        if (g->facts.undoes > 0) { /* it comes too late */
                (void) findings_error(findings, FINDING_RELOAD_WITHDRAWN, NULL, "the undo was dropped: meanwhile the change was "
                                      "confirmed or replaced by another one");
                return false;
        }
        if (confirm_waits(c)) {
                (void) findings_error(findings, FINDING_CONFIRM_WAITS,
                                      "pkeyctl confirm keeps it, pkeyctl undo undoes it now; then reload again",
                                      "generation %" PRIu64 " waits to be confirmed, and no other change is accepted meanwhile",
                                      c->in_force->number);
                return false;
        }
        if (g->facts.confirm_for == 0 || g->audits || (c->in_force && c->in_force->number > 0 && !c->in_force->audits))
                return true;
        (void) findings_error(findings, FINDING_CONFIRM_FIRST, "reload without --confirm; pkeyctl plan shows what the policy changes",
                              "a change can only be undone to a policy that was in force before, and none was");
        return false;
}

const char *confirm_accepted(struct control *c)
{
        struct generation *g = c->in_force;
        const struct log_about where = about(c);

        stop_time(c);
        confirm_overtaken(c);
        c->sync.facts = FACTS_STORED; /* with the generation */
        g->facts.time = c->wall / USEC_PER_SEC;
        g->is_off_file = g->facts.undoes > 0;
        if (g->facts.undoes > 0)
                log_add(c->log, LOG_EVENT_UNDONE, &where, "generation %" PRIu64 " undoes generation %" PRIu64 ": it has the files of "
                        "generation %" PRIu64 "; partitions.yaml and pkeyd.yaml were not changed, so they differ from what is in force",
                        g->number, g->facts.undoes, g->facts.restores);
        return g->facts.confirm_for > 0 ? begin_time(c) : NULL;
}

/* --- what is due ---------------------------------------------------------------------------------------------------- */

static void warn(struct control *c)
{
        const struct log_about where = about(c);

        c->confirm.warn_at = USEC_INFINITY;
        log_add(c->log, LOG_EVENT_CONFIRM_SOON, &where, "generation %" PRIu64 " will be undone in one minute unless pkeyctl confirm "
                "keeps it", c->in_force->number);
}

void confirm_tick(struct control *c)
{
        const struct confirm *f = &c->confirm;

        if (c->state == CONTROL_ENDED || c->status.stopping)
                return;
        if (control_is_guest(c)) { /* the other head node undoes it when the time is over */
                answer_confirmation(c, RELOAD_WAITS, "this host stands by now, and the confirmation was not stored: confirm it on the "
                                    "other head node");
                return;
        }
        if (c->now >= f->warn_at)
                warn(c);
        if (c->now >= f->due && !f->undoing)
                undo_unconfirmed(c);
}

usec_t confirm_due(const struct control *c)
{
        const struct confirm *f = &c->confirm;

        if (c->status.stopping || control_is_guest(c))
                return USEC_INFINITY;
        return MIN(f->warn_at, f->undoing ? USEC_INFINITY : f->due);
}
