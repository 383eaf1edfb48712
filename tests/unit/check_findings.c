/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdlib.h>

#include "arena_fixture.h"
#include "util/findings.h"

START_TEST(first_error)
{
        _cleanup_findings_ struct findings f = { .arena = arena };

        ck_assert_ptr_null(findings_first_error(&f));
        (void) findings_add(&f, FINDING_NOTE, FINDING_USAGE, NULL, "a note");
        (void) findings_add(&f, FINDING_WARNING, FINDING_USAGE, NULL, "a warning");
        ck_assert_ptr_null(findings_first_error(&f));
        (void) findings_error(&f, FINDING_USAGE, NULL, "an error");
        (void) findings_error(&f, FINDING_USAGE, NULL, "another error");
        ck_assert_str_eq(findings_first_error(&f), "an error");
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("findings");
        TCase *t = tcase_create("findings");
        SRunner *runner;
        int failed;

        tcase_add_checked_fixture(t, setup, teardown);
        tcase_add_test(t, first_error);
        suite_add_tcase(suite, t);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
