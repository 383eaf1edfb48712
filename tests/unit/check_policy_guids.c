/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdlib.h>

#include "policy_fixture.h"
#include "policy/policy_fix.h"

#define HEAD "version: 1\npartitions:\n  p:\n    pkey: 0x0010\n    members:\n"

static const struct guid_change changes[] = { { { 0x10 }, { 0xa0 } }, { { 0x11 }, { 0xa1 } } };

static const struct {
        const char *before, *after; /* after NULL: it cannot be changed */
        int n;
} examples[] = {
        { HEAD "      0x10: full\n", HEAD "      0x00000000000000a0: full\n", 1 },
        { HEAD "      0x0000000000000011: full\n", HEAD "      0x00000000000000a1: full\n", 1 },
        { HEAD "      \"node1,0x10 , 0x11\": full\n", HEAD "      \"node1,0x00000000000000a0 , 0x00000000000000a1\": full\n", 2 },
        { HEAD "      \"@0x10/1-4,7\": full\n", HEAD "      \"@0x00000000000000a0/1-4,7\": full\n", 1 },
        { HEAD "      '0X10': full\n", NULL, -EBADMSG }, /* no policy */
        /* what only looks like the GUID stays: comments, P_Keys, other GUIDs, names */
        { "# 0x10\n" HEAD "      0x100: full # was 0x10\n", NULL, 0 },
        { "version: 1\npartitions:\n  p:\n    pkey: 0x10 # 0x10\n    members: {0x10: full}\n",
          "version: 1\npartitions:\n  p:\n    pkey: 0x10 # 0x10\n    members: {0x00000000000000a0: full}\n", 1 },
        /* groups */
        { "version: 1\ngroups:\n  g: 0x10,0x12\npartitions: {}\n",
          "version: 1\ngroups:\n  g: 0x00000000000000a0,0x12\npartitions: {}\n", 1 },
        { "version: 1\ngroups:\n  g:\n    - 0x10\n    - 0x11\npartitions: {}\n",
          "version: 1\ngroups:\n  g:\n    - 0x00000000000000a0\n    - 0x00000000000000a1\npartitions: {}\n", 2 },
        /* pools */
        { "version: 1\npools: {a: {pkeys: 0x10, ports: \"0x10,0x12\"}}\npartitions: {}\n",
          "version: 1\npools: {a: {pkeys: 0x10, ports: \"0x00000000000000a0,0x12\"}}\npartitions: {}\n", 1 },
        /* no certain place */
        { "version: 1\ngroups:\n  g: \"0x12,\\\n    0x10\"\npartitions: {}\n", NULL, -EINVAL },
        { "version: 1\ngroups:\n  g: \"\\x30x10\"\npartitions: {}\n", NULL, -EINVAL },
        /* with the bytes of a file as an editor of Windows writes it */
        { "\xef\xbb\xbfversion: 1\r\ngroups:\r\n  g: 0x10 # \xc3\xa4\r\npartitions: {}\r\n",
          "\xef\xbb\xbfversion: 1\r\ngroups:\r\n  g: 0x00000000000000a0 # \xc3\xa4\r\npartitions: {}\r\n", 1 },
};

START_TEST(test_examples)
{
        const char *before = examples[_i].before, *bytes = NULL;
        struct policy *policy;
        size_t n = 0;
        int r = policy_parse(arena, "p.yaml", before, strlen(before), &findings, &policy);

        if (r == 0)
                r = policy_change_guids(arena, policy, before, strlen(before), changes, ELEMENTS(changes), &bytes, &n);
        ck_assert_int_eq(r, examples[_i].n);
        if (r >= 0)
                ck_assert_str_eq(arena_strndup(arena, bytes, n), examples[_i].after ?: before);
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("policy_guids");
        TCase *c = tcase_create("policy_guids");
        SRunner *runner;
        int failed;

        tcase_add_checked_fixture(c, setup, teardown);
        tcase_add_loop_test(c, test_examples, 0, ELEMENTS(examples));
        suite_add_tcase(suite, c);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
