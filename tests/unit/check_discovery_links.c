/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "discovery/links.h"

#define G(x) ((struct guid) { (x) })

static struct discovery_links *links;

static void setup(void)
{
        links = discovery_links_new();
        ck_assert_ptr_nonnull(links);
}

static void teardown(void)
{
        ck_assert_ptr_null(discovery_links_free(links));
}

static void assert_peer(uint64_t guid, uint8_t number, uint64_t peer)
{
        struct guid found = discovery_links_get(links, G(guid), number);

        ck_assert_msg(found.v == peer, "0x%" PRIx64 ":%u leads to 0x%" PRIx64 ", not 0x%" PRIx64, guid, number, found.v,
                      peer);
}

START_TEST(set_and_get)
{
        assert_peer(0x10, 1, 0);
        ck_assert_uint_eq(discovery_links_get(NULL, G(0x10), 1).v, 0);
        ck_assert_ptr_null(discovery_links_free(NULL));
        ck_assert_int_eq(discovery_links_set(links, G(0x10), 1, G(0x20)), 0);
        ck_assert_int_eq(discovery_links_set(links, G(0x10), 2, G(0x30)), 0);
        ck_assert_int_eq(discovery_links_set(links, G(0x11), 1, G(0x40)), 0);
        assert_peer(0x10, 1, 0x20);
        assert_peer(0x10, 2, 0x30);
        assert_peer(0x11, 1, 0x40);
        assert_peer(0x11, 2, 0);
        ck_assert_int_eq(discovery_links_set(links, G(0x10), 1, G(0x50)), 0);
        assert_peer(0x10, 1, 0x50);
        assert_peer(0x10, 2, 0x30);
}
END_TEST

/* At the limit, known links can still be replaced. */
START_TEST(bounded)
{
        uint32_t n = 0;

        while (discovery_links_set(links, G(1 + n / 200), (uint8_t) (1 + n % 200), G(1 + n)) == 0)
                n++;
        ck_assert_uint_eq(n, DISCOVERY_MAX_LINKS);
        ck_assert_int_eq(discovery_links_set(links, G(1 + n / 200), (uint8_t) (1 + n % 200), G(1)), -ENOSPC);
        ck_assert_int_eq(discovery_links_set(links, G(1), 1, G(77)), 0);
        assert_peer(1, 1, 77);
        /* ck_assert writes to a file each time */
        for (uint32_t i = 1; i < n; i++)
                if (discovery_links_get(links, G(1 + i / 200), (uint8_t) (1 + i % 200)).v != 1 + i)
                        ck_abort_msg("link %u is wrong", i);
}
END_TEST

/* --- OpenSM's file --------------------------------------------------------------------------------------------------- */

static uint32_t add_neighbors(const char *text)
{
        uint32_t n_ignored = UINT32_MAX;

        ck_assert_int_eq(discovery_links_add_neighbors(links, text, strlen(text), &n_ignored), 0);
        return n_ignored;
}

START_TEST(neighbors)
{
        /* as written by OpenSM: every link from both ends, an empty line after each */
        ck_assert_uint_eq(add_neighbors("0x0002c90300100000:1 0x0002c90300800001:1\n\n"
                                        "0x0002c90300800001:1 0x0002c90300100000:1\n\n"
                                        "0x0002c90300100000:36 0x0002c90300100010:19\n\n"), 0);
        assert_peer(0x0002c90300100000, 1, 0x0002c90300800001);
        assert_peer(0x0002c90300800001, 1, 0x0002c90300100000);
        assert_peer(0x0002c90300100000, 36, 0x0002c90300100010);
        ck_assert_uint_eq(add_neighbors(""), 0);
        ck_assert_uint_eq(add_neighbors("0x7:255\t 0x8:254 \t"), 0); /* no newline at the end, and other blanks */
        assert_peer(7, 255, 8);
}
END_TEST

/* A link from a walk is newer than the file; of two lines OpenSM uses the first. */
START_TEST(neighbors_do_not_replace)
{
        ck_assert_int_eq(discovery_links_set(links, G(0x10), 1, G(0x20)), 0);
        ck_assert_uint_eq(add_neighbors("0x10:1 0x30:1\n0x10:2 0x40:1\n0x10:2 0x50:1\n"), 0);
        assert_peer(0x10, 1, 0x20);
        assert_peer(0x10, 2, 0x40);
}
END_TEST

static const char *const not_links[] = {
        " 0x10:1 0x20:1", /* OpenSM refuses such a line, too */
        "0x10:1",
        "0x10:1 ",
        "0x10:1 0x20",
        "0x10:1 0x20:",
        "0x10:1 0x20:1 0x30:1",
        "0x10:1 0x20:1x",
        "0x10:10x20:1",
        "0x10:10x20:1 0x20:1",
        "0x10 0x20",
        "0x10: 0x20:1",
        "0x10:0 0x20:1",
        "0x10:256 0x20:1",
        "0x10:4294967297 0x20:1",
        "0x10:-1 0x20:1",
        "0x10:1 0x20:0",
        "0x0:1 0x20:1",
        "0x10:1 0x0000:1",
        "0x:1 0x20:1",
        "16:1 0x20:1",
        "0x10:1 0x12345678123456781:1",
        "0X10:1 0x20:1",
        "0xg:1 0x20:1",
        "0x10:1 0x20:1\r",
        "0",
        "garbage",
};

START_TEST(lines_that_are_not_links)
{
        ck_assert_uint_eq(add_neighbors(not_links[_i]), 1);
        assert_peer(0x10, 1, 0);
        assert_peer(0x10, 0, 0);
        /* the lines before and after it are read */
        ck_assert_uint_eq(add_neighbors(not_links[_i]) + add_neighbors("\n0x10:1 0xaBcDeF:2\nx\n"), 2);
        assert_peer(0x10, 1, 0xabcdef);
}
END_TEST

START_TEST(neighbors_are_bounded)
{
        uint32_t n_ignored = 5;

        ck_assert_int_eq(discovery_links_add_neighbors(links, "", DISCOVERY_MAX_NEIGHBORS_SIZE + 1, &n_ignored), -EFBIG);
        for (uint32_t i = 0; i < DISCOVERY_MAX_LINKS; i++)
                if (discovery_links_set(links, G(i + 1), 1, G(1)) < 0)
                        ck_abort_msg("link %u is refused", i);
        ck_assert_int_eq(discovery_links_add_neighbors(links, "0x1:2 0x3:4\n", 12, &n_ignored), -ENOSPC);
        ck_assert_uint_eq(n_ignored, 5);
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("discovery_links");
        TCase *t = tcase_create("discovery_links");
        SRunner *runner;
        int failed;

        tcase_add_checked_fixture(t, setup, teardown);
        tcase_set_timeout(t, 60);
        tcase_add_test(t, set_and_get);
        tcase_add_test(t, bounded);
        tcase_add_test(t, neighbors);
        tcase_add_test(t, neighbors_do_not_replace);
        tcase_add_loop_test(t, lines_that_are_not_links, 0, (int) ELEMENTS(not_links));
        tcase_add_test(t, neighbors_are_bounded);
        suite_add_tcase(suite, t);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
