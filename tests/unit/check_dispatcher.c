/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ib/sa.h"
#include "ib/smp.h"
#include "mad_engine/dispatcher.h"

#define START   (7 * USEC_PER_SEC)
#define TIMEOUT (500 * USEC_PER_MSEC)
#define PACE    (10 * USEC_PER_MSEC)
#define FRAMES  4096

/* A stage or a background task that has `wanted` requests to make, each to a destination of its own. */
struct asker {
        unsigned wanted, asked, results, unsent;
        bool never_done;
        unsigned reports, resets;
        bool takes_reports;
        usec_t due;
        uint8_t retries;
};

static bool next(void *state, usec_t now, struct mad_request *ret)
{
        struct asker *a = state;

        if (a->asked == a->wanted || now < a->due)
                return false;
        *ret = (struct mad_request) {
                .route.lid.v = (uint16_t) (1 + a->asked), .destination = a->asked, .cookie = a->asked, .method = MAD_GET,
                .attribute = SMP_ATTR_PORT_INFO, .retries = a->retries,
        };
        a->asked++;
        return true;
}

static void take_result(void *state, usec_t now, const struct mad_result *result)
{
        struct asker *a = state;

        (void) now;
        a->results++;
        a->unsent += result->outcome == MAD_UNSENT;
}

static bool is_done(const void *state)
{
        const struct asker *a = state;

        return a->results == a->wanted && !a->never_done;
}

static void progress(const void *state, uint64_t *ret_done, uint64_t *ret_total)
{
        const struct asker *a = state;

        *ret_done = a->results;
        *ret_total = a->wanted;
}

static usec_t due(const void *state)
{
        const struct asker *a = state;

        return a->asked == a->wanted ? USEC_INFINITY : a->due;
}

static bool report(void *state, usec_t now, const struct mad_frame *frame)
{
        struct asker *a = state;

        (void) now;
        (void) frame;
        a->reports++;
        return a->takes_reports;
}

static struct mad_stage stage_of(struct asker *a)
{
        return (struct mad_stage) { .state = a, .next = next, .result = take_result, .done = is_done, .progress = progress };
}

static struct mad_background_task task_of(struct asker *a)
{
        return (struct mad_background_task) { .state = a, .next = next, .result = take_result, .due = due, .report = report };
}

static struct mad_dispatcher *new_dispatcher(unsigned window)
{
        struct mad_engine_config config = { .window = window, .timeout = TIMEOUT, .tid_key = 1 };
        struct mad_dispatcher *d = NULL;

        ck_assert_int_eq(mad_dispatcher_new(&config, &d), 0);
        return d;
}

static unsigned send_all(struct mad_dispatcher *d, usec_t now, struct mad_frame *frames)
{
        unsigned n = 0;

        while (mad_dispatcher_next_send(d, now, &frames[n]))
                ck_assert_uint_lt(++n, FRAMES);
        return n;
}

static void answer(struct mad_dispatcher *d, usec_t now, const struct mad_frame *frame)
{
        struct mad_frame a = *frame;

        a.mad[3] = MAD_GET_RESP;
        mad_dispatcher_receive(d, now, &a);
}

static struct mad_frame frames[FRAMES];

START_TEST(a_stage_runs_to_its_end)
{
        struct mad_dispatcher *d = new_dispatcher(4);
        struct asker a = { .wanted = 10 };
        struct mad_stage stage = stage_of(&a);
        uint64_t done, total;
        int r = 1;

        ck_assert(!mad_dispatcher_is_running(d));
        mad_dispatcher_start(d, &stage);
        ck_assert_uint_eq(send_all(d, START, frames), 4);
        mad_dispatcher_progress(d, &done, &total);
        ck_assert_uint_eq(done, 0);
        ck_assert_uint_eq(total, 10);
        for (unsigned i = 0; i < 10; i++) {
                struct mad_frame first = frames[0];

                ck_assert(mad_dispatcher_is_running(d));
                ck_assert(!mad_dispatcher_take_end(d, &r));
                memmove(frames, frames + 1, 3 * sizeof(*frames));
                answer(d, START, &first);
                (void) send_all(d, START, frames + MIN(3u, 9 - i));
        }
        ck_assert(!mad_dispatcher_is_running(d));
        ck_assert(mad_dispatcher_take_end(d, &r));
        ck_assert_int_eq(r, 0);
        ck_assert(!mad_dispatcher_take_end(d, &r));
        ck_assert_uint_eq(a.results, 10);
        mad_dispatcher_progress(d, &done, &total);
        ck_assert_uint_eq(total, 0);
        (void) mad_dispatcher_free(d);
}
END_TEST

START_TEST(a_stage_without_requests_ends_at_once)
{
        struct mad_dispatcher *d = new_dispatcher(4);
        struct asker a = {};
        struct mad_stage stage = stage_of(&a);
        int r = 1;

        mad_dispatcher_start(d, &stage);
        ck_assert(!mad_dispatcher_take_end(d, &r)); /* not before a turn: never from within start */
        ck_assert_uint_eq(send_all(d, START, frames), 0);
        ck_assert(mad_dispatcher_take_end(d, &r));
        ck_assert_int_eq(r, 0);
        (void) mad_dispatcher_free(d);
}
END_TEST

START_TEST(a_stage_that_waits_for_nothing)
{
        struct mad_dispatcher *d = new_dispatcher(4);
        struct asker a = { .wanted = 1, .never_done = true };
        struct mad_stage stage = stage_of(&a);
        int r = 1;

        mad_dispatcher_start(d, &stage);
        ck_assert_uint_eq(send_all(d, START, frames), 1);
        ck_assert(!mad_dispatcher_take_end(d, &r));
        answer(d, START, &frames[0]);
        ck_assert_uint_eq(send_all(d, START, frames), 0);
        ck_assert(mad_dispatcher_take_end(d, &r));
        ck_assert_int_eq(r, -EDEADLK);
        (void) mad_dispatcher_free(d);
}
END_TEST

START_TEST(lost_answers_end_a_stage_too)
{
        struct mad_dispatcher *d = new_dispatcher(4);
        struct asker a = { .wanted = 2 };
        struct mad_stage stage = stage_of(&a);
        int r = 1;

        mad_dispatcher_start(d, &stage);
        ck_assert_uint_eq(send_all(d, START, frames), 2);
        ck_assert_uint_eq(mad_dispatcher_due(d), START + TIMEOUT);
        ck_assert_uint_eq(send_all(d, START + TIMEOUT - 1, frames), 0);
        ck_assert(!mad_dispatcher_take_end(d, &r));
        ck_assert_uint_eq(send_all(d, START + TIMEOUT, frames), 0);
        ck_assert(mad_dispatcher_take_end(d, &r));
        ck_assert_int_eq(r, 0);
        ck_assert_uint_eq(a.results, 2);
        (void) mad_dispatcher_free(d);
}
END_TEST

/* Its requests are abandoned, and the next stage gets none of their answers. Tasks get theirs. */
START_TEST(an_abandoned_stage)
{
        struct mad_dispatcher *d = new_dispatcher(4);
        struct asker task = { .wanted = 1 }, a = { .wanted = 10 }, b = { .wanted = 1 };
        struct mad_background_task background = task_of(&task);
        struct mad_stage stage = stage_of(&a);
        struct mad_frame of_task;
        int r = 1;

        mad_dispatcher_set_tasks(d, &background, 1);
        ck_assert_uint_eq(send_all(d, START, frames), 1);
        of_task = frames[0];
        mad_dispatcher_abandon(d, START); /* nothing */
        ck_assert(!mad_dispatcher_take_end(d, &r));
        mad_dispatcher_start(d, &stage);
        ck_assert_uint_eq(send_all(d, START, frames), 3);
        mad_dispatcher_abandon(d, START);
        ck_assert(!mad_dispatcher_is_running(d));
        ck_assert(mad_dispatcher_take_end(d, &r));
        ck_assert_int_eq(r, -ECANCELED);
        ck_assert_uint_eq(a.results, 0);

        stage = stage_of(&b);
        mad_dispatcher_start(d, &stage);
        for (unsigned i = 0; i < 3; i++)
                answer(d, START, &frames[i]);
        ck_assert_uint_eq(send_all(d, START, frames), 0); /* the task's request goes to the same port, and is before it */
        answer(d, START, &of_task);
        ck_assert_uint_eq(send_all(d, START, frames + 3), 1);
        ck_assert_uint_eq(task.results, 1);
        ck_assert_uint_eq(a.results, 0);
        ck_assert_uint_eq(b.results, 0);
        answer(d, START, &frames[3]);
        ck_assert_uint_eq(send_all(d, START, frames), 0);
        ck_assert(mad_dispatcher_take_end(d, &r));
        ck_assert_int_eq(r, 0);
        ck_assert_uint_eq(b.results, 1);
        (void) mad_dispatcher_free(d);
}
END_TEST

static unsigned n_taken_back, n_timeouts;

static void take_back(void *state, usec_t now, const struct mad_result *result)
{
        (void) state;
        (void) now;
        n_taken_back++;
        n_timeouts += result->timeouts;
}

/* It learns which of its requests had no answer so far. */
START_TEST(an_abandoned_stage_learns)
{
        struct mad_dispatcher *d = new_dispatcher(4);
        struct asker a = { .wanted = 3, .retries = 5 };
        struct mad_stage stage = stage_of(&a);
        int r;

        stage.take_back = take_back;
        n_taken_back = n_timeouts = 0;
        mad_dispatcher_start(d, &stage);
        ck_assert_uint_eq(send_all(d, START, frames), 3);
        answer(d, START, &frames[0]);
        ck_assert_uint_eq(send_all(d, START, frames), 0);
        ck_assert_uint_eq(send_all(d, START + TIMEOUT, frames), 2);
        mad_dispatcher_abandon(d, START + 2 * TIMEOUT);
        ck_assert(mad_dispatcher_take_end(d, &r));
        ck_assert_int_eq(r, -ECANCELED);
        ck_assert_uint_eq(a.results, 1);
        ck_assert_uint_eq(n_taken_back, 2);
        ck_assert_uint_eq(n_timeouts, 2); /* the second try of each is under way */
        (void) mad_dispatcher_free(d);
}
END_TEST

START_TEST(background_tasks_are_paced)
{
        struct mad_dispatcher *d = new_dispatcher(64);
        struct asker a = { .wanted = 20, .due = START + 3 };
        struct mad_background_task task = task_of(&a);

        mad_dispatcher_set_tasks(d, &task, 1);
        ck_assert_uint_eq(send_all(d, START, frames), 0);
        ck_assert_uint_eq(mad_dispatcher_due(d), (START + 3 + PACE - 1) / PACE * PACE);
        /* eight at a time, however many are due */
        ck_assert_uint_eq(send_all(d, START + PACE, frames), 8);
        ck_assert_uint_eq(mad_dispatcher_due(d), START + PACE + TIMEOUT);
        answer(d, START + PACE, &frames[3]);
        ck_assert_uint_eq(send_all(d, START + PACE, frames), 1);
        ck_assert_uint_eq(a.results, 1);
        (void) mad_dispatcher_free(d);
}
END_TEST

START_TEST(a_stage_goes_before_background_tasks)
{
        struct mad_dispatcher *d = new_dispatcher(8);
        struct asker background = { .wanted = 100 }, a = { .wanted = 1 };
        struct mad_background_task task = task_of(&background);
        struct mad_stage stage = stage_of(&a);
        struct mad_frame more[FRAMES / 64];
        int r = 1;

        mad_dispatcher_set_tasks(d, &task, 1);
        ck_assert_uint_eq(send_all(d, START, frames), 8);
        /* the window is full of the task's requests: the stage waits, and is not taken for one that has nothing to do */
        mad_dispatcher_start(d, &stage);
        ck_assert_uint_eq(send_all(d, START, more), 0);
        ck_assert(!mad_dispatcher_take_end(d, &r));
        for (unsigned i = 0; i < 8; i++)
                answer(d, START, &frames[i]);
        ck_assert_uint_eq(send_all(d, START, more), 1);
        ck_assert_uint_eq(background.results, 8);
        ck_assert_uint_eq(background.asked, 8);
        /* while a stage runs nothing wakes up for the task */
        ck_assert_uint_eq(mad_dispatcher_due(d), START + TIMEOUT);
        answer(d, START, &more[0]);
        (void) send_all(d, START, frames);
        ck_assert(mad_dispatcher_take_end(d, &r));
        ck_assert_uint_eq(send_all(d, START, frames), 8);
        (void) mad_dispatcher_free(d);
}
END_TEST

static struct mad_frame make_report(uint8_t tid)
{
        struct mad_frame f;
        struct inform_info inform = { .subscribe = true };
        struct mad_request q;

        inform_info_request(&inform, (struct lid) { 5 }, 0, 0, &q);
        mad_request_encode(&q, tid, &f);
        f.mad[3] = MAD_REPORT;
        f.mad[16] = 0;
        f.mad[17] = SA_ATTR_NOTICE;
        return f;
}

START_TEST(reports_go_to_who_takes_them)
{
        struct mad_dispatcher *d = new_dispatcher(8);
        struct asker deaf = {}, listener = { .takes_reports = true }, third = { .takes_reports = true };
        struct mad_background_task tasks[] = { task_of(&deaf), task_of(&listener), task_of(&third) };
        struct mad_frame f;

        tasks[0].report = NULL;
        mad_dispatcher_set_tasks(d, tasks, 3);
        f = make_report(9);
        ck_assert(mad_frame_is_report(&f));
        mad_dispatcher_receive(d, START, &f);
        ck_assert_uint_eq(listener.reports, 1);
        ck_assert_uint_eq(third.reports, 0);
        ck_assert_uint_eq(send_all(d, START, frames), 1);
        ck_assert_uint_eq(frames[0].mad[3], MAD_REPORT_RESP);
        ck_assert_uint_eq(mad_frame_tid(&frames[0]), 9);
        ck_assert_uint_eq(frames[0].lid.v, 5);

        /* a Report without a taker is not answered */
        listener.takes_reports = third.takes_reports = false;
        mad_dispatcher_receive(d, START, &f);
        ck_assert_uint_eq(third.reports, 1);
        ck_assert_uint_eq(send_all(d, START, frames), 0);

        /* nor is more than there is room for: the SA sends it again */
        listener.takes_reports = true;
        for (uint8_t i = 0; i < 100; i++) {
                f = make_report(i);
                mad_dispatcher_receive(d, START, &f);
        }
        ck_assert_uint_eq(send_all(d, START, frames), 16);
        (void) mad_dispatcher_free(d);
}
END_TEST

START_TEST(two_tasks_get_their_own_results)
{
        struct mad_dispatcher *d = new_dispatcher(8);
        struct asker one = { .wanted = 1 }, two = { .wanted = 2 };
        struct mad_background_task tasks[] = { task_of(&one), task_of(&two) };
        unsigned n;

        mad_dispatcher_set_tasks(d, tasks, 2);
        /* both query destination 0: one after the other */
        n = send_all(d, START, frames);
        ck_assert_uint_eq(n, 2);
        answer(d, START, &frames[0]);
        ck_assert_uint_eq(send_all(d, START, frames + n), 1);
        answer(d, START, &frames[1]);
        answer(d, START, &frames[2]);
        (void) send_all(d, START, frames);
        ck_assert_uint_eq(one.results, 1);
        ck_assert_uint_eq(two.results, 2);
        (void) mad_dispatcher_free(d);
}
END_TEST

START_TEST(a_host_that_cannot_send)
{
        struct mad_dispatcher *d = new_dispatcher(8);
        struct asker a = { .wanted = 1 };
        struct mad_stage stage = stage_of(&a);
        struct mad_engine_counters c;
        int r = 1;

        mad_dispatcher_start(d, &stage);
        ck_assert(mad_dispatcher_next_send(d, START, &frames[0]));
        mad_dispatcher_send_failed(d, START, &frames[0], ENODEV);
        ck_assert_uint_eq(send_all(d, START, frames), 0);
        ck_assert(mad_dispatcher_take_end(d, &r));
        ck_assert_uint_eq(a.unsent, 1);
        mad_dispatcher_get_counters(d, &c);
        ck_assert_uint_eq(c.sent, 0);
        (void) mad_dispatcher_free(d);
}
END_TEST

static bool next_set(void *state, usec_t now, struct mad_request *ret)
{
        bool any = next(state, now, ret);

        ret->method = MAD_SET;
        ret->destination = 0; /* all to one: they wait for each other */
        ret->send_before = START + 100;
        return any;
}

/* A gate that refuses what goes to one LID. */
struct door {
        uint16_t closed_lid;
        unsigned admitted, refused, seen;
        uint16_t seen_attribute, seen_lid;
};

static bool admit(void *state, const struct mad_frame *frame)
{
        struct door *door = state;
        bool open = frame->lid.v != door->closed_lid;

        door->admitted += open;
        door->refused += !open;
        return open;
}

static void see(void *state, const struct mad_result *result)
{
        struct door *door = state;

        door->seen++;
        door->seen_attribute = result->attribute;
        door->seen_lid = result->route.lid.v;
}

static struct mad_gate gate_of(struct door *door)
{
        return (struct mad_gate) { .state = door, .admit = admit, .see = see };
}

/* What the gate refuses never leaves, and is not tried again; all that ends is seen. */
START_TEST(a_gate)
{
        struct mad_dispatcher *d = new_dispatcher(8);
        struct door door = { .closed_lid = 2 };
        const struct mad_gate gate = gate_of(&door);
        struct asker a = { .wanted = 3 };
        struct mad_stage stage = stage_of(&a);
        int r = 1;

        mad_dispatcher_set_gate(d, &gate);
        mad_dispatcher_start(d, &stage);
        ck_assert_uint_eq(send_all(d, START, frames), 2);
        ck_assert_uint_eq(frames[0].lid.v, 1);
        ck_assert_uint_eq(frames[1].lid.v, 3);
        ck_assert_uint_eq(a.unsent, 1);
        answer(d, START, &frames[0]);
        answer(d, START, &frames[1]);
        ck_assert_uint_eq(send_all(d, START, frames), 0);
        ck_assert(mad_dispatcher_take_end(d, &r));
        ck_assert_uint_eq(door.admitted, 2);
        ck_assert_uint_eq(door.refused, 1);
        ck_assert_uint_eq(door.seen, 3);
        ck_assert_uint_eq(door.seen_attribute, SMP_ATTR_PORT_INFO);
        ck_assert_uint_eq(door.seen_lid, 3);
        (void) mad_dispatcher_free(d);
}
END_TEST

/* Without a gate nothing is changed. */
START_TEST(no_gate)
{
        struct mad_dispatcher *d = new_dispatcher(8);
        struct asker a = { .wanted = 2 };
        struct mad_stage stage = stage_of(&a);

        stage.next = next_set;
        mad_dispatcher_start(d, &stage);
        ck_assert_uint_eq(send_all(d, START, frames), 0);
        ck_assert_uint_eq(a.unsent, 2);
        (void) mad_dispatcher_free(d);
}
END_TEST

/* A Set that waited too long: the stage hears that it was not sent, and it never is. */
START_TEST(a_set_that_waits_too_long)
{
        struct mad_dispatcher *d = new_dispatcher(8);
        struct door door = {};
        const struct mad_gate gate = gate_of(&door);
        struct asker a = { .wanted = 3 };
        struct mad_stage stage = stage_of(&a);
        int r = 1;

        mad_dispatcher_set_gate(d, &gate);
        stage.next = next_set;
        mad_dispatcher_start(d, &stage);
        ck_assert_uint_eq(send_all(d, START, frames), 1);
        answer(d, START + 99, &frames[0]);
        ck_assert_uint_eq(send_all(d, START + 99, frames), 1);
        answer(d, START + 100, &frames[0]);
        ck_assert_uint_eq(send_all(d, START + 100, frames), 0);
        ck_assert(mad_dispatcher_take_end(d, &r));
        ck_assert_int_eq(r, 0);
        ck_assert_uint_eq(a.results, 3);
        ck_assert_uint_eq(a.unsent, 1);
        ck_assert(!mad_dispatcher_take_end(d, &r));
        (void) mad_dispatcher_free(d);
}
END_TEST

/* Background requests fill the window: a stage that is started then has not ended before it could ask. */
START_TEST(a_stage_behind_a_full_window)
{
        struct mad_dispatcher *d = new_dispatcher(2);
        struct asker background = { .wanted = 8 }, a = { .wanted = 1 };
        struct mad_background_task task = task_of(&background);
        struct mad_stage stage = stage_of(&a);
        unsigned n;
        int r = 1;

        mad_dispatcher_set_tasks(d, &task, 1);
        n = send_all(d, START, frames);
        ck_assert_uint_eq(n, 2);
        ck_assert_uint_eq(background.asked, 8);
        mad_dispatcher_start(d, &stage);
        ck_assert_uint_eq(send_all(d, START, frames + 2), 0);
        for (unsigned i = 0; i < 20 && n > 0; i++) {
                struct mad_frame sent[2] = { frames[0], frames[1] };

                ck_assert(!mad_dispatcher_take_end(d, &r));
                for (unsigned k = 0; k < n; k++)
                        answer(d, START + i, &sent[k]);
                n = send_all(d, START + i, frames);
        }
        ck_assert(mad_dispatcher_take_end(d, &r));
        ck_assert_int_eq(r, 0);
        ck_assert_uint_eq(a.results, 1);
        (void) mad_dispatcher_free(d);
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("dispatcher");
        TCase *t = tcase_create("dispatcher");
        SRunner *sr = srunner_create(suite);
        int failed;

        tcase_add_test(t, a_stage_runs_to_its_end);
        tcase_add_test(t, a_stage_without_requests_ends_at_once);
        tcase_add_test(t, a_stage_that_waits_for_nothing);
        tcase_add_test(t, lost_answers_end_a_stage_too);
        tcase_add_test(t, an_abandoned_stage);
        tcase_add_test(t, an_abandoned_stage_learns);
        tcase_add_test(t, background_tasks_are_paced);
        tcase_add_test(t, a_stage_goes_before_background_tasks);
        tcase_add_test(t, reports_go_to_who_takes_them);
        tcase_add_test(t, two_tasks_get_their_own_results);
        tcase_add_test(t, a_host_that_cannot_send);
        tcase_add_test(t, a_set_that_waits_too_long);
        tcase_add_test(t, a_gate);
        tcase_add_test(t, no_gate);
        tcase_add_test(t, a_stage_behind_a_full_window);
        suite_add_tcase(suite, t);
        srunner_run_all(sr, CK_ENV);
        failed = srunner_ntests_failed(sr);
        srunner_free(sr);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
