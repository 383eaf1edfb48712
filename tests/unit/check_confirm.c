/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Changes that wait to be confirmed, and undo. */

#include "control_fixture.h"

#define S        USEC_PER_SEC
#define SETTINGS "beside_opensm: true\nsweep_interval: 1h\n"

static const struct origin admin = { .kind = ORIGIN_BUS, .uid = 0, .user = "root" };

/* The sweep that is due. */
static void next_sweep(void)
{
        until(CONTROL_OPENING_PORT);
        sweep();
}

/* Generation 1 is in force. */
static void serve(const char *policy)
{
        start(SETTINGS, policy);
        sweep();
        forget_log();
}

static int reload_within(const char *policy, uint64_t seconds, uint64_t request)
{
        struct generation *g = make_generation(SETTINGS, policy);

        g->facts.origin = admin;
        g->facts.confirm_for = seconds;
        return give_generation(g, request);
}

/* Generation 2 is in force, and waits for so many seconds. */
static void change(const char *policy, uint64_t seconds)
{
        ck_assert_int_eq(reload_within(policy, seconds, 1), 0);
        next_sweep();
        ck_assert_int_eq(noted.outcome, RELOAD_CARRIED_OUT);
        forget_log();
}

static int ask(enum control_event_kind kind, uint64_t request)
{
        struct control_event event = { .kind = kind, .asked = { .by = admin, .request = request } };

        return give(&event);
}

static void at(usec_t when)
{
        now = when;
        ck_assert_int_eq(give_kind(CONTROL_EVENT_DUE), 0);
}

START_TEST(is_undone_in_time)
{
        usec_t began;

        serve(POLICY_1);
        began = now;
        change(POLICY_2, 600);
        ck_assert_uint_eq(status()->in_force->facts.confirm_until, (began + wall_offset) / S + 600);
        ck_assert_ptr_nonnull(strstr(status()->text, "(generation 2 waits to be confirmed)"));
        ck_assert(holds(hosts[1], 0x8010));
        ck_assert_uint_le(control_due(c), began + 540 * S);
        at(began + 540 * S);
        ck_assert_uint_eq(count_logged(LOG_EVENT_CONFIRM_SOON), 1);
        at(began + 599 * S);
        ck_assert_uint_eq(noted.n_undos, 0);
        at(began + 600 * S);
        ck_assert_uint_eq(noted.n_undos, 1);
        ck_assert_uint_eq(noted.undo.number, 1);
        ck_assert_uint_eq(noted.undo.undoes, 2);
        ck_assert_int_eq(noted.undo.by.kind, ORIGIN_TIMEOUT);
        ck_assert_uint_eq(count_logged(LOG_EVENT_CONFIRM_OVER), 1);
        ck_assert_int_eq(give_undo(SETTINGS, POLICY_1), 0);
        for (unsigned i = 0; status()->in_force->number == 2 && i < 3; i++)
                next_sweep(); /* the first one was under way, and reads the fabric */
        ck_assert(!holds(hosts[1], 0x8010));
        ck_assert_uint_eq(status()->in_force->number, 3);
        ck_assert_uint_eq(noted.stored_generation, 3);
        ck_assert_uint_eq(status()->in_force->facts.restores, 1);
        expect_logged(LOG_EVENT_UNDONE, "generation 3 undoes generation 2");
        ck_assert_ptr_nonnull(strstr(status()->text, "(the present files are not in force: generation 2 was undone)"));
        ck_assert_uint_eq(count_logged(LOG_EVENT_CONFIRM_SOON), 1);
}
END_TEST

START_TEST(stays_when_confirmed)
{
        usec_t began;

        serve(POLICY_1);
        began = now;
        change(POLICY_2, 600);
        noted.n_stored = 0;
        ck_assert_int_eq(ask(CONTROL_EVENT_CONFIRM, 7), 0);
        ck_assert_uint_eq(noted.n_answers, 1); /* of the reload */
        ck_assert_int_eq(state(), CONTROL_LOCKING_FACTS);
        answer();
        ck_assert_uint_eq(noted.n_stored, 1);
        ck_assert_uint_eq(noted.n_ops, 1);
        ck_assert_uint_eq(noted.n_answers, 2);
        ck_assert_int_eq(noted.outcome, RELOAD_CARRIED_OUT);
        ck_assert_uint_eq(noted.requests[0], 7);
        ck_assert_str_eq(noted.answer, "generation 2 is confirmed: it stays in force");
        ck_assert_int_eq(state(), CONTROL_IDLE);
        ck_assert_uint_eq(status()->in_force->facts.confirmed, (now + wall_offset) / S);
        expect_logged(LOG_EVENT_CONFIRMED, "generation 2 is confirmed");
        at(began + 700 * S);
        ck_assert_uint_eq(noted.n_undos, 0);
        ck_assert_int_eq(ask(CONTROL_EVENT_CONFIRM, 8), 0);
        ck_assert_int_eq(noted.outcome, RELOAD_REFUSED);
        ck_assert_str_eq(noted.answer, "no change waits to be confirmed; nothing was done");
}
END_TEST

/* A confirmation that is not stored would be lost with pkeyd. */
START_TEST(is_answered_when_stored)
{
        serve(POLICY_1);
        change(POLICY_2, 600);
        ck_assert_int_eq(ask(CONTROL_EVENT_CONFIRM, 7), 0);
        ck_assert_int_eq(give_lock(-EWOULDBLOCK, 12), 0);
        ck_assert_uint_eq(noted.n_answers, 1);
        ck_assert_int_eq(state(), CONTROL_IDLE);
        at(now + S);
        ck_assert_int_eq(state(), CONTROL_LOCKING_FACTS);
        store_r = -ENOSPC;
        sweep();
        ck_assert_uint_eq(noted.n_answers, 2);
        ck_assert_int_eq(noted.outcome, RELOAD_WAITS);
        ck_assert_ptr_nonnull(strstr(noted.answer, "could not be stored: No space left on device"));
        store_r = 0;
        at(now + S);
        sweep();
        ck_assert_int_eq(state(), CONTROL_IDLE);
        ck_assert_uint_eq(noted.n_answers, 2);
}
END_TEST

/* While a sweep runs, it stores the confirmation; one that came after its transaction was made is stored later. */
START_TEST(is_stored_by_a_sweep)
{
        serve(POLICY_1);
        store_waits = true;
        ck_assert_int_eq(reload_within(POLICY_2, 600, 1), 0);
        until(CONTROL_STORING);
        ck_assert_int_eq(ask(CONTROL_EVENT_CONFIRM, 7), 0);
        answer();
        ck_assert_uint_eq(noted.n_answers, 0); /* what was stored waits to be confirmed */
        store_waits = false;
        noted.n_facts = 0;
        sweep();
        ck_assert_uint_ge(noted.n_facts, 1);
        ck_assert_uint_eq(noted.n_answers, 2);
}
END_TEST

/* Nothing was written yet, so that nothing could be undone. */
START_TEST(is_answered_before_the_first_write)
{
        serve(POLICY_1);
        store_r = -ENOSPC;
        ck_assert_int_eq(reload_within(POLICY_2, 600, 1), 0);
        next_sweep();
        ck_assert_uint_eq(status()->in_force->number, 2);
        ck_assert_int_eq(ask(CONTROL_EVENT_CONFIRM, 7), 0);
        ck_assert_uint_eq(noted.requests[0], 7);
        ck_assert_int_eq(noted.outcome, RELOAD_CARRIED_OUT);
}
END_TEST

/* While pkeyd stops it does not undo, so that nothing is due: a shell would come back again and again. */
START_TEST(is_not_due_while_pkeyd_stops)
{
        serve(POLICY_1);
        store_waits = true;
        ck_assert_int_eq(reload_within(POLICY_2, 60, 1), 0);
        until(CONTROL_STORING);
        now += 61 * S;
        ck_assert_int_eq(give_kind(CONTROL_EVENT_STOP), 0);
        ck_assert_uint_eq(noted.n_undos, 0);
        ck_assert_uint_eq(control_due(c), USEC_INFINITY);
        sweep();
        ck_assert(noted.exited);
}
END_TEST

START_TEST(no_second_change)
{
        serve(POLICY_1);
        change(POLICY_2, 600);
        ck_assert_int_eq(reload_within(POLICY_3, 0, 9), 0);
        ck_assert_int_eq(noted.outcome, RELOAD_REFUSED);
        ck_assert_uint_eq(noted.n_findings, 1);
        ck_assert_int_eq(noted.code, FINDING_CONFIRM_WAITS);
        expect_logged(LOG_EVENT_FINDING, "generation 2 waits to be confirmed");
        ck_assert_uint_eq(status()->in_force->number, 2);
        /* a reload of the same files only sweeps */
        ck_assert_int_eq(reload_within(POLICY_2, 0, 10), 0);
        next_sweep();
        ck_assert_int_eq(noted.outcome, RELOAD_UNCHANGED);
}
END_TEST

START_TEST(undo_at_any_time)
{
        serve(POLICY_1);
        ck_assert_int_eq(ask(CONTROL_EVENT_UNDO, 4), 0);
        ck_assert_str_eq(noted.answer, "there is nothing to undo: the store has no generation before the one in force");
        change(POLICY_2, 0);
        ck_assert_int_eq(ask(CONTROL_EVENT_UNDO, 5), 0);
        ck_assert_uint_eq(noted.undo.number, 1);
        ck_assert_int_eq(ask(CONTROL_EVENT_UNDO, 6), 0);
        ck_assert_str_eq(noted.answer, "an undo is already under way");
        ck_assert_int_eq(give_undo(SETTINGS, POLICY_1), 0);
        next_sweep();
        ck_assert_uint_eq(noted.requests[0], 5);
        ck_assert_int_eq(noted.outcome, RELOAD_CARRIED_OUT);
        ck_assert(!holds(hosts[1], 0x8010));
        /* the next one goes further back, where nothing is */
        ck_assert_int_eq(ask(CONTROL_EVENT_UNDO, 7), 0);
        ck_assert_int_eq(noted.outcome, RELOAD_REFUSED);
        ck_assert_str_eq(noted.answer, "there is nothing to undo: the store has no generation before the one whose files are in force "
                         "again; the later ones were undone");
        /* the files can be loaded again */
        ck_assert_int_eq(reload_within(POLICY_2, 0, 8), 0);
        next_sweep();
        ck_assert_uint_eq(status()->in_force->number, 4);
        ck_assert_ptr_null(strstr(status()->text, "not in force"));
}
END_TEST

/* Generation 2 was not confirmed in time, and its undo is to be loaded. Returns when. */
static usec_t let_time_run_out(void)
{
        usec_t end = now + 600 * S;

        serve(POLICY_1);
        change(POLICY_2, 600);
        at(end);
        ck_assert_uint_eq(noted.n_undos, 1);
        return end;
}

static int undo_generation(uint64_t generation, uint64_t request)
{
        struct control_event event = {
                .kind = CONTROL_EVENT_UNDO, .asked = { .by = admin, .request = request, .generation = generation },
        };

        return give(&event);
}

/* The caller does not know that the change was undone meanwhile. */
START_TEST(undo_of_what_was_undone)
{
        (void) let_time_run_out();
        ck_assert_int_eq(undo_generation(2, 5), 0);
        ck_assert_str_eq(noted.answer, "an undo is already under way");
        ck_assert_int_eq(give_undo(SETTINGS, POLICY_1), 0);
        for (unsigned i = 0; status()->in_force->number == 2 && i < 3; i++)
                next_sweep();
        ck_assert_int_eq(undo_generation(2, 6), 0);
        ck_assert_uint_eq(noted.requests[0], 6);
        ck_assert_int_eq(noted.outcome, RELOAD_REFUSED);
        ck_assert_str_eq(noted.answer, "generation 2 is not in force any more: generation 3 is; nothing was done");
        /* nor does it withdraw a reload, unlike the undo of what is in force */
        ck_assert_int_eq(reload_within(POLICY_3, 0, 7), 0);
        ck_assert_int_eq(undo_generation(2, 8), 0);
        ck_assert_int_eq(noted.outcome, RELOAD_REFUSED);
        ck_assert_uint_eq(noted.n_withdrawn, 0);
        ck_assert_int_eq(undo_generation(3, 9), 0);
        ck_assert_uint_eq(noted.n_withdrawn, 1);
        ck_assert_uint_eq(noted.n_undos, 1);
}
END_TEST

/* Two undos go back two changes, and not forth and back. */
START_TEST(undo_of_an_undo)
{
        serve(POLICY_1);
        change(POLICY_2, 0);
        change(POLICY_3, 0);
        ck_assert_int_eq(ask(CONTROL_EVENT_UNDO, 5), 0);
        ck_assert_uint_eq(noted.undo.number, 2);
        ck_assert_int_eq(give_undo(SETTINGS, POLICY_2), 0);
        next_sweep();
        ck_assert_int_eq(ask(CONTROL_EVENT_UNDO, 6), 0);
        ck_assert_uint_eq(noted.undo.undoes, 4);
        ck_assert_uint_eq(noted.undo.number, 1);
}
END_TEST

static void carry_out_undo(uint64_t request, uint64_t number, const char *policy)
{
        ck_assert_int_eq(ask(CONTROL_EVENT_UNDO, request), 0);
        ck_assert_uint_eq(noted.undo.number, number);
        ck_assert_int_eq(give_undo(SETTINGS, policy), 0);
        next_sweep();
}

/* Generation 3 is undone, and what undoes it is restored by another undo: the next one goes on before both. */
START_TEST(undo_of_an_undo_of_an_undo)
{
        serve(POLICY_1);
        change(POLICY_2, 0);
        change(POLICY_3, 0);
        carry_out_undo(5, 2, POLICY_2);
        change(POLICY_3, 0);
        carry_out_undo(6, 4, POLICY_2);
        carry_out_undo(7, 1, POLICY_1);
        ck_assert_uint_eq(status()->in_force->number, 7);
        ck_assert_int_eq(ask(CONTROL_EVENT_UNDO, 8), 0);
        ck_assert_int_eq(noted.outcome, RELOAD_REFUSED);
        /* what was undone, and then loaded again and changed, was in force before the change */
        change(POLICY_3, 0);
        change(POLICY_2, 0);
        carry_out_undo(9, 8, POLICY_3);
        carry_out_undo(10, 7, POLICY_1);
}
END_TEST

/* The one before is not stored yet: the one that the store has instead may be the one that was undone. */
START_TEST(undo_while_nothing_can_be_stored)
{
        serve(POLICY_1);
        change(POLICY_2, 0);
        store_r = -ENOSPC;
        ck_assert_int_eq(reload_within(POLICY_3, 0, 3), 0);
        next_sweep();
        ck_assert_int_eq(reload_within(POLICY_1, 0, 4), 0);
        next_sweep();
        ck_assert_uint_eq(status()->in_force->number, 4);
        ck_assert_int_eq(ask(CONTROL_EVENT_UNDO, 5), 0);
        ck_assert_uint_eq(noted.undo.number, 3);
}
END_TEST

/* A policy that would be refused as a new one can come back all the same: it was in force. */
START_TEST(undo_of_a_policy_with_errors)
{
        serve(POLICY_1);
        change(POLICY_2, 60);
        ck_assert_int_eq(ask(CONTROL_EVENT_UNDO, 5), 0);
        ck_assert_int_eq(give_undo(SETTINGS, POLICY_REFUSED), 0);
        next_sweep();
        ck_assert_uint_eq(status()->in_force->number, 3);
        ck_assert(!holds(hosts[0], 0x8010));
}
END_TEST

/* If it cannot be loaded, pkeyd tries again, and the change goes on waiting. */
START_TEST(undo_that_fails)
{
        usec_t end = let_time_run_out();

        ck_assert_int_eq(give_undo(SETTINGS, NULL), 0);
        ck_assert_uint_eq(status()->n_file_errors, 0); /* nothing is wrong with the present files */
        ck_assert_uint_eq(status()->in_force->number, 2);
        at(end + 59 * S);
        ck_assert_uint_eq(noted.n_undos, 1);
        at(end + 61 * S);
        ck_assert_uint_eq(noted.n_undos, 2);
}
END_TEST

/* Its change was confirmed while it was loaded. The present files have no error. */
START_TEST(undo_that_comes_too_late)
{
        (void) let_time_run_out();
        ck_assert_int_eq(ask(CONTROL_EVENT_CONFIRM, 7), 0);
        ck_assert_int_eq(give_undo(SETTINGS, POLICY_1), 0);
        expect_logged(LOG_EVENT_FINDING, "the undo was dropped");
        ck_assert_uint_eq(status()->n_file_errors, 0);
        ck_assert_uint_eq(status()->in_force->number, 2);
}
END_TEST

/* The next lock is got, and another process has stored this meanwhile. confirmed: seconds; 0: it was not confirmed. */
static void give_changed_lock(uint64_t number, const char *policy, uint64_t confirmed)
{
        struct control_event event = { .kind = CONTROL_EVENT_LOCK, .lock.changed = remembered_new("this boot") };
        struct remembered *m = event.lock.changed;

        until(CONTROL_LOCKING);
        take(CONTROL_LOCK);
        m->generation = number;
        m->policy = policy;
        m->n_policy = strlen(policy);
        m->files.facts = status()->in_force->facts;
        m->files.facts.confirmed = confirmed;
        m->files.facts.confirmed_by = (struct origin) { .kind = ORIGIN_COMMAND, .user = "alice" };
        for (uint64_t i = 1; i <= number; i++)
                ck_assert_ptr_nonnull(generation_history_note(&m->history, &(struct generation_key) { .number = i }));
        ck_assert_int_eq(give(&event), 0);
}

static void expect_confirmed_by_alice(void)
{
        const struct generation *g = status()->in_force;

        ck_assert_uint_eq(g->number, 2);
        ck_assert_uint_eq(g->facts.confirmed, 4711);
        ck_assert_str_eq(g->facts.confirmed_by.user, "alice");
        ck_assert_uint_eq(count_logged(LOG_EVENT_CONFIRMED), 1);
        expect_logged(LOG_EVENT_CONFIRMED, "generation 2 is confirmed: it stays in force");
}

/* pkeyctl confirm did not find pkeyd on the bus. */
START_TEST(confirmed_by_another_process)
{
        usec_t end = now + 600 * S;

        serve(POLICY_1);
        change(POLICY_2, 600);
        give_candidate(SETTINGS, POLICY_2, 3);
        give_changed_lock(2, POLICY_2, 0);
        next_sweep();
        ck_assert(generation_waits(&status()->in_force->facts));
        ck_assert_uint_le(control_due(c), end - 60 * S);
        give_candidate(SETTINGS, POLICY_2, 4);
        give_changed_lock(2, POLICY_2, 4711);
        expect_confirmed_by_alice();
        live_until(end + 100 * S);
        ck_assert_uint_eq(noted.n_undos, 0);
        ck_assert_uint_eq(count_logged(LOG_EVENT_CONFIRM_SOON), 0);
        expect_confirmed_by_alice();
}
END_TEST

/* pkeyd reads that only when the time is over, and it plans the undo. */
START_TEST(confirmed_by_another_process_in_time)
{
        usec_t end = let_time_run_out();

        ck_assert_int_eq(give_undo(SETTINGS, POLICY_1), 0);
        give_changed_lock(2, POLICY_2, 4711);
        expect_confirmed_by_alice();
        live_until(end + 200 * S);
        ck_assert_uint_eq(noted.n_undos, 1);
        expect_confirmed_by_alice();
        expect_logged(LOG_EVENT_FINDING, "the undo was dropped");
        ck_assert_uint_eq(status()->n_file_errors, 0);
        ck_assert(holds(hosts[1], 0x8010));
}
END_TEST

/* Without the lock pkeyd does not know whether the store has a confirmation. */
START_TEST(not_undone_without_the_lock)
{
        struct control_event event = { .kind = CONTROL_EVENT_LOCK, .lock = { .r = -EIO, .why = "the disk is full" } };

        (void) let_time_run_out();
        ck_assert_int_eq(give_undo(SETTINGS, POLICY_1), 0);
        until(CONTROL_LOCKING);
        take(CONTROL_LOCK);
        ck_assert_int_eq(give(&event), 0);
        ck_assert_uint_eq(status()->in_force->number, 2);
        ck_assert_ptr_nonnull(strstr(status()->text, "nothing is written, because the store cannot be used: the disk is full"));
        give_changed_lock(2, POLICY_2, 4711);
        next_sweep();
        expect_confirmed_by_alice();
        expect_logged(LOG_EVENT_FINDING, "the undo was dropped");
}
END_TEST

/* Another process gave the number to another policy, or the store was lost. */
START_TEST(another_generation_was_confirmed)
{
        static const struct { uint64_t number; const char *policy; } others[] = { { 2, POLICY_3 }, { 1, POLICY_2 } };

        for (unsigned i = 0; i < ELEMENTS(others); i++) {
                serve(POLICY_1);
                change(POLICY_2, 600);
                give_candidate(SETTINGS, POLICY_2, 3);
                give_changed_lock(others[i].number, others[i].policy, 4711);
                ck_assert(generation_waits(&status()->in_force->facts));
                ck_assert_uint_eq(count_logged(LOG_EVENT_CONFIRMED), 0);
                teardown();
                setup();
        }
}
END_TEST

/* The store could not be read before, and its last generation has the number of the one before: no number is given twice. If it
 * is the one before, the answer to the commit was lost. */
START_TEST(undo_beside_generations_of_the_store)
{
        static const struct { const char *policy; uint64_t number; } stored[] = { { POLICY_3, 4 }, { POLICY_1, 2 } };

        for (unsigned i = 0; i < ELEMENTS(stored); i++) {
                store_r = -ENOSPC;
                serve(POLICY_1);
                ck_assert_int_eq(reload_within(POLICY_2, 600, 3), 0);
                next_sweep();
                ck_assert_uint_eq(status()->in_force->number, 2);
                store_r = 0;
                give_candidate(SETTINGS, POLICY_2, 4);
                give_changed_lock(1, stored[i].policy, 0);
                ck_assert_uint_eq(status()->in_force->number, stored[i].number);
                next_sweep();
                ck_assert_int_eq(ask(CONTROL_EVENT_UNDO, 5), 0);
                ck_assert_uint_eq(noted.undo.number, stored[i].number - 1);
                ck_assert_uint_eq(noted.undo.undoes, stored[i].number);
                teardown();
                setup();
        }
}
END_TEST

START_TEST(reload_is_withdrawn)
{
        serve(POLICY_1);
        ck_assert_int_eq(reload_within(POLICY_2, 0, 3), 0);
        ck_assert_int_eq(ask(CONTROL_EVENT_UNDO, 4), 0);
        ck_assert_uint_eq(noted.n_answers, 2);
        ck_assert_uint_eq(noted.n_withdrawn, 1);
        ck_assert_str_eq(noted.answer, "the reload was withdrawn before it came into force; generation 1 stays in force");
        ck_assert_uint_eq(noted.n_undos, 0);
        next_sweep();
        ck_assert(!holds(hosts[1], 0x8010));
}
END_TEST

/* The first policy of all has none before it. */
START_TEST(nothing_to_go_back_to)
{
        start(AUDIT "sweep_interval: 1h\n", POLICY_1);
        sweep();
        ck_assert_int_eq(reload_within(POLICY_2, 60, 3), 0);
        ck_assert_int_eq(noted.outcome, RELOAD_REFUSED);
        ck_assert_int_eq(noted.code, FINDING_CONFIRM_FIRST);
        expect_logged(LOG_EVENT_FINDING, "a change can only be undone to a policy that was in force before");
        ck_assert_int_eq(ask(CONTROL_EVENT_UNDO, 4), 0);
        ck_assert_int_eq(noted.outcome, RELOAD_REFUSED);
}
END_TEST

START_TEST(audit_has_nothing_to_undo)
{
        struct generation *g = make_generation(AUDIT "sweep_interval: 1h\n", POLICY_2);

        serve(POLICY_1);
        g->facts.confirm_for = 60;
        ck_assert_int_eq(give_generation(g, 3), 0);
        until(CONTROL_OPENING_PORT);
        sweep();
        expect_logged(LOG_EVENT_CONFIRM_NOT, "pkeyd is in audit mode");
        ck_assert_uint_eq(status()->in_force->number, 2);
        at(now + 100 * S);
        ck_assert_uint_eq(noted.n_undos, 0);
        ck_assert_int_eq(ask(CONTROL_EVENT_UNDO, 4), 0);
        ck_assert_ptr_nonnull(strstr(noted.answer, "audit mode"));
}
END_TEST

/* pkeyd starts while a change waits. */
static struct generation *waiting_generation(uint64_t until)
{
        struct generation *g = make_generation(SETTINGS, POLICY_2);

        g->number = 2;
        g->facts = (struct generation_facts) { .time = until - 600, .confirm_for = 600, .confirm_until = until };
        return g;
}

START_TEST(time_goes_on_after_a_restart)
{
        uint64_t wall = (now + wall_offset) / S;

        start_generation(CONTROL_SERVE, make_generation(SETTINGS, POLICY_2), waiting_generation(wall + 100));
        ck_assert(status()->in_force && generation_waits(&status()->in_force->facts));
        ck_assert_uint_le(control_due(c), now + 100 * S);
        sweep();
        /* a file that was edited meanwhile is a second change */
        ck_assert_int_eq(reload_within(POLICY_3, 0, 9), 0);
        ck_assert_int_eq(noted.outcome, RELOAD_REFUSED);
}
END_TEST

START_TEST(time_was_over_before_the_start)
{
        uint64_t wall = (now + wall_offset) / S;

        start_generation(CONTROL_SERVE, make_generation(SETTINGS, POLICY_2), waiting_generation(wall - 1));
        /* this fixture's store has no older generation; that is said, and the change stays */
        expect_logged(LOG_EVENT_UNDO_FAILED, "the store has no generation before it");
        ck_assert(!generation_waits(&status()->in_force->facts));
}
END_TEST

START_TEST(edited_before_the_start)
{
        uint64_t wall = (now + wall_offset) / S;

        start_generation(CONTROL_SERVE, make_generation(SETTINGS, POLICY_3), waiting_generation(wall + 100));
        ck_assert_uint_eq(status()->in_force->number, 2);
        ck_assert_uint_eq(count_logged(LOG_EVENT_RELOAD_REFUSED), 1);
        sweep();
        ck_assert(!holds(hosts[2], 0x8010));
}
END_TEST

/* pkeyd.yaml was edited meanwhile, so that the generation is stored again; by the store it still waits. */
START_TEST(confirmed_before_it_is_stored_again)
{
        uint64_t wall = (now + wall_offset) / S;
        const struct generation_key key = { .number = 2 };
        const struct control_config config = { .goal = CONTROL_SERVE, .program = "pkeyd 1" };
        _cleanup_findings_ struct findings loaded = { .arena = arena };
        struct control_event event = {
                .kind = CONTROL_EVENT_START,
                .start = {
                        .remembered = remembered_new("this boot"), .in_force = waiting_generation(wall + 100),
                        .candidate = make_generation(SETTINGS, POLICY_2), .findings = &loaded,
                },
        };
        struct remembered *m = event.start.remembered;

        m->generation = 2;
        m->files.has_settings = true;
        text_add(&m->files.settings, "other");
        ck_assert_ptr_nonnull(generation_history_note(&m->history, &key));
        c = control_new(&config);
        ck_assert_int_eq(give(&event), 0);
        ck_assert_int_eq(ask(CONTROL_EVENT_CONFIRM, 7), 0);
        ck_assert_uint_eq(noted.n_stored, 0);
        ck_assert_uint_eq(noted.requests[0], 7);
        ck_assert_int_eq(noted.outcome, RELOAD_WAITS);
        ck_assert_ptr_nonnull(strstr(noted.answer, "the next sweep stores the confirmation"));
        sweep();
        ck_assert_uint_eq(noted.stored_generation, 2);
        ck_assert_uint_gt(status()->in_force->facts.confirmed, 0);
}
END_TEST

/* pkeyctl reads generation 2, to undo it, and then the store, which another process may have changed. */
static void begin_undo_by_pkeyctl(enum origin_kind why, struct generation *in_force)
{
        struct generation *undo = make_generation(SETTINGS, POLICY_1);

        undo->facts = (struct generation_facts) { .origin.kind = why, .undoes = 2, .restores = 1 };
        start_generation(CONTROL_APPLY, undo, in_force);
}

/* Returns whether it wrote. */
static bool undo_by_pkeyctl(uint64_t in_force)
{
        struct generation *g = waiting_generation((now + wall_offset) / S);
        unsigned before = n_sets;

        g->number = in_force;
        begin_undo_by_pkeyctl(ORIGIN_COMMAND, g);
        sweep();
        return n_sets > before;
}

/* How it ended is stored last. */
static void expect_stored(uint64_t number, const char *outcome)
{
        ck_assert_uint_eq(noted.stored_generation, number);
        ck_assert_ptr_nonnull(strstr(noted.stored_facts, arena_printf(arena, "\"number\":%" PRIu64 ",", number)));
        ck_assert_ptr_nonnull(strstr(noted.stored_facts, arena_printf(arena, "\"outcome\":\"%s\",\"ended\":", outcome)));
}

static bool lose_sets(const struct mad_request *request, struct fabsim_place at)
{
        (void) at;
        return request->method == MAD_SET;
}

static bool lose_third_host(const struct mad_request *request, struct fabsim_place at)
{
        (void) request;
        return at.node == hosts[2];
}

START_TEST(pkeyctl_undoes_what_is_in_force)
{
        ck_assert(undo_by_pkeyctl(2));
        ck_assert_uint_eq(findings.n_errors, 0);
        expect_stored(3, "carried-out");
        teardown();
        setup();
        lose = lose_sets;
        ck_assert(undo_by_pkeyctl(2));
        expect_stored(3, "partial");
        ck_assert_uint_eq(status()->wanted->facts.n_held, 1);
        teardown();
        setup();
        lose = lose_third_host; /* a revoke need not know what it has */
        put_key(hosts[0], 1, 0x8010);
        put_key(hosts[1], 1, 0x8010);
        ck_assert(undo_by_pkeyctl(2));
        ck_assert(!holds(hosts[1], 0x8010));
        expect_stored(3, "partial");
        ck_assert_uint_eq(status()->wanted->facts.n_held, 0);
        teardown();
        setup();
        ck_assert(!undo_by_pkeyctl(3));
        ck_assert_int_eq(findings.items[0].code, FINDING_RELOAD_WITHDRAWN);
}
END_TEST

/* pkeyctl confirm had the lock before apply --confirm, whose time was over. A person can undo it all the same. */
START_TEST(pkeyctl_does_not_undo_what_was_confirmed)
{
        static const enum origin_kind why[] = { ORIGIN_TIMEOUT, ORIGIN_COMMAND };

        for (unsigned i = 0; i < ELEMENTS(why); i++) {
                unsigned before = n_sets;

                begin_undo_by_pkeyctl(why[i], waiting_generation((now + wall_offset) / S));
                while (state() != CONTROL_LOCKING)
                        answer();
                give_changed_lock(2, POLICY_2, 4711);
                sweep();
                ck_assert_int_eq(n_sets > before, why[i] == ORIGIN_COMMAND);
                ck_assert_uint_eq(findings.n_errors, why[i] == ORIGIN_TIMEOUT);
                teardown();
                setup();
        }
}
END_TEST

/* Of the first generation, too. */
START_TEST(pkeyctl_keeps_what_changed)
{
        start_with(CONTROL_APPLY, SETTINGS, POLICY_2, NULL);
        sweep();
        ck_assert_uint_eq(noted.stored_generation, 1);
        ck_assert_str_eq(status()->wanted->facts.outcome, "carried-out");
        ck_assert_uint_eq(status()->wanted->facts.n_changes, 2);
        ck_assert_str_eq(status()->wanted->facts.changes[1], "node[1-2]: now with each other (p)");
}
END_TEST

int main(void)
{
        Suite *s = suite_create("confirm");
        TCase *t = tcase_create("confirm");
        SRunner *runner;
        int failed;

        tcase_add_checked_fixture(t, setup, teardown);
        tcase_add_test(t, is_undone_in_time);
        tcase_add_test(t, stays_when_confirmed);
        tcase_add_test(t, is_answered_when_stored);
        tcase_add_test(t, is_stored_by_a_sweep);
        tcase_add_test(t, is_answered_before_the_first_write);
        tcase_add_test(t, is_not_due_while_pkeyd_stops);
        tcase_add_test(t, no_second_change);
        tcase_add_test(t, undo_at_any_time);
        tcase_add_test(t, undo_of_what_was_undone);
        tcase_add_test(t, undo_of_an_undo);
        tcase_add_test(t, undo_of_an_undo_of_an_undo);
        tcase_add_test(t, undo_while_nothing_can_be_stored);
        tcase_add_test(t, undo_beside_generations_of_the_store);
        tcase_add_test(t, undo_of_a_policy_with_errors);
        tcase_add_test(t, undo_that_fails);
        tcase_add_test(t, undo_that_comes_too_late);
        tcase_add_test(t, confirmed_by_another_process);
        tcase_add_test(t, confirmed_by_another_process_in_time);
        tcase_add_test(t, not_undone_without_the_lock);
        tcase_add_test(t, another_generation_was_confirmed);
        tcase_add_test(t, reload_is_withdrawn);
        tcase_add_test(t, nothing_to_go_back_to);
        tcase_add_test(t, audit_has_nothing_to_undo);
        tcase_add_test(t, time_goes_on_after_a_restart);
        tcase_add_test(t, time_was_over_before_the_start);
        tcase_add_test(t, edited_before_the_start);
        tcase_add_test(t, confirmed_before_it_is_stored_again);
        tcase_add_test(t, pkeyctl_undoes_what_is_in_force);
        tcase_add_test(t, pkeyctl_keeps_what_changed);
        tcase_add_test(t, pkeyctl_does_not_undo_what_was_confirmed);
        suite_add_tcase(s, t);
        runner = srunner_create(s);
        srunner_run_all(runner, CK_NORMAL);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed ? 1 : 0;
}
