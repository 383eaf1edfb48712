/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <stdlib.h>

#include "violations/poll_schedule.h"
#include "violations/violations.h"

#define INTERVAL (60 * USEC_PER_SEC)
#define START    (1000 * USEC_PER_SEC)
#define ITEMS    6
#define APART    (INTERVAL / ITEMS)

static struct poll_schedule schedule;

static void setup(void)
{
        poll_schedule_init(&schedule, INTERVAL);
        poll_schedule_set_items(&schedule, START, ITEMS, 0);
}

static void assert_turn(usec_t now, uint32_t item)
{
        uint32_t i = UINT32_MAX;

        ck_assert_uint_eq(poll_schedule_due(&schedule), now);
        ck_assert(!poll_schedule_next(&schedule, now - 1, &i));
        ck_assert(poll_schedule_next(&schedule, now, &i));
        ck_assert_uint_eq(i, item);
}

/* Takes all turns before `until`, each `late` after it is due. is_behind: in each round a silent port has to wait. Returns how many
 * turns there were. */
static unsigned run(usec_t until, usec_t late, bool is_behind)
{
        unsigned n = 0;
        uint32_t i;

        while (poll_schedule_due(&schedule) < until) {
                usec_t now = poll_schedule_due(&schedule) + late;

                while (poll_schedule_next(&schedule, now, &i)) {
                        schedule.is_behind = is_behind;
                        n++;
                }
        }
        return n;
}

START_TEST(turns_are_an_nth_of_the_interval_apart)
{
        for (uint64_t i = 0; i < 3 * ITEMS; i++)
                assert_turn(START + i * APART, i % ITEMS);
        ck_assert_uint_eq(schedule.n_rounds, 2);
        /* also if it is no whole number of microseconds */
        poll_schedule_set_interval(&schedule, START, 10);
        poll_schedule_set_items(&schedule, START, 3, 3);
        ck_assert_uint_eq(run(poll_schedule_due(&schedule) + 100, 0, false), 30);
}
END_TEST

START_TEST(nothing_to_poll)
{
        uint32_t i;

        poll_schedule_init(&schedule, INTERVAL);
        ck_assert_uint_eq(poll_schedule_due(&schedule), USEC_INFINITY);
        ck_assert(!poll_schedule_next(&schedule, START, &i));
        poll_schedule_set_interval(&schedule, START, INTERVAL / 2);
        poll_schedule_set_items(&schedule, START, ITEMS, 0);
        assert_turn(START, 0);
        assert_turn(START + APART / 2, 1);
}
END_TEST

/* A moment is made up for, a pause is not. */
START_TEST(turns_that_were_missed)
{
        uint32_t i;

        for (uint32_t k = 0; k < 4; k++)
                assert_turn(START + k * APART, k);
        ck_assert(poll_schedule_next(&schedule, START + 4 * APART + USEC_PER_SEC, &i));
        ck_assert_uint_eq(poll_schedule_due(&schedule), START + 5 * APART);
        ck_assert(poll_schedule_next(&schedule, START + 9 * APART, &i));
        ck_assert_uint_eq(i, 5);
        ck_assert(!poll_schedule_next(&schedule, START + 9 * APART, &i));
        assert_turn(START + 10 * APART, 0);
}
END_TEST

START_TEST(other_items_and_another_interval)
{
        assert_turn(START, 0);
        /* of three items the first two had their turn; the next turn stays */
        poll_schedule_set_items(&schedule, START + 1, 3, 2);
        assert_turn(START + APART, 2);
        assert_turn(START + APART + INTERVAL / 3, 0);
        /* a longer interval delays no turn */
        poll_schedule_set_interval(&schedule, START + APART + INTERVAL / 3, 10 * INTERVAL);
        assert_turn(START + APART + 2 * INTERVAL / 3, 1);
        /* after a shorter one the next turn is at most one turn away */
        poll_schedule_set_interval(&schedule, START + 2 * INTERVAL, INTERVAL / 10);
        assert_turn(START + 2 * INTERVAL + INTERVAL / 30, 2);
}
END_TEST

START_TEST(a_cycle_is_a_round_if_no_port_waits)
{
        run(START + 3 * INTERVAL, 0, false);
        ck_assert_uint_eq(schedule.cycle_duration, INTERVAL);
        ck_assert_uint_eq(schedule.cycle, schedule.n_rounds + 1);
        ck_assert(!schedule.is_slow && !poll_schedule_is_late(&schedule));
}
END_TEST

START_TEST(a_cycle_ends_when_no_port_had_to_wait)
{
        run(START + 3 * INTERVAL, 0, true);
        ck_assert_uint_eq(schedule.cycle, 1);
        ck_assert_uint_eq(schedule.cycle_duration, 0);
        run(START + 4 * INTERVAL, 0, false);
        ck_assert_uint_eq(schedule.cycle, 2);
        ck_assert_uint_eq(schedule.cycle_duration, 4 * INTERVAL);
        ck_assert(!schedule.is_slow && !poll_schedule_is_late(&schedule)); /* four rounds, but they took one interval each */
}
END_TEST

/* Late rounds add up; as many in time, in a row, reset them. */
START_TEST(late_and_in_time_again)
{
        usec_t t = START;

        for (unsigned i = 0; i < VIOLATIONS_QUIET_INTERVALS; i++) {
                bool was_late = poll_schedule_is_late(&schedule);

                ck_assert(!was_late);
                run(t += INTERVAL, 0, i == 0 || i == 2);
        }
        run(t += 4 * INTERVAL, 0, true);
        run(t += 2 * INTERVAL, 0, false);
        ck_assert(poll_schedule_is_late(&schedule));
        for (unsigned i = 1; i < VIOLATIONS_QUIET_INTERVALS; i++) {
                ck_assert(poll_schedule_is_late(&schedule));
                run(t += INTERVAL, 0, false);
        }
        ck_assert(!poll_schedule_is_late(&schedule));
}
END_TEST

/* Every turn is taken so late that the next ones are delayed. */
START_TEST(slow_rounds)
{
        run(START + 20 * INTERVAL, APART, false);
        ck_assert(schedule.is_slow && poll_schedule_is_late(&schedule));
        ck_assert_uint_eq(schedule.cycle_duration, 2 * INTERVAL);
        run(START + 30 * INTERVAL, 0, false);
        ck_assert(!schedule.is_slow && !poll_schedule_is_late(&schedule));
}
END_TEST

START_TEST(a_cycle_that_is_no_measure)
{
        run(START + 2 * INTERVAL, 0, false);
        poll_schedule_forget_cycle(&schedule);
        ck_assert_uint_eq(schedule.cycle_duration, 0);
        run(START + 3 * INTERVAL, 0, false);
        ck_assert_uint_eq(schedule.cycle, 4);
        ck_assert_uint_eq(schedule.cycle_duration, 0); /* it began before */
        run(START + 4 * INTERVAL, 0, false);
        ck_assert_uint_eq(schedule.cycle_duration, INTERVAL);
        poll_schedule_set_interval(&schedule, START + 4 * INTERVAL, INTERVAL);
        ck_assert_uint_eq(schedule.cycle_duration, INTERVAL);
        poll_schedule_set_interval(&schedule, START + 4 * INTERVAL, 2 * INTERVAL);
        ck_assert_uint_eq(schedule.cycle_duration, 0);
}
END_TEST

int main(void)
{
        Suite *s = suite_create("poll_schedule");
        TCase *t = tcase_create("poll_schedule");
        SRunner *r;
        int failed;

        tcase_add_checked_fixture(t, setup, NULL);
        tcase_add_test(t, turns_are_an_nth_of_the_interval_apart);
        tcase_add_test(t, nothing_to_poll);
        tcase_add_test(t, turns_that_were_missed);
        tcase_add_test(t, other_items_and_another_interval);
        tcase_add_test(t, a_cycle_is_a_round_if_no_port_waits);
        tcase_add_test(t, a_cycle_ends_when_no_port_had_to_wait);
        tcase_add_test(t, late_and_in_time_again);
        tcase_add_test(t, slow_rounds);
        tcase_add_test(t, a_cycle_that_is_no_measure);
        suite_add_tcase(s, t);
        r = srunner_create(s);
        srunner_run_all(r, CK_NORMAL);
        failed = srunner_ntests_failed(r);
        srunner_free(r);
        return failed != 0;
}
