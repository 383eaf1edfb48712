/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The state of two head nodes whose store is an etcd cluster. Each has a directory of its own. */
#include <check.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "etcd_fixture.h"
#include "etcd/etcd_http.h"
#include "etcd/etcd_message.h"
#include "shell/file.h"
#include "settings/settings.h"
#include "state/directory_lock.h"
#include "state/etcd_place.h"
#include "state/state_copy.h"
#include "state/state.h"

static struct arena *arena;
static struct etcd_cluster cluster;
static struct etcd_config config;
static char top[64], fabric[32];
static struct state one, two;

static const char *file(const char *name)
{
        return arena_printf(arena, "%s/%s", top, name);
}

static void write_text(const char *name, const char *text)
{
        ck_assert_int_eq(file_write(FILE_NAMED, file(name), text, strlen(text)), 0);
}

static void begin_test(void)
{
        static unsigned n;

        arena = arena_new();
        strcpy(top, "/tmp/check_shared_state.XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(top));
        snprintf(fabric, sizeof(fabric), "f%d-%u", (int) getpid(), n++);
        etcd_cluster_config(&cluster, &config);
        config.fabric = fabric;
}

static void end_test(void)
{
        char command[96];

        state_close(&one);
        state_close(&two);
        arena = arena_free(arena);
        snprintf(command, sizeof(command), "rm -rf %s", top);
        ck_assert_int_eq(system(command), 0);
}

static void open_both(void)
{
        ck_assert_int_eq(state_open(&one, file("one"), STATE_WRITE, &config), 0);
        ck_assert_int_eq(state_open(&two, file("two"), STATE_WRITE, &config), 0);
}

/* Takes the lock, which must be free. Returns the records that others changed; NULL: none. */
static struct remembered *lock(struct state *s)
{
        struct remembered *changed = NULL;
        const char *holder = NULL;
        int r = state_lock(s, &holder, &changed);

        ck_assert_msg(r == 0, "%s", strerror(-r));
        ck_assert(state_holds_lock(s));
        return changed;
}

static int try_lock(struct state *s, const char **ret_holder)
{
        _cleanup_remembered_ struct remembered *changed = NULL;

        return state_lock(s, ret_holder, &changed);
}

/* A freed index of a port. */
static int commit(struct state *s, uint64_t node)
{
        struct store_transaction t;
        const char *value = arena_printf(arena, "{\"node\": \"0x%016" PRIx64 "\", \"port\": 1, \"freed\": [{\"index\": 1, \"base\": \"0x0001\", "
                                         "\"full\": true, \"sequence\": 1, \"lost\": false}]}", node);

        store_transaction_init(&t, arena);
        store_put(&t, arena_printf(arena, "index/0x%016" PRIx64 "/1", node), value, strlen(value));
        return state_commit(s, &t);
}

static size_t n_freed(const struct remembered *m)
{
        size_t n;

        (void) index_memory_all(m->indexes, &n);
        return n;
}

static void check_report(struct state *s, const char *text)
{
        struct state_report report;

        ck_assert_msg(state_next_report(s, &report), "%s", text);
        ck_assert_msg(strstr(report.text, text) && report.hint && report.effect, "%s", report.text);
        ck_assert(!state_next_report(s, &report));
}

static void check_no_report(struct state *s)
{
        struct state_report report = { .text = (char *) "" };

        ck_assert_msg(!state_next_report(s, &report), "%s", report.text);
}

START_TEST(one_memory)
{
        _cleanup_remembered_ struct remembered *changed = NULL, *again = NULL, *followed = NULL;
        const char *holder = NULL;

        open_both();
        ck_assert(!state_holds_lock(&one));
        ck_assert_ptr_null(lock(&one));
        ck_assert_int_eq(commit(&one, 1), 0);
        ck_assert_int_eq(try_lock(&two, &holder), -EWOULDBLOCK);
        ck_assert_ptr_nonnull(strstr(holder, "check_shared_state on "));
        ck_assert(!state_holds_lock(&two));
        ck_assert_int_eq(commit(&two, 2), -ENOLCK);
        ck_assert_int_eq(state_follow(&two, &followed), 0);
        ck_assert_ptr_nonnull(followed);
        ck_assert_uint_eq(n_freed(followed), 1);
        state_unlock(&one);
        ck_assert(!state_holds_lock(&one));
        /* what was followed was to be shown only */
        changed = lock(&two);
        ck_assert_ptr_nonnull(changed);
        ck_assert_uint_eq(n_freed(changed), 1);
        ck_assert_int_eq(commit(&two, 2), 0);
        state_unlock(&two);
        again = lock(&one);
        ck_assert_ptr_nonnull(again);
        ck_assert_uint_eq(n_freed(again), 2);
        check_no_report(&one);
}
END_TEST

START_TEST(followed_only_when_it_changed)
{
        _cleanup_remembered_ struct remembered *first = NULL, *none = NULL, *again = NULL;

        open_both();
        ck_assert_int_eq(state_follow(&two, &none), 0);
        ck_assert_ptr_null(none);
        ck_assert_ptr_null(lock(&one));
        ck_assert_int_eq(commit(&one, 1), 0);
        ck_assert_int_eq(state_follow(&two, &first), 0);
        ck_assert_ptr_nonnull(first);
        ck_assert_int_eq(state_follow(&two, &none), 0);
        ck_assert_ptr_null(none);
        state_load_again(&two);
        ck_assert_int_eq(state_follow(&two, &again), 0);
        ck_assert_ptr_nonnull(again);
        ck_assert_int_eq(state_follow(&two, &none), 0);
        ck_assert_ptr_null(none);
}
END_TEST

static void commit_discovery(struct state *s, const char *value)
{
        struct store_transaction t;

        store_transaction_init(&t, arena);
        store_put(&t, "table/discovery", value, strlen(value));
        ck_assert_int_eq(state_commit(s, &t), 0);
}

static void commit_deletion(struct state *s, uint64_t node)
{
        struct store_transaction t;

        store_transaction_init(&t, arena);
        store_delete(&t, arena_printf(arena, "index/0x%016" PRIx64 "/1", node));
        ck_assert_int_eq(state_commit(s, &t), 0);
}

static struct remembered *follow(struct state *s)
{
        struct remembered *ret = NULL;

        ck_assert_int_eq(state_follow(s, &ret), 0);
        return ret;
}

/* A writer that writes nothing stores the time of its last discovery in each sweep: all records are not loaded for it, except at a
 * hand-over. */
START_TEST(discovery_is_not_followed)
{
        _cleanup_remembered_ struct remembered *first = NULL, *put = NULL, *deleted = NULL, *other = NULL, *locked = NULL;

        open_both();
        ck_assert_ptr_null(lock(&one));
        ck_assert_int_eq(commit(&one, 1), 0);
        commit_discovery(&one, "{\"at\": 1, \"now\": 1, \"boot\": \"b\"}");
        first = follow(&two);
        ck_assert_ptr_nonnull(first);
        for (unsigned i = 2; i < 4; i++) {
                commit_discovery(&one, arena_printf(arena, "{\"at\": %u, \"now\": 1, \"boot\": \"b\"}", i));
                ck_assert_ptr_null(follow(&two));
        }
        ck_assert_int_eq(commit(&one, 2), 0);
        commit_discovery(&one, "{\"at\": 4, \"now\": 1, \"boot\": \"b\"}");
        put = follow(&two);
        ck_assert_ptr_nonnull(put);
        ck_assert_uint_eq(n_freed(put), 2);
        commit_deletion(&one, 1);
        deleted = follow(&two);
        ck_assert_ptr_nonnull(deleted);
        ck_assert_uint_eq(n_freed(deleted), 1);
        commit_deletion(&one, 2);
        ck_assert_int_eq(commit(&one, 3), 0);
        other = follow(&two);
        ck_assert_ptr_nonnull(other);
        commit_discovery(&one, "{\"at\": 5, \"now\": 1, \"boot\": \"b\"}");
        ck_assert_ptr_null(follow(&two));
        state_unlock(&one);
        locked = lock(&two);
        ck_assert_ptr_nonnull(locked);
}
END_TEST

/* The policy could not be loaded: it is tried again at each lock, although nobody has stored anything. */
START_TEST(locked_and_loaded_again)
{
        _cleanup_remembered_ struct remembered *again = NULL;

        open_both();
        ck_assert_ptr_null(lock(&one));
        ck_assert_int_eq(commit(&one, 1), 0);
        state_unlock(&one);
        ck_assert_ptr_null(lock(&one));
        state_unlock(&one);
        state_load_again(&one);
        ck_assert(state_is_outdated(&one));
        again = lock(&one);
        ck_assert_ptr_nonnull(again);
        ck_assert_uint_eq(n_freed(again), 1);
        state_unlock(&one);
        ck_assert_ptr_null(lock(&one));
}
END_TEST

/* Before a request about leases, a head node asks whether it has missed something. If it becomes standby then, it follows that. */
START_TEST(what_it_missed_is_followed)
{
        _cleanup_remembered_ struct remembered *missed = NULL, *none = NULL, *changed = NULL;

        open_both();
        ck_assert(!state_is_outdated(&two));
        ck_assert_ptr_null(lock(&one));
        ck_assert_int_eq(commit(&one, 1), 0);
        ck_assert(state_is_outdated(&two));
        ck_assert_int_eq(state_follow(&two, &missed), 0);
        ck_assert_ptr_nonnull(missed);
        ck_assert_uint_eq(n_freed(missed), 1);
        ck_assert_int_eq(state_follow(&two, &none), 0);
        ck_assert_ptr_null(none);
        ck_assert(state_is_outdated(&two));
        state_unlock(&one);
        changed = lock(&two);
        ck_assert_ptr_nonnull(changed);
        ck_assert(!state_is_outdated(&two));
}
END_TEST

static void wait_until_locked(struct state *s)
{
        usec_t end = clock_now() + 30 * USEC_PER_SEC;
        const char *holder;
        int r;

        while ((r = try_lock(s, &holder)) < 0 && clock_now() < end)
                usleep(200 * 1000);
        ck_assert_msg(r == 0, "%s", strerror(-r));
}

/* The pkeyd of the other head node, which is another process. */
static void commit_by_other_pkeyd(uint64_t node)
{
        int status;
        pid_t pid = fork();

        if (pid == 0) {
                const char *holder;

                _exit(state_open(&two, file("two"), STATE_SERVE, &config) == 0 && try_lock(&two, &holder) == 0 &&
                      commit(&two, node) == 0 ? 0 : 1);
        }
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_int_eq(status, 0);
}

/* pkeyctl on the host of the one commits after the other pkeyd did: the leases of that one count nevertheless. */
START_TEST(other_pkeyd_before_pkeyctl)
{
        _cleanup_remembered_ struct remembered *of_pkeyctl = NULL, *of_both = NULL;

        ck_assert_int_eq(state_open(&one, file("one"), STATE_SERVE, &config), 0);
        ck_assert_ptr_null(lock(&one));
        ck_assert_int_eq(commit(&one, 1), 0);
        state_unlock(&one);
        ck_assert_int_eq(state_open(&two, file("two"), STATE_WRITE, &config), 0);
        ck_assert_ptr_null(lock(&two));
        ck_assert_int_eq(commit(&two, 2), 0);
        state_close(&two);
        of_pkeyctl = lock(&one);
        ck_assert_ptr_nonnull(of_pkeyctl);
        ck_assert(!state_is_of_other_pkeyd(&one));
        state_unlock(&one);
        commit_by_other_pkeyd(3);
        ck_assert_int_eq(state_open(&two, file("two"), STATE_WRITE, &config), 0);
        wait_until_locked(&two); /* the other pkeyd did not give it back */
        ck_assert_int_eq(commit(&two, 4), 0);
        state_close(&two);
        of_both = lock(&one);
        ck_assert_ptr_nonnull(of_both);
        ck_assert_uint_eq(n_freed(of_both), 4);
        ck_assert(state_is_of_other_pkeyd(&one));
        ck_assert_int_eq(commit(&one, 5), 0);
        ck_assert(!state_is_outdated(&one));
        ck_assert(!state_is_of_other_pkeyd(&one));
}
END_TEST

/* state.db is older than the cluster, or the cluster than state.db: which of them is to be believed is for an admin to say. */
START_TEST(another_store_is_in_the_way)
{
        ck_assert_int_eq(state_open(&one, file("one"), STATE_WRITE, NULL), 0);
        ck_assert_int_eq(commit(&one, 1), 0);
        state_close(&one);
        ck_assert_int_eq(state_open(&one, file("one"), STATE_WRITE, &config), -EEXIST);
        check_report(&one, "cannot be used: state.db of this host has records from before");
        ck_assert_int_eq(commit(&one, 2), -EEXIST);
        state_close(&one);
        ck_assert_int_eq(state_open(&two, file("two"), STATE_WRITE, &config), 0);
        state_close(&two);
        ck_assert_int_eq(state_open(&two, file("two"), STATE_WRITE, NULL), -EXDEV);
        check_report(&two, "state.db cannot be used: its records were moved to etcd");
        ck_assert_int_ne(access(file("two/state.db"), F_OK), 0);
}
END_TEST

/* A user who cannot look for state.db learns that, and not that it is there. */
START_TEST(another_user)
{
        static const enum state_access accesses[] = { STATE_READ, STATE_WRITE };

        if (geteuid() != 0)
                return;
        ck_assert_int_eq(mkdir(file("one"), 0700), 0);
        ck_assert_int_eq(chmod(top, 0755), 0);
        for (size_t i = 0; i < ELEMENTS(accesses); i++) {
                ck_assert_int_eq(seteuid(65534), 0);
                ck_assert_int_eq(state_open(&one, file("one"), accesses[i], &config), -EPERM);
                ck_assert_int_eq(seteuid(0), 0);
                check_report(&one, "cannot be used: this user may not use the state directory");
                state_close(&one);
        }
}
END_TEST

/* None is what strerror() says, which is about files and sockets. */
START_TEST(explained)
{
        static const int errors[] = { -EPROTONOSUPPORT, -EEXIST, -EUCLEAN, -EBUSY, -ESTALE, -EHOSTUNREACH, -EKEYREJECTED, -EPROTO,
                                      -ENOLCK, -EACCES, -EPERM, -ENOSPC, -EMSGSIZE };
        const struct state s = { .etcd = &config };

        for (size_t i = 0; i < ELEMENTS(errors); i++)
                ck_assert_str_ne(state_explain(&s, errors[i]), strerror(-errors[i]));
}
END_TEST

START_TEST(no_majority)
{
        _cleanup_remembered_ struct remembered *changed = NULL;
        struct state_report report;
        const char *holder;

        open_both();
        ck_assert_ptr_null(lock(&one));
        ck_assert_int_eq(commit(&one, 1), 0);
        etcd_cluster_pause(&cluster, 0);
        etcd_cluster_pause(&cluster, 1);
        ck_assert_int_eq(commit(&one, 2), -EHOSTUNREACH);
        ck_assert(!state_holds_lock(&one));
        check_report(&one, "no member answers, or the cluster has no majority (http://127.0.0.1:");
        ck_assert_int_eq(try_lock(&one, &holder), -EHOSTUNREACH);
        ck_assert_int_eq(commit(&one, 2), -EHOSTUNREACH);
        check_no_report(&one); /* not again */
        kill(cluster.pids[0], SIGCONT);
        kill(cluster.pids[1], SIGCONT);
        state_unlock(&one);
        wait_until_locked(&two);
        ck_assert_int_eq(commit(&two, 3), 0);
        state_unlock(&two);
        changed = lock(&one); /* what others committed meanwhile */
        ck_assert_ptr_nonnull(changed);
        ck_assert_int_eq(commit(&one, 2), 0);
        ck_assert(state_next_report(&one, &report));
        while (state_next_report(&one, &report))
                ;
        ck_assert_int_eq(report.kind, STATE_USABLE);
        ck_assert_ptr_null(report.hint);
}
END_TEST

/* --- another cluster, or an older one --------------------------------------------------------------------------------- */

static struct etcd_key key_named(const char *name)
{
        return etcd_key(fabric, "", name);
}

static void carry_out(json_t *operation)
{
        json_t *answer = NULL;
        sd_event *event = NULL;
        struct etcd_http *http = NULL;

        ck_assert_int_ge(sd_event_new(&event), 0);
        ck_assert_int_eq(etcd_http_new(event, &config, &http), 0);
        ck_assert_int_eq(etcd_http_call(http, ETCD_TRANSACTION, etcd_transaction(json_array(), json_pack("[o]", operation)),
                                        30 * USEC_PER_SEC, &answer), 0);
        json_decref(answer);
        etcd_http_free(http);
        sd_event_unref(event);
}

/* The store cannot be used for a while. */
static void begin_outage(void)
{
        const char *holder;

        carry_out(etcd_op_put(key_named("version").text, "999", 3, 0));
        ck_assert_int_eq(try_lock(&one, &holder), -EPROTONOSUPPORT);
        ck_assert_int_eq(try_lock(&one, &holder), -EPROTONOSUPPORT);
}

static void end_outage(void)
{
        carry_out(etcd_op_put(key_named("version").text, "1", 1, 0));
}

static void check_replaced(struct state *s, const char *text)
{
        struct state_report report;
        bool replaced = false;

        while (state_next_report(s, &report))
                replaced |= report.kind == STATE_DAMAGED && strstr(report.text, text) && report.effect && report.hint;
        ck_assert(replaced);
}

enum replacement {
        REPLACED_BY_OLDER,
        REPLACED_BY_EMPTY,
        REPLACED_BY_OTHER_CLUSTER,
        REPLACED_BY_NOTHING,
        N_REPLACEMENTS,
};

/* etcd is restored, or loses its data, in an outage that pkeyd notices. */
START_TEST(replaced_in_an_outage)
{
        _cleanup_remembered_ struct remembered *changed = NULL;
        struct etcd_cluster other = {};
        const char *holder;

        ck_assert_int_eq(state_open(&one, file("one"), STATE_WRITE, &config), 0);
        ck_assert_ptr_null(lock(&one));
        ck_assert_int_eq(commit(&one, 1), 0);
        state_unlock(&one);
        begin_outage();
        if (_i == REPLACED_BY_OLDER) {
                carry_out(etcd_op_delete(key_named("commit").text, NULL));
        } else if (_i == REPLACED_BY_EMPTY) {
                carry_out(etcd_op_delete(key_named("").text, key_named("~").text));
        } else if (_i == REPLACED_BY_OTHER_CLUSTER) {
                etcd_cluster_start(&other, 1);
                config.endpoints = other.endpoints;
        }
        if (_i == REPLACED_BY_OLDER || _i == REPLACED_BY_NOTHING)
                end_outage();
        if (_i == REPLACED_BY_EMPTY || _i == REPLACED_BY_OTHER_CLUSTER)
                ck_assert_int_eq(try_lock(&one, &holder), -EUCLEAN);
        changed = lock(&one);
        ck_assert_int_eq(changed != NULL, _i == REPLACED_BY_OLDER || _i == REPLACED_BY_NOTHING);
        if (_i == REPLACED_BY_NOTHING) {
                struct state_report report;

                while (state_next_report(&one, &report))
                        ck_assert_int_ne(report.kind, STATE_DAMAGED);
        } else {
                check_replaced(&one, _i == REPLACED_BY_OLDER ? "is not the same cluster as before" : "has lost all records");
        }
        ck_assert_int_eq(commit(&one, 2), 0);
        state_unlock(&one);
        ck_assert_ptr_null(lock(&one));
        check_no_report(&one);
        state_close(&one);
        etcd_cluster_stop(&other);
}
END_TEST

/* A standby notices that etcd was restored, and becomes the writer: at once, or after the writer has stored again. */
START_TEST(replaced_before_a_hand_over)
{
        open_both();
        ck_assert_ptr_null(lock(&one));
        ck_assert_int_eq(commit(&one, 1), 0);
        state_unlock(&one);
        remembered_free(follow(&two));
        carry_out(etcd_op_delete(key_named("commit").text, NULL));
        remembered_free(follow(&two));
        check_replaced(&two, "is not the same cluster as before");
        if (_i == 1) {
                wait_until_locked(&one);
                ck_assert_int_eq(commit(&one, 2), 0);
                state_unlock(&one);
                remembered_free(follow(&two));
        }
        remembered_free(lock(&two));
        if (_i == 1)
                check_no_report(&two);
        else
                check_replaced(&two, "is not the same cluster as before");
        ck_assert_int_eq(commit(&two, 3), 0);
        state_unlock(&two);
        remembered_free(lock(&two));
        check_no_report(&two);
}
END_TEST

/* The process does not run for longer than its lease. */
START_TEST(paused)
{
        open_both();
        ck_assert_ptr_null(lock(&one));
        wait_until_locked(&two);
        ck_assert(!state_holds_lock(&one));
        ck_assert_int_eq(commit(&one, 1), -ENOLCK);
        ck_assert_int_eq(commit(&two, 1), 0);
}
END_TEST

/* --- the place -------------------------------------------------------------------------------------------------------- */

static struct etcd_config *find(const char *text)
{
        _cleanup_findings_ struct findings findings = { .arena = arena };
        struct etcd_config *ret = (struct etcd_config *) 1;

        write_text("pkeyd.yaml", text);
        ck_assert_int_eq(etcd_place_find(arena, file("pkeyd.yaml"), "compute", &findings, &ret), 0);
        ck_assert_uint_eq(findings.n, 0);
        return ret;
}

START_TEST(place)
{
        _cleanup_findings_ struct findings findings = { .arena = arena };
        struct etcd_config *c;

        ck_assert_ptr_null(find("mode: audit\n"));
        ck_assert_ptr_null(find("store: etcd\n"));
        ck_assert_ptr_null(find("not yaml: [\n"));
        c = find("role: follow-sm\nstore: etcd\netcd: {endpoints: [https://a:1, https://b], ca_file: /c, cert_file: /d, key_file: /e, lease: 7900ms}\n");
        ck_assert_uint_eq(c->n_endpoints, 2);
        ck_assert_str_eq(c->endpoints[1], "https://b");
        ck_assert_str_eq(c->ca_file, "/c");
        ck_assert_str_eq(c->cert_file, "/d");
        ck_assert_str_eq(c->key_file, "/e");
        ck_assert_str_eq(c->fabric, "compute");
        ck_assert_uint_eq(c->lease, 7);
        ck_assert_ptr_null(c->user);
        write_text("password", "not to be shown\nsecond line");
        ck_assert_int_eq(chmod(file("password"), 0600), 0);
        c = find(arena_printf(arena, "role: follow-sm\nstore: etcd\netcd: {endpoints: https://a, user: u, password_file: %s}\n", file("password")));
        ck_assert_str_eq(c->user, "u");
        ck_assert_str_eq(c->password, "not to be shown");
        ck_assert_int_eq(chmod(file("password"), 0644), 0);
        ck_assert_int_eq(etcd_place_find(arena, file("pkeyd.yaml"), NULL, &findings, &c), -EBADMSG);
        ck_assert_uint_eq(findings.n, 1);
        ck_assert_ptr_null(strstr(findings.items[0].text, "shown"));
}
END_TEST

static bool is_same_place(const struct etcd_config *c, const char *text)
{
        _cleanup_findings_ struct findings findings = { .arena = arena };
        struct settings *s;

        ck_assert_int_eq(settings_parse(arena, "pkeyd.yaml", text, strlen(text), &findings, &s), 0);
        return etcd_place_is(c, s);
}

#define PLACE(etcd) "role: follow-sm\nstore: etcd\netcd: {" etcd "}\n"

START_TEST(same_place)
{
        static const char *const others[] = {
                "mode: audit\n", PLACE("endpoints: https://a"), PLACE("endpoints: [https://a, https://b]"),
                PLACE("endpoints: [https://a, https://c], ca_file: /c"), PLACE("endpoints: [https://b, https://a], ca_file: /c"),
                PLACE("endpoints: [https://a, https://b], ca_file: /d"), PLACE("endpoints: https://a, ca_file: /c"),
                PLACE("endpoints: [https://a, https://b], ca_file: /c, cert_file: /d, key_file: /e"),
                PLACE("endpoints: [https://a, https://b], ca_file: /c, lease: 20s"),
                PLACE("endpoints: [https://a, https://b], ca_file: /c, user: u, password_file: /p"),
        };
        const char *text = PLACE("endpoints: [https://a, https://b], ca_file: /c");
        const struct etcd_config *c = find(text);

        ck_assert(is_same_place(c, text));
        ck_assert(!is_same_place(NULL, text));
        ck_assert(is_same_place(NULL, "mode: audit\n"));
        for (size_t i = 0; i < ELEMENTS(others); i++)
                ck_assert_msg(!is_same_place(c, others[i]), "%s", others[i]);
        write_text("password", "secret");
        write_text("other", "secret");
        ck_assert_int_eq(chmod(file("password"), 0600), 0);
        c = find(arena_printf(arena, PLACE("endpoints: https://a, user: u, password_file: %s"), file("password")));
        ck_assert(is_same_place(c, arena_printf(arena, PLACE("endpoints: https://a, user: u, password_file: %s"), file("password"))));
        ck_assert(!is_same_place(c, arena_printf(arena, PLACE("endpoints: https://a, user: u, password_file: %s"), file("other"))));
        c = find(PLACE("endpoints: https://a, cert_file: /d, key_file: /e"));
        ck_assert(!is_same_place(c, PLACE("endpoints: https://a, cert_file: /f, key_file: /e")));
        ck_assert(!is_same_place(c, PLACE("endpoints: https://a, cert_file: /d, key_file: /f")));
}
END_TEST

/* --- copies ----------------------------------------------------------------------------------------------------------- */

#define N_NODES 300

static size_t n_stored(const char *dir, const struct etcd_config *etcd)
{
        _cleanup_remembered_ struct remembered *m = NULL;

        ck_assert_int_eq(state_open(&one, file(dir), STATE_WRITE, etcd), 0);
        ck_assert_int_eq(state_load(&one, &m), 0);
        state_close(&one);
        return n_freed(m);
}

static int copy_to(bool to_etcd, size_t n)
{
        struct state_copy c;
        int r = state_copy(file("one"), &config, to_etcd, &c);

        if (r == 0)
                ck_assert_uint_eq(c.n, n);
        ck_assert_int_eq(!c.kept, r < 0 || !to_etcd);
        if (c.kept)
                ck_assert(strncmp(c.kept, file("one/state.db.copied-2"), strlen(file("one/state.db.copied-2"))) == 0 &&
                          access(c.kept, F_OK) == 0);
        state_copy_done(&c);
        return r;
}

/* There and back. The directory belongs to one of them at any time. */
START_TEST(copied)
{
        ck_assert_int_eq(mkdir(file("one"), 0700), 0);
        ck_assert_int_eq(copy_to(true, 0), -ENOENT);
        ck_assert_int_eq(copy_to(false, 0), -ENOENT);
        ck_assert_int_ne(access(file("one/state.db"), F_OK), 0);
        ck_assert_int_eq(state_open(&one, file("one"), STATE_WRITE, NULL), 0);
        for (uint64_t i = 1; i <= N_NODES; i++)
                ck_assert_int_eq(commit(&one, i), 0);
        state_close(&one);
        ck_assert_int_eq(copy_to(false, 0), -ENOTEMPTY);
        ck_assert_int_eq(copy_to(true, N_NODES), 0);
        ck_assert_int_eq(copy_to(true, 0), -ENOENT);
        ck_assert_uint_eq(n_stored("one", &config), N_NODES);
        ck_assert_int_eq(state_open(&one, file("one"), STATE_WRITE, NULL), -EXDEV);
        state_close(&one);
        ck_assert_int_eq(copy_to(false, N_NODES), 0);
        ck_assert_uint_eq(n_stored("one", NULL), N_NODES);
}
END_TEST

/* The process ends between the commit and the last step: it is as if it had begun with that. _i: to etcd. */
START_TEST(copied_in_two_attempts)
{
        const struct etcd_config *to = _i ? &config : NULL;

        ck_assert_int_eq(state_open(&one, file("one"), STATE_WRITE, NULL), 0);
        ck_assert_int_eq(commit(&one, 1), 0);
        ck_assert_int_eq(commit(&one, 2), 0);
        state_close(&one);
        ck_assert_int_eq(copy_to(true, 2), 0);
        ck_assert_int_eq(copy_to(false, 2), 0);
        if (!_i)
                write_text("one/" STATE_MARK, "");
        ck_assert_int_eq(copy_to(_i, 2), 0);
        ck_assert_uint_eq(n_stored("one", to), 2);
}
END_TEST

enum { MORE, FEWER, OTHER_KEY, OTHER_VALUE, ONLY_OTHERS, N_DIFFERENCES };

static void put_record(const char *key, const char *value)
{
        struct store_transaction t;

        store_transaction_init(&t, arena);
        if (value)
                store_put(&t, key, value, strlen(value));
        else
                store_delete(&t, key);
        ck_assert_int_eq(state_commit(&one, &t), 0);
}

START_TEST(not_copied_to_other_records)
{
        ck_assert_int_eq(state_open(&one, file("one"), STATE_WRITE, NULL), 0);
        put_record("b", "1");
        put_record("c", "1");
        state_close(&one);
        ck_assert_int_eq(copy_to(true, 2), 0);
        ck_assert_int_eq(copy_to(false, 2), 0);
        ck_assert_int_eq(state_open(&one, file("one"), STATE_WRITE, NULL), 0);
        if (_i == MORE)
                put_record("d", "1");
        if (_i == FEWER || _i == OTHER_KEY || _i == ONLY_OTHERS)
                put_record("c", NULL);
        if (_i == ONLY_OTHERS)
                put_record("b", NULL);
        if (_i == OTHER_KEY)
                put_record("a", "1");
        if (_i == OTHER_VALUE)
                put_record("c", "2");
        state_close(&one);
        ck_assert_int_eq(copy_to(true, 0), -ENOTEMPTY);
        ck_assert_int_eq(access(file("one/state.db"), F_OK), 0);
        if (_i != ONLY_OTHERS)
                ck_assert_int_eq(copy_to(false, 0), -ENOTEMPTY);
}
END_TEST

static bool is_overtaken;

/* The linker's names for the function that state_copy() calls, and for the one behind it (ld --wrap). */
int __real_directory_lock_take(const char *dir, const char *name, int operation, int *ret_fd, char ret_holder[LOCK_HOLDER_SIZE]);
int __wrap_directory_lock_take(const char *dir, const char *name, int operation, int *ret_fd, char ret_holder[LOCK_HOLDER_SIZE]);

/* is_overtaken: another process has just got the lock, and made a database. */
int __wrap_directory_lock_take(const char *dir, const char *name, int operation, int *ret_fd, char ret_holder[LOCK_HOLDER_SIZE])
{
        if (!is_overtaken || strcmp(name, DIRECTORY_LOCK_WRITES) != 0)
                return __real_directory_lock_take(dir, name, operation, ret_fd, ret_holder);
        write_text("one/state.db", "of another process");
        return -EWOULDBLOCK;
}

START_TEST(database_of_another_process_stays)
{
        struct state_copy c;

        ck_assert_int_eq(mkdir(file("one"), 0700), 0);
        is_overtaken = true;
        ck_assert_int_eq(state_copy(file("one"), &config, false, &c), -EWOULDBLOCK);
        is_overtaken = false;
        state_copy_done(&c);
        ck_assert_int_eq(access(file("one/state.db"), F_OK), 0);
}
END_TEST

START_TEST(not_copied_while_somebody_uses_it)
{
        struct state_copy c;

        open_both();
        ck_assert_ptr_null(lock(&two));
        ck_assert_int_eq(commit(&two, 1), 0);
        ck_assert_int_eq(state_copy(file("one"), &config, false, &c), -EWOULDBLOCK);
        ck_assert_ptr_nonnull(strstr(c.holder, "check_shared_state on "));
        state_copy_done(&c);
        state_unlock(&two);
        ck_assert_int_eq(state_copy(file("one"), &config, false, &c), 0);
        state_copy_done(&c);
}
END_TEST

enum { RUNS_ON_SQLITE, RUNS_ON_ETCD, RUNS_ON_OTHER_HOST, N_RUNS };

/* pkeyd runs, and does not write at the moment. */
START_TEST(not_copied_while_pkeyd_runs)
{
        const char *dir = _i == RUNS_ON_OTHER_HOST ? "two" : "one";
        bool to_etcd = _i == RUNS_ON_SQLITE;
        struct state_copy c;

        ck_assert_int_eq(mkdir(file("one"), 0700), 0);
        ck_assert_int_eq(state_open(&two, file(dir), STATE_SERVE, to_etcd ? NULL : &config), 0);
        ck_assert_ptr_null(lock(&two));
        ck_assert_int_eq(commit(&two, 1), 0);
        state_unlock(&two);
        ck_assert_int_eq(state_open(&one, file(dir), STATE_WRITE, to_etcd ? NULL : &config), 0); /* pkeyctl beside it */
        state_close(&one);
        ck_assert_int_eq(state_copy(file("one"), &config, to_etcd, &c), -EWOULDBLOCK);
        ck_assert_ptr_nonnull(strstr(c.holder, arena_printf(arena, "process %d", (int) getpid())));
        ck_assert_int_eq(strncmp(c.holder, "check_shared_state on ", 22) == 0, _i == RUNS_ON_OTHER_HOST);
        state_copy_done(&c);
        ck_assert_int_eq(access(file("one/state.db"), F_OK) == 0, to_etcd);
        state_close(&two);
        ck_assert_int_eq(copy_to(to_etcd, 1), 0);
}
END_TEST

/* pkeyd is started while the records are moved: it goes on when that has ended. */
START_TEST(not_used_while_copied)
{
        _cleanup_remembered_ struct remembered *changed = NULL;
        char holder[LOCK_HOLDER_SIZE];
        const char *other;
        int fd;

        ck_assert_int_eq(mkdir(file("one"), 0700), 0);
        ck_assert_int_eq(directory_lock_take(file("one"), DIRECTORY_LOCK_RUNS, LOCK_EX, &fd, holder), 0);
        ck_assert_int_eq(state_open(&one, file("one"), STATE_SERVE, _i ? &config : NULL), -EWOULDBLOCK);
        check_report(&one, "cannot be used: pkeyctl store copy is moving its records");
        ck_assert_int_ne(access(file("one/state.db"), F_OK), 0);
        directory_lock_release(fd);
        ck_assert_int_eq(state_lock(&one, &other, &changed), _i ? 0 : -EUCLEAN);
        state_unlock(&one);
        ck_assert_int_eq(directory_lock_take(file("one"), DIRECTORY_LOCK_RUNS, LOCK_EX, &fd, holder), -EWOULDBLOCK);
}
END_TEST

static void start_cluster(void)
{
        etcd_cluster_start(&cluster, 1);
}

static void start_three(void)
{
        etcd_cluster_start(&cluster, 3);
        begin_test();
}

static void end_three(void)
{
        end_test();
        etcd_cluster_stop(&cluster);
}

static void stop_cluster(void)
{
        etcd_cluster_stop(&cluster);
}

int main(void)
{
        Suite *suite = suite_create("shared_state");
        SRunner *runner = srunner_create(suite);
        TCase *tc = tcase_create("one member"), *three = tcase_create("three members");
        int failed;

        if (!etcd_is_installed()) {
                puts("etcd is not installed, or older than 3.4");
                return 77;
        }
        tcase_add_unchecked_fixture(tc, start_cluster, stop_cluster);
        tcase_add_checked_fixture(tc, begin_test, end_test);
        tcase_set_timeout(tc, 60);
        tcase_add_test(tc, one_memory);
        tcase_add_test(tc, followed_only_when_it_changed);
        tcase_add_test(tc, discovery_is_not_followed);
        tcase_add_test(tc, what_it_missed_is_followed);
        tcase_add_test(tc, locked_and_loaded_again);
        tcase_add_test(tc, another_store_is_in_the_way);
        tcase_add_test(tc, another_user);
        tcase_add_test(tc, paused);
        tcase_add_test(tc, other_pkeyd_before_pkeyctl);
        tcase_add_loop_test(tc, replaced_in_an_outage, 0, N_REPLACEMENTS);
        tcase_add_loop_test(tc, replaced_before_a_hand_over, 0, 2);
        tcase_add_test(tc, explained);
        tcase_add_test(tc, place);
        tcase_add_test(tc, same_place);
        tcase_add_test(tc, copied);
        tcase_add_loop_test(tc, copied_in_two_attempts, 0, 2);
        tcase_add_loop_test(tc, not_copied_to_other_records, 0, N_DIFFERENCES);
        tcase_add_test(tc, database_of_another_process_stays);
        tcase_add_test(tc, not_copied_while_somebody_uses_it);
        tcase_add_loop_test(tc, not_copied_while_pkeyd_runs, 0, N_RUNS);
        tcase_add_loop_test(tc, not_used_while_copied, 0, 2);
        suite_add_tcase(suite, tc);
        tcase_add_checked_fixture(three, start_three, end_three);
        tcase_set_timeout(three, 120);
        tcase_add_test(three, no_majority);
        suite_add_tcase(suite, three);
        srunner_run_all(runner, CK_NORMAL);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
