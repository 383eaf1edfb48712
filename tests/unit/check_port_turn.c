/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The turns of a port session, with a port and a clock of the test: what is late by the time at which it happens. */
#include <check.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "shell/port_session.h"

#define TIMEOUT    (500 * USEC_PER_MSEC)
#define START      (7 * USEC_PER_SEC)
#define N_REQUESTS 3

static usec_t now, send_duration, unread;
static int wire;
static struct mad_frame answers[N_REQUESTS];
static size_t n_sent, n_answers;

usec_t __wrap_clock_now(void);
int __wrap_umad_port_open(const struct local_port *lp, struct mad_port **ret);
struct mad_port *__wrap_umad_port_close(struct mad_port *p);
int __wrap_umad_port_send(struct mad_port *p, const struct mad_frame *frame);
int __wrap_umad_port_event_fd(const struct mad_port *p);
size_t __wrap_umad_port_take(struct mad_port *p, struct mad_frame *ret, size_t max);

usec_t __wrap_clock_now(void)
{
        return now;
}

int __wrap_umad_port_open(const struct local_port *lp, struct mad_port **ret)
{
        (void) lp;
        *ret = NULL;
        return 0;
}

struct mad_port *__wrap_umad_port_close(struct mad_port *p)
{
        return p;
}

int __wrap_umad_port_send(struct mad_port *p, const struct mad_frame *frame)
{
        (void) p;
        ck_assert_uint_lt(n_sent, N_REQUESTS);
        now += send_duration;
        answers[n_answers] = *frame;
        answers[n_answers++].mad[3] = MAD_GET_RESP;
        n_sent++;
        return eventfd_write(wire, 1);
}

int __wrap_umad_port_event_fd(const struct mad_port *p)
{
        (void) p;
        return wire;
}

size_t __wrap_umad_port_take(struct mad_port *p, struct mad_frame *ret, size_t max)
{
        size_t n = MIN(n_answers, max);
        eventfd_t ignored;

        (void) p;
        (void) eventfd_read(wire, &ignored);
        memcpy(ret, answers, n * sizeof(*ret));
        now += n > 0 ? unread : 0;
        n_answers = 0;
        return n;
}

struct some_requests {
        usec_t send_before;
        unsigned n_asked, n_ended;
        struct mad_result results[N_REQUESTS];
        bool ended;
};

static bool some_next(void *state, usec_t at, struct mad_request *ret)
{
        struct some_requests *s = state;

        (void) at;
        if (s->n_asked == N_REQUESTS)
                return false;
        *ret = (struct mad_request) {
                .route.lid.v = (uint16_t) (1 + s->n_asked), .destination = s->n_asked, .cookie = s->n_asked, .method = MAD_GET,
                .attribute = SMP_ATTR_PORT_INFO, .send_before = s->send_before,
        };
        s->n_asked++;
        return true;
}

static void some_result(void *state, usec_t at, const struct mad_result *result)
{
        struct some_requests *s = state;

        (void) at;
        s->results[result->cookie] = *result;
        s->n_ended++;
}

static bool some_done(const void *state)
{
        return ((const struct some_requests *) state)->n_ended == N_REQUESTS;
}

static void on_ended(int r, void *userdata)
{
        ck_assert_int_eq(r, 0);
        ((struct some_requests *) userdata)->ended = true;
}

static void run(struct some_requests *s)
{
        const struct settings settings = { .window = 8, .timeout = TIMEOUT };
        const struct port_session_handlers handlers = { .stage_ended = on_ended, .userdata = s };
        const struct mad_stage stage = { .state = s, .next = some_next, .result = some_result, .done = some_done };
        struct port_session *session;
        sd_event *event;

        now = START;
        n_sent = n_answers = 0;
        wire = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        ck_assert_int_ge(wire, 0);
        ck_assert_int_ge(sd_event_new(&event), 0);
        ck_assert_int_eq(port_session_open(event, NULL, &settings, &handlers, &session), 0);
        port_session_run(session, &stage);
        while (!s->ended)
                ck_assert_int_ge(sd_event_run(event, UINT64_MAX), 0);
        port_session_close(session);
        sd_event_unref(event);
        (void) close(wire);
}

/* Each frame leaves by the time that it is then: in one turn, the third is too late. */
START_TEST(sending_takes_time)
{
        struct some_requests s = { .send_before = START + 10 };

        send_duration = 6;
        unread = 0;
        run(&s);
        ck_assert_uint_eq(n_sent, 2);
        ck_assert_int_eq(s.results[1].outcome, MAD_ANSWERED);
        ck_assert(mad_result_is_prompt(&s.results[1]));
        ck_assert_int_eq(s.results[2].outcome, MAD_UNSENT);
}
END_TEST

/* The process is paused while the answers wait. */
START_TEST(answers_lie_unread)
{
        struct some_requests s = {};

        send_duration = 0;
        unread = TIMEOUT;
        run(&s);
        ck_assert_uint_eq(n_sent, N_REQUESTS);
        ck_assert_int_eq(s.results[0].outcome, MAD_ANSWERED);
        ck_assert(!mad_result_is_prompt(&s.results[0]));
}
END_TEST

int main(void)
{
        Suite *s = suite_create("port_turn");
        TCase *t = tcase_create("time");
        SRunner *r;
        int failed;

        tcase_add_test(t, sending_takes_time);
        tcase_add_test(t, answers_lie_unread);
        suite_add_tcase(s, t);
        r = srunner_create(s);
        srunner_run_all(r, CK_ENV);
        failed = srunner_ntests_failed(r);
        srunner_free(r);
        return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
