/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <arpa/inet.h>
#include <check.h>
#include <string.h>

#include "rest/rest_limits.h"

#define START (1000 * USEC_PER_SEC)

static struct rest_address address(const char *text)
{
        unsigned char bytes[16];
        bool v6 = strchr(text, ':');

        ck_assert_int_eq(inet_pton(v6 ? AF_INET6 : AF_INET, text, bytes), 1);
        return rest_address_of(bytes, v6 ? 16 : 4);
}

static bool count_as_one(const char *a, const char *b)
{
        struct rest_address first = address(a), second = address(b);

        return memcmp(&first, &second, sizeof(first)) == 0;
}

START_TEST(addresses)
{
        ck_assert(count_as_one("10.0.0.1", "::ffff:10.0.0.1"));
        ck_assert(!count_as_one("10.0.0.1", "10.0.0.2"));
        ck_assert(!count_as_one("::ffff:10.0.0.1", "::ffff:10.0.0.2"));
        ck_assert(count_as_one("2001:db8::1", "2001:db8:0:0:ffff::2"));
        ck_assert(!count_as_one("2001:db8::1", "2001:db8:0:1::1"));
}
END_TEST

START_TEST(rates)
{
        const struct rest_rate rate = { .per_second = 10, .burst = 3 };
        struct rest_bucket b = {};

        for (unsigned i = 0; i < 3; i++)
                ck_assert_uint_eq(rest_bucket_take(&b, &rate, START), 0);
        ck_assert_uint_eq(rest_bucket_take(&b, &rate, START), USEC_PER_SEC / 10);
        ck_assert_uint_eq(rest_bucket_take(&b, &rate, START + USEC_PER_SEC / 10 - 1), 1);
        ck_assert_uint_eq(rest_bucket_take(&b, &rate, START + USEC_PER_SEC / 10), 0);
        ck_assert_uint_gt(rest_bucket_take(&b, &rate, START + USEC_PER_SEC / 10), 0);
        /* full again, and not more than full */
        for (unsigned i = 0; i < 3; i++)
                ck_assert_uint_eq(rest_bucket_take(&b, &rate, START + 60 * USEC_PER_SEC), 0);
        ck_assert_uint_gt(rest_bucket_take(&b, &rate, START + 60 * USEC_PER_SEC), 0);
}
END_TEST

/* --- failures --------------------------------------------------------------------------------------------------------- */

static struct rest_failure add_failure(struct rest_failures *f, const char *from, const char *name, usec_t now)
{
        const struct rest_address a = address(from);

        return rest_failures_add(f, &a, name, strlen(name), now);
}

static bool has(struct rest_failures *f, const char *from, usec_t now)
{
        const struct rest_address a = address(from);

        return rest_failures_has(f, &a, now);
}

START_TEST(growing_delays)
{
        static const usec_t delays[] = { 250, 500, 1000, 2000, 4000, 8000, 8000, 8000 };
        struct rest_failures failures = {}, *f = &failures;
        usec_t now = START;

        ck_assert(!has(f, "10.0.0.1", now));
        for (size_t i = 0; i < ELEMENTS(delays); i++) { /* of an address, with other names */
                struct rest_failure failure = add_failure(f, "10.0.0.1", (char[]) { 'a' + (char) i, '\0' }, now++);

                ck_assert_uint_eq(failure.delay, delays[i] * USEC_PER_MSEC);
                ck_assert_uint_eq(failure.n, i + 1);
        }
        ck_assert(has(f, "10.0.0.1", now) && !has(f, "10.0.0.99", now));
        ck_assert_uint_eq(add_failure(f, "10.0.0.2", "x", now).delay, 250 * USEC_PER_MSEC);
        for (size_t i = 1; i < ELEMENTS(delays); i++) { /* of a name, from other addresses */
                struct rest_failure failure = add_failure(f, (const char *[]) { "", "1.0.0.1", "1.0.0.2", "1.0.0.3", "1.0.0.4", "1.0.0.5",
                                                                         "1.0.0.6", "1.0.0.7" }[i], "x", now++);

                ck_assert_uint_eq(failure.delay, delays[i] * USEC_PER_MSEC);
                ck_assert_uint_eq(failure.n, 1);
        }
}
END_TEST

START_TEST(forgetting)
{
        struct rest_failures failures = {}, *f = &failures;

        (void) add_failure(f, "10.0.0.1", "a", START);
        (void) add_failure(f, "10.0.0.1", "a", START + 1);
        ck_assert(has(f, "10.0.0.1", START + REST_FORGET_AFTER));
        ck_assert(!has(f, "10.0.0.1", START + 1 + REST_FORGET_AFTER));
        ck_assert_uint_eq(add_failure(f, "10.0.0.1", "a", START + 1 + REST_FORGET_AFTER).n, 1);
}
END_TEST

/* The table is full: what was not used for the longest time makes room. */
START_TEST(many_failures)
{
        struct rest_failures failures = {}, *f = &failures;
        char name[32];

        (void) add_failure(f, "10.0.0.1", "old", START);
        for (usec_t i = 1; i < REST_MAX_FAILURES; i++) {
                (void) snprintf(name, sizeof(name), "name%u", (unsigned) i);
                (void) add_failure(f, "10.0.0.2", name, START + i);
        }
        ck_assert(!has(f, "10.0.0.1", START + REST_MAX_FAILURES));
        ck_assert_uint_eq(add_failure(f, "10.0.0.2", "new", START + REST_MAX_FAILURES).n, REST_MAX_FAILURES);
}
END_TEST

/* --- credentials ------------------------------------------------------------------------------------------------------- */

static struct rest_digest digest(unsigned n)
{
        struct rest_digest d = {};

        memcpy(d.bytes + 7, &n, sizeof(n));
        return d;
}

static bool find(struct rest_logins *l, unsigned n, usec_t now, size_t wanted)
{
        const struct rest_digest d = digest(n);
        size_t client = 999;

        if (!rest_logins_find(l, &d, now, &client)) {
                ck_assert_uint_eq(client, 999);
                return false;
        }
        ck_assert_uint_eq(client, wanted);
        return true;
}

static void add(struct rest_logins *l, unsigned n, size_t client, usec_t now)
{
        const struct rest_digest d = digest(n);

        rest_logins_add(l, &d, client, now);
}

START_TEST(logins)
{
        static struct rest_logins l;

        l.n = 0;
        ck_assert(!find(&l, 0, START, 0));
        add(&l, 1, 5, START);
        add(&l, 2, 6, START);
        ck_assert(find(&l, 1, START + REST_LOGIN_LASTS - 1, 5));
        ck_assert(!find(&l, 2, START + REST_LOGIN_LASTS, 6));
        ck_assert(find(&l, 1, START + REST_LOGIN_LASTS, 5)); /* it was used */
        ck_assert(!find(&l, 0, START, 0));
        add(&l, 2, 7, START + REST_LOGIN_LASTS);
        ck_assert_uint_eq(l.n, 2);
        ck_assert(find(&l, 2, START + REST_LOGIN_LASTS, 7));
}
END_TEST

START_TEST(many_logins)
{
        static struct rest_logins l;

        l.n = 0;
        for (unsigned i = 0; i < REST_MAX_LOGINS; i++)
                add(&l, i, i, START + i);
        ck_assert(find(&l, 0, START + REST_MAX_LOGINS, 0));
        add(&l, 1000, 1000, START + REST_MAX_LOGINS + 1);
        ck_assert_uint_eq(l.n, REST_MAX_LOGINS);
        ck_assert(find(&l, 0, START + REST_MAX_LOGINS + 2, 0));
        ck_assert(!find(&l, 1, START + REST_MAX_LOGINS + 2, 1));
        ck_assert(find(&l, 2, START + REST_MAX_LOGINS + 2, 2));
        ck_assert(find(&l, 1000, START + REST_MAX_LOGINS + 2, 1000));
}
END_TEST

/* --- connections ------------------------------------------------------------------------------------------------------ */

/* Connections from an address, of which the first waits since START. */
static void connect_from(struct rest_connection *c, size_t n, const char *from)
{
        for (size_t i = 0; i < n; i++)
                c[i] = (struct rest_connection) { .next = i + 1 < n ? &c[i + 1] : NULL, .from = address(from), .since = START + i };
}

static enum rest_admission admit(struct rest_connection *c, const char *from, size_t max, struct rest_connection **ret)
{
        const struct rest_address a = address(from);

        return rest_admit(c, &a, max, ret);
}

START_TEST(room)
{
        struct rest_connection c[3], *instead;

        connect_from(c, 3, "10.0.0.1");
        ck_assert_int_eq(admit(NULL, "10.0.0.1", 1, &instead), REST_ADMIT);
        ck_assert_int_eq(admit(c, "10.0.0.2", 4, &instead), REST_ADMIT);
        ck_assert_int_eq(admit(c, "10.0.0.1", 8, &instead), REST_ADMIT);
}
END_TEST

/* One address has at most half; its own connections make room. */
START_TEST(share)
{
        struct rest_connection c[4], *instead;

        connect_from(c, 4, "10.0.0.1");
        c[0].from = address("10.0.0.2");
        c[1].since = START + 9;
        ck_assert_int_eq(admit(c, "10.0.0.1", 6, &instead), REST_ADMIT_INSTEAD);
        ck_assert_ptr_eq(instead, &c[2]);
        c[2].is_busy = true;
        ck_assert_int_eq(admit(c, "10.0.0.1", 6, &instead), REST_ADMIT_INSTEAD);
        ck_assert_ptr_eq(instead, &c[3]);
        c[1].is_busy = c[3].is_busy = true;
        ck_assert_int_eq(admit(c, "10.0.0.1", 6, &instead), REST_TURN_AWAY);
        ck_assert_int_eq(admit(c, "10.0.0.2", 6, &instead), REST_ADMIT);
}
END_TEST

/* All places are taken: whoever waits the longest makes room. */
START_TEST(full)
{
        struct rest_connection c[4], *instead;

        connect_from(c, 4, "10.0.0.1");
        c[2].since = START - 1;
        c[3].from = address("10.0.0.2");
        ck_assert_int_eq(admit(c, "10.0.0.3", 4, &instead), REST_ADMIT_INSTEAD);
        ck_assert_ptr_eq(instead, &c[2]);
        c[2].is_busy = true;
        ck_assert_int_eq(admit(c, "10.0.0.3", 4, &instead), REST_ADMIT_INSTEAD);
        ck_assert_ptr_eq(instead, &c[0]);
        c[0].is_busy = c[1].is_busy = c[3].is_busy = true;
        ck_assert_int_eq(admit(c, "10.0.0.3", 4, &instead), REST_TURN_AWAY);
        ck_assert_int_eq(admit(c, "10.0.0.3", 5, &instead), REST_ADMIT);
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("rest_limits");
        TCase *t = tcase_create("rest_limits");
        SRunner *runner = srunner_create(suite);
        int failed;

        tcase_add_test(t, addresses);
        tcase_add_test(t, rates);
        tcase_add_test(t, growing_delays);
        tcase_add_test(t, forgetting);
        tcase_add_test(t, many_failures);
        tcase_add_test(t, logins);
        tcase_add_test(t, many_logins);
        tcase_add_test(t, room);
        tcase_add_test(t, share);
        tcase_add_test(t, full);
        suite_add_tcase(suite, t);
        srunner_run_all(runner, CK_ENV);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
