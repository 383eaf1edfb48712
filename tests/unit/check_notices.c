/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The subscription in virtual time, against an SA of a few lines. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "notices/notices.h"

#define MINUTE (60 * USEC_PER_SEC)

static const struct notices_sa an_sa = { .lid.v = 7, .sl = 2 };
static const struct notices_sa with_key = { .lid.v = 7, .sl = 2, .sm_key = 0x77 };

struct fixture {
        struct notices *n;
        struct mad_background_task stage;
        usec_t now;
        struct mad_request request; /* the last one */
};

static void init(struct fixture *f)
{
        *f = (struct fixture) { .n = notices_new(), .now = 1000 };
        ck_assert_ptr_nonnull(f->n);
        f->stage = notices_task(f->n);
}

static struct notices_status status(const struct fixture *f)
{
        struct notices_status s;

        notices_get_status(f->n, &s);
        return s;
}

/* Sleeps until something is due and takes it. */
static void wait_for_request(struct fixture *f)
{
        usec_t due = f->stage.due(f->stage.state);

        ck_assert(due != USEC_INFINITY);
        if (due > f->now) {
                ck_assert(!f->stage.next(f->stage.state, due - 1, &f->request));
                f->now = due;
        }
        ck_assert(f->stage.next(f->stage.state, f->now, &f->request));
        ck_assert_uint_eq(f->request.mgmt_class, MAD_CLASS_SA);
        ck_assert_uint_eq(f->request.method, MAD_SET);
        ck_assert_uint_eq(f->request.attribute, SA_ATTR_INFORM_INFO);
}

static unsigned trap_of(const struct mad_request *r)
{
        return (unsigned) (r->data[26] << 8 | r->data[27]);
}

/* It must be for this: trap (0xffff: of type 2), subscribing or not, with that key. */
static void expect(struct fixture *f, unsigned trap, bool subscribe, uint64_t key)
{
        struct mad_request more;

        wait_for_request(f);
        ck_assert_uint_eq(trap_of(&f->request), trap);
        ck_assert_uint_eq(f->request.data[25], trap == 0xffff ? 2 : 0xff);
        ck_assert_uint_eq(f->request.data[23], subscribe);
        ck_assert_uint_eq(f->request.key, key);
        /* one at a time */
        ck_assert(f->stage.due(f->stage.state) == USEC_INFINITY);
        ck_assert(!f->stage.next(f->stage.state, f->now + 60 * MINUTE, &more));
}

static void end(struct fixture *f, enum mad_outcome outcome, uint16_t mad_status)
{
        struct mad_result result = { .cookie = f->request.cookie, .outcome = outcome, .mad_status = mad_status };

        memcpy(result.data, f->request.data, sizeof(result.data));
        f->now += 100;
        f->stage.result(f->stage.state, f->now, &result);
}

static void expect_taken(struct fixture *f, unsigned trap, uint64_t key)
{
        expect(f, trap, true, key);
        end(f, MAD_ANSWERED, 0);
}

static void subscribe_all(struct fixture *f, uint64_t key)
{
        expect_taken(f, 257, key);
        expect_taken(f, 258, key);
        expect_taken(f, 259, key);
        ck_assert_uint_eq(status(f).state, NOTICES_SUBSCRIBED);
        ck_assert(!status(f).by_type);
}

/* A subscription that an earlier process may have made; the SA does not know it. */
static void expect_left(struct fixture *f)
{
        expect(f, 0xffff, false, 0);
        end(f, MAD_REFUSED, 0x0200);
        ck_assert_uint_eq(status(f).state, NOTICES_SUBSCRIBED);
}

START_TEST(subscribes_and_again)
{
        struct fixture f;
        struct mad_request none;
        usec_t then;

        init(&f);
        ck_assert_uint_eq(status(&f).state, NOTICES_OFF);
        ck_assert(f.stage.due(f.stage.state) == USEC_INFINITY);
        ck_assert(!f.stage.next(f.stage.state, f.now, &none));
        notices_set_sa(f.n, f.now, &with_key, false);
        ck_assert_uint_eq(status(&f).state, NOTICES_SUBSCRIBING);
        expect(&f, 257, true, 0x77);
        ck_assert_uint_eq(f.request.route.lid.v, 7);
        ck_assert_uint_eq(f.request.route.sl, 2);
        ck_assert_uint_gt(f.request.retries, 0);
        end(&f, MAD_ANSWERED, 0);
        expect_taken(&f, 258, 0x77);
        ck_assert_uint_eq(status(&f).state, NOTICES_SUBSCRIBING);
        expect_taken(&f, 259, 0x77);
        ck_assert_uint_eq(status(&f).state, NOTICES_SUBSCRIBED);
        expect_left(&f);
        /* the same SA is no news */
        then = f.now;
        notices_set_sa(f.n, f.now, &with_key, false);
        wait_for_request(&f);
        ck_assert(f.now == then + 10 * MINUTE);
        ck_assert_uint_eq(status(&f).state, NOTICES_SUBSCRIBED);
        end(&f, MAD_ANSWERED, 0);
        expect_taken(&f, 258, 0x77);
        expect_taken(&f, 259, 0x77);
        ck_assert_uint_eq(status(&f).state, NOTICES_SUBSCRIBED);
        notices_free(f.n);
}
END_TEST

START_TEST(sa_changes)
{
        struct fixture f;
        struct notices_sa other = { .lid.v = 9 }, none = {}, mad = { .lid.v = 0xffff };
        usec_t then;

        init(&f);
        notices_set_sa(f.n, f.now, &an_sa, false);
        subscribe_all(&f, 0);
        then = f.now;
        notices_set_sa(f.n, f.now, &other, false);
        ck_assert_uint_eq(status(&f).state, NOTICES_SUBSCRIBING);
        expect(&f, 257, true, 0);
        ck_assert(f.now == then);
        ck_assert_uint_eq(f.request.route.lid.v, 9);
        /* it changes back while an answer is pending: that answer is awaited, but does not count */
        notices_set_sa(f.n, f.now, &an_sa, false);
        ck_assert(f.stage.due(f.stage.state) == USEC_INFINITY);
        end(&f, MAD_ANSWERED, 0);
        subscribe_all(&f, 0);
        ck_assert_uint_eq(f.request.route.lid.v, 7);
        /* client reregistration */
        notices_set_sa(f.n, f.now, &an_sa, true);
        subscribe_all(&f, 0);
        /* no SA */
        notices_set_sa(f.n, f.now, &none, false);
        ck_assert_uint_eq(status(&f).state, NOTICES_OFF);
        ck_assert(f.stage.due(f.stage.state) == USEC_INFINITY);
        notices_set_sa(f.n, f.now, &mad, true);
        ck_assert_uint_eq(status(&f).state, NOTICES_OFF);
        notices_set_sa(f.n, f.now, &an_sa, false);
        subscribe_all(&f, 0);
        notices_free(f.n);
}
END_TEST

/* OpenSM without its sa_key. */
START_TEST(refused_by_number)
{
        struct fixture f;

        init(&f);
        notices_set_sa(f.n, f.now, &an_sa, false);
        expect(&f, 257, true, 0);
        end(&f, MAD_REFUSED, 0x0200);
        ck_assert_uint_eq(status(&f).state, NOTICES_SUBSCRIBING);
        expect_taken(&f, 0xffff, 0);
        ck_assert_uint_eq(status(&f).state, NOTICES_SUBSCRIBED);
        ck_assert(status(&f).by_type && !status(&f).key_unanswered);
        /* what is known to work is kept alive, without another refusal in the SA's log */
        expect_taken(&f, 0xffff, 0);
        expect_taken(&f, 0xffff, 0);
        /* with a key, by number; and the type is given back */
        notices_set_sa(f.n, f.now, &with_key, false);
        expect_taken(&f, 257, 0x77);
        expect_taken(&f, 258, 0x77);
        expect_taken(&f, 259, 0x77);
        ck_assert_uint_eq(status(&f).state, NOTICES_SUBSCRIBED);
        ck_assert(!status(&f).by_type);
        expect(&f, 0xffff, false, 0);
        ck_assert_uint_lt(f.request.retries, STAGE_RETRIES);
        end(&f, MAD_ANSWERED, 0);
        subscribe_all(&f, 0x77);
        ck_assert(f.stage.due(f.stage.state) > f.now + 9 * MINUTE);
        /* without a key again: the traps are unsubscribed with the key of their subscription */
        notices_set_sa(f.n, f.now, &an_sa, false);
        expect(&f, 257, true, 0);
        end(&f, MAD_REFUSED, 0x0200);
        expect_taken(&f, 0xffff, 0);
        for (unsigned trap = 257; trap <= 259; trap++) {
                expect(&f, trap, false, 0x77);
                end(&f, MAD_ANSWERED, 0);
        }
        ck_assert(f.stage.due(f.stage.state) > f.now + 9 * MINUTE);
        notices_free(f.n);
}
END_TEST

/* An SA that takes some of it, and one that answers without an error and without a subscription. */
START_TEST(refused_in_part)
{
        struct fixture f;
        struct mad_result result = { .outcome = MAD_ANSWERED };

        init(&f);
        notices_set_sa(f.n, f.now, &an_sa, false);
        expect_taken(&f, 257, 0);
        expect(&f, 258, true, 0);
        result.cookie = f.request.cookie;
        memcpy(result.data, f.request.data, sizeof(result.data));
        result.data[23] = 0;
        f.stage.result(f.stage.state, f.now, &result);
        expect_taken(&f, 0xffff, 0);
        ck_assert_uint_eq(status(&f).state, NOTICES_SUBSCRIBED);
        /* 257 would come twice; 258 was not taken */
        expect(&f, 257, false, 0);
        end(&f, MAD_TIMED_OUT, 0);
        ck_assert_uint_eq(status(&f).state, NOTICES_SUBSCRIBED);
        /* not known whether it is gone: once more the next time */
        expect_taken(&f, 0xffff, 0);
        expect(&f, 257, false, 0);
        end(&f, MAD_REFUSED, 0x0200);
        expect_taken(&f, 0xffff, 0);
        expect_taken(&f, 0xffff, 0);
        notices_free(f.n);
}
END_TEST

START_TEST(refused_altogether)
{
        struct fixture f;
        static const usec_t waits[] = { 5, 10, 20, 40, 80, 160, 320, 600, 600 };

        init(&f);
        notices_set_sa(f.n, f.now, &an_sa, false);
        for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
                expect(&f, 257, true, 0);
                end(&f, MAD_REFUSED, 0x0200);
                expect(&f, 0xffff, true, 0);
                end(&f, MAD_REFUSED, 0x0100);
                ck_assert_uint_eq(status(&f).state, NOTICES_REFUSED);
                ck_assert_uint_eq(status(&f).mad_status, 0x0100);
                ck_assert(f.stage.due(f.stage.state) == f.now + waits[i] * USEC_PER_SEC);
        }
        subscribe_all(&f, 0);
        ck_assert_uint_eq(status(&f).mad_status, 0);
        expect_left(&f);
        /* patience begins anew */
        expect(&f, 257, true, 0);
        end(&f, MAD_TIMED_OUT, 0);
        ck_assert_uint_eq(status(&f).state, NOTICES_UNANSWERED);
        ck_assert(f.stage.due(f.stage.state) == f.now + 5 * USEC_PER_SEC);
        notices_free(f.n);
}
END_TEST

START_TEST(silence)
{
        struct fixture f;
        static const enum mad_outcome outcomes[] = { MAD_TIMED_OUT, MAD_BUSY, MAD_UNSENT };
        usec_t wait = 5 * USEC_PER_SEC;

        init(&f);
        notices_set_sa(f.n, f.now, &an_sa, false);
        for (size_t i = 0; i < 3; i++, wait *= 2) {
                expect(&f, 257, true, 0);
                end(&f, outcomes[i], 0);
                ck_assert_uint_eq(status(&f).state, NOTICES_UNANSWERED);
                ck_assert(f.stage.due(f.stage.state) == f.now + wait);
        }
        /* it is back and reports that */
        notices_set_sa(f.n, f.now, &an_sa, true);
        ck_assert_uint_eq(status(&f).state, NOTICES_SUBSCRIBING);
        subscribe_all(&f, 0);
        notices_free(f.n);
}
END_TEST

/* OpenSM with another sa_key. */
START_TEST(wrong_key)
{
        struct fixture f;

        init(&f);
        notices_set_sa(f.n, f.now, &with_key, false);
        expect(&f, 257, true, 0x77);
        end(&f, MAD_TIMED_OUT, 0);
        expect_taken(&f, 0xffff, 0);
        ck_assert_uint_eq(status(&f).state, NOTICES_SUBSCRIBED);
        ck_assert(status(&f).by_type && status(&f).key_unanswered);
        /* in case only the answer was lost; not forever */
        for (unsigned i = 0; i < 5; i++) {
                expect(&f, 257, false, 0x77);
                end(&f, MAD_TIMED_OUT, 0);
                ck_assert_uint_eq(status(&f).state, NOTICES_SUBSCRIBED);
                expect_taken(&f, 0xffff, 0);
        }
        expect_taken(&f, 0xffff, 0);
        /* no SA */
        expect(&f, 0xffff, true, 0);
        end(&f, MAD_TIMED_OUT, 0);
        ck_assert_uint_eq(status(&f).state, NOTICES_UNANSWERED);
        /* the key is tried again */
        subscribe_all(&f, 0x77);
        ck_assert(!status(&f).key_unanswered);
        notices_free(f.n);
}
END_TEST

START_TEST(port_is_closed)
{
        struct fixture f;
        struct mad_request old;

        init(&f);
        notices_set_sa(f.n, f.now, &an_sa, false);
        expect_taken(&f, 257, 0);
        expect(&f, 258, true, 0);
        old = f.request;
        f.stage.reset(f.stage.state, f.now);
        expect(&f, 258, true, 0);
        ck_assert_uint_ne(old.cookie, f.request.cookie);
        /* an answer to what was forgotten */
        f.stage.result(f.stage.state, f.now, &(struct mad_result) { .cookie = old.cookie, .outcome = MAD_REFUSED });
        ck_assert(f.stage.due(f.stage.state) == USEC_INFINITY);
        end(&f, MAD_ANSWERED, 0);
        expect_taken(&f, 259, 0);
        ck_assert_uint_eq(status(&f).state, NOTICES_SUBSCRIBED);
        expect_left(&f);
        /* nothing was under way: nothing is hurried */
        f.stage.reset(f.stage.state, f.now);
        ck_assert(f.stage.due(f.stage.state) > f.now + 9 * MINUTE);
        /* of an SA that is gone meanwhile */
        expect(&f, 257, true, 0);
        notices_set_sa(f.n, f.now, &(struct notices_sa) {}, false);
        f.stage.reset(f.stage.state, f.now);
        ck_assert(f.stage.due(f.stage.state) == USEC_INFINITY);
        notices_free(f.n);
}
END_TEST

/* --- Reports --------------------------------------------------------------------------------------------------------- */

static struct mad_frame a_report(uint16_t from, uint32_t tid, uint16_t trap, uint16_t lid1)
{
        struct mad_frame frame = { .length = MAD_SIZE, .lid.v = from, .mgmt_class = MAD_CLASS_SA };
        static const uint8_t header[] = { 1, 3, 2, 6 };
        uint8_t *m = frame.mad;

        memcpy(m, header, sizeof(header));
        m[12] = (uint8_t) (tid >> 24);
        m[13] = (uint8_t) (tid >> 16);
        m[14] = (uint8_t) (tid >> 8);
        m[15] = (uint8_t) tid;
        m[17] = 2;    /* Notice */
        m[56] = 0x82; /* generic, security */
        m[60] = (uint8_t) (trap >> 8);
        m[61] = (uint8_t) trap;
        m[63] = 20;   /* issuer */
        m[68] = (uint8_t) (lid1 >> 8);
        m[69] = (uint8_t) lid1;
        m[71] = 20;
        m[74] = 0x81; /* P_Key of 257 */
        m[75] = 0x01;
        return frame;
}

static bool give(struct fixture *f, struct mad_frame frame)
{
        return f->stage.report(f->stage.state, f->now, &frame);
}

START_TEST(reports)
{
        struct fixture f;
        struct mad_frame bad;
        struct notice n;

        init(&f);
        ck_assert(!give(&f, a_report(7, 1, 257, 11))); /* no SA */
        ck_assert(!give(&f, a_report(0, 1, 257, 11)));
        notices_set_sa(f.n, f.now, &an_sa, false);
        ck_assert(!notices_next(f.n, &n));
        ck_assert(give(&f, a_report(7, 1, 257, 11)));
        ck_assert(give(&f, a_report(7, 2, 258, 12)));
        ck_assert(notices_next(f.n, &n));
        ck_assert_uint_eq(n.trap, 257);
        ck_assert_uint_eq(n.lid1.v, 11);
        ck_assert_uint_eq(n.key, 0x8101);
        ck_assert(notices_next(f.n, &n));
        ck_assert_uint_eq(n.trap, 258);
        ck_assert_uint_eq(n.lid1.v, 12);
        ck_assert(!notices_next(f.n, &n));

        /* of another program, of another trap, impossible values, not a Report */
        ck_assert(!give(&f, a_report(8, 3, 257, 11)));
        ck_assert(give(&f, a_report(7, 4, 256, 11)));
        ck_assert(give(&f, a_report(7, 5, 257, 0xffff)));
        bad = a_report(7, 6, 257, 11);
        bad.length = MAD_SIZE - 1;
        ck_assert(!give(&f, bad));
        bad.length = MAD_SIZE;
        bad.mad[3] = 0x86;
        ck_assert(!give(&f, bad));
        ck_assert(!notices_next(f.n, &n));
        ck_assert_uint_eq(status(&f).n_reports, 2);
        ck_assert_uint_eq(status(&f).n_foreign, 1);
        ck_assert_uint_eq(status(&f).n_others, 1);
        ck_assert_uint_eq(status(&f).n_malformed, 1);
        ck_assert_uint_eq(status(&f).n_repeated + status(&f).n_lost, 0);
        notices_free(f.n);
}
END_TEST

START_TEST(repeated_reports)
{
        struct fixture f;
        struct notice n;
        unsigned delivered = 0;

        init(&f);
        notices_set_sa(f.n, f.now, &an_sa, false);
        for (unsigned i = 0; i < 5; i++, f.now += USEC_PER_SEC)
                ck_assert(give(&f, a_report(7, 1, 257, 11))); /* answered each time */
        ck_assert(give(&f, a_report(7, 2, 257, 11))); /* another one with the same contents */
        ck_assert(give(&f, a_report(7, 1, 257, 12))); /* another one, whatever its transaction ID */
        ck_assert(give(&f, a_report(7, 1, 257, 11)));
        while (notices_next(f.n, &n))
                delivered++;
        ck_assert_uint_eq(delivered, 3);
        ck_assert_uint_eq(status(&f).n_reports, 3);
        ck_assert_uint_eq(status(&f).n_repeated, 5);
        /* an SA that restarted may use the same numbers again; no Report is repeated for so long */
        f.now += MINUTE;
        ck_assert(give(&f, a_report(7, 1, 257, 11)));
        ck_assert(notices_next(f.n, &n));
        notices_free(f.n);
}
END_TEST

START_TEST(a_flood)
{
        struct fixture f;
        struct notice n;
        unsigned delivered = 0;

        init(&f);
        notices_set_sa(f.n, f.now, &an_sa, false);
        for (uint32_t i = 0; i < 1000; i++, f.now += 10)
                ck_assert(give(&f, a_report(7, i, 257, (uint16_t) (i + 1))));
        ck_assert_uint_eq(status(&f).n_reports, 1000);
        ck_assert_uint_eq(status(&f).n_lost, 1000 - NOTICES_MAX_QUEUED);
        /* the first ones are kept, in order; room comes back */
        for (; notices_next(f.n, &n); delivered++)
                ck_assert_uint_eq(n.lid1.v, delivered + 1);
        ck_assert_uint_eq(delivered, NOTICES_MAX_QUEUED);
        ck_assert(give(&f, a_report(7, 999, 257, 1000))); /* still known */
        ck_assert(!notices_next(f.n, &n));
        ck_assert(give(&f, a_report(7, 1000, 257, 11)));
        ck_assert(notices_next(f.n, &n));
        ck_assert_uint_eq(n.lid1.v, 11);
        ck_assert_uint_eq(status(&f).n_lost, 1000 - NOTICES_MAX_QUEUED);
        notices_free(f.n);
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("notices");
        TCase *t = tcase_create("subscription"), *r = tcase_create("reports");
        SRunner *sr = srunner_create(suite);
        int failed;

        tcase_add_test(t, subscribes_and_again);
        tcase_add_test(t, sa_changes);
        tcase_add_test(t, refused_by_number);
        tcase_add_test(t, refused_in_part);
        tcase_add_test(t, refused_altogether);
        tcase_add_test(t, silence);
        tcase_add_test(t, wrong_key);
        tcase_add_test(t, port_is_closed);
        suite_add_tcase(suite, t);
        tcase_add_test(r, reports);
        tcase_add_test(r, repeated_reports);
        tcase_add_test(r, a_flood);
        suite_add_tcase(suite, r);
        srunner_run_all(sr, CK_ENV);
        failed = srunner_ntests_failed(sr);
        srunner_free(sr);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
