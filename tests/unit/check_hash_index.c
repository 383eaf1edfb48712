/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <stdbool.h>

#include "util/hash_index.h"

#define MANY 1000

/* A poor hash, so that many items have the same hash. */
static uint64_t hash_of(uint32_t item)
{
        return item % 7;
}

static bool is_in(const struct hash_index *x, uint32_t item)
{
        uint32_t i = hash_index_first(x, hash_of(item));

        while (i != HASH_INDEX_NONE && i != item)
                i = hash_index_next(x, i);
        return i == item;
}

/* Adds all items while the index grows, and removes every third. */
static void fill(struct hash_index *x)
{
        for (uint32_t i = 0; i < MANY; i++) {
                ck_assert_int_eq(hash_index_reserve(x, i + 1), 0);
                hash_index_add(x, i, hash_of(i));
        }
        for (uint32_t i = 0; i < MANY; i += 3)
                hash_index_remove(x, i);
        for (uint32_t i = 0; i < MANY; i++)
                ck_assert_int_eq(is_in(x, i), i % 3 != 0);
        ck_assert_uint_eq(hash_index_first(x, 7), HASH_INDEX_NONE);
}

START_TEST(by_malloc)
{
        struct hash_index x = {};

        ck_assert_uint_eq(hash_index_first(&x, 0), HASH_INDEX_NONE);
        fill(&x);
        hash_index_done(&x);
        ck_assert_uint_eq(hash_index_first(&x, 0), HASH_INDEX_NONE);
}
END_TEST

START_TEST(in_an_arena)
{
        struct arena *a = arena_new();
        struct hash_index x = { .arena = a };

        fill(&x);
        arena_free(a);
}
END_TEST

START_TEST(hashes_of_bytes)
{
        /* test vectors of FNV-1a; such values are stored in files */
        ck_assert_uint_eq(hash_bytes(HASH_START, NULL, 0), UINT64_C(0xcbf29ce484222325));
        ck_assert_uint_eq(hash_bytes(HASH_START, "a", 1), UINT64_C(0xaf63dc4c8601ec8c));
        ck_assert_uint_eq(hash_bytes(HASH_START, "foobar", 6), UINT64_C(0x85944171f73967e8));
        ck_assert_uint_eq(hash_bytes(hash_bytes(HASH_START, "foo", 3), "bar", 3), UINT64_C(0x85944171f73967e8));
        ck_assert_uint_eq(hash_bytes(HASH_START, "\xff", 1), UINT64_C(0xaf64724c8602eb6e));
}
END_TEST

START_TEST(hashes_of_numbers)
{
        /* the first numbers of splitmix64 with seed 0 */
        ck_assert_uint_eq(hash_mix(0, 0), UINT64_C(0xe220a8397b1dcdaf));
        ck_assert_uint_eq(hash_mix(0, UINT64_C(0x9e3779b97f4a7c15)), UINT64_C(0x6e789e6aa1b965f4));
        ck_assert_uint_ne(hash_mix(hash_mix(HASH_START, 1), 2), hash_mix(hash_mix(HASH_START, 2), 1));
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("hash_index");
        TCase *t = tcase_create("hash_index");
        SRunner *runner;
        int failed;

        tcase_add_test(t, by_malloc);
        tcase_add_test(t, in_an_arena);
        tcase_add_test(t, hashes_of_bytes);
        tcase_add_test(t, hashes_of_numbers);
        suite_add_tcase(suite, t);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
