/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The state machine: which event is heard in which state, and which action follows. */

#include "control_fixture.h"

#define S USEC_PER_SEC

/* How each state is reached. */
static const struct {
        enum control_state state;
        enum control_goal goal;
        const char *settings;
} ways[] = {
                {CONTROL_IDLE, CONTROL_SERVE, ENFORCE},
                {CONTROL_OPENING_PORT, CONTROL_SERVE, ENFORCE},
                {CONTROL_QUERYING_PORT, CONTROL_SERVE, ENFORCE},
                {CONTROL_DISCOVERING, CONTROL_SERVE, ENFORCE},
                {CONTROL_CHOOSING, CONTROL_APPLY, ENFORCE},
                {CONTROL_SURVEYING, CONTROL_SERVE, ENFORCE},
                {CONTROL_CONFIRMING, CONTROL_APPLY, ENFORCE},
                {CONTROL_LOCKING, CONTROL_SERVE, ENFORCE},
                {CONTROL_FINDING_SM, CONTROL_SERVE, FOLLOW_SM},
                {CONTROL_TAKING_OVER, CONTROL_SERVE, FOLLOW_SM},
                {CONTROL_READING_CONF, CONTROL_SERVE, OPENSM_WITH_CONF},
                {CONTROL_APPLYING, CONTROL_SERVE, ENFORCE},
                {CONTROL_WRITING_OPENSM, CONTROL_SERVE, OPENSM},
                {CONTROL_MIRRORING, CONTROL_SERVE, MIRROR},
                {CONTROL_ENDED, CONTROL_SERVE, ENFORCE},
};

static void begin(enum control_goal goal, const char *settings)
{
        const struct control_config config = {
                        .goal = goal,
                        .program = "pkeyd 1",
                        .findings = &findings,
                        .choose_tables = true,
                        .confirm = true,
        };

        c = control_new(&config);
        put_file(FILE_OPENSM_CONF, "");
        start_with(goal, settings, POLICY_1, NULL);
}

static void reach(size_t way)
{
        begin(ways[way].goal, ways[way].settings);
        if (ways[way].state == CONTROL_ENDED)
                ck_assert_int_eq(give_kind(CONTROL_EVENT_STOP), 0);
        until(ways[way].state);
}

static void again(void)
{
        teardown();
        setup();
}

/* A first sweep, action by action. */
START_TEST(actions_of_a_sweep)
{
        const struct control_action *a;
        unsigned n_stages = 0;

        start(ENFORCE, POLICY_1);
        ck_assert_int_eq(state(), CONTROL_OPENING_PORT);
        a = take(CONTROL_OPEN_PORT);
        ck_assert_ptr_eq(a->settings, status()->wanted->settings);
        give_port(0);
        expect_logged(LOG_EVENT_STARTED, "pkeyd 1 started, policy partitions.yaml");
        ck_assert_int_eq(state(), CONTROL_QUERYING_PORT);
        run_stage(take(CONTROL_RUN_STAGE)->stage);
        give_stage_end(0);
        ck_assert_int_eq(state(), CONTROL_DISCOVERING);
        ck_assert_uint_eq(status()->port_info->lid.v, 1);
        ck_assert_uint_eq(n_gets, 1);
        run_stage(take(CONTROL_RUN_STAGE)->stage);
        give_stage_end(0);
        ck_assert_int_eq(state(), CONTROL_SURVEYING);
        run_stage(take(CONTROL_RUN_STAGE)->stage);
        give_stage_end(0);
        ck_assert_int_eq(state(), CONTROL_LOCKING);
        ck_assert_ptr_null(status()->in_force);
        take(CONTROL_LOCK);
        take_nothing();
        give_lock(0, 0);
        ck_assert_int_eq(state(), CONTROL_APPLYING);
        ck_assert_uint_eq(status()->in_force->number, 1);
        ck_assert_uint_eq(noted.stored_generation, 1);
        ck_assert_uint_eq(noted.n_unlocked, 0);
        ck_assert_uint_eq(n_sets, 0);
        while (state() == CONTROL_APPLYING) { /* a stage for each phase, and one that reads back */
                n_stages++;
                run_stage(take(CONTROL_RUN_STAGE)->stage);
                give_stage_end(0);
        }
        ck_assert_int_eq(state(), CONTROL_IDLE);
        ck_assert_uint_eq(noted.n_unlocked, 1);
        ck_assert_uint_gt(n_stages, 2);
        ck_assert_uint_gt(n_sets, 0);
        ck_assert(holds(hosts[0], 0x8010) && !holds(hosts[1], 0x8010));
        ck_assert(status()->ready && status()->writing && !status()->standby && !status()->waiting &&
                  !status()->stopping);
        ck_assert_int_eq(status()->last_result, SWEEP_DONE);
        ck_assert_uint_eq(noted.n_closed, 0);
        take_nothing();
}
END_TEST

/* Answers that no state waits for change nothing. */
START_TEST(unexpected_answers)
{
        static const enum control_event_kind kinds[] = {
                        CONTROL_EVENT_PORT,          CONTROL_EVENT_STAGE_ENDED,
                        CONTROL_EVENT_TABLES_CHOSEN, CONTROL_EVENT_PERSON_ANSWERED,
                        CONTROL_EVENT_LOCK,          CONTROL_EVENT_FILES_READ,
                        CONTROL_EVENT_FILE_WRITTEN,  CONTROL_EVENT_OPENSM_SIGNALLED,
        };
        static const enum control_event_kind expected[CONTROL_N_STATES] = {
                        [CONTROL_OPENING_PORT] = CONTROL_EVENT_PORT,
                        [CONTROL_QUERYING_PORT] = CONTROL_EVENT_STAGE_ENDED,
                        [CONTROL_DISCOVERING] = CONTROL_EVENT_STAGE_ENDED,
                        [CONTROL_CHOOSING] = CONTROL_EVENT_TABLES_CHOSEN,
                        [CONTROL_SURVEYING] = CONTROL_EVENT_STAGE_ENDED,
                        [CONTROL_CONFIRMING] = CONTROL_EVENT_PERSON_ANSWERED,
                        [CONTROL_LOCKING] = CONTROL_EVENT_LOCK,
                        [CONTROL_FINDING_SM] = CONTROL_EVENT_STAGE_ENDED,
                        [CONTROL_READING_CONF] = CONTROL_EVENT_FILES_READ,
                        [CONTROL_APPLYING] = CONTROL_EVENT_STAGE_ENDED,
        };

        for (size_t w = 0; w < ELEMENTS(ways); w++, again()) {
                reach(w);
                if (ways[w].state == CONTROL_WRITING_OPENSM || ways[w].state == CONTROL_MIRRORING)
                        continue; /* these wait for several, see below */
                for (size_t i = 0; i < ELEMENTS(kinds); i++) {
                        size_t before = n_logged;
                        bool waited = waits();

                        if (kinds[i] == expected[ways[w].state])
                                continue;
                        ck_assert_msg(give_kind(kinds[i]) == -EPROTO, "state %d hears event %d", (int) ways[w].state,
                                      (int) kinds[i]);
                        ck_assert_int_eq(state(), ways[w].state);
                        ck_assert_uint_eq(n_logged, before);
                        ck_assert_int_eq(waits(), waited);
                }
        }
}
END_TEST

START_TEST(unexpected_answers_while_a_file_is_written)
{
        static const enum control_event_kind kinds[] = {
                        CONTROL_EVENT_PORT,
                        CONTROL_EVENT_TABLES_CHOSEN,
                        CONTROL_EVENT_PERSON_ANSWERED,
                        CONTROL_EVENT_LOCK,
        };

        for (size_t w = 0; w < ELEMENTS(ways); w++, again()) {
                if (ways[w].state != CONTROL_WRITING_OPENSM && ways[w].state != CONTROL_MIRRORING)
                        continue;
                reach(w);
                for (size_t i = 0; i < ELEMENTS(kinds); i++)
                        ck_assert_int_eq(give_kind(kinds[i]), -EPROTO);
                if (ways[w].state == CONTROL_MIRRORING) {
                        ck_assert_int_eq(give_kind(CONTROL_EVENT_STAGE_ENDED), -EPROTO);
                        ck_assert_int_eq(give_kind(CONTROL_EVENT_OPENSM_SIGNALLED), -EPROTO);
                }
        }
}
END_TEST

START_TEST(nothing_is_heard_after_the_end)
{
        start(ENFORCE, POLICY_1);
        give_kind(CONTROL_EVENT_STOP);
        ck_assert_int_eq(state(), CONTROL_ENDED);
        for (enum control_event_kind k = 0; k < CONTROL_N_EVENTS; k++)
                ck_assert_int_eq(give_kind(k), -EPROTO);
        ck_assert_uint_eq(control_due(c), USEC_INFINITY);
        ck_assert_uint_eq(count_logged(LOG_EVENT_STOPPED), 0); /* it had not started */
}
END_TEST

/* A stop is the end at once in each state but while a write is in flight. */
START_TEST(stop_in_each_state)
{
        for (size_t w = 0; w < ELEMENTS(ways); w++, again()) {
                bool is_started = ways[w].state != CONTROL_OPENING_PORT && ways[w].goal == CONTROL_SERVE;

                if (ways[w].state == CONTROL_ENDED)
                        continue;
                reach(w);
                ck_assert(!noted.exited);
                ck_assert_int_eq(give_kind(CONTROL_EVENT_STOP), 0);
                ck_assert(status()->stopping);
                if (ways[w].state == CONTROL_APPLYING) {
                        ck_assert(!noted.exited && state() == CONTROL_APPLYING);
                        answer();
                }
                ck_assert_msg(noted.exited && state() == CONTROL_ENDED, "way %zu", w);
                ck_assert_int_eq(noted.exit_r, 0);
                ck_assert_uint_eq(n_sets,
                                  ways[w].state == CONTROL_IDLE || ways[w].state == CONTROL_MIRRORING ? n_sets : 0);
                ck_assert_uint_eq(count_logged(LOG_EVENT_STOPPED), is_started);
                if (ways[w].goal != CONTROL_SERVE) {
                        ck_assert_int_eq(control_get_results(c)->r, -ECANCELED);
                        ck_assert_int_eq(control_get_results(c)->failed, ways[w].state);
                }
        }
}
END_TEST

/* What is locked is unlocked at the end. */
START_TEST(stop_unlocks)
{
        start(OPENSM, POLICY_1);
        until(CONTROL_WRITING_OPENSM);
        ck_assert_uint_eq(noted.n_unlocked, 0);
        give_kind(CONTROL_EVENT_STOP);
        ck_assert_uint_eq(noted.n_unlocked, 1);
        ck_assert(noted.exited);
        ck_assert_ptr_null(file_at(FILE_CONF)->bytes);
}
END_TEST

/* A reload at any time ends with that policy in force everywhere, and with one answer. */
START_TEST(reload_in_each_state)
{
        for (size_t w = 0; w < ELEMENTS(ways); w++, again()) {
                if (ways[w].state == CONTROL_ENDED || ways[w].goal != CONTROL_SERVE)
                        continue;
                reach(w);
                ck_assert_int_eq(give_candidate(ways[w].settings, POLICY_2, 77), 0);
                ck_assert_uint_eq(noted.n_answers, 0);
                ck_assert(status()->reload_pending);
                for (unsigned i = 0; i < 100 && status()->reload_pending; i++) {
                        if (waits())
                                answer();
                        else
                                wait_until_due();
                }
                ck_assert_msg(noted.n_answers == 1, "way %zu: %u answers", w, noted.n_answers);
                ck_assert_int_eq(noted.outcome, RELOAD_CARRIED_OUT);
                ck_assert_uint_eq(noted.n_requests, 1);
                ck_assert_uint_eq(noted.requests[0], 77);
                ck_assert(holds(hosts[0], 0x8010) && holds(hosts[1], 0x8010) && !holds(hosts[2], 0x8010));
                ck_assert_ptr_eq(status()->in_force, status()->wanted);
        }
}
END_TEST

/* An apply under way ends early when another policy comes; the next sweep carries that out. */
START_TEST(reload_ends_an_apply)
{
        start(ENFORCE, POLICY_1);
        until(CONTROL_APPLYING);
        give_candidate(ENFORCE, POLICY_0, 0);
        run_stage(take(CONTROL_RUN_STAGE)->stage);
        ck_assert_uint_eq(n_sets, 0);
        give_stage_end(0);
        ck_assert_int_eq(state(), CONTROL_IDLE);
        ck_assert_uint_eq(status()->numbers.sweeps[SWEEP_STOPPED], 1);
        ck_assert(!status()->ready);
        ck_assert_uint_eq(control_due(c), 0);
        wait_until_due();
        ck_assert_int_eq(state(), CONTROL_OPENING_PORT);
        sweep();
        ck_assert(!holds(hosts[0], 0x8010));
        ck_assert_uint_eq(status()->in_force->number, 2);
        ck_assert(status()->ready);
        ck_assert_uint_eq(status()->numbers.last_apply != 0, true);
}
END_TEST

/* A change of files that were refused stops nothing. */
START_TEST(refused_files_do_not_end_an_apply)
{
        start(ENFORCE, POLICY_1);
        until(CONTROL_APPLYING);
        give_candidate(ENFORCE, NULL, 5);
        sweep();
        ck_assert(holds(hosts[0], 0x8010));
        ck_assert_uint_eq(status()->numbers.sweeps[SWEEP_DONE], 1);
}
END_TEST

/* --- the start --- */

START_TEST(cannot_start_without_files)
{
        start(NULL, NULL);
        ck_assert(noted.exited);
        ck_assert_int_eq(noted.exit_r, -EBADMSG);
        ck_assert_uint_eq(count_logged(LOG_EVENT_FINDING), 1);
        expect_logged(LOG_EVENT_CANNOT_START, "1 error; no policy is in force");
        take_nothing();
}
END_TEST

START_TEST(last_policy_stays_in_force)
{
        struct generation *g = make_generation(ENFORCE, POLICY_1);

        g->number = 7;
        start_with(CONTROL_SERVE, NULL, NULL, g);
        expect_logged(LOG_EVENT_LAST_POLICY, "1 error; the last policy in force, generation 7, stays in force");
        ck_assert_uint_eq(status()->n_file_errors, 1);
        sweep();
        ck_assert(holds(hosts[0], 0x8010));
        ck_assert_uint_eq(status()->in_force->number, 7);
        ck_assert_uint_eq(count_logged(LOG_EVENT_GENERATION), 0);
        ck_assert_ptr_nonnull(strstr(status()->text, "(pkeyd refused the present files: 1 error)"));
}
END_TEST

/* The same policy keeps its number; another one is a candidate until the planner accepted it. */
START_TEST(same_policy_after_a_restart)
{
        struct generation *g = make_generation(AUDIT, POLICY_1);

        g->number = 7;
        start_with(CONTROL_SERVE, ENFORCE, POLICY_1, g);
        ck_assert_uint_eq(status()->in_force->number, 7);
        ck_assert_int_eq(status()->in_force->settings->mode, MODE_ENFORCE);
        ck_assert_ptr_eq(status()->wanted, status()->in_force);
}
END_TEST

START_TEST(another_policy_after_a_restart)
{
        struct generation *g = make_generation(ENFORCE, POLICY_1);

        g->number = 7;
        start_with(CONTROL_SERVE, ENFORCE, POLICY_2, g);
        ck_assert_uint_eq(status()->in_force->number, 7);
        ck_assert_ptr_ne(status()->wanted, status()->in_force);
        sweep();
        ck_assert_uint_eq(status()->in_force->number, 8);
        ck_assert(holds(hosts[1], 0x8010));
}
END_TEST

/* What another process stored meanwhile may know of no generation: none gets a number that another one has. */
START_TEST(numbers_do_not_go_back)
{
        struct control_event event = {.kind = CONTROL_EVENT_LOCK, .lock = {.changed = remembered_new("this boot")}};
        struct generation *g = make_generation(ENFORCE, POLICY_1);

        g->number = 7;
        start_with(CONTROL_SERVE, ENFORCE, POLICY_1, g);
        until(CONTROL_LOCKING);
        take(CONTROL_LOCK);
        give(&event);
        give_candidate(ENFORCE, POLICY_2, 1);
        until(CONTROL_APPLYING);
        sweep();
        ck_assert_uint_eq(status()->in_force->number, 8);
}
END_TEST

/* Another process stored this policy as generation 1, and here a generation 1 only audits. */
static void store_beside_an_audit(const char *policy)
{
        struct control_event event = {.kind = CONTROL_EVENT_LOCK, .lock = {.changed = remembered_new("this boot")}};

        start(AUDIT, POLICY_1);
        sweep();
        ck_assert_uint_eq(status()->in_force->number, 1);
        event.lock.changed->generation = 1;
        event.lock.changed->policy = policy;
        event.lock.changed->n_policy = strlen(policy);
        forget_log();
        wait_until_due();
        until(CONTROL_LOCKING);
        take(CONTROL_LOCK);
        give(&event);
        wait_until_due();
        sweep();
}

/* A generation that only audits is not stored, so that an apply gives its number to another one: it gets a new number. */
START_TEST(number_of_another_policy)
{
        store_beside_an_audit(POLICY_2);
        ck_assert_uint_eq(status()->in_force->number, 2);
        ck_assert_uint_eq(count_logged(LOG_EVENT_GENERATION), 1);
}
END_TEST

START_TEST(number_of_the_same_policy)
{
        store_beside_an_audit(POLICY_1);
        ck_assert_uint_eq(status()->in_force->number, 1);
        ck_assert_uint_eq(count_logged(LOG_EVENT_GENERATION), 0);
}
END_TEST

/* --- the port --- */

/* What will not come by waiting ends it at the start. */
START_TEST(port_that_cannot_be_used)
{
        static const struct {
                int r;
                const char *text;
        } cases[] = {
                        {-ENODEV, "an InfiniBand port: not found on this host (ibstat lists the ports that it has)"},
                        {-EACCES, "no permission to use /dev/infiniband/umad*; the udev rule 70-pkeyd.rules gives them to the group pkeyd"},
                        {-EPERM, "no permission to use /dev/infiniband/umad*; the udev rule 70-pkeyd.rules gives them to the group pkeyd"},
                        {-EOPNOTSUPP, "the kernel module ib_umad is not loaded"},
                        {-EIO, "Input/output error"},
        };

        for (size_t i = 0; i < ELEMENTS(cases); i++, again()) {
                start(ENFORCE, POLICY_1);
                take(CONTROL_OPEN_PORT);
                give_port(cases[i].r);
                ck_assert(noted.exited);
                ck_assert_int_eq(noted.exit_r, cases[i].r);
                expect_logged(LOG_EVENT_CANNOT_START, cases[i].text);
                ck_assert_uint_eq(count_logged(LOG_EVENT_STARTED), 0);
        }
}
END_TEST

START_TEST(port_name_of_the_settings)
{
        static const struct {
                const char *settings, *text;
        } cases[] = {
                        {"ca: mlx5_1\nport: 2\n", "mlx5_1/2: not found on this host"},
                        {"ca: mlx5_1\n", "mlx5_1: not found on this host"},
                        {"port: 2\n", "port 2 of an InfiniBand device: not found on this host"},
        };

        for (size_t i = 0; i < ELEMENTS(cases); i++, again()) {
                start(cases[i].settings, POLICY_1);
                take(CONTROL_OPEN_PORT);
                give_port(-ENODEV);
                expect_logged(LOG_EVENT_CANNOT_START, cases[i].text);
        }
}
END_TEST

/* A link that is down is waited for: closed, and opened again every three seconds. Reported once. */
START_TEST(port_that_is_down)
{
        start(ENFORCE, POLICY_1);
        for (unsigned i = 0; i < 3; i++) {
                take(CONTROL_OPEN_PORT);
                give_port(-ENETDOWN);
                ck_assert_int_eq(state(), CONTROL_IDLE);
                ck_assert(status()->waiting && status()->ready);
                ck_assert_uint_eq(noted.n_closed, i + 1);
                ck_assert_uint_eq(control_due(c), now + 3 * S);
                wait_until_due();
        }
        ck_assert_uint_eq(count_logged(LOG_EVENT_WAITING_FOR_PORT), 1);
        expect_logged(LOG_EVENT_WAITING_FOR_PORT, "waiting for an InfiniBand port: its link is down");
        ck_assert_uint_eq(count_logged(LOG_EVENT_STARTED), 1);
        ck_assert_uint_eq(status()->numbers.sweeps[SWEEP_WAITS], 3);
        sweep();
        ck_assert(!status()->waiting);
        expect_logged(LOG_EVENT_PORT_FOUND, "mlx5_0 port 1 is up, LID 1");
        ck_assert_int_eq(status()->last_result, SWEEP_DONE);
        ck_assert(holds(hosts[0], 0x8010));
}
END_TEST

/* After the start no problem of the port is the end. */
START_TEST(port_lost_later)
{
        static const int problems[] = {-ENODEV, -EACCES, -ENETDOWN, -EIO};

        start(ENFORCE, POLICY_1);
        sweep();
        for (size_t i = 0; i < ELEMENTS(problems); i++) {
                until(CONTROL_OPENING_PORT);
                take(CONTROL_OPEN_PORT);
                give_port(problems[i]);
                ck_assert(!noted.exited && status()->waiting);
                ck_assert_int_eq(status()->last_result, SWEEP_WAITS);
        }
        ck_assert_uint_eq(count_logged(LOG_EVENT_WAITING_FOR_PORT), 1);
        expect_logged(LOG_EVENT_WAITING_FOR_PORT, "not found on this host");
        until(CONTROL_DISCOVERING); /* the whole fabric, when it is back */
}
END_TEST

/* A reload does not make a fabric known that could not be reached. */
START_TEST(reload_while_the_port_is_lost)
{
        start(ENFORCE, POLICY_1);
        sweep();
        until(CONTROL_OPENING_PORT);
        take(CONTROL_OPEN_PORT);
        give_port(-ENETDOWN);
        give_candidate(ENFORCE, POLICY_2, 0);
        wait_until_due();
        answer();
        ck_assert_int_eq(state(), CONTROL_QUERYING_PORT);
}
END_TEST

/* Its link works, and no subnet manager gave it a LID. */
START_TEST(port_without_a_lid)
{
        start(ENFORCE, POLICY_1);
        port_of(head)->lid.v = 0;
        answer();
        answer();
        ck_assert_int_eq(state(), CONTROL_IDLE);
        ck_assert(status()->waiting);
        expect_logged(LOG_EVENT_WAITING_FOR_PORT, "no subnet manager has given it a LID yet");
        ck_assert_ptr_null(status()->port_info);
        ck_assert_uint_eq(noted.n_closed, 1);
}
END_TEST

/* --- the lock --- */

/* Another process has the lock: it is tried again each second, then everything is read again. */
START_TEST(lock_of_another_process)
{
        start(ENFORCE, POLICY_1);
        until(CONTROL_LOCKING);
        for (unsigned i = 0; i < 3; i++) {
                take(CONTROL_LOCK);
                ck_assert_uint_eq(control_due(c), USEC_INFINITY);
                give_kind(CONTROL_EVENT_DUE);
                take_nothing();
                give_lock(-EWOULDBLOCK, 4711);
                ck_assert_int_eq(state(), CONTROL_LOCKING);
                ck_assert_uint_eq(control_due(c), now + S);
                take_nothing();
                now += S - 1;
                give_kind(CONTROL_EVENT_DUE);
                take_nothing();
                wait_until_due();
        }
        ck_assert_uint_eq(count_logged(LOG_EVENT_LOCK_WAIT), 1);
        expect_logged(LOG_EVENT_LOCK_WAIT, "process 4711 is writing P_Key tables");
        answer();
        ck_assert_int_eq(state(), CONTROL_IDLE);
        ck_assert_uint_eq(status()->numbers.sweeps[SWEEP_STALE], 1);
        ck_assert_uint_eq(noted.n_unlocked, 1);
        ck_assert_uint_eq(n_sets, 0);
        ck_assert_uint_eq(control_due(c), 0);
        until(CONTROL_DISCOVERING);
        sweep();
        ck_assert(holds(hosts[0], 0x8010));
}
END_TEST

/* Tables that were read before another process had the lock count for no sweep, however often that happens. */
START_TEST(lock_of_others_again_and_again)
{
        start(ENFORCE, POLICY_1);
        for (unsigned i = 1; i < 4; i++) {
                until(CONTROL_LOCKING);
                take(CONTROL_LOCK);
                give_lock(-EWOULDBLOCK, 4711);
                wait_until_due();
                answer();
                ck_assert_int_eq(state(), CONTROL_IDLE);
                ck_assert_uint_eq(status()->numbers.sweeps[SWEEP_STALE], i);
                ck_assert_uint_eq(n_sets, 0);
        }
        until(CONTROL_DISCOVERING);
        sweep();
        ck_assert(holds(hosts[0], 0x8010));
}
END_TEST

/* Without a state directory there is no lock, and pkeyd goes on without. */
START_TEST(no_lock)
{
        start(ENFORCE, POLICY_1);
        until(CONTROL_LOCKING);
        take(CONTROL_LOCK);
        give_lock(-EROFS, 0);
        ck_assert_int_eq(state(), CONTROL_IDLE);
        ck_assert_int_eq(status()->last_result, SWEEP_FAILED);
        ck_assert(strstr(status()->text, "the store cannot be used: Read-only file system"));
        ck_assert_uint_gt(status()->ports.differ, 0);
        ck_assert_uint_eq(noted.n_unlocked + noted.n_stored + n_sets, 0);
        wait_until_due();
        sweep();
        ck_assert(holds(hosts[0], 0x8010));
}
END_TEST

/* What another process wrote down meanwhile replaces what this one knew: no index that it freed is used for another
 * base. */
START_TEST(lock_brings_indexes)
{
        struct control_event event = {.kind = CONTROL_EVENT_LOCK, .lock = {.changed = remembered_new("this boot")}};

        start(ENFORCE, POLICY_1);
        until(CONTROL_LOCKING);
        for (uint16_t i = 1; i < 9; i++)
                ck_assert_int_eq(index_memory_note(event.lock.changed->indexes, f.nodes[hosts[0]].guid, 1, i,
                                                   (struct p_key) {0x8055}, (struct p_key) {}, false),
                                 0);
        index_memory_stored(event.lock.changed->indexes);
        take(CONTROL_LOCK);
        give(&event);
        ck_assert_uint_eq(n_sets, 0);
        wait_until_due(); /* the fabric may be another one by now, too */
        sweep();
        ck_assert_uint_eq(port_of(hosts[0])->table[9].v, 0x8010);
        ck_assert_uint_eq(noted.n_indexes, 0); /* nothing was freed */
}
END_TEST

/* What is freed is written down. */
START_TEST(indexes_are_stored)
{
        put_key(hosts[0], 1, 0x8055);
        start(ENFORCE, POLICY_1);
        sweep();
        ck_assert(!holds(hosts[0], 0x8055));
        ck_assert_uint_ge(noted.n_indexes, 1);
        ck_assert_uint_eq(noted.n_known, 1);
        ck_assert_uint_eq(noted.n_generations, 1);
}
END_TEST

/* --- the store --- */

/* The next sweep, from its beginning to its end; what is due before it is done, too. */
static void next_sweep(void)
{
        while (state() == CONTROL_IDLE) {
                wait_until_due();
                while (state() == CONTROL_IDLE && waits())
                        answer();
        }
        sweep();
}

/* When the store could not be read, a first generation came into force: it gets a number above those in the store, and so does one
 * before it that was to be stored, too. */
static void give_number_without_a_store(bool two)
{
        struct control_event event = {.kind = CONTROL_EVENT_LOCK, .lock = {.changed = remembered_new("this boot")}};
        const unsigned n_before = two ? 1 : 0;

        store_r = -EIO;
        start(ENFORCE, POLICY_1);
        sweep();
        if (two) {
                give_candidate(ENFORCE, POLICY_2, 1);
                next_sweep();
        }
        ck_assert_uint_eq(status()->in_force->number, 1 + n_before);
        ck_assert_uint_eq(n_sets, 0);
        event.lock.changed->generation = 57;
        event.lock.changed->policy = POLICY_3;
        event.lock.changed->n_policy = strlen(POLICY_3);
        wait_until_due();
        until(CONTROL_LOCKING);
        take(CONTROL_LOCK);
        store_r = 0;
        give(&event);
        next_sweep();
        ck_assert_uint_eq(status()->in_force->number, 58 + n_before);
        ck_assert_uint_gt(n_sets, 0);
}

START_TEST(number_given_without_a_store)
{
        give_number_without_a_store(false);
        teardown();
        setup();
        give_number_without_a_store(true);
}
END_TEST

/* Between two sweeps nothing is written. */
START_TEST(gate_is_closed)
{
        start(ENFORCE, POLICY_1);
        sweep();
        ck_assert_ptr_nonnull(strstr(refusal_of_a_set(), "no write is expected now"));
}
END_TEST

/* An answer during an apply shows that an entry is gone: it will be put back at its index. */
START_TEST(heard_during_an_apply)
{
        put_key(hosts[0], 5, 0x8010);
        start(ENFORCE, POLICY_1);
        sweep();
        put_key(hosts[0], 5, 0);
        hear_table(hosts[0]);
        next_sweep();
        ck_assert_uint_eq(port_of(hosts[0])->table[5].v, 0x8010);
}
END_TEST

/* Without the store nothing is written; with it everything is, and it was logged once. */
START_TEST(store_that_fails)
{
        store_r = -ENOSPC;
        start(ENFORCE, POLICY_1);
        sweep();
        ck_assert_uint_eq(n_sets, 0);
        ck_assert_int_eq(status()->last_result, SWEEP_FAILED);
        ck_assert_uint_gt(status()->ports.differ, 0);
        ck_assert_uint_eq(count_logged(LOG_EVENT_STATE_DIR), 1);
        expect_logged(LOG_EVENT_STATE_DIR, "pkeyd could not store its state: No space left on device; it writes no");
        store_r = -EROFS;
        next_sweep();
        ck_assert_uint_eq(n_sets, 0);
        ck_assert_uint_eq(count_logged(LOG_EVENT_STATE_DIR), 1);
        ck_assert_uint_eq(count_logged(LOG_EVENT_GENERATION), 0);
        store_r = 0;
        next_sweep();
        ck_assert_uint_eq(count_logged(LOG_EVENT_GENERATION), 1);
        ck_assert_uint_gt(n_sets, 0);
        ck_assert_int_eq(status()->last_result, SWEEP_DONE);
        store_r = -ENOSPC;
        put_key(hosts[0], 1, 0x8055); /* what is read is to be stored */
        next_sweep();
        ck_assert_uint_eq(count_logged(LOG_EVENT_STATE_DIR), 2);
        store_r = 0;
        next_sweep();
        ck_assert_int_eq(status()->last_result, SWEEP_DONE);
}
END_TEST

/* What was not stored at the end of one sweep is with the next, though nothing has changed. */
START_TEST(store_that_fails_at_the_end)
{
        unsigned n;

        start(AUDIT, POLICY_1);
        sweep();
        put_key(hosts[0], 1, 0x8055);
        n = noted.n_stored;
        store_r = -ENOSPC;
        next_sweep();
        ck_assert_uint_eq(noted.n_stored, n + 1);
        store_r = 0;
        next_sweep();
        ck_assert_uint_eq(noted.n_stored, n + 2);
        ck_assert_uint_gt(noted.n_ops, 1);
        next_sweep();
        ck_assert_uint_eq(noted.n_ops, 1);
}
END_TEST

/* Each phase is stored before its first write: the bytes that may be sent are in the records of their tables. */
START_TEST(stored_before_it_is_written)
{
        put_key(hosts[0], 1, 0x8055); /* a revoke and a grant: two phases */
        store_waits = true;
        start(ENFORCE, POLICY_1);
        until(CONTROL_STORING);
        ck_assert_uint_eq(n_sets, 0);
        ck_assert(writes_are_stored(take(CONTROL_STORE)->transaction, hosts[0]));
        give_stored(0);
        ck_assert_int_eq(state(), CONTROL_APPLYING);
        answer();
        ck_assert_int_eq(state(), CONTROL_STORING);
        ck_assert_uint_eq(n_sets, 1);
        ck_assert(!holds(hosts[0], 0x8055) && !holds(hosts[0], 0x8010));
        sweep();
        ck_assert(holds(hosts[0], 0x8010));
}
END_TEST

/* A later phase that cannot be stored is not sent; what was done stays. */
START_TEST(second_phase_is_not_stored)
{
        put_key(hosts[0], 1, 0x8055);
        store_waits = true;
        start(ENFORCE, POLICY_1);
        until(CONTROL_STORING);
        for (unsigned i = 0; i < 4; i++) /* revoke on the host; open and close at the switch */
                answer();
        ck_assert_int_eq(state(), CONTROL_STORING);
        store_r = -EIO;
        sweep();
        ck_assert(!holds(hosts[0], 0x8055) && !holds(hosts[0], 0x8010));
        ck_assert_int_eq(status()->last_result, SWEEP_FAILED);
        ck_assert(strstr(status()->text, "could not be stored"));
        for (uint32_t i = 0; i < knowledge_n_records(status()->knowledge); i++)
                ck_assert_uint_eq(knowledge_get(status()->knowledge, i)->n_writes, 0);
        store_r = 0;
        next_sweep();
        ck_assert(holds(hosts[0], 0x8010));
}
END_TEST

/* Neither SIGTERM nor a reload that comes while a phase is stored lets it be sent. */
START_TEST(stopped_while_storing)
{
        store_waits = true;
        start(ENFORCE, POLICY_1);
        until(CONTROL_STORING);
        give_kind(CONTROL_EVENT_STOP);
        ck_assert(!noted.exited);
        sweep();
        ck_assert(noted.exited);
        ck_assert_uint_eq(n_sets, 0);
}
END_TEST

/* What was written is not as it was confirmed: that is learned after all was stored. */
static bool lose_read_back(const struct mad_request *request, struct fabsim_place at)
{
        (void) at;
        return n_sets > 0 && request->method == MAD_GET && request->attribute == SMP_ATTR_P_KEY_TABLE;
}

/* What the shell stores is not freed before it has answered. */
START_TEST(stopped_while_storing_at_the_end)
{
        store_waits = true;
        lose = lose_read_back;
        start(ENFORCE, POLICY_1);
        until(CONTROL_STORING_END);
        give_kind(CONTROL_EVENT_STOP);
        ck_assert(!noted.exited);
        ck_assert_int_eq(state(), CONTROL_STORING_END);
        sweep();
        ck_assert(noted.exited);
}
END_TEST

START_TEST(reload_while_storing)
{
        store_waits = true;
        start(ENFORCE, POLICY_1);
        until(CONTROL_STORING);
        give_candidate(ENFORCE, POLICY_2, 7);
        until(CONTROL_IDLE);
        ck_assert_uint_eq(n_sets, 0);
        next_sweep();
        ck_assert_uint_eq(status()->in_force->number, 2);
        ck_assert_uint_eq(noted.n_answers, 1);
}
END_TEST

/* What happens while the end of a sweep is stored is heard when that is done. */
START_TEST(reload_while_storing_at_the_end)
{
        store_waits = true;
        lose = lose_read_back;
        start(ENFORCE, POLICY_1);
        until(CONTROL_STORING_END);
        lose = NULL;
        give_verbs(VERBS_SM_CHANGE);
        give_candidate(ENFORCE, POLICY_2, 7);
        ck_assert_int_eq(state(), CONTROL_STORING_END);
        until(CONTROL_IDLE);
        next_sweep();
        ck_assert_uint_eq(status()->in_force->number, 2);
        ck_assert_uint_eq(noted.n_answers, 1);
}
END_TEST

/* The store was lost: everything is stored anew, before the next write and also when nothing is to be written. */
START_TEST(store_that_was_lost)
{
        unsigned n, n_indexes;

        put_key(hosts[0], 1, 0x8055); /* its index will be freed */
        start(ENFORCE, POLICY_1);
        sweep();
        next_sweep();
        n = noted.n_stored;
        n_indexes = noted.n_indexes;
        until(CONTROL_LOCKING);
        take(CONTROL_LOCK);
        give(&(struct control_event) {.kind = CONTROL_EVENT_LOCK, .lock = {.r = -EUCLEAN}});
        ck_assert_int_eq(state(), CONTROL_LOCKING);
        sweep();
        ck_assert_uint_eq(noted.n_stored, n + 1);
        ck_assert_uint_eq(noted.n_generations, 2);
        ck_assert_uint_eq(noted.n_indexes, n_indexes + 1);
        ck_assert_int_eq(status()->last_result, SWEEP_DONE);
        store_r = -EUCLEAN; /* and once more, while it is written */
        put_key(hosts[0], 1, 0x8055);
        next_sweep();
        ck_assert(holds(hosts[0], 0x8055));
        ck_assert_int_eq(status()->last_result, SWEEP_FAILED);
        store_r = 0;
        next_sweep();
        ck_assert(!holds(hosts[0], 0x8055));
        ck_assert_uint_gt(noted.n_generations, 2);
}
END_TEST

/* What was only audited was never in force: it is not stored as that, with a store that was lost either. */
START_TEST(store_that_was_lost_in_audit)
{
        start(AUDIT, POLICY_1);
        sweep();
        store_r = -EUCLEAN;
        put_key(hosts[0], 1, 0x8055);
        next_sweep();
        store_r = 0;
        next_sweep();
        ck_assert_uint_eq(noted.n_generations, 0);
}
END_TEST

/* A sweep in which nothing changed stores when it was. */
START_TEST(calm_sweep_stores_its_time)
{
        unsigned n;

        start(ENFORCE, POLICY_1);
        sweep();
        n = noted.n_stored;
        ck_assert_uint_gt(n, 0);
        next_sweep();
        next_sweep();
        ck_assert_uint_eq(noted.n_stored, n + 2);
        ck_assert_uint_eq(noted.n_ops, 1);
}
END_TEST

/* --- events of this host --- */

/* Idle, and the kernel's tables are checked. */
/* A sweep, and the check of the local tables after it. */
static void sweep_and_settle(void)
{
        sweep();
        while (control_due(c) < now + 10 * S) {
                wait_until_due();
                while (waits())
                        answer();
        }
}

static void settle(void)
{
        start(ENFORCE, POLICY_1);
        sweep_and_settle();
}

START_TEST(verbs_events)
{
        static const struct {
                enum verbs_event_kind kind;
                bool sweeps;
                unsigned sm_changes;
        } cases[] = {
                        {VERBS_LID_CHANGE, true, 0},    {VERBS_SM_CHANGE, true, 1},  {VERBS_CLIENT_REREGISTER, true, 1},
                        {VERBS_PORT_ACTIVE, true, 0},   {VERBS_PORT_ERROR, true, 0}, {VERBS_DEVICE_FATAL, true, 0},
                        {VERBS_P_KEY_CHANGE, false, 0},
        };

        for (size_t i = 0; i < ELEMENTS(cases); i++, again()) {
                settle();
                now += 7 * S;
                ck_assert_int_eq(give_verbs(cases[i].kind), 0);
                ck_assert_int_eq(state(), CONTROL_IDLE);
                ck_assert_uint_eq(status()->sm_changes, cases[i].sm_changes);
                ck_assert_uint_eq(count_logged(LOG_EVENT_DEVICE_GONE), cases[i].kind == VERBS_DEVICE_FATAL);
                ck_assert_uint_eq(control_due(c), cases[i].sweeps ? now + 300 * USEC_PER_MSEC : now);
                wait_until_due();
                (void) take(cases[i].sweeps ? CONTROL_OPEN_PORT : CONTROL_READ_LOCAL_TABLES);
        }
}
END_TEST

static void give_verbs_of(struct guid port, enum verbs_event_kind kind)
{
        ck_assert_int_eq(give(&(struct control_event) {.kind = CONTROL_EVENT_VERBS, .verbs = {kind, "mlx5_1", port, 1}}), 0);
}

/* Events of ports that lead to another fabric, or to none that pkeyd knows, change nothing. */
START_TEST(verbs_events_of_other_ports)
{
        static const enum verbs_event_kind kinds[] = {
                        VERBS_LID_CHANGE,  VERBS_SM_CHANGE,  VERBS_CLIENT_REREGISTER,
                        VERBS_PORT_ACTIVE, VERBS_PORT_ERROR, VERBS_P_KEY_CHANGE,
        };
        usec_t due;

        start(FOLLOW_SM, POLICY_1);
        give_verbs_of((struct guid) {0x999}, VERBS_SM_CHANGE); /* not known yet: there is no snapshot */
        ck_assert_uint_eq(status()->sm_changes, 1);
        until(CONTROL_APPLYING);
        give_verbs_of((struct guid) {0x999}, VERBS_SM_CHANGE);
        sweep_and_settle();
        ck_assert_uint_eq(status()->numbers.sweeps[SWEEP_STOPPED], 0);
        now += 7 * S;
        due = control_due(c);
        for (size_t i = 0; i < ELEMENTS(kinds); i++) {
                give_verbs_of((struct guid) {0x999}, kinds[i]);
                ck_assert_uint_eq(control_due(c), due);
                ck_assert_uint_eq(status()->sm_changes, 1);
        }
}
END_TEST

/* Those of other ports in this fabric count, also if the port was down when it was discovered, and those of a device. */
START_TEST(verbs_events_of_this_fabric)
{
        for (unsigned i = 0; i < 3; i++, again()) {
                settle();
                f.nodes[hosts[i]].is_up = i == 0;
                until(CONTROL_OPENING_PORT);
                sweep_and_settle();
                now += 7 * S;
                give_verbs_of(i == 2 ? (struct guid) {} : port_of(hosts[i])->guid, VERBS_PORT_ACTIVE);
                ck_assert_uint_eq(control_due(c), now + 300 * USEC_PER_MSEC);
        }
}
END_TEST

/* The kernel reports that a table changed, but it did not: no sweep. */
START_TEST(p_key_event_without_a_change)
{
        settle();
        give_verbs(VERBS_P_KEY_CHANGE);
        while (control_due(c) < now + 10 * S) {
                wait_until_due();
                while (waits()) {
                        take(CONTROL_READ_LOCAL_TABLES);
                        give(&(struct control_event) {
                                        .kind = CONTROL_EVENT_LOCAL_TABLES,
                                        .local = {&(const struct local_table) {port_of(head)->guid, port_of(head)->table,
                                                                              port_of(head)->capacity},
                                                  1},
                        });
                }
        }
        ck_assert_int_eq(state(), CONTROL_IDLE);
        ck_assert_uint_eq(status()->numbers.sweeps[SWEEP_DONE], 1);
}
END_TEST

/* Events in a row make one sweep every five seconds. */
START_TEST(verbs_events_in_a_row)
{
        usec_t first;

        settle();
        now += 7 * S;
        give_verbs(VERBS_PORT_ERROR);
        give_verbs(VERBS_PORT_ACTIVE);
        first = control_due(c);
        until(CONTROL_OPENING_PORT);
        give_verbs(VERBS_PORT_ERROR);
        sweep();
        until(CONTROL_OPENING_PORT);
        ck_assert_uint_eq(now, first + 5 * S);
}
END_TEST

/* Local tables are read once at a time, and checked between sweeps only. */
START_TEST(local_tables)
{
        const struct local_table table = {port_of(head)->guid, port_of(head)->table, port_of(head)->capacity};
        struct control_event event = {.kind = CONTROL_EVENT_LOCAL_TABLES, .local = {&table, 1}};

        start(ENFORCE, POLICY_1);
        sweep();
        wait_until_due();
        ck_assert_int_eq(state(), CONTROL_IDLE);
        take(CONTROL_READ_LOCAL_TABLES);
        give_kind(CONTROL_EVENT_DUE);
        take_nothing();
        ck_assert_uint_gt(control_due(c), now + S); /* the next sweep; not the tables again */
        until(CONTROL_OPENING_PORT);
        ck_assert_int_eq(give(&event), 0);
        ck_assert_uint_eq(count_logged(LOG_EVENT_KERNEL_VERIFIED), 0);
        sweep();
        wait_until_due();
        answer();
        ck_assert_uint_eq(count_logged(LOG_EVENT_KERNEL_VERIFIED), 1);
}
END_TEST

/* A table that changed in the kernel is read from the SMA at once, and the whole fabric soon. */
START_TEST(local_table_changed)
{
        unsigned before;
        usec_t began;

        settle();
        now += 5 * S;
        port_of(head)->table[5].v = 0x8099;
        give_verbs(VERBS_P_KEY_CHANGE);
        wait_until_due();
        answer();
        ck_assert_uint_eq(control_due(c), now);
        before = n_gets;
        wait_until_due();
        ck_assert_int_eq(state(), CONTROL_OPENING_PORT);
        answer();
        ck_assert_int_eq(state(), CONTROL_SURVEYING);
        answer();
        ck_assert_uint_eq(n_gets, before + 3); /* NodeInfo, and two blocks of 32 */
        sweep();
        ck_assert(!holds(head, 0x8099));
        expect_logged(LOG_EVENT_DRIFT_FOUND, "has unexpected 0x8099");
        began = now;
        until(CONTROL_DISCOVERING);
        ck_assert_uint_le(now, began + 5 * S);
}
END_TEST

/* There may be no snapshot: the last sweep found another port, and failed. */
START_TEST(local_table_changed_without_a_snapshot)
{
        settle();
        local_guid.v = 0x901;
        until(CONTROL_DISCOVERING);
        take(CONTROL_RUN_STAGE);
        give_stage_end(-EIO);
        ck_assert_ptr_null(status()->snapshot);
        local_guid = port_of(head)->guid;
        port_of(head)->table[5].v = 0x8099;
        now += 2 * S;
        give_verbs(VERBS_P_KEY_CHANGE);
        wait_until_due();
        answer();
        until(CONTROL_OPENING_PORT);
        sweep();
        ck_assert(!holds(head, 0x8099));
}
END_TEST

/* A P_Key change while a sweep runs is that sweep's own doing. */
START_TEST(local_table_changed_by_the_sweep)
{
        start(ENFORCE, POLICY_1);
        until(CONTROL_APPLYING);
        give_verbs(VERBS_P_KEY_CHANGE);
        ck_assert_uint_eq(control_due(c), USEC_INFINITY);
        sweep();
        ck_assert_uint_eq(status()->numbers.sweeps[SWEEP_DONE], 1);
}
END_TEST

/* Each event is a debug line. */
START_TEST(verbs_events_in_words)
{
        static const char *const texts[] = {
                        [VERBS_P_KEY_CHANGE] = "mlx5_0/1: P_Key change",
                        [VERBS_LID_CHANGE] = "mlx5_0/1: LID change",
                        [VERBS_SM_CHANGE] = "mlx5_0/1: SM change",
                        [VERBS_CLIENT_REREGISTER] = "mlx5_0/1: client reregister",
                        [VERBS_PORT_ACTIVE] = "mlx5_0/1: port active",
                        [VERBS_PORT_ERROR] = "mlx5_0/1: port error",
                        [VERBS_DEVICE_FATAL] = "mlx5_0/1: device fatal",
        };
        struct control_action action;

        settle();
        for (size_t i = 0; i < ELEMENTS(texts); i++) {
                struct control_event event = {
                                .kind = CONTROL_EVENT_VERBS,
                                .verbs = {.kind = (enum verbs_event_kind) i, .device = "mlx5_0", .number = 1},
                };

                ck_assert_int_eq(control_event(c, now, &event), 0);
                ck_assert(control_next_action(c, &action));
                ck_assert_int_eq(action.kind, CONTROL_LOG);
                ck_assert_int_eq(action.entry->event, LOG_EVENT_DEBUG);
                ck_assert_str_eq(action.entry->text, texts[i]);
                ck_assert(control_next_action(c, &action) == (i == VERBS_DEVICE_FATAL));
        }
}
END_TEST

/* Another policy is in force, and its sweep failed before the tables were compared with it: the kernel's tables are not
 * compared with what the policy before it wanted. */
START_TEST(local_table_after_an_apply_that_failed)
{
        settle();
        give_candidate(ENFORCE, POLICY_2, 1);
        until(CONTROL_APPLYING);
        take(CONTROL_RUN_STAGE);
        give_stage_end(-ENODEV);
        ck_assert_int_eq(state(), CONTROL_IDLE);
        ck_assert_uint_eq(status()->in_force->number, 2);
        give_verbs(VERBS_P_KEY_CHANGE);
        ck_assert_uint_gt(control_due(c), now);
        wait_until_due();
        take(CONTROL_OPEN_PORT);
}
END_TEST

/* --- the status --- */

START_TEST(described_in_each_state)
{
        static const char *const texts[CONTROL_N_STATES] = {
                        [CONTROL_IDLE] = "generation 1: 9 ports verified",
                        [CONTROL_OPENING_PORT] = "querying the local port",
                        [CONTROL_QUERYING_PORT] = "querying the local port",
                        [CONTROL_DISCOVERING] = "discovering the fabric",
                        [CONTROL_CHOOSING] = "starting",
                        [CONTROL_SURVEYING] = "reading P_Key tables, 0 % done",
                        [CONTROL_CONFIRMING] = "starting",
                        [CONTROL_LOCKING] = "waiting for another process that writes P_Key tables",
                        [CONTROL_FINDING_SM] = "standing by: the location of the master SM is not known yet",
                        [CONTROL_TAKING_OVER] = "taking over: the master SM is on this host (LID 1), waiting for",
                        [CONTROL_READING_CONF] = "starting",
                        [CONTROL_APPLYING] = "generation 1: writing P_Key tables (",
                        [CONTROL_WRITING_OPENSM] = "generation 1: OpenSM writes P_Key tables (adopt)",
                        [CONTROL_MIRRORING] = "generation 1: ",
                        [CONTROL_ENDED] = "stopping",
        };
        char text[256];

        for (size_t w = 0; w < ELEMENTS(ways); w++, again()) {
                const char *expected = texts[ways[w].state];

                reach(w);
                control_describe(c, text, sizeof(text));
                ck_assert_msg(strncmp(text, expected, strlen(expected)) == 0, "'%s' is not '%s'", text, expected);
        }
}
END_TEST

START_TEST(progress_of_a_survey)
{
        const struct mad_stage *stage;
        struct mad_request request;
        struct mad_result result = {};
        char text[256];

        start(ENFORCE, POLICY_1);
        until(CONTROL_SURVEYING);
        stage = take(CONTROL_RUN_STAGE)->stage;
        ck_assert(stage->next(stage->state, now, &request));
        result.cookie = request.cookie;
        stage->result(stage->state, now, &result);
        control_describe(c, text, sizeof(text));
        ck_assert_str_ne(text, "reading P_Key tables, 0 % done");
        ck_assert_str_ne(text, "reading P_Key tables, 100 % done");
        run_stage(stage);
        control_describe(c, text, sizeof(text));
        ck_assert_str_eq(text, "reading P_Key tables, 100 % done");
}
END_TEST

/* Time does not go back. */
START_TEST(time_that_goes_back)
{
        usec_t latest;

        settle();
        latest = now;
        now -= 500 * S;
        give_verbs(VERBS_PORT_ERROR);
        ck_assert_uint_ge(control_due(c), latest);
}
END_TEST

int main(void)
{
        const TTest *const tests[] = {
                        actions_of_a_sweep,
                        unexpected_answers,
                        unexpected_answers_while_a_file_is_written,
                        nothing_is_heard_after_the_end,
                        stop_in_each_state,
                        stop_unlocks,
                        reload_in_each_state,
                        reload_ends_an_apply,
                        refused_files_do_not_end_an_apply,
                        cannot_start_without_files,
                        last_policy_stays_in_force,
                        same_policy_after_a_restart,
                        another_policy_after_a_restart,
                        numbers_do_not_go_back,
                        number_of_another_policy,
                        number_of_the_same_policy,
                        number_given_without_a_store,
                        port_that_cannot_be_used,
                        port_name_of_the_settings,
                        port_that_is_down,
                        port_lost_later,
                        reload_while_the_port_is_lost,
                        port_without_a_lid,
                        lock_of_another_process,
                        lock_of_others_again_and_again,
                        no_lock,
                        lock_brings_indexes,
                        gate_is_closed,
                        heard_during_an_apply,
                        indexes_are_stored,
                        store_that_fails,
                        store_that_fails_at_the_end,
                        stored_before_it_is_written,
                        second_phase_is_not_stored,
                        stopped_while_storing,
                        stopped_while_storing_at_the_end,
                        reload_while_storing,
                        reload_while_storing_at_the_end,
                        calm_sweep_stores_its_time,
                        store_that_was_lost,
                        store_that_was_lost_in_audit,
                        verbs_events,
                        verbs_events_of_other_ports,
                        verbs_events_of_this_fabric,
                        verbs_events_in_a_row,
                        p_key_event_without_a_change,
                        local_tables,
                        local_table_changed,
                        local_table_changed_without_a_snapshot,
                        local_table_changed_by_the_sweep,
                        verbs_events_in_words,
                        local_table_after_an_apply_that_failed,
                        described_in_each_state,
                        progress_of_a_survey,
                        time_that_goes_back,
        };

        return run_suite("control", tests, ELEMENTS(tests));
}
