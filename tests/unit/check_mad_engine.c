/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ib/smp.h"
#include "mad_engine/mad_engine.h"

#define TIMEOUT (500 * USEC_PER_MSEC)
#define START   (7 * USEC_PER_SEC)

/* Room for whatever a broken engine might want to send at once. */
#define FRAMES 4096
#define N_TIDS 20000

static struct mad_engine *new_engine(unsigned window)
{
        struct mad_engine_config config = { .window = window, .timeout = TIMEOUT, .tid_key = 1000 };
        struct mad_engine *e = NULL;

        ck_assert_int_eq(mad_engine_new(&config, &e), 0);
        return e;
}

static struct mad_request request(uint32_t id, uint32_t destination, uint8_t retries)
{
        return (struct mad_request) {
                .route.lid.v = (uint16_t) (destination + 1),
                .destination = destination,
                .cookie = UINT64_C(0x100000000) + id,
                .method = MAD_GET,
                .attribute = SMP_ATTR_P_KEY_TABLE,
                .modifier = id,
                .retries = retries,
        };
}

static void submit(struct mad_engine *e, uint32_t id, uint32_t destination, uint8_t retries)
{
        struct mad_request q = request(id, destination, retries);

        ck_assert_int_eq(mad_engine_submit(e, &q), 0);
}

static uint32_t frame_id(const struct mad_frame *f)
{
        return (uint32_t) f->mad[20] << 24 | (uint32_t) f->mad[21] << 16 | (uint32_t) f->mad[22] << 8 | f->mad[23];
}

static struct mad_frame answer(const struct mad_frame *f, uint16_t status)
{
        struct mad_frame a = *f;

        a.mad[3] = MAD_GET_RESP;
        a.mad[4] |= (uint8_t) (status >> 8);
        a.mad[5] = (uint8_t) status;
        a.mad[8] = 0x77; /* the kernel's half of the transaction ID */
        memcpy(a.mad + 64, f->mad + 20, 4);
        return a;
}

static unsigned send_all(struct mad_engine *e, usec_t now, struct mad_frame *frames)
{
        unsigned n = 0;

        while (mad_engine_next_send(e, now, &frames[n]))
                ck_assert_uint_lt(++n, FRAMES);
        return n;
}

static struct mad_engine_counters counters(const struct mad_engine *e)
{
        struct mad_engine_counters c;

        mad_engine_get_counters(e, &c);
        return c;
}

static void expect_send(struct mad_engine *e, usec_t now, uint32_t id, struct mad_frame *ret)
{
        struct mad_frame none;

        ck_assert(mad_engine_next_send(e, now, ret));
        ck_assert_uint_eq(frame_id(ret), id);
        ck_assert(!mad_engine_next_send(e, now, &none));
}

static void expect_nothing(struct mad_engine *e, usec_t now)
{
        struct mad_result result;
        struct mad_frame f;

        ck_assert(!mad_engine_next_send(e, now, &f));
        ck_assert(!mad_engine_next_result(e, &result));
}

static void expect_result(struct mad_engine *e, uint32_t id, enum mad_outcome outcome)
{
        struct mad_result result;

        ck_assert(mad_engine_next_result(e, &result));
        ck_assert_uint_eq(result.cookie, UINT64_C(0x100000000) + id);
        ck_assert_str_eq(mad_outcome_to_string(result.outcome), mad_outcome_to_string(outcome));
}

static void expect_answer_taken(struct mad_engine *e, usec_t now, const struct mad_frame *f)
{
        struct mad_frame a = answer(f, 0);

        ck_assert_int_eq(mad_engine_receive(e, now, &a), 1);
        expect_result(e, frame_id(f), MAD_ANSWERED);
}

START_TEST(config)
{
        struct mad_engine_config c = { .window = 0, .timeout = 1 };
        struct mad_engine *e = NULL;

        ck_assert_int_eq(mad_engine_new(&c, &e), -EINVAL);
        c = (struct mad_engine_config) { .window = 1, .timeout = 0 };
        ck_assert_int_eq(mad_engine_new(&c, &e), -EINVAL);
        c.timeout = USEC_INFINITY;
        ck_assert_int_eq(mad_engine_new(&c, &e), -EINVAL);
        ck_assert_ptr_null(e);
        ck_assert_ptr_null(mad_engine_free(NULL));
}
END_TEST

START_TEST(one_request)
{
        _cleanup_(mad_engine_free_p) struct mad_engine *e = new_engine(8);
        struct mad_result result;
        struct mad_frame f, a;

        ck_assert(mad_engine_is_idle(e));
        expect_nothing(e, START);
        submit(e, 42, 3, 2);
        ck_assert(!mad_engine_is_idle(e));
        expect_send(e, START, 42, &f);
        ck_assert_uint_eq(f.lid.v, 4);
        ck_assert_uint_eq(f.timeout, TIMEOUT);
        ck_assert(!mad_engine_next_result(e, &result));

        a = answer(&f, 0);
        ck_assert_int_eq(mad_engine_receive(e, START + 5, &a), 1);
        ck_assert(!mad_engine_is_idle(e));
        ck_assert(mad_engine_next_result(e, &result));
        ck_assert_int_eq(result.outcome, MAD_ANSWERED);
        ck_assert(mad_result_is_prompt(&result));
        ck_assert_uint_eq(result.cookie, UINT64_C(0x10000002a));
        ck_assert_mem_eq(result.data, a.mad + 64, SMP_DATA_SIZE);
        ck_assert(mad_engine_is_idle(e));
        expect_nothing(e, START + 10 * TIMEOUT);
}
END_TEST

START_TEST(directed_route)
{
        _cleanup_(mad_engine_free_p) struct mad_engine *e = new_engine(8);
        struct mad_request q = request(1, 1, 0);
        struct mad_frame f, a;

        q.route = (struct mad_route) { .hops = 2, .path = { 0, 1, 4 } };
        ck_assert_int_eq(mad_engine_submit(e, &q), 0);
        ck_assert(mad_engine_next_send(e, START, &f));
        ck_assert(f.directed);
        a = answer(&f, 0x8000);
        ck_assert_int_eq(mad_engine_receive(e, START, &a), 1);
        expect_result(e, 1, MAD_ANSWERED);
}
END_TEST

/* The window starts at 16, is never exceeded, and reaches its bound while all is answered. */
START_TEST(window_bound)
{
        _cleanup_(mad_engine_free_p) struct mad_engine *e = new_engine(_i);
        static struct mad_frame frames[FRAMES];
        unsigned bound = (unsigned) _i, n, largest = 0, in_all = 0;
        usec_t now = START;

        for (uint32_t i = 0; i < 3000; i++)
                submit(e, i, i, 0);
        n = send_all(e, now, frames);
        ck_assert_uint_eq(n, MIN(16U, bound));
        while (n > 0) {
                ck_assert_uint_le(n, bound);
                ck_assert_uint_eq(counters(e).in_flight, n);
                largest = MAX(largest, n);
                for (unsigned i = 0; i < n; i++)
                        expect_answer_taken(e, now, &frames[i]);
                in_all += n;
                now += 100;
                n = send_all(e, now, frames);
        }
        ck_assert_uint_eq(in_all, 3000);
        ck_assert_uint_eq(largest, bound);
        ck_assert(mad_engine_is_idle(e));
}
END_TEST

START_TEST(one_per_destination_in_order)
{
        _cleanup_(mad_engine_free_p) struct mad_engine *e = new_engine(64);
        static struct mad_frame frames[FRAMES];
        usec_t now = START;

        /* ids 0..29: ten to each of three destinations */
        for (uint32_t i = 0; i < 30; i++)
                submit(e, i, i % 3, 1);
        for (uint32_t round = 0; round < 10; round++) {
                ck_assert_uint_eq(send_all(e, now, frames), 3);
                for (uint32_t d = 0; d < 3; d++) {
                        uint32_t id = frame_id(&frames[d]);

                        ck_assert_uint_eq(id / 3, round);
                        expect_answer_taken(e, now, &frames[d]);
                }
        }
        ck_assert(mad_engine_is_idle(e));
}
END_TEST

START_TEST(retries_double)
{
        static const unsigned factors[] = { 1, 2, 4, 4, 4 };
        _cleanup_(mad_engine_free_p) struct mad_engine *e = new_engine(8);
        usec_t now = START;
        struct mad_frame f;
        uint32_t tid = 0;

        submit(e, 1, 1, 4);
        for (size_t i = 0; i < ELEMENTS(factors); i++) {
                expect_send(e, now, 1, &f);
                tid = i == 0 ? mad_frame_tid(&f) : tid;
                ck_assert_uint_eq(mad_frame_tid(&f), tid);
                ck_assert_uint_eq(f.timeout, factors[i] * TIMEOUT);
                while (mad_engine_deadline(e) < now + factors[i] * TIMEOUT)
                        expect_nothing(e, mad_engine_deadline(e));
                ck_assert_uint_eq(mad_engine_deadline(e), now + factors[i] * TIMEOUT);
                now += factors[i] * TIMEOUT;
                if (i + 1 < ELEMENTS(factors))
                        expect_nothing(e, now - 1);
        }
        ck_assert(!mad_engine_next_send(e, now, &f));
        expect_result(e, 1, MAD_TIMED_OUT);
        ck_assert(mad_engine_is_idle(e));
        ck_assert_uint_eq(counters(e).sent, 5);
        ck_assert_uint_eq(counters(e).retried, 4);
        ck_assert_uint_eq(counters(e).timed_out, 5);
}
END_TEST

START_TEST(no_retries)
{
        _cleanup_(mad_engine_free_p) struct mad_engine *e = new_engine(8);
        struct mad_frame f;

        submit(e, 1, 1, 0);
        expect_send(e, START, 1, &f);
        ck_assert(!mad_engine_next_send(e, START + TIMEOUT, &f));
        expect_result(e, 1, MAD_TIMED_OUT);
        ck_assert(mad_engine_is_idle(e));
}
END_TEST

/* The next to a destination goes out when the one before it has ended, however it did. */
START_TEST(successor_after_timeout)
{
        _cleanup_(mad_engine_free_p) struct mad_engine *e = new_engine(8);
        struct mad_frame f;

        submit(e, 1, 1, 0);
        submit(e, 2, 1, 0);
        expect_send(e, START, 1, &f);
        expect_send(e, START + TIMEOUT, 2, &f);
        expect_result(e, 1, MAD_TIMED_OUT);
        expect_answer_taken(e, START + TIMEOUT + 1, &f);
}
END_TEST

/* An answer to the first try that comes when the second is under way ends the request; the second answer is stray. */
START_TEST(late_answer_counts_once)
{
        _cleanup_(mad_engine_free_p) struct mad_engine *e = new_engine(8);
        struct mad_frame first, second, a;
        struct mad_result result;

        submit(e, 1, 1, 3);
        expect_send(e, START, 1, &first);
        expect_send(e, START + TIMEOUT, 1, &second);
        expect_answer_taken(e, START + TIMEOUT + 1, &first);
        a = answer(&second, 0);
        ck_assert_int_eq(mad_engine_receive(e, START + TIMEOUT + 2, &a), 0);
        ck_assert(!mad_engine_next_result(e, &result));
        ck_assert_uint_eq(counters(e).stray, 1);
        ck_assert(mad_engine_is_idle(e));
}
END_TEST

/* An answer counts as prompt unless the request was sent again, or was to be and had to wait. */
START_TEST(which_answers_are_prompt)
{
        for (unsigned retry_is_sent = 0; retry_is_sent < 2; retry_is_sent++) {
                _cleanup_(mad_engine_free_p) struct mad_engine *e = new_engine(1);
                struct mad_frame first[2], f, a;
                struct mad_result result;

                submit(e, 1, 1, 3);
                submit(e, 2, 2, 3);
                expect_send(e, START, 1, &first[0]);
                if (retry_is_sent)
                        expect_send(e, START + TIMEOUT, 1, &f);
                a = answer(&first[0], 0);
                ck_assert_int_eq(mad_engine_receive(e, START + TIMEOUT - !retry_is_sent, &a), 1);
                ck_assert(mad_engine_next_result(e, &result));
                ck_assert(mad_result_is_prompt(&result) == !retry_is_sent);
                expect_send(e, START + TIMEOUT, 2, &first[1]); /* whose own time has just begun */
                a = answer(&first[1], 0x1c);
                ck_assert_int_eq(mad_engine_receive(e, START + TIMEOUT, &a), 1);
                ck_assert(mad_engine_next_result(e, &result));
                ck_assert_int_eq(result.outcome, MAD_REFUSED);
                ck_assert(mad_result_is_prompt(&result));
        }
}
END_TEST

/* Its try is over, and the next one waits for a place in the window, which is smaller now. */
START_TEST(late_answer_is_not_prompt)
{
        _cleanup_(mad_engine_free_p) struct mad_engine *e = new_engine(16);
        static struct mad_frame frames[FRAMES];
        struct mad_result result;
        struct mad_frame last;

        for (uint32_t i = 0; i < 16; i++)
                submit(e, i, i, 3);
        ck_assert_uint_eq(send_all(e, START, frames), 16);
        last = answer(&frames[15], 0);
        ck_assert_uint_lt(send_all(e, START + TIMEOUT, frames), 16);
        ck_assert_int_eq(mad_engine_receive(e, START + TIMEOUT, &last), 1);
        ck_assert(mad_engine_next_result(e, &result));
        ck_assert_int_eq(result.outcome, MAD_ANSWERED);
        ck_assert(!mad_result_is_prompt(&result));
}
END_TEST

/* The same while the window is full, so that the retry is due but not sent. */
START_TEST(late_answer_before_retry)
{
        _cleanup_(mad_engine_free_p) struct mad_engine *e = new_engine(1);
        struct mad_frame first, other, f;

        submit(e, 1, 1, 3);
        submit(e, 2, 2, 3);
        expect_send(e, START, 1, &first);
        expect_send(e, START + TIMEOUT, 1, &f); /* a retry goes before what is new */
        expect_send(e, START + 3 * TIMEOUT, 1, &f);
        expect_answer_taken(e, START + 3 * TIMEOUT + 1, &first);
        expect_send(e, START + 3 * TIMEOUT + 2, 2, &other);
        expect_answer_taken(e, START + 3 * TIMEOUT + 3, &other);
        ck_assert(mad_engine_is_idle(e));
}
END_TEST

/* It lies unread until its time is over, because this process was paused. */
START_TEST(unread_answer_is_not_prompt)
{
        for (uint8_t retries = 0; retries < 2; retries++) {
                _cleanup_(mad_engine_free_p) struct mad_engine *e = new_engine(8);
                struct mad_result result;
                struct mad_frame f, a;

                submit(e, 1, 1, retries);
                expect_send(e, START, 1, &f);
                a = answer(&f, 0);
                ck_assert_int_eq(mad_engine_receive(e, START + TIMEOUT, &a), 1);
                ck_assert(mad_engine_next_result(e, &result));
                ck_assert_int_eq(result.outcome, MAD_ANSWERED);
                ck_assert(!mad_result_is_prompt(&result));
                ck_assert_uint_eq(result.timeouts, 0);
        }
}
END_TEST

START_TEST(answer_after_the_end)
{
        _cleanup_(mad_engine_free_p) struct mad_engine *e = new_engine(8);
        struct mad_frame f, g, a;

        submit(e, 1, 1, 0);
        submit(e, 1, 1, 0); /* asks the very same: only the transaction ID differs */
        expect_send(e, START, 1, &f);
        expect_send(e, START + TIMEOUT, 1, &g);
        expect_result(e, 1, MAD_TIMED_OUT);
        a = answer(&f, 0);
        ck_assert_int_eq(mad_engine_receive(e, START + TIMEOUT, &a), 0);
        ck_assert(!mad_engine_is_idle(e));
        expect_answer_taken(e, START + TIMEOUT, &g);
}
END_TEST

START_TEST(malformed_goes_on_waiting)
{
        static const struct {
                unsigned byte;
                uint8_t value;
        } damages[] = {
                { 0, 2 }, { 1, 0x81 }, { 1, 0x04 }, { 2, 9 }, { 3, MAD_GET }, { 3, MAD_SET }, { 3, 0x01 }, { 17, 0x15 },
                { 16, 1 }, { 23, 0x99 }, { 20, 0x99 },
        };
        _cleanup_(mad_engine_free_p) struct mad_engine *e = new_engine(8);
        struct mad_result result;
        struct mad_frame f, a;

        submit(e, 1, 1, 0);
        expect_send(e, START, 1, &f);
        for (size_t i = 0; i < ELEMENTS(damages); i++) {
                a = answer(&f, 0);
                a.mad[damages[i].byte] = damages[i].value;
                ck_assert_int_eq(mad_engine_receive(e, START, &a), -EBADMSG);
        }
        for (size_t length = 0; length < MAD_SIZE; length++) {
                a = answer(&f, 0);
                a.length = length;
                ck_assert_int_eq(mad_engine_receive(e, START, &a), -EBADMSG);
        }
        ck_assert(!mad_engine_next_result(e, &result));
        ck_assert_uint_eq(counters(e).malformed, ELEMENTS(damages) + MAD_SIZE);
        ck_assert_uint_eq(counters(e).answered, 0);
        expect_answer_taken(e, START + 1, &f);
}
END_TEST

/* Another port guessed the transaction ID. Directed routes have no LIDs. */
START_TEST(answer_of_another_port)
{
        _cleanup_(mad_engine_free_p) struct mad_engine *e = new_engine(8);
        struct mad_request q = request(2, 2, 0);
        struct mad_frame f, a;

        submit(e, 1, 1, 0);
        expect_send(e, START, 1, &f);
        a = answer(&f, 0);
        a.lid.v++;
        ck_assert_int_eq(mad_engine_receive(e, START, &a), -EBADMSG);
        expect_answer_taken(e, START, &f);

        q.route = (struct mad_route) { .hops = 1, .path = { 0, 1 } };
        ck_assert_int_eq(mad_engine_submit(e, &q), 0);
        expect_send(e, START, 2, &f);
        f.lid.v = 7;
        expect_answer_taken(e, START, &f);
        ck_assert_uint_eq(counters(e).malformed, 1);
}
END_TEST

START_TEST(strays)
{
        _cleanup_(mad_engine_free_p) struct mad_engine *e = new_engine(8);
        struct mad_frame f, a;

        submit(e, 1, 1, 0);
        submit(e, 2, 1, 0);
        expect_send(e, START, 1, &f);
        a = answer(&f, 0);
        a.mad[15]++; /* a transaction ID that nothing has */
        ck_assert_int_eq(mad_engine_receive(e, START, &a), 0);
        a.mad[12] ^= 0x80;
        ck_assert_int_eq(mad_engine_receive(e, START, &a), 0);
        ck_assert_uint_eq(counters(e).stray, 2);
        expect_answer_taken(e, START, &f);
}
END_TEST

START_TEST(refused)
{
        _cleanup_(mad_engine_free_p) struct mad_engine *e = new_engine(8);
        struct mad_result result;
        struct mad_frame f, a;

        submit(e, 1, 1, 5);
        expect_send(e, START, 1, &f);
        a = answer(&f, 0x001c);
        ck_assert_int_eq(mad_engine_receive(e, START, &a), 1);
        ck_assert(mad_engine_next_result(e, &result));
        ck_assert_int_eq(result.outcome, MAD_REFUSED);
        ck_assert_uint_eq(result.mad_status, 0x001c);
        ck_assert(mad_engine_is_idle(e));
}
END_TEST

static void tell_busy(struct mad_engine *e, usec_t now, const struct mad_frame *f)
{
        struct mad_frame a = answer(f, 0x0001);

        ck_assert_int_eq(mad_engine_receive(e, now, &a), 1);
}

START_TEST(busy_waits)
{
        _cleanup_(mad_engine_free_p) struct mad_engine *e = new_engine(8);
        usec_t now = START, pause = 0;
        struct mad_frame f;

        submit(e, 1, 1, 3);
        submit(e, 2, 1, 3);
        for (unsigned i = 0; i < 3; i++) {
                expect_send(e, now, 1, &f);
                tell_busy(e, now, &f);
                expect_nothing(e, now);
                ck_assert_uint_gt(mad_engine_deadline(e) - now, pause); /* longer each time */
                pause = mad_engine_deadline(e) - now;
                ck_assert_uint_lt(pause, TIMEOUT);
                expect_nothing(e, now + pause - 1);
                now += pause;
        }
        expect_send(e, now, 1, &f);
        tell_busy(e, now, &f);
        expect_result(e, 1, MAD_BUSY);
        expect_send(e, now, 2, &f);
        expect_answer_taken(e, now, &f);
        ck_assert_uint_eq(counters(e).busy, 4);
        ck_assert_uint_ge(counters(e).window, 8);
}
END_TEST

START_TEST(busy_then_answered)
{
        _cleanup_(mad_engine_free_p) struct mad_engine *e = new_engine(8);
        struct mad_frame f, g, a;

        submit(e, 1, 1, 1);
        expect_send(e, START, 1, &f);
        tell_busy(e, START, &f);
        a = answer(&f, 0x0001);
        ck_assert_int_eq(mad_engine_receive(e, START, &a), 0); /* received twice */
        expect_send(e, mad_engine_deadline(e), 1, &g);
        expect_answer_taken(e, START + TIMEOUT / 2, &g);
        ck_assert(mad_engine_is_idle(e));
}
END_TEST

START_TEST(busy_without_retries)
{
        _cleanup_(mad_engine_free_p) struct mad_engine *e = new_engine(8);
        struct mad_frame f;

        submit(e, 1, 1, 0);
        expect_send(e, START, 1, &f);
        tell_busy(e, START, &f);
        expect_result(e, 1, MAD_BUSY);
        ck_assert(mad_engine_is_idle(e));
}
END_TEST

/* A frame that could not be sent does not count as a try: even a request without retries is sent again, but not forever. */
START_TEST(send_failed)
{
        _cleanup_(mad_engine_free_p) struct mad_engine *e = new_engine(8);
        usec_t now = START;
        struct mad_frame f;
        unsigned n = 0;

        submit(e, 1, 1, 0);
        expect_send(e, now, 1, &f);
        mad_engine_send_failed(e, now, &f, -EAGAIN);
        ck_assert_uint_eq(counters(e).sent, 0);
        ck_assert_uint_eq(counters(e).in_flight, 0);
        now = mad_engine_deadline(e);
        ck_assert_uint_gt(now, START);
        expect_send(e, now, 1, &f);
        ck_assert_uint_eq(f.timeout, TIMEOUT);
        expect_answer_taken(e, now, &f);

        submit(e, 2, 2, 200);
        while (mad_engine_next_send(e, now, &f)) {
                mad_engine_send_failed(e, now, &f, ENOBUFS);
                if (mad_engine_deadline(e) != USEC_INFINITY)
                        now = mad_engine_deadline(e);
                ck_assert_uint_lt(n++, 20);
        }
        ck_assert_uint_gt(n, 1);
        expect_result(e, 2, MAD_UNSENT);
        ck_assert(mad_engine_is_idle(e));
        mad_engine_send_failed(e, now, &f, ENOBUFS); /* of a request that is no more: nothing */
        ck_assert(mad_engine_is_idle(e));
}
END_TEST

START_TEST(send_failed_for_good)
{
        _cleanup_(mad_engine_free_p) struct mad_engine *e = new_engine(8);
        struct mad_frame f;

        submit(e, 1, 1, 7);
        submit(e, 2, 1, 7);
        expect_send(e, START, 1, &f);
        mad_engine_send_failed(e, START, &f, -ENODEV);
        expect_result(e, 1, MAD_UNSENT);
        expect_send(e, START, 2, &f);
}
END_TEST

/* A Set of subnet management was judged when it was to leave: later, something else may be true. One of the SA was not. */
START_TEST(send_of_a_set_failed)
{
        _cleanup_(mad_engine_free_p) struct mad_engine *e = new_engine(8);
        struct mad_request q = request(1, 1, 7);
        struct mad_frame f;

        q.method = MAD_SET;
        ck_assert_int_eq(mad_engine_submit(e, &q), 0);
        expect_send(e, START, 1, &f);
        mad_engine_send_failed(e, START, &f, ENOBUFS);
        expect_result(e, 1, MAD_UNSENT);
        ck_assert_uint_eq(counters(e).sent, 0);
        ck_assert(mad_engine_is_idle(e));
        q.mgmt_class = MAD_CLASS_SA;
        ck_assert_int_eq(mad_engine_submit(e, &q), 0);
        ck_assert(mad_engine_next_send(e, START, &f));
        mad_engine_send_failed(e, START, &f, ENOBUFS);
        ck_assert(!mad_engine_is_idle(e));
}
END_TEST

/* --- not later than --- */

static void submit_until(struct mad_engine *e, uint32_t id, uint32_t destination, uint8_t retries, usec_t send_before)
{
        struct mad_request q = request(id, destination, retries);

        q.send_before = send_before;
        ck_assert_int_eq(mad_engine_submit(e, &q), 0);
}

/* A moment before its time it is sent; from its time on it ends unsent, and is never sent. */
START_TEST(send_before)
{
        struct mad_engine *e = new_engine(8);
        struct mad_frame f;

        submit_until(e, 1, 1, 0, 1000);
        expect_send(e, 999, 1, &f);
        submit_until(e, 2, 2, 0, 1000);
        ck_assert(!mad_engine_next_send(e, 1000, &f));
        expect_result(e, 2, MAD_UNSENT);
        expect_nothing(e, 2000);
        ck_assert_uint_eq(counters(e).sent, 1);
        mad_engine_free(e);
}
END_TEST

/* It waited behind another to the same destination, or for the window: what may still be sent is sent at once. */
START_TEST(send_before_behind_others)
{
        struct mad_engine *e = new_engine(1);
        struct mad_frame f, second;

        submit(e, 1, 7, 0);
        submit_until(e, 2, 7, 0, 50);
        submit_until(e, 3, 8, 0, 50);
        submit(e, 4, 7, 0);
        expect_send(e, 0, 1, &f);
        expect_nothing(e, 60);
        expect_answer_taken(e, 70, &f);
        ck_assert(mad_engine_next_send(e, 70, &second));
        ck_assert_uint_eq(frame_id(&second), 4);
        expect_result(e, 3, MAD_UNSENT);
        expect_result(e, 2, MAD_UNSENT);
        expect_answer_taken(e, 80, &second);
        ck_assert(mad_engine_is_idle(e));
        mad_engine_free(e);
}
END_TEST

/* What was sent in time is sent again when it got no answer. */
START_TEST(send_before_and_retries)
{
        struct mad_engine *e = new_engine(8);
        struct mad_frame f;

        submit_until(e, 1, 1, 1, 1000);
        expect_send(e, 999, 1, &f);
        expect_send(e, 999 + TIMEOUT, 1, &f);
        expect_answer_taken(e, 1000 + TIMEOUT, &f);
        mad_engine_free(e);
}
END_TEST

/* What this host could not send was not sent. */
START_TEST(send_before_and_failures)
{
        struct mad_engine *e = new_engine(8);
        struct mad_frame f;

        submit_until(e, 1, 1, 0, 1000);
        expect_send(e, 999, 1, &f);
        mad_engine_send_failed(e, 999, &f, EAGAIN);
        expect_nothing(e, 1000);
        ck_assert(!mad_engine_next_send(e, mad_engine_deadline(e), &f));
        expect_result(e, 1, MAD_UNSENT);
        ck_assert(mad_engine_is_idle(e));
        mad_engine_free(e);
}
END_TEST

static void submit_in(struct mad_engine *e, uint32_t id, uint32_t destination, uint8_t lane)
{
        struct mad_request q = request(id, destination, 5);

        q.lane = lane;
        ck_assert_int_eq(mad_engine_submit(e, &q), 0);
}

/* In flight, at rest, to be sent, to be sent again, and in line behind others, of the same lane and of another. */
START_TEST(given_up)
{
        _cleanup_(mad_engine_free_p) struct mad_engine *e = new_engine(8);
        struct mad_frame frames[FRAMES], busy, late;
        struct mad_result result;
        uint32_t ids = 0;

        for (uint32_t id = 1; id <= 3; id++)
                submit_in(e, id, id, 1); /* at rest, lost once, in flight */
        submit_in(e, 4, 4, 0);
        submit_in(e, 5, 4, 1);           /* behind one of lane 0 */
        submit_in(e, 6, 3, 0);           /* behind one of lane 1 */
        submit_in(e, 7, 3, 1);           /* and behind that */
        ck_assert_uint_eq(send_all(e, START, frames), 4);
        expect_answer_taken(e, START, &frames[3]);
        busy = answer(&frames[0], 0x0001);
        ck_assert_int_eq(mad_engine_receive(e, START, &busy), 1);
        submit_in(e, 8, 8, 1);           /* never sent */
        late = answer(&frames[2], 0);

        mad_engine_give_up(e, 1);
        while (mad_engine_next_result(e, &result)) {
                ck_assert_int_eq(result.outcome, MAD_TIMED_OUT);
                ck_assert_uint_eq(result.lane, 1);
                ids |= 1u << (uint32_t) result.cookie;
        }
        ck_assert_uint_eq(ids, 1u << 1 | 1u << 2 | 1u << 3 | 1u << 5 | 1u << 7 | 1u << 8);
        ck_assert_uint_eq(counters(e).in_flight, 0);
        ck_assert_int_eq(mad_engine_receive(e, START, &late), 0);
        expect_send(e, START, 6, &frames[0]); /* of lane 0: as if nothing had been */
        expect_answer_taken(e, START, &frames[0]);
        ck_assert(mad_engine_is_idle(e));
        expect_nothing(e, START + 60 * USEC_PER_SEC);
}
END_TEST

START_TEST(given_up_in_line)
{
        _cleanup_(mad_engine_free_p) struct mad_engine *e = new_engine(1);
        struct mad_result result;
        unsigned n = 0;

        for (uint32_t id = 0; id < 200; id++)
                submit_in(e, id, id % 3, 2);
        mad_engine_give_up(e, 2);
        while (mad_engine_next_result(e, &result))
                n++;
        ck_assert_uint_eq(n, 200);
        ck_assert(mad_engine_is_idle(e));
}
END_TEST

START_TEST(deadline)
{
        _cleanup_(mad_engine_free_p) struct mad_engine *e = new_engine(1);
        struct mad_frame f, g;

        ck_assert_uint_eq(mad_engine_deadline(e), USEC_INFINITY);
        submit(e, 1, 1, 1);
        ck_assert_uint_le(mad_engine_deadline(e), START); /* at once */
        expect_send(e, START, 1, &f);
        submit(e, 2, 2, 1);
        ck_assert_uint_eq(mad_engine_deadline(e), START + TIMEOUT); /* the window is full */
        expect_answer_taken(e, START + 10, &f);
        ck_assert_uint_le(mad_engine_deadline(e), START + 10);
        expect_send(e, START + 20, 2, &g);
        ck_assert_uint_eq(mad_engine_deadline(e), START + 20 + TIMEOUT);
        expect_answer_taken(e, START + 30, &g);
        ck_assert_uint_eq(mad_engine_deadline(e), USEC_INFINITY);
}
END_TEST

/* If the clock jumps back, time stands still for the engine: its deadlines stay in order. */
START_TEST(clock_jumps_back)
{
        _cleanup_(mad_engine_free_p) struct mad_engine *e = new_engine(8);
        struct mad_frame f, g;

        submit(e, 1, 1, 0);
        expect_send(e, START + 100, 1, &f);
        submit(e, 2, 2, 0);
        expect_send(e, START, 2, &g);
        ck_assert_uint_eq(mad_engine_deadline(e), START + 100 + TIMEOUT);
        expect_answer_taken(e, START + 10, &f);
        ck_assert_uint_eq(mad_engine_deadline(e), START + 100 + TIMEOUT);
        ck_assert(!mad_engine_next_send(e, START + 100 + TIMEOUT, &f));
        expect_result(e, 2, MAD_TIMED_OUT);
        ck_assert_uint_eq(mad_engine_deadline(e), USEC_INFINITY);
}
END_TEST

static void take_tids(uint64_t key, uint32_t ret[N_TIDS])
{
        struct mad_engine_config c = { .window = 1, .timeout = TIMEOUT, .tid_key = key };
        _cleanup_(mad_engine_free_p) struct mad_engine *e = NULL;
        struct mad_frame f;

        ck_assert_int_eq(mad_engine_new(&c, &e), 0);
        for (uint32_t i = 0; i < N_TIDS; i++) {
                submit(e, i, 1, 0);
                expect_send(e, START, i, &f);
                ret[i] = mad_frame_tid(&f);
                expect_answer_taken(e, START, &f);
        }
}

DEFINE_COMPARE(compare_tids, uint32_t, ORDER(*a, *b))

/* No two are equal, neither one nor the distance between two tells the next one, and with another key they are others. */
START_TEST(transaction_ids)
{
        static uint32_t ids[N_TIDS], others[N_TIDS];
        unsigned n_near = 0, n_same = 0;

        take_tids(1, ids);
        take_tids(2, others);
        for (size_t i = 2; i < N_TIDS; i++) {
                n_near += ids[i] - ids[i - 1] == ids[i - 1] - ids[i - 2];
                n_same += ids[i] == others[i] || ids[i] - ids[i - 1] == others[i] - others[i - 1];
        }
        ck_assert_uint_le(n_near, 2);
        ck_assert_uint_le(n_same, 2);
        SORT(ids, N_TIDS, compare_tids);
        for (size_t i = 1; i < N_TIDS; i++)
                ck_assert_uint_ne(ids[i], ids[i - 1]);
}
END_TEST

/* Answers until the window is at its bound, then leaves a full window in flight. */
static unsigned open_window(struct mad_engine *e, usec_t now, struct mad_frame *frames, uint32_t *id)
{
        unsigned n;

        for (unsigned i = 0; i < 500; i++, (*id)++)
                submit(e, *id, *id, 1);
        n = send_all(e, now, frames);
        while (counters(e).window < 128) {
                for (unsigned i = 0; i < n; i++)
                        expect_answer_taken(e, now, &frames[i]);
                n = send_all(e, now, frames);
        }
        return n;
}

/* A flight that is lost altogether halves the window once, not once for each MAD of it. */
START_TEST(window_cut_once_per_flight)
{
        _cleanup_(mad_engine_free_p) struct mad_engine *e = new_engine(128);
        static struct mad_frame frames[FRAMES];
        unsigned n, window = 0;
        uint32_t id = 0;

        n = open_window(e, START, frames, &id);
        ck_assert_uint_eq(n, 128);
        n = send_all(e, START + TIMEOUT, frames);
        ck_assert_uint_eq(counters(e).timed_out, 128);
        ck_assert_uint_eq(counters(e).window, 64);
        ck_assert_uint_eq(n, 64);

        /* above the threshold: one more per flight */
        for (unsigned i = 0; i < 64; i++)
                expect_answer_taken(e, START + TIMEOUT + 1, &frames[i]);
        window = counters(e).window;
        ck_assert_uint_eq(window, 65);
}
END_TEST

START_TEST(window_never_closes)
{
        _cleanup_(mad_engine_free_p) struct mad_engine *e = new_engine((unsigned) _i);
        static struct mad_frame frames[FRAMES];
        usec_t now = START;

        for (uint32_t i = 0; i < 500; i++)
                submit(e, i, i, 0);
        for (unsigned i = 0; i < 20; i++) {
                ck_assert_uint_ge(send_all(e, now, frames), MIN(4U, (unsigned) _i));
                now += TIMEOUT;
        }
        ck_assert_uint_eq(counters(e).window, MIN(4U, (unsigned) _i));
}
END_TEST

/* MADs to QP 1 use a lane with flow control: their loss does not indicate full buffers of VL15. */
START_TEST(lost_on_another_lane)
{
        static const enum mad_class classes[] = { MAD_CLASS_SMP, MAD_CLASS_PMA, MAD_CLASS_SA };

        for (size_t i = 0; i < 3; i++) {
                struct mad_engine *e = new_engine(64);
                struct mad_request q = request(1, 1, 0);
                struct mad_frame f;
                unsigned before = counters(e).window;

                q.mgmt_class = classes[i];
                ck_assert_int_eq(mad_engine_submit(e, &q), 0);
                ck_assert(mad_engine_next_send(e, 0, &f));
                ck_assert(!mad_engine_next_send(e, TIMEOUT, &f));
                expect_result(e, 1, MAD_TIMED_OUT);
                ck_assert(i == 0 ? counters(e).window < before : counters(e).window == before);
                mad_engine_free(e);
        }
}
END_TEST

/* All is answered, and the window is at its bound. */
static void settle(struct mad_engine *e, usec_t now, uint32_t *id)
{
        static struct mad_frame frames[FRAMES];

        for (unsigned n = open_window(e, now, frames, id); n > 0; n = send_all(e, now, frames))
                for (unsigned i = 0; i < n; i++)
                        expect_answer_taken(e, now, &frames[i]);
        ck_assert_uint_eq(counters(e).window, 128);
}

/* Ten requests to a dead port, three tries each: the window is halved for the first loss, until the second try is silent, too. */
START_TEST(dead_port_does_not_cut)
{
        _cleanup_(mad_engine_free_p) struct mad_engine *e = new_engine(128);
        static struct mad_frame frames[FRAMES];
        unsigned n_sent = 0, ended = 0;
        usec_t now = START;
        uint32_t id = 0;
        struct mad_result result;

        settle(e, now, &id);
        for (uint32_t i = 0; i < 10; i++)
                submit(e, id + i, 1000000, 2);
        while (!mad_engine_is_idle(e)) {
                n_sent += send_all(e, now, frames);
                ck_assert_uint_eq(counters(e).window, n_sent == 2 && now < START + TIMEOUT + TIMEOUT / 8 ? 64 : 128);
                now = mad_engine_deadline(e);
                for (; mad_engine_next_result(e, &result); ended++)
                        ck_assert_int_eq(result.outcome, MAD_TIMED_OUT);
        }
        ck_assert_uint_eq(n_sent, 10 * 3);
        ck_assert_uint_eq(ended, 10);
}
END_TEST

/* Of a flight that was lost, one port is dead and another one answers when asked again: the cut stands, and is for both. */
START_TEST(loss_beside_a_dead_port)
{
        _cleanup_(mad_engine_free_p) struct mad_engine *e = new_engine(128);
        static struct mad_frame frames[FRAMES];
        uint32_t id = 0;

        settle(e, START, &id);
        submit(e, id, id, 6);
        submit(e, id + 1, id + 1, 6);
        ck_assert_uint_eq(send_all(e, START, frames), 2);
        ck_assert_uint_eq(send_all(e, START + TIMEOUT, frames), 2);
        ck_assert_uint_eq(counters(e).window, 64);
        expect_answer_taken(e, START + TIMEOUT, &frames[1]);
        for (usec_t now = START + TIMEOUT; now < START + 30 * TIMEOUT; now = mad_engine_deadline(e)) {
                (void) send_all(e, now, frames);
                ck_assert_uint_eq(counters(e).window, 64);
        }
        ck_assert_uint_eq(counters(e).timed_out, 1 + 7);
}
END_TEST

/* A cut for a loss that is known is not taken back by a port that was dead before. */
START_TEST(dead_port_of_an_earlier_flight)
{
        _cleanup_(mad_engine_free_p) struct mad_engine *e = new_engine(128);
        static struct mad_frame frames[FRAMES];
        const usec_t second = START + TIMEOUT + TIMEOUT / 2;
        uint32_t id = 0;

        settle(e, START, &id);
        submit(e, id, id, 6);
        ck_assert_uint_eq(send_all(e, START, frames), 1);
        ck_assert_uint_eq(send_all(e, START + TIMEOUT, frames), 1);
        submit(e, id + 1, id + 1, 0);
        ck_assert_uint_eq(send_all(e, second, frames), 1);
        ck_assert_uint_eq(counters(e).window, 128);
        ck_assert_uint_eq(send_all(e, second + TIMEOUT, frames), 0);
        ck_assert_uint_eq(counters(e).window, 64); /* it is not sent again: nothing can tell that the port is dead */
        for (usec_t now = second + TIMEOUT; now < START + 30 * TIMEOUT; now = mad_engine_deadline(e)) {
                (void) send_all(e, now, frames);
                ck_assert_uint_eq(counters(e).window, 64);
        }
}
END_TEST

/* An answer to a later try counts until its timeout, also if it is that the port is busy. */
START_TEST(busy_after_the_flight)
{
        _cleanup_(mad_engine_free_p) struct mad_engine *e = new_engine(8);
        struct mad_frame f;

        submit(e, 1, 1, 3);
        expect_send(e, START, 1, &f);
        expect_send(e, START + TIMEOUT, 1, &f);
        expect_nothing(e, START + 2 * TIMEOUT);
        ck_assert_uint_eq(counters(e).in_flight, 0);
        tell_busy(e, START + 2 * TIMEOUT, &f);
        ck_assert_uint_eq(counters(e).busy, 1);
        expect_send(e, mad_engine_deadline(e), 1, &f);
        expect_answer_taken(e, START + 2 * TIMEOUT + TIMEOUT / 2, &f);
        ck_assert(mad_engine_is_idle(e));
}
END_TEST

/* What is sent and answered after a cut does not confirm it. */
START_TEST(answers_of_others)
{
        _cleanup_(mad_engine_free_p) struct mad_engine *e = new_engine(128);
        struct mad_frame silent, other;
        uint32_t id = 0;

        settle(e, START, &id);
        submit(e, id, id, 6);
        expect_send(e, START, id, &silent);
        expect_send(e, START + TIMEOUT, id, &silent);
        submit(e, id + 1, id + 1, 6);
        expect_send(e, START + TIMEOUT, id + 1, &other);
        expect_answer_taken(e, START + TIMEOUT, &other);
        ck_assert_uint_lt(counters(e).window, 70);
        expect_nothing(e, START + TIMEOUT + TIMEOUT / 8);
        ck_assert_uint_eq(counters(e).window, 128);
}
END_TEST

/* One is lost that is not sent again, and another one of the same flight is silent: nothing tells what lost the first one. */
START_TEST(lost_without_a_retry)
{
        _cleanup_(mad_engine_free_p) struct mad_engine *e = new_engine(128);
        struct mad_frame f;
        uint32_t id = 0;

        settle(e, START, &id);
        submit(e, id, id, 0);
        expect_send(e, START, id, &f);
        submit(e, id + 1, id + 1, 6);
        expect_send(e, START + TIMEOUT / 16, id + 1, &f);
        ck_assert(!mad_engine_next_send(e, START + TIMEOUT, &f));
        expect_result(e, id, MAD_TIMED_OUT);
        expect_send(e, START + TIMEOUT + TIMEOUT / 16, id + 1, &f);
        expect_nothing(e, START + 2 * TIMEOUT);
        ck_assert_uint_eq(counters(e).window, 64);
}
END_TEST

/* One is lost. Beside it a port is silent that was silent before, or that was busy and is asked again: neither shows that the first
 * one is silent. */
START_TEST(silence_of_others)
{
        _cleanup_(mad_engine_free_p) struct mad_engine *e = new_engine(128);
        static struct mad_frame frames[FRAMES];
        struct mad_request q;
        struct mad_frame f;
        uint32_t id = 0;

        settle(e, START, &id);
        q = request(id + 1, id + 1, 6);
        q.doubtful = _i == 0;
        if (_i == 0) {
                ck_assert_int_eq(mad_engine_submit(e, &q), 0);
                expect_send(e, START, id + 1, &f);
        }
        submit(e, id, id, 6);
        expect_send(e, START + TIMEOUT / 16, id, &f);
        if (_i == 1) {
                ck_assert_int_eq(mad_engine_submit(e, &q), 0);
                expect_send(e, START + TIMEOUT, id + 1, &f);
                tell_busy(e, START + TIMEOUT, &f);
        }
        for (usec_t now = START + TIMEOUT; now < START + TIMEOUT + TIMEOUT / 16; now = mad_engine_deadline(e))
                (void) send_all(e, now, frames);
        (void) send_all(e, START + TIMEOUT + TIMEOUT / 16, frames);
        ck_assert_uint_eq(counters(e).window, 64);
        (void) send_all(e, START + TIMEOUT + TIMEOUT * 5 / 32, frames);
        ck_assert_uint_eq(counters(e).window, 64);
        (void) send_all(e, START + TIMEOUT + TIMEOUT * 3 / 16, frames);
        ck_assert_uint_eq(counters(e).window, 128);
}
END_TEST

/* A silent port keeps no place in the window for the time of its later, longer tries. */
START_TEST(silent_ports_hold_up_nobody)
{
        _cleanup_(mad_engine_free_p) struct mad_engine *e = new_engine(128);
        static struct mad_frame frames[FRAMES];
        uint32_t id = 0;

        settle(e, START, &id);
        for (uint32_t i = 0; i < 128; i++)
                submit(e, id + i, id + i, 6);
        ck_assert_uint_eq(send_all(e, START, frames), 128);
        for (usec_t now = START; now < START + 2 * TIMEOUT; now = mad_engine_deadline(e))
                (void) send_all(e, now, frames);
        ck_assert_uint_eq(counters(e).in_flight, 0);
        ck_assert_uint_eq(counters(e).window, 128);
        for (uint32_t i = 128; i < 256; i++)
                submit(e, id + i, id + i, 6);
        ck_assert_uint_eq(send_all(e, START + 2 * TIMEOUT, frames), 128);
}
END_TEST

/* Fifty ports did not answer the last time either: that says nothing of the way to others. One more, of which that is not known,
 * cuts. */
START_TEST(doubtful_do_not_cut)
{
        _cleanup_(mad_engine_free_p) struct mad_engine *e = new_engine(128);
        static struct mad_frame frames[FRAMES];
        struct mad_result result;
        uint32_t id = 0;
        unsigned n;

        settle(e, START, &id);
        for (uint32_t i = 0; i <= 50; i++) {
                struct mad_request q = request(id + i, 1000000 + i, 1);

                q.doubtful = i < 50;
                ck_assert_int_eq(mad_engine_submit(e, &q), 0);
        }
        ck_assert_uint_eq(send_all(e, START, frames), 51);
        n = send_all(e, START + TIMEOUT, frames);
        ck_assert_uint_eq(counters(e).timed_out, 51);
        ck_assert_uint_eq(counters(e).window, 64);
        while (n > 0 && frame_id(&frames[n - 1]) != id + 50)
                n--;
        ck_assert_uint_gt(n, 0);
        expect_answer_taken(e, START + TIMEOUT, &frames[n - 1]);
        for (uint32_t i = 0; i < 50; i++) {
                struct mad_request q = request(id + 100 + i, 2000000 + i, 0);

                q.doubtful = true;
                ck_assert_int_eq(mad_engine_submit(e, &q), 0);
        }
        (void) send_all(e, START + 3 * TIMEOUT, frames);
        while (mad_engine_next_result(e, &result))
                ck_assert_uint_eq(result.timeouts, 2);
        (void) send_all(e, START + 4 * TIMEOUT, frames);
        for (n = 0; mad_engine_next_result(e, &result); n++)
                ck_assert_uint_eq(result.timeouts, 1);
        ck_assert_uint_eq(n, 50);
        ck_assert_uint_eq(counters(e).window, 64);
}
END_TEST

/* A stage that gives what is wanted keeps the window full, and memory does not grow with the number of requests. */
START_TEST(wants_and_memory)
{
        _cleanup_(mad_engine_free_p) struct mad_engine *e = new_engine(64);
        static struct mad_frame frames[FRAMES];
        usec_t now = START;
        uint32_t id = 0;
        size_t slots = 0;

        for (unsigned round = 0; round < 400; round++) {
                unsigned n, wanted = mad_engine_wants(e);

                ck_assert_uint_le(wanted, 200);
                for (; wanted > 0; wanted--, id++)
                        submit(e, id, id % 1000, 0);
                n = send_all(e, now, frames);
                ck_assert_uint_eq(n, counters(e).window);
                ck_assert_uint_lt(mad_engine_wants(e), 64);
                if (round == 100)
                        slots = counters(e).slots;
                for (unsigned i = 0; i < n; i++)
                        expect_answer_taken(e, now, &frames[i]);
                now += 50;
        }
        ck_assert_uint_eq(counters(e).slots, slots);
        ck_assert_uint_le(slots, 512);
}
END_TEST

/* However long a queue to one destination is, what is wanted ends. */
START_TEST(wants_is_bounded)
{
        _cleanup_(mad_engine_free_p) struct mad_engine *e = new_engine(16);
        uint32_t id = 0;

        for (unsigned wanted; (wanted = mad_engine_wants(e)) > 0;)
                for (; wanted > 0; wanted--, id++) {
                        submit(e, id, 5, 0);
                        ck_assert_uint_lt(id, 10000);
                }
        ck_assert_uint_gt(id, 16);
}
END_TEST

/*
 * A hundred thousand random events against a simple model: each request that was submitted ends in exactly one result,
 * in order per destination, one at a time, with as many tries as it may have.
 */
#define MODEL_REQUESTS     60000
#define MODEL_DESTINATIONS 40
#define MODEL_WINDOW       24

struct model_request {
        uint32_t destination, tid;
        unsigned tries, failures;
        uint8_t retries;
        bool done, answered, refused_busy;
};

struct model {
        struct mad_engine *e;
        struct model_request *requests;
        uint32_t n_requests, n_done;
        uint32_t oldest[MODEL_DESTINATIONS];    /* no request below it is pending there */
        struct mad_frame wire[FRAMES];
        unsigned n_wire;
        usec_t now;
        uint64_t random;
};

static uint32_t model_random(struct model *m, uint32_t n)
{
        m->random ^= m->random << 13;
        m->random ^= m->random >> 7;
        m->random ^= m->random << 17;
        return (uint32_t) (m->random >> 11) % n;
}

static uint32_t model_oldest(struct model *m, uint32_t destination)
{
        uint32_t *at = &m->oldest[destination];

        while (*at < m->n_requests && (m->requests[*at].destination != destination || m->requests[*at].done))
                ++*at;
        return *at;
}

static void model_results(struct model *m)
{
        struct mad_result result;

        while (mad_engine_next_result(m->e, &result)) {
                uint32_t id = (uint32_t) (result.cookie & UINT32_MAX);
                struct model_request *q = &m->requests[id];

                ck_assert_uint_lt(id, m->n_requests);
                ck_assert_msg(!q->done, "request %u ended twice", id);
                ck_assert_uint_eq(id, model_oldest(m, q->destination));
                q->done = true;
                m->n_done++;
                ck_assert(q->answered == (result.outcome == MAD_ANSWERED || result.outcome == MAD_REFUSED));
                if (result.outcome == MAD_ANSWERED)
                        ck_assert_uint_eq((uint32_t) result.data[0] << 24 | (uint32_t) result.data[1] << 16 |
                                                  (uint32_t) result.data[2] << 8 | result.data[3], id);
                if (result.outcome == MAD_TIMED_OUT || result.outcome == MAD_BUSY)
                        ck_assert_uint_eq(q->tries, q->retries + 1U);
                if (result.outcome == MAD_BUSY)
                        ck_assert(q->refused_busy);
                if (result.outcome == MAD_UNSENT)
                        ck_assert_uint_gt(q->failures, 0);
        }
}

static void model_submit(struct model *m)
{
        uint32_t id = m->n_requests;
        struct model_request *q = &m->requests[id];

        if (id == MODEL_REQUESTS)
                return;
        q->destination = model_random(m, MODEL_DESTINATIONS);
        q->retries = (uint8_t) model_random(m, 4);
        m->n_requests++;
        submit(m->e, id, q->destination, q->retries);
}

static void model_send(struct model *m)
{
        struct mad_engine_counters before = counters(m->e);
        struct mad_frame f;

        if (!mad_engine_next_send(m->e, m->now, &f)) {
                model_results(m);
                return;
        }
        model_results(m);
        ck_assert_uint_le(counters(m->e).in_flight, counters(m->e).window);
        ck_assert_uint_le(counters(m->e).window, MODEL_WINDOW);
        ck_assert_uint_eq(counters(m->e).sent, before.sent + 1);

        uint32_t id = frame_id(&f);
        struct model_request *q = &m->requests[id];
        ck_assert_uint_lt(id, m->n_requests);
        ck_assert_uint_eq(id, model_oldest(m, q->destination));
        if (q->tries + q->failures > 0)
                ck_assert_uint_eq(q->tid, mad_frame_tid(&f));
        q->tid = mad_frame_tid(&f);
        if (model_random(m, 50) == 0) {
                q->failures++;
                mad_engine_send_failed(m->e, m->now, &f, model_random(m, 3) == 0 ? ENODEV : EAGAIN);
                model_results(m);
                return;
        }
        ck_assert_uint_le(++q->tries, q->retries + 1U);
        ck_assert_uint_lt(m->n_wire, FRAMES);
        m->wire[m->n_wire++] = f;
}

/* One of what is on the wire arrives: well, damaged, twice, with a status, or never. */
static void model_deliver(struct model *m)
{
        uint32_t at = model_random(m, m->n_wire), fate = model_random(m, 20);
        struct mad_frame f = m->wire[at], a = answer(&f, fate == 0 ? 1 : fate == 1 ? 0x0c : 0);
        struct model_request *q = &m->requests[frame_id(&f)];
        bool pending = !q->done;
        int r;

        if (fate != 2)
                m->wire[at] = m->wire[--m->n_wire]; /* else a copy stays for later */
        if (fate == 3)
                return;
        if (fate == 4) {
                a.mad[model_random(m, 4)] ^= 0x40;
                r = mad_engine_receive(m->e, m->now, &a);
                ck_assert_int_eq(r, pending ? -EBADMSG : 0);
                return;
        }
        if (pending && fate == 0)
                q->refused_busy = true;
        else if (pending)
                q->answered = true;
        r = mad_engine_receive(m->e, m->now, &a);
        if (fate != 0)
                ck_assert_int_eq(r, pending);
        model_results(m);
}

static void model_step(struct model *m)
{
        switch (model_random(m, 8)) {
        case 0:
        case 1:
                model_submit(m);
                break;
        case 2:
        case 3:
        case 4:
                model_send(m);
                break;
        case 5:
        case 6:
                if (m->n_wire > 0)
                        model_deliver(m);
                break;
        case 7:
                m->now += model_random(m, 20) == 0 ? model_random(m, 3 * TIMEOUT) : model_random(m, 1000);
                break;
        }
}

START_TEST(random_events)
{
        static struct model m;
        uint64_t seed = UINT64_C(0x9e3779b97f4a7c15) * (unsigned) (_i + 1);

        m = (struct model) { .e = new_engine(MODEL_WINDOW), .now = START, .random = seed };
        m.requests = calloc(MODEL_REQUESTS, sizeof(*m.requests));
        ck_assert_ptr_nonnull(m.requests);
        for (unsigned i = 0; i < 100000; i++)
                model_step(&m);

        /* no more answers: everything ends by timeout */
        for (unsigned i = 0; !mad_engine_is_idle(m.e); i++) {
                ck_assert_uint_lt(i, 10000000);
                m.n_wire = 0;
                model_send(&m);
                if (mad_engine_deadline(m.e) != USEC_INFINITY)
                        m.now = MAX(m.now, mad_engine_deadline(m.e));
        }
        ck_assert_uint_gt(m.n_requests, 20000);
        ck_assert_uint_eq(m.n_done, m.n_requests);
        ck_assert_uint_eq(mad_engine_deadline(m.e), USEC_INFINITY);
        ck_assert_uint_eq(counters(m.e).in_flight, 0);
        mad_engine_free(m.e);
        free(m.requests);
}
END_TEST

static TCase *rules(void)
{
        TCase *t = tcase_create("rules");

        tcase_add_test(t, config);
        tcase_add_test(t, one_request);
        tcase_add_test(t, directed_route);
        tcase_add_test(t, one_per_destination_in_order);
        tcase_add_test(t, retries_double);
        tcase_add_test(t, no_retries);
        tcase_add_test(t, successor_after_timeout);
        tcase_add_test(t, late_answer_counts_once);
        tcase_add_test(t, late_answer_before_retry);
        tcase_add_test(t, which_answers_are_prompt);
        tcase_add_test(t, late_answer_is_not_prompt);
        tcase_add_test(t, unread_answer_is_not_prompt);
        tcase_add_test(t, answer_after_the_end);
        tcase_add_test(t, malformed_goes_on_waiting);
        tcase_add_test(t, answer_of_another_port);
        tcase_add_test(t, strays);
        tcase_add_test(t, refused);
        tcase_add_test(t, busy_waits);
        tcase_add_test(t, busy_then_answered);
        tcase_add_test(t, busy_without_retries);
        tcase_add_test(t, send_failed);
        tcase_add_test(t, send_failed_for_good);
        tcase_add_test(t, send_of_a_set_failed);
        tcase_add_test(t, given_up);
        tcase_add_test(t, given_up_in_line);
        tcase_add_test(t, deadline);
        tcase_add_test(t, send_before);
        tcase_add_test(t, send_before_behind_others);
        tcase_add_test(t, send_before_and_retries);
        tcase_add_test(t, send_before_and_failures);
        tcase_add_test(t, clock_jumps_back);
        tcase_add_test(t, transaction_ids);
        return t;
}

static TCase *window(void)
{
        TCase *t = tcase_create("window");

        tcase_add_loop_test(t, window_bound, 1, 3);
        tcase_add_loop_test(t, window_bound, 15, 18);
        tcase_add_loop_test(t, window_bound, 128, 129);
        tcase_add_test(t, window_cut_once_per_flight);
        tcase_add_loop_test(t, window_never_closes, 1, 7);
        tcase_add_test(t, dead_port_does_not_cut);
        tcase_add_test(t, loss_beside_a_dead_port);
        tcase_add_test(t, dead_port_of_an_earlier_flight);
        tcase_add_test(t, busy_after_the_flight);
        tcase_add_test(t, answers_of_others);
        tcase_add_test(t, lost_without_a_retry);
        tcase_add_loop_test(t, silence_of_others, 0, 2);
        tcase_add_test(t, silent_ports_hold_up_nobody);
        tcase_add_test(t, doubtful_do_not_cut);
        tcase_add_test(t, lost_on_another_lane);
        tcase_add_test(t, wants_and_memory);
        tcase_add_test(t, wants_is_bounded);
        return t;
}

static TCase *model(void)
{
        TCase *t = tcase_create("model");

        tcase_add_loop_test(t, random_events, 0, 4);
        tcase_set_timeout(t, 300);
        return t;
}

int main(void)
{
        Suite *s = suite_create("mad_engine");
        SRunner *r;
        int n_failed;

        suite_add_tcase(s, rules());
        suite_add_tcase(s, window());
        suite_add_tcase(s, model());
        r = srunner_create(s);
        srunner_run_all(r, CK_ENV);
        n_failed = srunner_ntests_failed(r);
        srunner_free(r);
        return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
