/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>

#include "util/vector.h"

#define MANY 1000

static struct arena *arena;

static void setup(void)
{
        arena = arena_new();
        ck_assert_ptr_nonnull(arena);
}

static void teardown(void)
{
        arena = arena_free(arena);
}

/* Adds items one by one and counts how often the array grows. */
static unsigned fill(struct arena *a, uint16_t **items, uint32_t *allocated)
{
        unsigned n_larger = 0;

        for (uint32_t n = 0; n < MANY; n++) {
                uint32_t before = *allocated;

                ck_assert_int_eq(VECTOR_GROW(a, *items, n, *allocated), 0);
                ck_assert_uint_gt(*allocated, n);
                n_larger += *allocated > before;
                (*items)[n] = (uint16_t) (n * 7);
        }
        for (uint32_t n = 0; n < MANY; n++)
                ck_assert_uint_eq((*items)[n], (uint16_t) (n * 7));
        return n_larger;
}

/* 64, 128, ..., 1024 */
START_TEST(one_by_one)
{
        uint16_t *items = NULL;
        uint32_t allocated = 0;

        ck_assert_uint_eq(fill(_i ? arena : NULL, &items, &allocated), 5);
        ck_assert_uint_eq(allocated, 1024);
        if (!_i)
                free(items);
}
END_TEST

/* Each number at its place among those before: 0, 7, 14, ..., whatever their order is. */
START_TEST(insert_in_order)
{
        uint16_t *items = NULL;
        uint32_t allocated = 0, n = 0;

        while (n < MANY) {
                uint16_t item = (uint16_t) (n * 7 % MANY * 7);
                uint32_t at = LOWER_BOUND(x, items, n, *x < item);

                ck_assert_int_eq(VECTOR_INSERT(_i ? arena : NULL, items, n, allocated, at, item), 0);
        }
        ck_assert_int_eq(VECTOR_ADD(_i ? arena : NULL, items, n, allocated, 1), 0);
        ck_assert_uint_eq(n, MANY + 1);
        for (uint32_t i = 0; i < MANY; i++)
                ck_assert_uint_eq(items[i], (uint16_t) (i * 7));
        ck_assert_uint_eq(items[MANY], 1);
        if (!_i)
                free(items);
}
END_TEST

static const struct {
        uint32_t n, more, allocated, expected;
} extensions[] = {
        { 0, 0, 0, 0 },     { 0, 1, 0, 64 },     { 0, 64, 0, 64 },     { 0, 65, 0, 65 },
        { 63, 1, 64, 64 },  { 64, 1, 64, 128 },  { 64, 64, 64, 128 },  { 64, 65, 64, 129 },
        { 10, 54, 64, 64 }, { 10, 55, 64, 128 }, { 100, 0, 128, 128 }, { 100, 300, 128, 400 },
};

START_TEST(several)
{
        uint32_t allocated = extensions[_i].allocated;
        uint64_t *items = calloc(allocated + 1, sizeof(*items));

        ck_assert_ptr_nonnull(items);
        ck_assert_int_eq(VECTOR_EXTEND(NULL, items, extensions[_i].n, allocated, extensions[_i].more), 0);
        ck_assert_uint_eq(allocated, extensions[_i].expected);
        free(items);
}
END_TEST

START_TEST(too_many)
{
        char item = 'x', *items = &item;
        size_t allocated = 1;

        ck_assert_int_eq(VECTOR_RESERVE(arena, items, 1, allocated, ((size_t) 1 << 31) + 1), -ENOMEM);
        ck_assert_int_eq(VECTOR_EXTEND(arena, items, 1, allocated, (size_t) 1 << 31), -ENOMEM);
        ck_assert_ptr_eq(items, &item);
        ck_assert_uint_eq(allocated, 1);
}
END_TEST

/* Objects that are large for the chunk that the arena has waste no chunk. */
START_TEST(large_objects)
{
        size_t before;

        (void) arena_alloc_array(arena, 1, 1);
        before = arena_size(arena);
        for (unsigned i = 0; i < 100; i++)
                ck_assert_ptr_nonnull(arena_alloc_array(arena, 1, 3000));
        ck_assert_uint_lt(arena_size(arena) - before, 100 * 3200);
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("vector");
        TCase *t = tcase_create("vector");
        SRunner *runner;
        int failed;

        tcase_add_checked_fixture(t, setup, teardown);
        tcase_add_loop_test(t, one_by_one, 0, 2);
        tcase_add_loop_test(t, insert_in_order, 0, 2);
        tcase_add_loop_test(t, several, 0, ELEMENTS(extensions));
        tcase_add_test(t, too_many);
        tcase_add_test(t, large_objects);
        suite_add_tcase(suite, t);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
