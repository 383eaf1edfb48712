/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What every kind of store does, with each kind. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "etcd/etcd_store.h"
#include "etcd_fixture.h"
#include "state/sqlite_store.h"
#include "util/text.h"

enum kind { KIND_SQLITE, KIND_ETCD, N_KINDS };

static struct etcd_cluster cluster;
static char dir[64], fabric[32];
static struct arena *arena;
static struct store *store, *other;
static struct store_transaction t;
static enum kind kind;

/* --- stores ------------------------------------------------------------------------------------------------------------ */

static struct store *open_store(void)
{
        static struct etcd_config config;
        struct store *s = NULL;
        char *damaged = NULL, *problem = NULL;

        if (kind == KIND_SQLITE) {
                ck_assert_int_eq(sqlite_store_open(dir, 1000, STATE_SERVE, &s, &damaged), 0);
                ck_assert_ptr_null(damaged);
                return s;
        }
        etcd_cluster_config(&cluster, &config);
        config.fabric = fabric;
        ck_assert_int_eq(etcd_store_open(&config, NULL, &s, &problem), 0);
        return s;
}

/* Of several stores, this one may commit from now on. */
static void turn_to(struct store *s)
{
        char holder[LOCK_HOLDER_SIZE];

        if (kind != KIND_ETCD)
                return;
        if (store && store != s)
                etcd_store_unlock(store);
        if (other && other != s)
                etcd_store_unlock(other);
        ck_assert_int_eq(etcd_store_lock(s, holder), 0);
}

static void begin_test(int i)
{
        static unsigned n;

        kind = (enum kind) i;
        snprintf(fabric, sizeof(fabric), "f%d-%u", (int) getpid(), n++);
        store = open_store();
        turn_to(store);
}

static struct store_transaction *begin(void)
{
        store_transaction_init(&t, arena);
        return &t;
}

static void commit(struct store *s)
{
        turn_to(s);
        ck_assert_int_eq(store_commit(s, &t), 0);
}

static void put(struct store *s, const char *key, const char *value)
{
        store_put(begin(), key, value, strlen(value));
        commit(s);
}

static int add_text(void *userdata, const char *key, const void *value, size_t n)
{
        text_add(userdata, "%s=", key);
        text_add_n(userdata, value, n);
        text_add(userdata, ";");
        return 0;
}

static const char *dump_range(struct store *s, const char *first, const char *end)
{
        _cleanup_text_ struct text text = {};

        ck_assert_int_eq(first ? store_load_range(s, first, end, add_text, &text) : store_load(s, add_text, &text), 0);
        return text.n > 0 ? text_copy(arena, &text) : "";
}

static const char *dump(struct store *s)
{
        return dump_range(s, NULL, NULL);
}

static void setup(void)
{
        strcpy(dir, "/tmp/check_stores.XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(dir));
        arena = arena_new();
        store = other = NULL;
}

static void teardown(void)
{
        char command[96];

        store = store_close(store);
        other = store_close(other);
        arena = arena_free(arena);
        snprintf(command, sizeof(command), "rm -rf %s", dir);
        ck_assert_int_eq(system(command), 0);
}

/* --- tests -------------------------------------------------------------------------------------------------------------- */

START_TEST(records_come_back_in_order)
{
        begin_test(_i);
        ck_assert_str_eq(dump(store), "");
        store_put(begin(), "b/2", "two", 3);
        store_put(&t, "a", "", 0);
        store_put(&t, "~", "last", 4);
        store_put(&t, "B", "upper", 5);
        store_put(&t, "!", "first", 5);
        store_put(&t, "b/10", "ten", 3);
        commit(store);
        ck_assert_str_eq(dump(store), "!=first;B=upper;a=;b/10=ten;b/2=two;~=last;");
        store = store_close(store);
        store = open_store();
        ck_assert_str_eq(dump(store), "!=first;B=upper;a=;b/10=ten;b/2=two;~=last;");
}
END_TEST

START_TEST(last_operation_on_a_key_counts)
{
        begin_test(_i);
        put(store, "a", "1");
        put(store, "a", "other");
        put(store, "b", "2");
        ck_assert_str_eq(dump(store), "a=other;b=2;");
        store_delete(begin(), "a");
        store_delete(&t, "absent");
        commit(store);
        ck_assert_str_eq(dump(store), "b=2;");
        store_delete(begin(), "b");
        store_put(&t, "b", "3", 1);
        store_put(&t, "c", "4", 1);
        store_delete(&t, "c");
        store_put(&t, "d", "5", 1);
        store_put(&t, "d", "6", 1);
        commit(store);
        ck_assert_str_eq(dump(store), "b=3;d=6;");
}
END_TEST

START_TEST(ranges)
{
        begin_test(_i);
        store_put(begin(), "a/1", "", 0);
        store_put(&t, "b/1", "x", 1);
        store_put(&t, "b/2", "y", 1);
        store_put(&t, "b/3", "z", 1);
        store_put(&t, "c", "", 0);
        commit(store);
        ck_assert_str_eq(dump_range(store, "b/1", "b/3"), "b/1=x;b/2=y;");
        ck_assert_str_eq(dump_range(store, "b/", "b/~"), "b/1=x;b/2=y;b/3=z;");
        ck_assert_str_eq(dump_range(store, "d", "e"), "");
}
END_TEST

START_TEST(sees_what_others_commit)
{
        begin_test(_i);
        other = open_store();
        ck_assert_int_eq(store_changed(store), 0);
        put(store, "a", "1");
        ck_assert_int_eq(store_changed(store), 0);
        ck_assert_int_eq(store_changed(other), 1);
        ck_assert_int_eq(store_changed(other), 0);
        ck_assert_str_eq(dump(other), "a=1;");
        put(other, "b", "2");
        ck_assert_int_eq(store_changed(other), 0);
        ck_assert_int_eq(store_changed(store), 1);
        ck_assert_str_eq(dump(store), "a=1;b=2;");
        store_delete(begin(), "a");
        commit(store);
        ck_assert_int_eq(store_changed(other), 1);
        ck_assert_str_eq(dump(other), "b=2;");
        ck_assert_int_eq(store_commit(store, begin()), 0);
        ck_assert_int_eq(store_changed(other), 0);
}
END_TEST

START_TEST(bytes_of_all_values)
{
        static uint8_t value[2 * 256 + 1];

        begin_test(_i);
        for (size_t i = 0; i < sizeof(value); i++)
                value[i] = (uint8_t) i;
        for (size_t n = 0; n < 8; n++) {
                _cleanup_text_ struct text expected = {}, found = {};

                store_put(begin(), "k", value + 253, sizeof(value) - 253 - n);
                commit(store);
                (void) add_text(&expected, "k", value + 253, sizeof(value) - 253 - n);
                ck_assert_int_eq(store_load(store, add_text, &found), 0);
                ck_assert_uint_eq(found.n, expected.n);
                ck_assert_int_eq(memcmp(found.bytes, expected.bytes, found.n), 0);
        }
}
END_TEST

/* A value of STORE_VALUE_MAX, a key of STORE_KEY_MAX. */
START_TEST(largest_record)
{
        char key[STORE_KEY_MAX + 1], *value = malloc(STORE_VALUE_MAX);
        _cleanup_text_ struct text found = {};

        begin_test(_i);
        memset(key, 'k', STORE_KEY_MAX);
        key[STORE_KEY_MAX] = '\0';
        memset(value, 'v', STORE_VALUE_MAX);
        store_put(begin(), key, value, STORE_VALUE_MAX);
        commit(store);
        ck_assert_int_eq(store_load(store, add_text, &found), 0);
        ck_assert_uint_eq(found.n, STORE_KEY_MAX + 1 + STORE_VALUE_MAX + 1);
        store_put(&t, "more", value, STORE_VALUE_MAX);
        store_put(&t, "small", "", 0);
        commit(store);
        free(value);
        ck_assert_uint_eq(strlen(dump_range(store, "more", "small")), strlen("more=;") + STORE_VALUE_MAX);
}
END_TEST

#define MANY 1234

/* More than a transaction of etcd can have, in operations and in bytes. */
START_TEST(large_transaction)
{
        _cleanup_text_ struct text expected = {};
        char key[16], value[2000];

        begin_test(_i);
        other = open_store();
        put(store, "key00000", "old");
        put(store, "other", "stays");
        begin();
        memset(value, 'v', sizeof(value));
        for (int i = 0; i < MANY; i++) {
                snprintf(key, sizeof(key), "key%05d", i);
                store_put(&t, key, value, sizeof(value));
                (void) add_text(&expected, key, value, sizeof(value));
        }
        commit(store);
        text_add(&expected, "other=stays;");
        ck_assert_str_eq(dump(store), text_copy(arena, &expected));
        ck_assert_int_eq(store_changed(store), 0);
        ck_assert_int_eq(store_changed(other), 1);
        ck_assert_str_eq(dump(other), text_copy(arena, &expected));
        begin();
        for (int i = 0; i < MANY; i++) {
                snprintf(key, sizeof(key), "key%05d", i);
                store_delete(&t, key);
        }
        commit(store);
        ck_assert_str_eq(dump(store), "other=stays;");
}
END_TEST

static int stop_at_second(void *userdata, const char *key, const void *value, size_t n)
{
        unsigned *count = userdata;

        (void) key;
        (void) value;
        (void) n;
        return ++*count == 2 ? -ENOTEMPTY : 0;
}

START_TEST(handler_ends_a_load)
{
        unsigned count = 0;

        begin_test(_i);
        store_put(begin(), "a", "", 0);
        store_put(&t, "b", "", 0);
        store_put(&t, "c", "", 0);
        commit(store);
        ck_assert_int_eq(store_load(store, stop_at_second, &count), -ENOTEMPTY);
        ck_assert_uint_eq(count, 2);
        ck_assert_str_eq(dump(store), "a=;b=;c=;");
}
END_TEST

START_TEST(incomplete_transaction_is_not_committed)
{
        begin_test(_i);
        store_put(begin(), "a", "1", 1);
        store_put(&t, "not a key", "2", 1);
        ck_assert_int_eq(store_commit(store, &t), -EINVAL);
        ck_assert_str_eq(dump(store), "");
}
END_TEST

static void start_cluster(void)
{
        etcd_cluster_start(&cluster, 1);
}

static void stop_cluster(void)
{
        etcd_cluster_stop(&cluster);
}

int main(void)
{
        Suite *suite = suite_create("stores");
        SRunner *runner = srunner_create(suite);
        TCase *tc = tcase_create("all kinds");
        int n_kinds = etcd_is_installed() ? N_KINDS : KIND_ETCD, failed;

        if (n_kinds < N_KINDS)
                puts("etcd is not installed, or older than 3.4: tested without it");
        else
                tcase_add_unchecked_fixture(tc, start_cluster, stop_cluster);
        tcase_add_checked_fixture(tc, setup, teardown);
        tcase_set_timeout(tc, 60);
        tcase_add_loop_test(tc, records_come_back_in_order, 0, n_kinds);
        tcase_add_loop_test(tc, last_operation_on_a_key_counts, 0, n_kinds);
        tcase_add_loop_test(tc, ranges, 0, n_kinds);
        tcase_add_loop_test(tc, sees_what_others_commit, 0, n_kinds);
        tcase_add_loop_test(tc, bytes_of_all_values, 0, n_kinds);
        tcase_add_loop_test(tc, largest_record, 0, n_kinds);
        tcase_add_loop_test(tc, large_transaction, 0, n_kinds);
        tcase_add_loop_test(tc, handler_ends_a_load, 0, n_kinds);
        tcase_add_loop_test(tc, incomplete_transaction_is_not_committed, 0, n_kinds);
        suite_add_tcase(suite, tc);
        srunner_run_all(runner, CK_NORMAL);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
