/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What only a store in etcd does: its lock, large transactions that were interrupted, a cluster that fails. */
#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "etcd/etcd_http.h"
#include "etcd/etcd_message.h"
#include "etcd/etcd_store.h"
#include "etcd_fixture.h"
#include "shell/shell.h"
#include "util/base64.h"
#include "util/text.h"

static struct etcd_cluster cluster;
static char fabric[32], prefix[48], holder[LOCK_HOLDER_SIZE];
static struct arena *arena;
static struct store *store, *other;
static char *problem; /* of the last store that could not be opened */
static struct store_transaction t;
static json_t *late; /* of a request: it arrives once more, later */
static const char *late_path;

/* --- another client ----------------------------------------------------------------------------------------------------- */

static sd_event *event;
static struct etcd_http *http;

/* Called before a request of a store, that is, of all but this client. Returns 0, or an error: then the request is not sent. */
static int (*before_request)(void);
static unsigned n_requests; /* that before_request has counted */
/* Called after it. Borrows the body. */
static void (*after_request)(const char *path, const json_t *body);
static bool sends_twice; /* the answer to the first copy is lost */
/* Changes the answer to a request of a store. */
static void (*change_answer)(json_t *answer);

/* The linker's names for the function that the stores call, and for the one behind it (ld --wrap). */
int __real_etcd_http_call(struct etcd_http *h, const char *path, json_t *body, usec_t timeout, json_t **ret);
int __wrap_etcd_http_call(struct etcd_http *h, const char *path, json_t *body, usec_t timeout, json_t **ret);

int __wrap_etcd_http_call(struct etcd_http *h, const char *path, json_t *body, usec_t timeout, json_t **ret)
{
        _cleanup_json_ json_t *mine = json_incref(body), *lost = NULL;
        int r = h != http && before_request ? before_request() : 0;

        if (r == 0 && h != http && sends_twice)
                (void) __real_etcd_http_call(h, path, json_incref(body), timeout, &lost);
        if (r == 0)
                r = __real_etcd_http_call(h, path, body, timeout, ret);
        else
                json_decref(body);
        if (r == 0 && h != http && change_answer)
                change_answer(*ret);
        if (h != http && after_request)
                after_request(path, mine);
        return r;
}

/* Returns the answer, which is owned. */
static json_t *ask(const char *path, json_t *body)
{
        json_t *answer = NULL;

        ck_assert_int_eq(etcd_http_call(http, path, body, 10 * USEC_PER_SEC, &answer), 0);
        return answer;
}

static const char *key_of(const char *name)
{
        return arena_printf(arena, "%s%s", prefix, name);
}

static void carry_out(json_t *operation)
{
        json_decref(ask("/v3/kv/txn", etcd_transaction(json_array(), json_pack("[o]", operation))));
}

static void put_key(const char *name, const char *value)
{
        carry_out(etcd_op_put(key_of(name), value, strlen(value), 0));
}

static void delete_key(const char *name)
{
        carry_out(etcd_op_delete(key_of(name), NULL));
}

/* The record of a key; key NULL: there is none. */
static struct etcd_record get_key(const char *name)
{
        json_t *answer = ask("/v3/kv/range", etcd_range(key_of(name), NULL, 1, 0));
        struct etcd_record record = {};

        if (etcd_read_record(answer, 0, arena, &record) < 0)
                record = (struct etcd_record) {};
        json_decref(answer);
        return record;
}

static const char *value_of(const char *name)
{
        return get_key(name).value ?: "(none)";
}

static size_t n_parts(void)
{
        json_t *answer = ask("/v3/kv/range", etcd_range(key_of("redo/"), key_of("redo/~"), 1, 0));
        uint64_t n;

        ck_assert(etcd_number(answer, "count", &n));
        json_decref(answer);
        return n;
}

/* --- stores ------------------------------------------------------------------------------------------------------------ */

static int try_open(struct store **ret)
{
        static struct etcd_config config;

        free(STEAL(problem));
        etcd_cluster_config(&cluster, &config);
        config.fabric = fabric;
        return etcd_store_open(&config, NULL, ret, &problem);
}

static struct store *open_store(void)
{
        struct store *s = NULL;

        ck_assert_int_eq(try_open(&s), 0);
        return s;
}

static void lock(struct store *s)
{
        ck_assert_int_eq(etcd_store_lock(s, holder), 0);
}

static int try_put(struct store *s, const char *key, const char *value)
{
        store_transaction_init(&t, arena);
        store_put(&t, key, value, strlen(value));
        return store_commit(s, &t);
}

static void put(struct store *s, const char *key, const char *value)
{
        ck_assert_int_eq(try_put(s, key, value), 0);
}

/* Puts the records BEGINNING000, BEGINNING001, ..., each with the value "1", in one transaction. */
static int try_put_many(struct store *s, const char *beginning, unsigned n)
{
        char key[24];

        store_transaction_init(&t, arena);
        for (unsigned i = 0; i < n; i++) {
                snprintf(key, sizeof(key), "%s%03u", beginning, i);
                store_put(&t, key, "1", 1);
        }
        return store_commit(s, &t);
}

static int add_text(void *userdata, const char *key, const void *value, size_t n)
{
        text_add(userdata, "%s=", key ?: "(damaged)");
        text_add_n(userdata, value, n);
        text_add(userdata, ";");
        return 0;
}

static int count_record(void *userdata, const char *key, const void *value, size_t n)
{
        (void) key;
        (void) value;
        (void) n;
        ++*(size_t *) userdata;
        return 0;
}

static size_t n_records(void)
{
        size_t n = 0;

        ck_assert_int_eq(store_load(store, count_record, &n), 0);
        return n;
}

static const char *dump(struct store *s)
{
        _cleanup_text_ struct text text = {};

        ck_assert_int_eq(store_load(s, add_text, &text), 0);
        return text.n > 0 ? text_copy(arena, &text) : "";
}

static void begin_test(void)
{
        static unsigned n;
        static struct etcd_config config;

        arena = arena_new();
        snprintf(fabric, sizeof(fabric), "f%d-%u", (int) getpid(), n++);
        snprintf(prefix, sizeof(prefix), "/pkeyd@%s/", fabric);
        etcd_cluster_config(&cluster, &config);
        ck_assert_int_ge(sd_event_new(&event), 0);
        ck_assert_int_eq(etcd_http_new(event, &config, &http), 0);
        store = open_store();
}

static void teardown(void)
{
        before_request = NULL;
        after_request = NULL;
        sends_twice = false;
        change_answer = NULL;
        n_requests = 0;
        json_decref(STEAL(late));
        free(STEAL(problem));
        store = store_close(store);
        other = store_close(other);
        http = etcd_http_free(http);
        event = sd_event_unref(event);
        arena = arena_free(arena);
}

/* --- the lock ----------------------------------------------------------------------------------------------------------- */

START_TEST(one_process_holds_the_lock)
{
        char name[64];

        other = open_store();
        ck_assert_uint_eq(etcd_store_deadline(store), 0);
        lock(store);
        lock(store);
        ck_assert_uint_gt(etcd_store_deadline(store), clock_boot());
        ck_assert_uint_le(etcd_store_deadline(store), clock_boot() + ETCD_FIXTURE_LEASE * USEC_PER_SEC - ETCD_MARGIN);
        ck_assert_int_eq(etcd_store_lock(other, holder), -EWOULDBLOCK);
        snprintf(name, sizeof(name), " (process %d)", (int) getpid());
        ck_assert_msg(strncmp(holder, "check_etcd_store on ", 20) == 0 && strstr(holder, name), "%s", holder);
        ck_assert_uint_eq(etcd_store_deadline(other), 0);
        put(store, "a", "1");
        etcd_store_unlock(store);
        ck_assert_uint_eq(etcd_store_deadline(store), 0);
        ck_assert_str_eq(value_of("lock"), "(none)");
        lock(other);
        ck_assert_str_eq(dump(other), "a=1;");
        ck_assert_ptr_nonnull(strstr(value_of("commit"), name));
}
END_TEST

START_TEST(commits_need_the_lock)
{
        ck_assert_int_eq(try_put(store, "a", "1"), -ENOLCK);
        lock(store);
        etcd_store_unlock(store);
        ck_assert_int_eq(try_put(store, "a", "1"), -ENOLCK);
        ck_assert_str_eq(dump(store), "");
}
END_TEST

/* What a lease does when it ends: the lock is gone, and another process may have it. */
static void end_lease(void)
{
        char id[24];

        snprintf(id, sizeof(id), "%" PRIu64, get_key("lock").lease);
        json_decref(ask("/v3/lease/revoke", json_pack("{ss}", "ID", id)));
}

START_TEST(nothing_is_committed_after_the_lease)
{
        lock(store);
        put(store, "a", "1");
        end_lease();
        ck_assert_int_eq(try_put(store, "a", "2"), -ENOLCK);
        ck_assert_uint_eq(etcd_store_deadline(store), 0);
        ck_assert_str_eq(dump(store), "a=1;");
        other = open_store();
        lock(other);
        ck_assert_int_eq(try_put(store, "a", "2"), -ENOLCK);
        put(other, "a", "3");
        ck_assert_int_eq(etcd_store_lock(store, holder), -EWOULDBLOCK);
        etcd_store_unlock(other);
        lock(store);
        ck_assert_int_eq(store_changed(store), 1);
        put(store, "a", "4");
}
END_TEST

/* The same process has the lock again, but not what it knew under the first one. */
START_TEST(large_transaction_is_fenced)
{
        lock(store);
        put(store, "a", "1");
        end_lease();
        ck_assert_int_eq(try_put_many(store, "k", 1000), -ENOLCK);
        ck_assert_str_eq(dump(store), "a=1;");
        ck_assert_str_eq(value_of("redo/000000"), "(none)");
}
END_TEST

/* The process does not run for longer than its lease. */
START_TEST(paused)
{
        usec_t end = clock_now() + (2 * ETCD_FIXTURE_LEASE + 5) * USEC_PER_SEC;
        int r;

        lock(store);
        other = open_store();
        while ((r = etcd_store_lock(other, holder)) == -EWOULDBLOCK && clock_now() < end)
                usleep(200 * 1000);
        ck_assert_int_eq(r, 0);
        ck_assert_uint_lt(etcd_store_deadline(store), clock_boot());
        ck_assert_int_eq(try_put(store, "a", "1"), -ENOLCK);
}
END_TEST

static int on_end(sd_event_source *source, uint64_t usec, void *userdata)
{
        (void) source;
        (void) usec;
        (void) userdata;
        return sd_event_exit(event, 0);
}

START_TEST(renewed_on_the_loop)
{
        ck_assert_int_eq(etcd_store_attach(store, event), 0);
        ck_assert_int_ge(sd_event_add_time(event, NULL, CLOCK_MONOTONIC,
                                           clock_now() + (2 * ETCD_FIXTURE_LEASE + 3) * USEC_PER_SEC, 1, on_end, NULL), 0);
        lock(store);
        ck_assert_int_ge(sd_event_loop(event), 0);
        ck_assert_uint_gt(etcd_store_deadline(store), clock_boot());
        ck_assert_uint_le(etcd_store_deadline(store), clock_boot() + ETCD_FIXTURE_LEASE * USEC_PER_SEC - ETCD_MARGIN);
        put(store, "a", "1");
        other = open_store();
        ck_assert_int_eq(etcd_store_lock(other, holder), -EWOULDBLOCK);
        store = store_close(store); /* gives the lock back */
        lock(other);
}
END_TEST

/* --- large transactions that were interrupted ---------------------------------------------------------------------------- */

static const char *part_of(const char *key, const char *value)
{
        json_t *operations = json_pack("[o]", etcd_op_put(key_of(key), value, strlen(value), 0));
        char *text = json_dumps(operations, JSON_COMPACT);
        const char *copy = arena_strdup(arena, text);

        free(text);
        json_decref(operations);
        return copy;
}

START_TEST(committed_parts_take_effect)
{
        put_key("record/a", "0");
        put_key("record/c", "0");
        put_key("redo/000001", part_of("record/b", "2"));
        put_key("redo/000002", part_of("record/c", "3"));
        ck_assert_str_eq(dump(store), "a=0;c=0;");
        put_key("redo", "3");
        ck_assert_str_eq(dump(store), "a=0;b=2;c=3;");
        ck_assert_str_eq(value_of("redo"), "(none)");
        ck_assert_str_eq(value_of("redo/000001"), "(none)");
        ck_assert_str_eq(value_of("redo/000002"), "(none)");
}
END_TEST

START_TEST(parts_that_were_not_committed_are_dropped)
{
        put_key("redo/000000", part_of("record/a", "wrong"));
        put_key("redo/000099", part_of("record/b", "wrong"));
        lock(store);
        put(store, "c", "1");
        ck_assert_int_eq(try_put_many(store, "k", ETCD_MAX_OPS + 1), 0);
        ck_assert_uint_eq(strncmp(dump(store), "c=1;k000=1;", 11), 0);
        ck_assert_str_eq(value_of("redo/000099"), "(none)");
}
END_TEST

/* Between the first request of a store, which reads `redo`, and the second, another process completes that transaction and puts the
 * first part of its next one. */
static int begin_the_next(void)
{
        if (n_requests++ == 1) {
                delete_key("redo");
                put_key("redo/000000", part_of("record/a", "wrong"));
        }
        return 0;
}

START_TEST(parts_of_the_next_transaction_are_not_committed)
{
        put_key("redo", "1");
        before_request = begin_the_next;
        ck_assert_str_eq(dump(store), "");
        ck_assert_uint_gt(n_requests, 1);
        ck_assert_str_ne(value_of("redo/000000"), "(none)");
}
END_TEST

#define ID "t0000000000000001-00000001"

/* The first part was carried out already; those of another transaction are not meant. */
START_TEST(rest_of_the_parts)
{
        put_key("redo/" ID "/000001", part_of("record/b", "2"));
        put_key("redo/" ID "/000002", part_of("record/c", "3"));
        put_key("redo/t0000000000000001-00000002/000000", part_of("record/b", "wrong"));
        put_key("redo/000000", part_of("record/b", "wrong"));
        put_key("redo", "3 " ID);
        ck_assert_str_eq(dump(store), "b=2;c=3;");
        ck_assert_str_eq(value_of("redo"), "(none)");
        ck_assert_uint_eq(n_parts(), 2);
}
END_TEST

START_TEST(missing_parts)
{
        static const char *const texts[] = { "4 " ID, "5 " ID, "2", "4x", "4 t00000000000000000000000000000000000001-00000001" };

        put_key("redo/" ID "/000001", part_of("record/a", "wrong"));
        put_key("redo/" ID "/000003", part_of("record/b", "wrong"));
        put_key("redo", texts[_i]);
        ck_assert_int_eq(store_load(store, add_text, NULL), -EPROTO);
        put_key("redo", "0 t");
        ck_assert_str_eq(dump(store), "");
        ck_assert_uint_eq(n_parts(), 2);
}
END_TEST

START_TEST(part_that_is_no_json)
{
        put_key("redo/000000", "wrong");
        put_key("redo", "1");
        ck_assert_int_eq(store_load(store, add_text, NULL), -EPROTO);
        ck_assert_int_eq(store_changed(store), -EPROTO);
        ck_assert_int_eq(try_open(&other), -EPROTO);
}
END_TEST

/* --- large transactions that this process leaves half done ---------------------------------------------------------------- */

static int fail_after_the_commit(void)
{
        return get_key("redo").key ? -EHOSTUNREACH : 0;
}

/* It counts as committed. */
static void leave_half_done(void)
{
        lock(store);
        before_request = fail_after_the_commit;
        ck_assert_int_eq(try_put_many(store, "a", ETCD_MAX_OPS + 1), 0);
        ck_assert_str_eq(value_of("record/a000"), "(none)");
}

START_TEST(next_commit_is_newer)
{
        leave_half_done();
        before_request = NULL;
        put(store, "a000", "2");
        ck_assert_uint_eq(strncmp(dump(store), "a000=2;a001=1;", 14), 0);
        put(store, "a000", "3");
        ck_assert_uint_eq(strncmp(dump(store), "a000=3;a001=1;", 14), 0);
}
END_TEST

START_TEST(next_commit_is_large)
{
        size_t n = 0;

        leave_half_done();
        before_request = NULL;
        ck_assert_int_eq(try_put_many(store, "b", ETCD_MAX_OPS + 1), 0);
        ck_assert_int_eq(store_load(store, count_record, &n), 0);
        ck_assert_uint_eq(n, 2 * (ETCD_MAX_OPS + 1));
}
END_TEST

START_TEST(next_commit_fails_too)
{
        leave_half_done();
        ck_assert_int_eq(try_put(store, "a000", "2"), -EHOSTUNREACH);
        before_request = NULL;
        ck_assert_uint_eq(strncmp(dump(store), "a000=1;a001=1;", 14), 0);
        put(store, "a000", "3");
        ck_assert_uint_eq(strncmp(dump(store), "a000=3;a001=1;", 14), 0);
}
END_TEST

/* Its lease ends, another process completes the transaction and begins one of its own. */
START_TEST(next_commit_is_too_late)
{
        leave_half_done();
        before_request = NULL;
        end_lease();
        other = open_store();
        put_key("redo/000000", part_of("record/a000", "wrong"));
        ck_assert_int_eq(try_put(store, "a000", "2"), -ENOLCK);
        ck_assert_str_eq(value_of("record/a000"), "1");
}
END_TEST

/* --- requests that arrive once more, later -------------------------------------------------------------------------------- */

#define N_LATE 44 /* requests of commit_all() */

/* This request, after each request that follows it. */
static unsigned late_one;

static void repeat_late_one(const char *path, const json_t *body)
{
        _cleanup_json_ json_t *answer = NULL;

        if (n_requests++ == late_one) {
                late = json_deep_copy(body);
                late_path = path;
        } else if (late) {
                (void) etcd_http_call(http, late_path, json_incref(late), 10 * USEC_PER_SEC, &answer);
        }
}

static void put_many(const char *beginning, unsigned n)
{
        ck_assert_int_eq(try_put_many(store, beginning, n), 0);
}

/* Begins a new tenure. */
static void lock_again(void)
{
        etcd_store_unlock(store);
        ck_assert_int_eq(store_changed(store), 0);
        lock(store);
}

/* Small and large transactions, in two tenures. */
static void commit_all(void)
{
        lock(store);
        put(store, "a000", "2");
        put(store, "a000", "3");
        put_many("a", ETCD_MAX_OPS + 1);
        put(store, "a000", "4");
        put(store, "a100", "4");
        put_many("b", ETCD_MAX_OPS + 1);
        put(store, "b000", "5");
        lock_again();
        put(store, "a000", "6");
        put_many("b", ETCD_MAX_OPS + 1);
        put(store, "b100", "7");
}

static void check_all(void)
{
        ck_assert_int_eq(store_changed(store), 0);
        ck_assert_str_eq(value_of("record/a000"), "6");
        ck_assert_str_eq(value_of("record/a100"), "4");
        ck_assert_str_eq(value_of("record/b000"), "1");
        ck_assert_str_eq(value_of("record/b100"), "7");
        ck_assert_uint_eq(n_records(), 2 * (ETCD_MAX_OPS + 1));
        ck_assert_str_eq(value_of("redo"), "(none)");
        ck_assert_uint_eq(n_parts(), 0);
}

START_TEST(late_requests)
{
        late_one = (unsigned) _i;
        after_request = repeat_late_one;
        commit_all();
        after_request = NULL;
        ck_assert_uint_eq(n_requests, N_LATE);
        check_all();
}
END_TEST

START_TEST(lost_answers)
{
        sends_twice = true;
        commit_all();
        sends_twice = false;
        check_all();
}
END_TEST

/* Another process has committed since this one asked last. */
START_TEST(commit_on_unknown_records)
{
        lock(store);
        other = open_store();
        put(store, "a", "1");
        etcd_store_unlock(store);
        lock(other);
        ck_assert_int_eq(try_put(other, "a", "2"), -EBUSY);
        ck_assert_int_eq(try_put_many(other, "k", ETCD_MAX_OPS + 1), -EBUSY);
        ck_assert_uint_gt(etcd_store_deadline(other), clock_boot());
        ck_assert_str_eq(dump(other), "a=1;");
        put(other, "a", "3");
        ck_assert_str_eq(dump(other), "a=3;");
}
END_TEST

/* --- what other programs may have put there ------------------------------------------------------------------------------ */

START_TEST(keys_that_no_transaction_has)
{
        put_key("record/with blank", "1");
        put_key("record/", "2");
        put_key("record/good", "3");
        put_key("recording", "4");
        ck_assert_str_eq(dump(store), "(damaged)=;good=3;(damaged)=;");
}
END_TEST

/* Another program's key, longer than any of pkeyd, is the last of a page: it does not begin the next one, too. */
START_TEST(long_key_at_the_end_of_a_page)
{
        char key[700];
        size_t n = 0;

        for (int i = 0; i < 127; i++)
                put_key(arena_printf(arena, "record/a%03d", i), "");
        memset(key, 'b', sizeof(key) - 1);
        key[sizeof(key) - 1] = '\0';
        put_key(arena_printf(arena, "record/%s", key), "");
        put_key("record/c", "");
        ck_assert_int_eq(store_load(store, count_record, &n), 0);
        ck_assert_uint_eq(n, 129);
}
END_TEST

/* The loop that notifies the watchdog does not run while everything is loaded. */
START_TEST(watchdog_while_loading)
{
        struct sockaddr_un a = { .sun_family = AF_UNIX };
        char text[32] = "", path[] = "/tmp/check_etcd_store.XXXXXX";
        unsigned n = 0;
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

        ck_assert_ptr_nonnull(mkdtemp(path));
        snprintf(a.sun_path, sizeof(a.sun_path), "%s/socket", path);
        ck_assert_int_eq(bind(fd, (struct sockaddr *) &a, sizeof(a)), 0);
        lock(store);
        ck_assert_int_eq(try_put_many(store, "a", 300), 0);
        setenv("NOTIFY_SOCKET", a.sun_path, true);
        ck_assert_uint_eq(n_records(), 300);
        unsetenv("NOTIFY_SOCKET");
        while (recv(fd, text, sizeof(text) - 1, 0) > 0) {
                ck_assert_str_eq(text, "WATCHDOG=1");
                n++;
        }
        ck_assert_uint_eq(n, 3);
        close(fd);
        unlink(a.sun_path);
        rmdir(path);
}
END_TEST

/* --- answers that etcd does not give -------------------------------------------------------------------------------------- */

static int limit_requests(void)
{
        return n_requests++ < 20 ? 0 : -ELOOP;
}

/* Loads b and d, and counts the records. */
static int load_changed(void (*change)(json_t *answer), size_t *ret)
{
        put_key("record/b", "1");
        put_key("record/d", "1");
        before_request = limit_requests;
        change_answer = change;
        return store_load_range(store, "b", "e", count_record, ret);
}

static void claim_more(json_t *answer)
{
        ck_assert_int_eq(json_object_set_new(answer, "more", json_true()), 0);
}

START_TEST(more_behind_the_last_record)
{
        size_t n = 0;

        ck_assert_int_eq(load_changed(claim_more, &n), -EPROTO);
        ck_assert_uint_eq(n, 2);
}
END_TEST

static json_t *page; /* the first one with records */

static void repeat_page(json_t *answer)
{
        if (!page)
                page = json_incref(json_object_get(answer, "kvs"));
        else
                ck_assert_int_eq(json_object_set(answer, "kvs", page), 0);
        claim_more(answer);
}

START_TEST(same_page_again)
{
        size_t n = 0;

        ck_assert_int_eq(load_changed(repeat_page, &n), -EPROTO);
        ck_assert_uint_eq(n, 2);
        json_decref(STEAL(page));
}
END_TEST

static void rename_first(json_t *answer, const char *key)
{
        json_t *first = json_array_get(json_object_get(answer, "kvs"), 0);
        char text[128];

        base64_encode(key, strlen(key), text);
        if (first)
                ck_assert_int_eq(json_object_set_new(first, "key", json_string(text)), 0);
}

static void rename_to_a(json_t *answer)
{
        rename_first(answer, key_of("record/a"));
}

static void rename_to_e(json_t *answer)
{
        rename_first(answer, key_of("record/e"));
}

START_TEST(record_outside_the_range)
{
        size_t n = 0;

        ck_assert_int_eq(load_changed(_i == 0 ? rename_to_a : rename_to_e, &n), -EPROTO);
        ck_assert_uint_eq(n, 0);
}
END_TEST

START_TEST(of_a_newer_version)
{
        lock(store);
        ck_assert_str_eq(value_of("version"), "1");
        put_key("version", "2");
        ck_assert_int_eq(store_load(store, add_text, NULL), -EPROTONOSUPPORT);
        ck_assert_int_eq(try_open(&other), -EPROTONOSUPPORT);
        put_key("version", "x");
        ck_assert_int_eq(try_open(&other), -EPROTO);
}
END_TEST

/* Restored from an older snapshot of the same cluster. */
START_TEST(older_than_it_was)
{
        lock(store);
        put(store, "a", "1");
        delete_key("commit");
        ck_assert_int_eq(store_changed(store), -EUCLEAN);
}
END_TEST

/* --- a cluster that fails ------------------------------------------------------------------------------------------------- */

static void end_member(unsigned i)
{
        ck_assert_int_eq(kill(cluster.pids[i], SIGKILL), 0);
        ck_assert_int_eq(waitpid(cluster.pids[i], NULL, 0), cluster.pids[i]);
}

static void begin_with_three(void)
{
        etcd_cluster_start(&cluster, 3);
        begin_test();
}

static void end_with_three(void)
{
        teardown();
        for (unsigned i = 0; i < cluster.n; i++)
                (void) kill(cluster.pids[i], SIGCONT);
        etcd_cluster_stop(&cluster);
}

/* Tries again as a daemon does, since the other members may have to elect a leader first. */
static void put_soon(const char *key, const char *value)
{
        usec_t end = clock_now() + 20 * USEC_PER_SEC;
        int r;

        do {
                r = etcd_store_lock(store, holder);
                if (r == 0)
                        r = try_put(store, key, value);
        } while (r < 0 && clock_now() < end);
        ck_assert_msg(r == 0, "%s %s", strerror(-r), etcd_store_problem(store));
}

START_TEST(one_of_three_ends)
{
        lock(store);
        put(store, "a", "1");
        end_member((unsigned) _i);
        put_soon("b", "2");
        ck_assert_str_eq(dump(store), "a=1;b=2;");
}
END_TEST

START_TEST(one_of_three_hangs)
{
        lock(store);
        put(store, "a", "1");
        etcd_cluster_pause(&cluster, (unsigned) _i);
        put_soon("b", "2");
        ck_assert_str_eq(dump(store), "a=1;b=2;");
}
END_TEST

static bool is_leader(unsigned i)
{
        const struct etcd_config config = { .endpoints = &cluster.endpoints[i], .n_endpoints = 1 };
        struct etcd_http *h = NULL;
        json_t *status = NULL;
        uint64_t self = 0, leader = 0;

        ck_assert_int_eq(etcd_http_new(event, &config, &h), 0);
        ck_assert_int_eq(etcd_http_call(h, "/v3/maintenance/status", json_object(), 10 * USEC_PER_SEC, &status), 0);
        ck_assert(etcd_number(json_object_get(status, "header"), "member_id", &self) && etcd_number(status, "leader", &leader));
        json_decref(status);
        etcd_http_free(h);
        return self == leader;
}

/* Opens the store, which asks a member first that is not the leader. Returns that member. */
static unsigned open_at_follower(void)
{
        static const char *endpoints[ETCD_MAX_MEMBERS];
        static struct etcd_config config;
        unsigned first = is_leader(0);

        for (unsigned i = 0; i < cluster.n; i++)
                endpoints[i] = cluster.endpoints[(first + i) % cluster.n];
        store = store_close(store);
        config = (struct etcd_config) { .endpoints = endpoints, .n_endpoints = cluster.n, .fabric = fabric, .lease = 30 };
        ck_assert_int_eq(etcd_store_open(&config, NULL, &store, &problem), 0);
        lock(store);
        return first;
}

#define N_ROUNDS 4 /* a member that goes on does not always carry out what it has */

/* What a member had not carried out when it hung arrives when it goes on. */
START_TEST(late_commit)
{
        for (int i = 0; i < N_ROUNDS; i++) {
                unsigned member = open_at_follower();

                put(store, "a", "0");
                etcd_cluster_pause(&cluster, member);
                put(store, "a", "1");
                put(store, "a", "2");
                ck_assert_int_eq(kill(cluster.pids[member], SIGCONT), 0);
                usleep(500 * 1000);
                ck_assert_str_eq(dump(store), "a=2;");
                ck_assert_int_eq(store_changed(store), 0);
        }
}
END_TEST

#define N_LARGE (100 * ETCD_MAX_OPS)

static unsigned hung;

/* In the middle of a transaction whose first request hung. */
static void wake_in_the_middle(const char *path, const json_t *body)
{
        (void) path;
        (void) body;
        if (n_requests++ == 30)
                ck_assert_int_eq(kill(cluster.pids[hung], SIGCONT), 0);
}

START_TEST(late_request_of_a_large_commit)
{
        for (unsigned i = 0; i < N_ROUNDS; i++) {
                hung = open_at_follower();
                n_requests = 0;
                etcd_cluster_pause(&cluster, hung);
                after_request = wake_in_the_middle;
                put_many(arena_printf(arena, "%c", 'a' + (int) i), N_LARGE);
                after_request = NULL;
                ck_assert_uint_eq(n_records(), (i + 1) * N_LARGE);
        }
}
END_TEST

START_TEST(no_majority)
{
        usec_t began;

        lock(store);
        put(store, "a", "1");
        end_member(0);
        end_member(2);
        began = clock_now();
        ck_assert_int_eq(try_put(store, "a", "2"), -EHOSTUNREACH);
        ck_assert_int_eq(store_changed(store), -EHOSTUNREACH);
        ck_assert_int_eq(store_load(store, add_text, NULL), -EHOSTUNREACH);
        ck_assert_int_eq(try_open(&other), -EHOSTUNREACH);
        ck_assert_msg(problem && strncmp(problem, "http://127.0.0.1:", 17) == 0, "%s", problem);
        ck_assert_msg(strncmp(etcd_store_problem(store), "http://127.0.0.1:", 17) == 0, "%s", etcd_store_problem(store));
        etcd_store_unlock(store);
        ck_assert_int_eq(etcd_store_lock(store, holder), -EHOSTUNREACH);
        ck_assert_uint_eq(etcd_store_deadline(store), 0);
        ck_assert_uint_lt(clock_now() - began, 60 * USEC_PER_SEC);
}
END_TEST

/* --- users ---------------------------------------------------------------------------------------------------------------- */

static void enable_users(void)
{
        json_decref(ask("/v3/auth/user/add", json_pack("{ss, ss}", "name", "root", "password", "secret of root")));
        json_decref(ask("/v3/auth/role/add", json_pack("{ss}", "name", "root")));
        json_decref(ask("/v3/auth/user/grant", json_pack("{ss, ss}", "user", "root", "role", "root")));
        json_decref(ask("/v3/auth/user/add", json_pack("{ss, ss}", "name", "pkeyd", "password", "first")));
        json_decref(ask("/v3/auth/user/grant", json_pack("{ss, ss}", "user", "pkeyd", "role", "root")));
        json_decref(ask("/v3/auth/enable", json_object()));
}

static int open_as(const char *user, const char *password)
{
        static struct etcd_config config;

        etcd_cluster_config(&cluster, &config);
        config.fabric = fabric;
        config.user = user;
        config.password = password;
        other = store_close(other);
        free(STEAL(problem));
        return etcd_store_open(&config, NULL, &other, &problem);
}

START_TEST(needs_the_password)
{
        enable_users();
        ck_assert_int_eq(open_as("root", "wrong"), -EACCES);
        ck_assert_int_eq(open_as("nobody", "secret of root"), -EACCES);
        ck_assert_int_eq(open_as(NULL, NULL), -EACCES);
        ck_assert_int_eq(open_as("root", "secret of root"), 0);
        lock(other);
        put(other, "a", "1");
        ck_assert_str_eq(dump(other), "a=1;");
}
END_TEST

static void write_password(const char *path, const char *text)
{
        FILE *f = fopen(path, "we");

        ck_assert_ptr_nonnull(f);
        ck_assert_int_ge(fputs(text, f), 0);
        ck_assert_int_eq(fclose(f), 0);
}

/* Of pkeyd, as root. */
static void set_password(const char *password)
{
        struct etcd_config config;
        struct etcd_http *root = NULL;
        json_t *answer = NULL;

        etcd_cluster_config(&cluster, &config);
        config.user = "root";
        config.password = "secret of root";
        ck_assert_int_eq(etcd_http_new(event, &config, &root), 0);
        ck_assert_int_eq(etcd_http_call(root, "/v3/auth/user/changepw", json_pack("{ss, ss}", "name", "pkeyd", "password", password), 10 * USEC_PER_SEC,
                                        &answer), 0);
        json_decref(answer);
        etcd_http_free(root);
}

/* It is in a file, and changes in etcd first. */
START_TEST(password_is_read_again)
{
        static struct etcd_config config;
        char path[] = "/tmp/check_etcd_store.XXXXXX";

        close(mkstemp(path));
        write_password(path, "first\nsecond line");
        enable_users();
        etcd_cluster_config(&cluster, &config);
        config.fabric = fabric;
        config.user = "pkeyd";
        config.password = "of the start";
        config.password_file = path;
        ck_assert_int_eq(etcd_store_open(&config, NULL, &other, &problem), 0);
        set_password("second");
        ck_assert_int_eq(store_changed(other), -EACCES);
        write_password(path, "second\n");
        ck_assert_int_eq(store_changed(other), 0);
        unlink(path);
        set_password("of the start");
        ck_assert_int_eq(store_changed(other), 0);
}
END_TEST

/* With a JWT, etcd refuses the token after each change of a user. */
START_TEST(tokens_of_an_older_revision)
{
        enable_users();
        ck_assert_int_eq(open_as("root", "secret of root"), 0);
        lock(other);
        put(other, "a", "1");
        set_password("second");
        ck_assert_int_eq(store_changed(other), 0);
        set_password("third");
        put(other, "a", "2");
        ck_assert_str_eq(dump(other), "a=2;");
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

static void begin_alone(void)
{
        start_cluster();
        begin_test();
}

static void end_alone(void)
{
        teardown();
        stop_cluster();
}

static char jwt_key[32];

static void begin_with_jwt(void)
{
        char how[96];
        FILE *f;

        strcpy(jwt_key, "/tmp/check_etcd_store.XXXXXX");
        f = fdopen(mkstemp(jwt_key), "w");
        ck_assert_ptr_nonnull(f);
        ck_assert_int_ge(fputs("a secret of 32 bytes for HMAC ...", f), 0);
        ck_assert_int_eq(fclose(f), 0);
        snprintf(how, sizeof(how), "jwt,priv-key=%s,sign-method=HS256,ttl=10m", jwt_key);
        setenv("ETCD_AUTH_TOKEN", how, true); /* as --auth-token */
        begin_alone();
}

static void end_with_jwt(void)
{
        end_alone();
        unsetenv("ETCD_AUTH_TOKEN");
        unlink(jwt_key);
}

int main(void)
{
        Suite *suite = suite_create("etcd_store");
        SRunner *runner = srunner_create(suite);
        TCase *tc = tcase_create("one member"), *three = tcase_create("three members"), *alone = tcase_create("a cluster of its own"),
              *jwt = tcase_create("with JWT");
        int failed;

        if (!etcd_is_installed()) {
                puts("etcd is not installed, or older than 3.4");
                return 77;
        }
        tcase_add_unchecked_fixture(tc, start_cluster, stop_cluster);
        tcase_add_checked_fixture(tc, begin_test, teardown);
        tcase_set_timeout(tc, 60);
        tcase_add_test(tc, one_process_holds_the_lock);
        tcase_add_test(tc, commits_need_the_lock);
        tcase_add_test(tc, nothing_is_committed_after_the_lease);
        tcase_add_test(tc, large_transaction_is_fenced);
        tcase_add_test(tc, paused);
        tcase_add_test(tc, renewed_on_the_loop);
        tcase_add_test(tc, committed_parts_take_effect);
        tcase_add_test(tc, parts_that_were_not_committed_are_dropped);
        tcase_add_test(tc, parts_of_the_next_transaction_are_not_committed);
        tcase_add_test(tc, rest_of_the_parts);
        tcase_add_loop_test(tc, missing_parts, 0, 5);
        tcase_add_test(tc, part_that_is_no_json);
        tcase_add_test(tc, next_commit_is_newer);
        tcase_add_test(tc, next_commit_is_large);
        tcase_add_test(tc, next_commit_fails_too);
        tcase_add_test(tc, next_commit_is_too_late);
        tcase_add_loop_test(tc, late_requests, 0, N_LATE - 1);
        tcase_add_test(tc, lost_answers);
        tcase_add_test(tc, commit_on_unknown_records);
        tcase_add_test(tc, keys_that_no_transaction_has);
        tcase_add_test(tc, long_key_at_the_end_of_a_page);
        tcase_add_test(tc, watchdog_while_loading);
        tcase_add_test(tc, more_behind_the_last_record);
        tcase_add_test(tc, same_page_again);
        tcase_add_loop_test(tc, record_outside_the_range, 0, 2);
        tcase_add_test(tc, of_a_newer_version);
        tcase_add_test(tc, older_than_it_was);
        suite_add_tcase(suite, tc);
        tcase_add_checked_fixture(three, begin_with_three, end_with_three);
        tcase_set_timeout(three, 120);
        tcase_add_loop_test(three, one_of_three_ends, 0, 3);
        tcase_add_loop_test(three, one_of_three_hangs, 0, 3);
        tcase_add_test(three, late_commit);
        tcase_add_test(three, late_request_of_a_large_commit);
        tcase_add_test(three, no_majority);
        suite_add_tcase(suite, three);
        tcase_add_checked_fixture(alone, begin_alone, end_alone);
        tcase_set_timeout(alone, 60);
        tcase_add_test(alone, needs_the_password);
        tcase_add_test(alone, password_is_read_again);
        suite_add_tcase(suite, alone);
        tcase_add_checked_fixture(jwt, begin_with_jwt, end_with_jwt);
        tcase_set_timeout(jwt, 60);
        tcase_add_test(jwt, tokens_of_an_older_revision);
        suite_add_tcase(suite, jwt);
        srunner_run_all(runner, CK_NORMAL);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
