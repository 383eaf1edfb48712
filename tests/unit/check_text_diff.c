/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "arena_fixture.h"
#include "shell/text_diff.h"
#include "util/macros.h"

static size_t length;

static int diff(const char *before, const char *after, const char **ret)
{
        return text_diff(arena, &(struct text_version) { "old name", before, strlen(before) },
                         &(struct text_version) { "--new", after, strlen(after) }, ret, &length);
}

static void check_diff(const char *before, const char *after, const char *expected)
{
        const char *got = NULL;

        ck_assert_int_eq(diff(before, after, &got), 0);
        ck_assert_str_eq(got, expected);
        ck_assert_uint_eq(length, strlen(expected));
}

START_TEST(diffs)
{
        check_diff("", "", "");
        check_diff("a\n", "a\n", "");
        check_diff("a\nb\nc\n", "a\nB\nc\n", "--- old name\n+++ --new\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n");
        check_diff("", "a\n", "--- old name\n+++ --new\n@@ -0,0 +1 @@\n+a\n");
        check_diff("a\n", "", "--- old name\n+++ --new\n@@ -1 +0,0 @@\n-a\n");
        check_diff("a", "a\n", "--- old name\n+++ --new\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n");
}
END_TEST

/* Bytes that are no text are compared line by line, too. */
START_TEST(binary)
{
        const char *got = NULL;

        ck_assert_int_eq(text_diff(arena, &(struct text_version) { "a", "\0\n", 2 }, &(struct text_version) { "b", "\xff\n", 2 }, &got,
                                   &length), 0);
        ck_assert_uint_eq(length, 30);
        ck_assert_mem_eq(got, "--- a\n+++ b\n@@ -1 +1 @@\n-\0\n+\xff\n", 30);
}
END_TEST

/* More than a pipe holds. */
START_TEST(large)
{
        const size_t n = 1 << 20;
        char *before = arena_new_array(arena, char, n + 1), *after = arena_new_array(arena, char, n + 1);
        const char *got = NULL;

        for (size_t i = 0; i < n; i++) {
                before[i] = i % 64 == 63 ? '\n' : 'a';
                after[i] = i % 64 == 63 ? '\n' : 'b';
        }
        ck_assert_int_eq(diff(before, after, &got), 0);
        ck_assert_uint_eq(length, 2 * (n + n / 64) + strlen("--- old name\n+++ --new\n@@ -1,16384 +1,16384 @@\n"));
}
END_TEST

START_TEST(too_large)
{
        const size_t n = TEXT_DIFF_MAX;
        char *after = arena_new_array(arena, char, n + 1);
        const char *got = NULL;

        memset(after, '\n', n);
        ck_assert_int_eq(diff("", after, &got), -EFBIG);
        ck_assert_ptr_null(got);
        after[n / 2 - 64] = '\0'; /* a sign in front of each line */
        ck_assert_int_eq(diff("", after, &got), 0);
}
END_TEST

START_TEST(not_installed)
{
        const char *got = NULL;

        ck_assert_int_eq(setenv("PATH", "/nowhere", 1), 0);
        ck_assert_int_eq(diff("a", "b", &got), -ENOENT);
        ck_assert_int_eq(diff("a", "a", &got), 0);
}
END_TEST

/* What is called diff fails, or is killed. */
START_TEST(fails)
{
        static const char *const scripts[] = { "#!/bin/sh\nexit 2\n", "#!/bin/sh\nkill -9 $$\n" };
        char directory[] = "/tmp/check_text_diff.XXXXXX";
        const char *got = NULL, *path;

        ck_assert_ptr_nonnull(mkdtemp(directory));
        path = arena_printf(arena, "%s/diff", directory);
        ck_assert_int_eq(setenv("PATH", directory, 1), 0);
        for (size_t i = 0; i < ELEMENTS(scripts); i++) {
                FILE *f = fopen(path, "we");

                ck_assert_ptr_nonnull(f);
                ck_assert_int_ge(fputs(scripts[i], f), 0);
                ck_assert_int_eq(fchmod(fileno(f), 0700), 0);
                ck_assert_int_eq(fclose(f), 0);
                ck_assert_int_eq(diff("a", "b", &got), -EIO);
        }
        ck_assert_int_eq(unlink(path), 0);
        ck_assert_int_eq(rmdir(directory), 0);
}
END_TEST

int main(void)
{
        TCase *c = tcase_create("text_diff");
        Suite *s = suite_create("text_diff");
        SRunner *sr;
        int failed;

        tcase_add_checked_fixture(c, setup, teardown);
        tcase_set_timeout(c, 60);
        tcase_add_test(c, diffs);
        tcase_add_test(c, binary);
        tcase_add_test(c, large);
        tcase_add_test(c, too_large);
        tcase_add_test(c, not_installed);
        tcase_add_test(c, fails);
        suite_add_tcase(s, c);
        sr = srunner_create(s);
        srunner_run_all(sr, CK_NORMAL);
        failed = srunner_ntests_failed(sr);
        srunner_free(sr);
        return failed ? 1 : 0;
}
