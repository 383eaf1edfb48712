/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <stdlib.h>

#include "util/duration.h"
#include "util/macros.h"

static const struct {
        const char *text, *problem; /* NULL: none */
        uint64_t usec;
} durations[] = {
        { "500ms", NULL, 500000 },
        { "0s", NULL, 0 },
        { "60s", NULL, 60000000 },
        { "007m", NULL, 420000000 },
        { "24h", NULL, 86400000000 },
        { "9999999999s", NULL, 9999999999000000 },
        { "9999999999h", NULL, UINT64_MAX },
        { "10000000000s", "is not a duration", 0 },
        { "", "is not a duration", 0 },
        { "h", "is not a duration", 0 },
        { "-1s", "is not a duration", 0 },
        { " 1s", "is not a duration", 0 },
        { "10", "has no unit", 0 },
        { "10 s", "has an unknown unit", 0 },
        { "10S", "has an unknown unit", 0 },
        { "10ss", "has an unknown unit", 0 },
        { "1d", "has an unknown unit", 0 },
        { "1.5h", "has an unknown unit", 0 },
};

START_TEST(reading)
{
        uint64_t usec = 0;
        const char *problem = duration_problem(durations[_i].text, &usec);

        ck_assert_pstr_eq(problem, durations[_i].problem);
        ck_assert_uint_eq(usec, durations[_i].usec);
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("duration");
        TCase *c = tcase_create("duration");
        SRunner *runner;
        int failed;

        tcase_add_loop_test(c, reading, 0, ELEMENTS(durations));
        suite_add_tcase(suite, c);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
