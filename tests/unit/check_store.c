/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "store/store.h"

static struct arena *arena;
static struct store_transaction t;

static unsigned n_allocations, failing; /* the one that fails; 0: none */

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
        return failing && ++n_allocations == failing ? NULL : __real_calloc(n, size);
}

static void setup(void)
{
        arena = arena_new();
        ck_assert_ptr_nonnull(arena);
        store_transaction_init(&t, arena);
}

static void teardown(void)
{
        failing = 0;
        arena = arena_free(arena);
}

/* --- keys ------------------------------------------------------------------------------------------------------------ */

/* A key of n characters. */
static const char *long_key(size_t n)
{
        static char key[STORE_KEY_MAX + 2];

        ck_assert_uint_lt(n, sizeof(key));
        memset(key, 'k', n);
        key[n] = '\0';
        return key;
}

START_TEST(valid_keys)
{
        static const char *const good[] = { "a", "!", "~", "/", "table/0x0002c90300800001/1", "%", "_'\";--" };
        static const char *const bad[] = { "", " ", "a b", " a", "a ", "a\tb", "a\nb", "\x7f", "a\x80", "\xc3\xa4", "\x1f" };

        for (size_t i = 0; i < ELEMENTS(good); i++)
                ck_assert_msg(store_key_is_valid(good[i]), "'%s'", good[i]);
        for (size_t i = 0; i < ELEMENTS(bad); i++)
                ck_assert_msg(!store_key_is_valid(bad[i]), "'%s'", bad[i]);
        ck_assert(store_key_is_valid(long_key(STORE_KEY_MAX)));
        ck_assert(!store_key_is_valid(long_key(STORE_KEY_MAX + 1)));
}
END_TEST

/* --- transactions ---------------------------------------------------------------------------------------------------- */

static void check_op(size_t i, const char *key, const void *value, size_t n)
{
        ck_assert_uint_lt(i, t.n);
        ck_assert_str_eq(t.ops[i].key, key);
        ck_assert_uint_eq(t.ops[i].n, n);
        ck_assert_int_eq(t.ops[i].value == NULL, value == NULL);
        if (n > 0)
                ck_assert_mem_eq(t.ops[i].value, value, n);
}

START_TEST(operations_in_their_order)
{
        ck_assert_uint_eq(t.n, 0);
        store_put(&t, "b", "12\0" "4", 4);
        store_delete(&t, "a");
        store_put(&t, "b", "", 0);
        store_put(&t, "c", NULL, 0);
        ck_assert_int_eq(t.error, 0);
        ck_assert_uint_eq(t.n, 4);
        check_op(0, "b", "12\0" "4", 4);
        check_op(1, "a", NULL, 0);
        check_op(2, "b", "", 0);
        check_op(3, "c", "", 0);
}
END_TEST

START_TEST(key_and_value_are_copied)
{
        char key[] = "key", value[] = "value";

        store_put(&t, key, value, 5);
        store_delete(&t, key);
        memset(key, 'x', 3);
        memset(value, 'x', 5);
        check_op(0, "key", "value", 5);
        check_op(1, "key", NULL, 0);
}
END_TEST

START_TEST(many_operations)
{
        char key[32];

        for (unsigned i = 0; i < 10000; i++) {
                snprintf(key, sizeof(key), "k/%u", i);
                store_put(&t, key, &i, sizeof(i));
        }
        ck_assert_int_eq(t.error, 0);
        ck_assert_uint_eq(t.n, 10000);
        for (unsigned i = 0; i < 10000; i++) {
                snprintf(key, sizeof(key), "k/%u", i);
                check_op(i, key, &i, sizeof(i));
        }
}
END_TEST

START_TEST(limits)
{
        char *large = calloc(STORE_VALUE_MAX + 1, 1);

        ck_assert_ptr_nonnull(large);
        store_put(&t, long_key(STORE_KEY_MAX), large, STORE_VALUE_MAX);
        ck_assert_int_eq(t.error, 0);
        check_op(0, long_key(STORE_KEY_MAX), large, STORE_VALUE_MAX);
        store_put(&t, "a", large, STORE_VALUE_MAX + 1);
        ck_assert_int_eq(t.error, -EFBIG);
        free(large);
}
END_TEST

/* Later operations do not hide an error. */
START_TEST(errors_stick)
{
        store_put(&t, "a", "1", 1);
        store_put(&t, "not a key", "1", 1);
        ck_assert_int_eq(t.error, -EINVAL);
        store_put(&t, "b", "1", 1);
        store_delete(&t, "b");
        store_put(&t, "c", "1", STORE_VALUE_MAX + 1);
        ck_assert_int_eq(t.error, -EINVAL);
        ck_assert_uint_eq(t.n, 1);
        store_transaction_init(&t, arena);
        store_delete(&t, "");
        ck_assert_int_eq(t.error, -EINVAL);
        store_transaction_init(&t, arena);
        ck_assert_int_eq(t.error, 0);
}
END_TEST

/* Each value of this size needs an allocation, keys and the list need one from time to time. */
static void put_and_delete(void)
{
        static const char value[5000];
        char key[STORE_KEY_MAX + 1];

        for (unsigned i = 0; i < 100; i++) {
                snprintf(key, sizeof(key), "%0150u", i);
                store_put(&t, key, value, i % 3 ? 1 : sizeof(value));
                store_delete(&t, key);
        }
}

START_TEST(memory_runs_out)
{
        unsigned n_failed = 0;

        for (unsigned which = 1;; which++) {
                arena_free(arena);
                arena = arena_new();
                store_transaction_init(&t, arena);
                n_allocations = 0;
                failing = which;
                put_and_delete();
                failing = 0;
                if (n_allocations < which)
                        break;
                ck_assert_int_eq(t.error, -ENOMEM);
                n_failed++;
        }
        ck_assert_int_eq(t.error, 0);
        ck_assert_uint_eq(t.n, 200);
        ck_assert_uint_ge(n_failed, 4);
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("store");
        TCase *c = tcase_create("store");
        SRunner *runner;
        int failed;

        tcase_add_checked_fixture(c, setup, teardown);
        tcase_add_test(c, valid_keys);
        tcase_add_test(c, operations_in_their_order);
        tcase_add_test(c, key_and_value_are_copied);
        tcase_add_test(c, many_operations);
        tcase_add_test(c, limits);
        tcase_add_test(c, errors_stick);
        tcase_add_test(c, memory_runs_out);
        suite_add_tcase(suite, c);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
