/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "findings_fixture.h"
#include "ib/types.h"
#include "shell/command_line.h"
#include "util/macros.h"

struct options {
        const char *file;
        bool loud, quiet;
        unsigned port;
        usec_t timeout;
        size_t length;
};

static struct options options;
static uint64_t given;
static char *arguments[16];
static int n_arguments;

/* A parser that can refuse the value. */
static void read_length(struct findings *f, const char *text, void *object)
{
        struct options *o = object;

        o->length = strlen(text);
        if (o->length > 4)
                (void) findings_error(f, FINDING_USAGE, NULL, "too long");
}

static const struct command_line_option known[] = {
        COMMAND_LINE_OPTION("file", 'f', TEXT, file, NULL, NULL),
        COMMAND_LINE_OPTION("loud", 0, FLAG, loud, NULL, NULL),
        COMMAND_LINE_OPTION("quiet", 'q', FLAG, quiet, NULL, NULL),
        COMMAND_LINE_OPTION("port", 'P', PORT, port, NULL, NULL),
        COMMAND_LINE_OPTION("timeout", 0, TIMEOUT, timeout, NULL, NULL),
        { "length", 0, COMMAND_LINE_READ, 0, read_length, NULL, NULL },
};

/* Splits the text at blanks, and passes the words behind the program's name. */
static int read_line(const char *words)
{
        static const struct command_line line = { "program", known, ELEMENTS(known) };
        char *copy = arena_strdup(arena, words), *word;

        findings_done(&findings);
        findings = (struct findings) { .arena = arena };
        options = (struct options) {};
        given = 0;
        n_arguments = 0;
        arguments[n_arguments++] = "program";
        while ((word = strsep(&copy, " ")))
                if (*word)
                        arguments[n_arguments++] = word;
        arguments[n_arguments] = NULL;
        return command_line_read(&line, n_arguments, arguments, &findings, &options, &given);
}

static void assert_error(const char *words, const char *text, const char *hint)
{
        ck_assert_int_eq(read_line(words), -EBADMSG);
        ck_assert_uint_eq(findings.n, 1);
        ck_assert_int_eq(findings.items[0].severity, FINDING_ERROR);
        ck_assert_int_eq(findings.items[0].code, FINDING_USAGE);
        ck_assert_str_eq(findings.items[0].text, text);
        ck_assert_pstr_eq(findings.items[0].hint, hint);
}

START_TEST(nothing)
{
        ck_assert_int_eq(read_line(""), 1);
        ck_assert_ptr_null(options.file);
        ck_assert(!options.loud && !options.quiet);
        ck_assert_uint_eq(given, 0);
        ck_assert_uint_eq(options.port, 0);
        ck_assert_uint_eq(options.timeout, 0);
}
END_TEST

START_TEST(long_options)
{
        ck_assert_int_eq(read_line("--file a --loud --port 254 --timeout=60000 --length four"), 9);
        ck_assert_str_eq(options.file, "a");
        ck_assert(options.loud && !options.quiet);
        ck_assert_uint_eq(options.port, 254);
        ck_assert_uint_eq(options.timeout, 60 * USEC_PER_SEC);
        ck_assert_uint_eq(options.length, 4);
        ck_assert_uint_eq(given, 0x3b);
}
END_TEST

START_TEST(letters)
{
        ck_assert_int_eq(read_line("-qP1 -f b"), 4);
        ck_assert_str_eq(options.file, "b");
        ck_assert(options.quiet && !options.loud);
        ck_assert_uint_eq(options.port, 1);
        ck_assert_uint_eq(given, 0x0d);
}
END_TEST

/* Each call starts at the first argument, and moves the arguments without options to the end. */
START_TEST(positional)
{
        ck_assert_int_eq(read_line("one --loud two -q -- -x"), 4);
        ck_assert(options.loud && options.quiet);
        ck_assert_str_eq(arguments[4], "one");
        ck_assert_str_eq(arguments[5], "two");
        ck_assert_str_eq(arguments[6], "-x");
        ck_assert_int_eq(n_arguments, 7);
        ck_assert_int_eq(read_line("three"), 1);
        ck_assert_str_eq(arguments[1], "three");
}
END_TEST

START_TEST(numbers)
{
        static const char *const wrong[] = { "0", "255", "-1", "+1", "0x1", "1a", "a", "99999999999999999999" };

        for (size_t i = 0; i < ELEMENTS(wrong); i++) {
                assert_error(arena_printf(arena, "--port %s", wrong[i]),
                             arena_printf(arena, "--port: '%s' is not a number from 1 to 254", wrong[i]), NULL);
                ck_assert_uint_eq(options.port, 0);
        }
        assert_error("--port=", "--port: '' is not a number from 1 to 254", NULL);
        assert_error("--timeout 60001", "--timeout: '60001' is not a number from 1 to 60000", NULL);
        ck_assert_uint_eq(options.timeout, 0);
        assert_error("--timeout 0", "--timeout: '0' is not a number from 1 to 60000", NULL);
        ck_assert_int_eq(read_line("--timeout 1"), 3);
        ck_assert_uint_eq(options.timeout, USEC_PER_MSEC);
}
END_TEST

START_TEST(missing_values)
{
        assert_error("--file", "'--file' needs a value", NULL);
        assert_error("-f", "'-f' needs a value", NULL);
        assert_error("-qf", "'-f' needs a value", NULL);
}
END_TEST

START_TEST(unknown_options)
{
        assert_error("--fiel x", "unknown option '--fiel'", "did you mean '--file'?");
        assert_error("--nothing-like-it", "unknown option '--nothing-like-it'", "program --help lists the options");
        assert_error("-x", "unknown option '-x'", "program --help lists the options");
        assert_error("-qx", "unknown option '-x'", "program --help lists the options");
}
END_TEST

START_TEST(all_mistakes)
{
        ck_assert_int_eq(read_line("--port x --length longer --what -f"), -EBADMSG);
        ck_assert_uint_eq(findings.n, 4);
        ck_assert_str_eq(findings.items[1].text, "too long");
}
END_TEST

int main(void)
{
        Suite *s = suite_create("command_line");
        TCase *t = tcase_create("all");
        SRunner *sr;
        int failed;

        tcase_add_checked_fixture(t, setup, teardown);
        tcase_add_test(t, nothing);
        tcase_add_test(t, long_options);
        tcase_add_test(t, letters);
        tcase_add_test(t, positional);
        tcase_add_test(t, numbers);
        tcase_add_test(t, missing_values);
        tcase_add_test(t, unknown_options);
        tcase_add_test(t, all_mistakes);
        suite_add_tcase(s, t);
        sr = srunner_create(s);
        srunner_run_all(sr, CK_NORMAL);
        failed = srunner_ntests_failed(sr);
        srunner_free(sr);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
