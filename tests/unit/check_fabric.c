/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The names of fabrics, and what belongs to each. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "findings_fixture.h"
#include "shell/fabric.h"

START_TEST(without_a_name)
{
        static const char *const none[] = { NULL, "" };
        struct fabric f;

        for (size_t i = 0; i < ELEMENTS(none); i++) {
                ck_assert_int_eq(fabric_init(arena, none[i], "--fabric", &findings, &f), 0);
                ck_assert_ptr_null(f.name);
                ck_assert_str_eq(f.config_file, CONFIG_DIR "/pkeyd.yaml");
                ck_assert_str_eq(f.policy_file, CONFIG_DIR "/partitions.yaml");
                ck_assert_str_eq(f.rest_file, CONFIG_DIR "/rest.yaml");
                ck_assert_str_eq(f.state_dir, "/var/lib/pkeyd");
                ck_assert_str_eq(f.bus_name, "org.pkeyd1");
                ck_assert_str_eq(f.bus_path, "/org/pkeyd1");
        }
}
END_TEST

START_TEST(with_a_name)
{
        struct fabric f;

        ck_assert_int_eq(fabric_init(arena, "ib-storage_2", "--fabric", &findings, &f), 0);
        ck_assert_str_eq(f.name, "ib-storage_2");
        ck_assert_str_eq(f.config_file, CONFIG_DIR "/ib-storage_2/pkeyd.yaml");
        ck_assert_str_eq(f.policy_file, CONFIG_DIR "/ib-storage_2/partitions.yaml");
        ck_assert_str_eq(f.rest_file, CONFIG_DIR "/ib-storage_2/rest.yaml");
        ck_assert_str_eq(f.state_dir, "/var/lib/pkeyd/ib-storage_2");
        ck_assert_str_eq(f.bus_name, "org.pkeyd1.ib-storage_2");
        ck_assert_str_eq(f.bus_path, "/org/pkeyd1/ib_2dstorage_2");
}
END_TEST

/* A name is an element of a bus name, a directory and the instance of a unit. "lock" is a file of the state directory. */
START_TEST(names)
{
        static const char *const good[] = { "a", "Z", "a9", "a-", "a_", "locks", "loc", "Lock", "abcdefghijklmnopqrstuvwxyz012345" };
        static const char *const bad[] = { "9", "-a", "_a", "a.b", "a/b", "..", ".", "/", "a b", "a\n", "\xc3\xa4", "a\xc3\xa4", "a@b", "a%i",
                                           "lock", "abcdefghijklmnopqrstuvwxyz0123456" };
        struct fabric f;

        for (size_t i = 0; i < ELEMENTS(good); i++)
                ck_assert_msg(fabric_init(arena, good[i], "--fabric", &findings, &f) == 0, "'%s' was refused", good[i]);
        ck_assert_uint_eq(findings.n, 0);
        for (size_t i = 0; i < ELEMENTS(bad); i++) {
                ck_assert_msg(fabric_init(arena, bad[i], "PKEYCTL_FABRIC", &findings, &f) == -EBADMSG, "'%s' was accepted", bad[i]);
                ck_assert_uint_eq(findings.n, i + 1);
                ck_assert_ptr_nonnull(strstr(findings.items[i].text, "PKEYCTL_FABRIC: '"));
        }
}
END_TEST

int main(void)
{
        Suite *s = suite_create("fabric");
        TCase *c = tcase_create("fabric");
        SRunner *sr;
        int failed;

        tcase_add_checked_fixture(c, setup, teardown);
        tcase_add_test(c, without_a_name);
        tcase_add_test(c, with_a_name);
        tcase_add_test(c, names);
        suite_add_tcase(s, c);
        sr = srunner_create(s);
        srunner_run_all(sr, CK_NORMAL);
        failed = srunner_ntests_failed(sr);
        srunner_free(sr);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
