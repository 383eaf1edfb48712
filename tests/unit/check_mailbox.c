/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The mailbox in etcd: whoever serves it carries out what others left there. */
#include <check.h>
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "etcd/etcd_mailbox.h"
#include "etcd/etcd_message.h"
#include "etcd_fixture.h"
#include "shell/shell.h"
#include "util/text.h"

#define PATIENCE 120u /* seconds */

static struct etcd_cluster cluster;
static struct etcd_config config;
static char fabric[32];
static sd_event *event;
static struct etcd_http *http;

/* A process with a mailbox. */
struct side {
        struct etcd_mailbox *mailbox;
        unsigned n_asked, n_answered;
        uint64_t id;        /* of the last request that it got */
        char asked[64];     /* its text */
        bool replies;       /* at once, with its text and "!" */
        bool stops;         /* it does not serve any more when it gets a request */
        bool asks_again;    /* when it gets an answer */
        uint64_t request;   /* that was answered last */
        int r;
        char answer[64];
};

static struct side a, b;

static void on_asked(uint64_t id, const char *text, void *userdata)
{
        struct side *s = userdata;
        char reply[sizeof(s->asked) + 1];

        s->n_asked++;
        s->id = id;
        snprintf(s->asked, sizeof(s->asked), "%s", text);
        snprintf(reply, sizeof(reply), "%s!", text);
        if (s->replies)
                etcd_mailbox_reply(s->mailbox, id, reply);
        if (s->stops)
                etcd_mailbox_serve(s->mailbox, false);
}

static void on_answered(uint64_t request, int r, const char *text, void *userdata)
{
        struct side *s = userdata;

        s->n_answered++;
        s->request = request;
        s->r = r;
        snprintf(s->answer, sizeof(s->answer), "%s", text ?: "(none)");
        if (s->asks_again)
                ck_assert_int_eq(etcd_mailbox_ask(s->mailbox, request + 1, "again", PATIENCE), 0);
        s->asks_again = false;
}

static void begin_side(struct side *s)
{
        *s = (struct side) {};
        ck_assert_int_eq(etcd_mailbox_new(event, &config, &(struct etcd_mailbox_handlers) { on_asked, on_answered, s },
                                          &s->mailbox), 0);
}

static void begin_cluster(void)
{
        etcd_cluster_start(&cluster, 3);
}

static void end_cluster(void)
{
        etcd_cluster_stop(&cluster);
}

static void setup(void)
{
        static unsigned n;

        snprintf(fabric, sizeof(fabric), "f%d-%u", (int) getpid(), n++);
        etcd_cluster_config(&cluster, &config);
        config.fabric = fabric;
        ck_assert_int_ge(sd_event_new(&event), 0);
        ck_assert_int_eq(etcd_http_new(event, &config, &http), 0);
        begin_side(&a);
        begin_side(&b);
}

static void teardown(void)
{
        a.mailbox = etcd_mailbox_free(a.mailbox);
        b.mailbox = etcd_mailbox_free(b.mailbox);
        http = etcd_http_free(http);
        event = sd_event_unref(event);
}

/* Until *counter is n. */
static void run_until(const unsigned *counter, unsigned n)
{
        usec_t end = clock_now() + PATIENCE * USEC_PER_SEC;

        while (*counter < n) {
                ck_assert_int_ge(sd_event_run(event, USEC_PER_SEC), 0);
                ck_assert_msg(clock_now() < end, "nothing came");
        }
        ck_assert_uint_eq(*counter, n);
}

/* Long enough for some looks. */
static void run_for(usec_t time)
{
        for (usec_t end = clock_now() + time; clock_now() < end;)
                ck_assert_int_ge(sd_event_run(event, end - clock_now()), 0);
}

static void ask(struct side *s, uint64_t request, const char *text)
{
        ck_assert_int_eq(etcd_mailbox_ask(s->mailbox, request, text, PATIENCE), 0);
}

/* How many keys there are in the mailbox. */
static size_t n_keys(void)
{
        const struct etcd_key first = etcd_key(fabric, "", ETCD_NAMES_FIRST), end = etcd_key(fabric, "", ETCD_NAMES_END);
        json_t *answer = NULL;
        size_t n;

        ck_assert_int_eq(etcd_http_call(http, "/v3/kv/range", etcd_range(first.text, end.text, 100, 0), 10 * USEC_PER_SEC, &answer), 0);
        n = json_array_size(json_object_get(answer, "kvs"));
        json_decref(answer);
        return n;
}

static void run_until_keys(size_t n)
{
        usec_t end = clock_now() + PATIENCE * USEC_PER_SEC;

        while (n_keys() != n) {
                ck_assert_int_ge(sd_event_run(event, USEC_PER_SEC / 10), 0);
                ck_assert_msg(clock_now() < end, "the keys did not become %zu", n);
        }
}

static void expect_answer(const struct side *s, uint64_t request, const char *text)
{
        ck_assert_int_eq(s->r, 0);
        ck_assert_uint_eq(s->request, request);
        ck_assert_str_eq(s->answer, text);
}

/* --- requests --------------------------------------------------------------------------------------------------------- */

START_TEST(one_asks_the_other)
{
        b.replies = true;
        etcd_mailbox_serve(b.mailbox, true);
        ask(&a, 7, "do it");
        run_until(&a.n_answered, 1);
        expect_answer(&a, 7, "do it!");
        ask(&a, 8, "and that");
        run_until(&a.n_answered, 2);
        expect_answer(&a, 8, "and that!");
        run_for(2 * USEC_PER_SEC);
        ck_assert_uint_eq(b.n_asked, 2);
        ck_assert_uint_eq(a.n_answered, 2);
        run_until_keys(0);
}
END_TEST

/* Requests wait for who serves, and may be one's own. */
START_TEST(it_begins_to_serve_later)
{
        ask(&a, 1, "x");
        ask(&b, 2, "y");
        run_until_keys(2);
        run_for(2 * USEC_PER_SEC);
        ck_assert_uint_eq(a.n_asked + b.n_asked, 0);
        b.replies = true;
        etcd_mailbox_serve(b.mailbox, true);
        run_until(&b.n_asked, 2);
        run_until(&a.n_answered, 1);
        run_until(&b.n_answered, 1);
        expect_answer(&a, 1, "x!");
        expect_answer(&b, 2, "y!");
}
END_TEST

/* A request is given once, however long it takes. */
START_TEST(an_answer_comes_later)
{
        etcd_mailbox_serve(b.mailbox, true);
        ask(&a, 1, "x");
        run_until(&b.n_asked, 1);
        run_for(2 * USEC_PER_SEC);
        ck_assert_uint_eq(b.n_asked, 1);
        etcd_mailbox_reply(b.mailbox, b.id, "first");
        etcd_mailbox_reply(b.mailbox, b.id, "second");
        etcd_mailbox_reply(b.mailbox, b.id + 1, "to nobody");
        run_until(&a.n_answered, 1);
        expect_answer(&a, 1, "first");
}
END_TEST

/* Another one carries out what was left undone; the answer of the first one does not count any more. */
START_TEST(another_one_serves)
{
        b.stops = true;
        etcd_mailbox_serve(b.mailbox, true);
        ask(&a, 1, "x");
        run_until(&b.n_asked, 1);
        etcd_mailbox_reply(b.mailbox, b.id, "too late");
        a.replies = true;
        etcd_mailbox_serve(a.mailbox, true);
        run_until(&a.n_answered, 1);
        expect_answer(&a, 1, "x!");
        b.stops = false;
        etcd_mailbox_serve(b.mailbox, true);
        run_for(2 * USEC_PER_SEC);
        ck_assert_uint_eq(b.n_asked, 1);
}
END_TEST

/* What was answered before it stopped is answered. */
START_TEST(it_stops_after_its_answer)
{
        b.replies = b.stops = true;
        etcd_mailbox_serve(b.mailbox, true);
        ask(&a, 1, "x");
        run_until(&a.n_answered, 1);
        expect_answer(&a, 1, "x!");
}
END_TEST

/* The same process serves again: it gets what it left undone. */
START_TEST(it_serves_again)
{
        b.stops = true;
        etcd_mailbox_serve(b.mailbox, true);
        ask(&a, 1, "x");
        run_until(&b.n_asked, 1);
        b.stops = false;
        b.replies = true;
        etcd_mailbox_serve(b.mailbox, true);
        run_until(&b.n_asked, 2);
        run_until(&a.n_answered, 1);
        expect_answer(&a, 1, "x!");
}
END_TEST

START_TEST(nobody_serves)
{
        ck_assert_int_eq(etcd_mailbox_ask(a.mailbox, 1, "x", 2), 0);
        run_until(&a.n_answered, 1);
        ck_assert_int_eq(a.r, -ETIMEDOUT);
        ck_assert_str_eq(a.answer, "(none)");
        run_until_keys(0);
        b.replies = true;
        etcd_mailbox_serve(b.mailbox, true);
        run_for(2 * USEC_PER_SEC);
        ck_assert_uint_eq(b.n_asked, 0);
}
END_TEST

/* Who asked has ended: its lease ends, and nobody carries it out after that. */
START_TEST(who_asked_is_gone)
{
        ask(&a, 1, "x");
        run_until_keys(1);
        a.mailbox = etcd_mailbox_free(a.mailbox);
        etcd_mailbox_serve(b.mailbox, true);
        run_until(&b.n_asked, 1);
        etcd_mailbox_reply(b.mailbox, b.id, "to nobody"); /* it does not know that */
        run_for(2 * USEC_PER_SEC);
        ck_assert_uint_eq(b.n_asked, 1);
        ck_assert_uint_eq(n_keys(), 1); /* the answer, as long as the lease */
}
END_TEST

/* More than twice as many as are looked at together, and others that do not belong there. */
START_TEST(many_requests)
{
        static const char *const strange[] = { "12x", "", "-1", "0", "99999999999999999999", "7" };
        json_t *operations = json_array(), *answer = NULL;

        for (size_t i = 0; i < ELEMENTS(strange); i++)
                json_array_append_new(operations, etcd_op_put(etcd_key(fabric, i < 5 ? "ask/" : "answer/", strange[i]).text, "s", 1, 0));
        ck_assert_int_eq(etcd_http_call(http, "/v3/kv/txn", etcd_transaction(json_array(), operations), 10 * USEC_PER_SEC, &answer), 0);
        json_decref(answer);
        b.replies = true;
        for (unsigned i = 0; i < 260; i++)
                ask(&a, i, "x");
        etcd_mailbox_serve(b.mailbox, true);
        run_until(&a.n_answered, 260);
        ck_assert_int_eq(a.r, 0);
        run_for(USEC_PER_SEC);
        ck_assert_uint_eq(b.n_asked, 260);
}
END_TEST

/* Etcd has no majority for a while: requests and answers wait. */
/* A key that is no answer does not answer a request that has no lease yet. */
START_TEST(key_of_another)
{
        json_t *answer = NULL, *put = etcd_op_put(etcd_key(fabric, "answer/", "x").text, "wrong", 5, 0);

        ck_assert_int_eq(etcd_http_call(http, ETCD_TRANSACTION, etcd_transaction(json_array(), json_pack("[o]", put)), 10 * USEC_PER_SEC,
                                        &answer), 0);
        json_decref(answer);
        etcd_mailbox_serve(b.mailbox, true);
        b.replies = a.asks_again = true;
        ask(&a, 1, "one");
        run_until(&a.n_answered, 2);
        expect_answer(&a, 2, "again!");
}
END_TEST

START_TEST(without_a_majority)
{
        etcd_mailbox_serve(b.mailbox, true);
        ask(&a, 1, "x");
        run_until(&b.n_asked, 1);
        etcd_cluster_pause(&cluster, 0);
        etcd_cluster_pause(&cluster, 1);
        etcd_mailbox_reply(b.mailbox, b.id, "now");
        ask(&a, 2, "y");
        run_for(4 * USEC_PER_SEC);
        ck_assert_uint_eq(a.n_answered, 0);
        kill(cluster.pids[0], SIGCONT);
        kill(cluster.pids[1], SIGCONT);
        run_until(&a.n_answered, 1);
        expect_answer(&a, 1, "now");
        run_until(&b.n_asked, 2);
        etcd_mailbox_reply(b.mailbox, b.id, "then");
        run_until(&a.n_answered, 2);
        expect_answer(&a, 2, "then");
}
END_TEST

START_TEST(too_large_for_etcd)
{
        char *large = malloc(3u << 20);

        memset(large, 'x', (3u << 20) - 1);
        large[(3u << 20) - 1] = '\0';
        ask(&a, 1, large);
        free(large);
        run_until(&a.n_answered, 1);
        ck_assert_int_eq(a.r, -EMSGSIZE);
}
END_TEST

int main(void)
{
        const TTest *const tests[] = {
                one_asks_the_other, it_begins_to_serve_later, an_answer_comes_later, another_one_serves,
                it_stops_after_its_answer, it_serves_again,
                nobody_serves, who_asked_is_gone, many_requests, key_of_another, without_a_majority, too_large_for_etcd,
        };
        Suite *suite = suite_create("mailbox");
        TCase *c = tcase_create("mailbox");
        SRunner *runner;
        int n_failed;

        if (!etcd_is_installed()) {
                puts("etcd 3.4 or later is not installed (scripts/install-deps --test)");
                return 77;
        }
        tcase_add_unchecked_fixture(c, begin_cluster, end_cluster);
        tcase_add_checked_fixture(c, setup, teardown);
        tcase_set_timeout(c, 200);
        for (size_t i = 0; i < ELEMENTS(tests); i++)
                tcase_add_test(c, tests[i]);
        suite_add_tcase(suite, c);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed > 0;
}
