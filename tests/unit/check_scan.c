/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers at the front of a text, compared with strtoull(). */

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/scan.h"

static void check_number(const char *text, unsigned base, uint64_t max)
{
        struct scan s = { text, text + strlen(text) };
        uint64_t wanted, value = 12345;
        char *end;

        wanted = strtoull(text, &end, (int) base);
        if (wanted <= max) {
                ck_assert_msg(scan_number(&s, base, max, &value), "%s, base %u, at most %" PRIu64 ": refused", text, base, max);
                ck_assert_uint_eq(value, wanted);
                ck_assert_ptr_eq(s.p, end);
        } else {
                ck_assert_msg(!scan_number(&s, base, max, &value), "%s, base %u, at most %" PRIu64 ": taken", text, base, max);
                ck_assert_uint_eq(value, 12345);
                ck_assert_ptr_eq(s.p, text);
        }
}

/* Also those below a digit. */
START_TEST(small_limits)
{
        for (uint64_t max = 0; max < 40; max++)
                for (unsigned v = 0; v < 300; v++) {
                        char text[32];

                        (void) snprintf(text, sizeof(text), "%u ", v);
                        check_number(text, 10, max);
                        (void) snprintf(text, sizeof(text), "%x,", v);
                        check_number(text, 16, max);
                }
}
END_TEST

START_TEST(large_limits)
{
        check_number("18446744073709551615", 10, UINT64_MAX);
        check_number("18446744073709551615", 10, UINT64_MAX - 1);
        check_number("ffffffffffffffff", 16, UINT64_MAX);
        check_number("ffffffffffffffff", 16, UINT64_MAX - 1);
        check_number("65536", 10, UINT16_MAX);
        check_number("65535", 10, UINT16_MAX);
        check_number("000000000000000000000000000000007", 10, 7);
}
END_TEST

START_TEST(more_than_64_bits)
{
        static const char *const texts[] = { "18446744073709551616", "99999999999999999999", "10000000000000000" };

        for (unsigned i = 0; i < 3; i++) {
                struct scan s = { texts[i], texts[i] + strlen(texts[i]) };
                uint64_t value;

                ck_assert(!scan_number(&s, i < 2 ? 10 : 16, UINT64_MAX, &value));
                ck_assert_ptr_eq(s.p, texts[i]);
        }
}
END_TEST

START_TEST(no_digits)
{
        static const char *const texts[] = { "", "-1", "+1", " 1", "x1", "g" };

        for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
                struct scan s = { texts[i], texts[i] + strlen(texts[i]) };
                uint64_t value;

                ck_assert_msg(!scan_number(&s, 16, UINT64_MAX, &value), "'%s' is taken", texts[i]);
        }
}
END_TEST

int main(void)
{
        Suite *s = suite_create("scan");
        TCase *t = tcase_create("scan");
        SRunner *r;
        int n_failed;

        tcase_add_test(t, small_limits);
        tcase_add_test(t, large_limits);
        tcase_add_test(t, more_than_64_bits);
        tcase_add_test(t, no_digits);
        suite_add_tcase(s, t);
        r = srunner_create(s);
        srunner_run_all(r, CK_ENV);
        n_failed = srunner_ntests_failed(r);
        srunner_free(r);
        return n_failed > 0;
}
