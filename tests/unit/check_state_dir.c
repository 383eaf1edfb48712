/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "shell/state_dir.h"

static char top[64], path[128];
static struct state_dir *dir;
static struct arena *arena;

static void setup(void)
{
        strcpy(top, "/tmp/check_state_dir.XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(top));
        snprintf(path, sizeof(path), "%s/state", top);
        ck_assert_int_eq(state_dir_open(path, &dir), 0);
        arena = arena_new();
}

static void remove_file(const char *name)
{
        char file[256];

        snprintf(file, sizeof(file), "%s/%s", path, name);
        (void) unlink(file);
}

static void teardown(void)
{
        static const char *const names[] = { "indexes.json", "known.json", "policy.yaml", "generation.json", "lock" };

        dir = state_dir_close(dir);
        arena_free(arena);
        for (size_t i = 0; i < ELEMENTS(names); i++)
                remove_file(names[i]);
        ck_assert_int_eq(rmdir(path), 0);
        ck_assert_int_eq(rmdir(top), 0);
}

static void write_file(const char *name, const char *bytes, size_t n)
{
        char file[256];
        FILE *f;

        snprintf(file, sizeof(file), "%s/%s", path, name);
        f = fopen(file, "we");
        ck_assert_ptr_nonnull(f);
        ck_assert_uint_eq(fwrite(bytes, 1, n, f), n);
        ck_assert_int_eq(fclose(f), 0);
}

static unsigned mode_of(const char *name)
{
        char file[256];
        struct stat st;

        snprintf(file, sizeof(file), "%s/%s", path, name);
        ck_assert_int_eq(stat(file, &st), 0);
        return st.st_mode & 07777;
}

/* --- the directory --------------------------------------------------------------------------------------------------- */

START_TEST(made_with_mode_0700)
{
        struct state_dir *again;

        ck_assert_uint_eq(mode_of("."), 0700);
        ck_assert_int_eq(state_dir_open(path, &again), 0);
        again = state_dir_close(again);
        ck_assert_ptr_null(again);
}
END_TEST

START_TEST(cannot_be_opened)
{
        struct state_dir *other = NULL;
        char wrong[256];

        snprintf(wrong, sizeof(wrong), "%s/no/such", top);
        ck_assert_int_eq(state_dir_open(wrong, &other), -ENOENT);
        write_file("lock", "", 0);
        snprintf(wrong, sizeof(wrong), "%s/lock", path);
        ck_assert_int_eq(state_dir_open(wrong, &other), -ENOTDIR);
        ck_assert_ptr_null(other);
}
END_TEST

/* --- index memory ---------------------------------------------------------------------------------------------------- */

static void free_index(struct index_memory *m, uint64_t guid, uint8_t port, uint16_t index, uint16_t key)
{
        ck_assert_int_eq(index_memory_note(m, (struct guid) { guid }, port, index, (struct p_key) { key },
                                           (struct p_key) { 0 }),
                         0);
}

START_TEST(indexes_come_back)
{
        _cleanup_index_memory_ struct index_memory *m = index_memory_new(), *back = NULL;
        const struct freed_index *all, *all_back;
        bool damaged = true;
        size_t n, n_back;

        free_index(m, UINT64_MAX, 255, 65535, 0xffff);
        free_index(m, 2, 1, 5, 0x8010);
        free_index(m, 2, 1, 3, 0x0011);
        free_index(m, 2, 0, 3, 0x0012);
        ck_assert_int_eq(index_memory_note_lost(m, (struct guid) { 1 }, 1, 9, (struct p_key) { 0x8001 },
                                                (struct p_key) { 0 }), 0);
        ck_assert_int_eq(state_dir_save_indexes(dir, m), 0);
        ck_assert_uint_eq(mode_of("indexes.json"), 0600);
        ck_assert_int_eq(state_dir_load_indexes(dir, &back, &damaged), 0);
        ck_assert(!damaged);
        all = index_memory_all(m, &n);
        all_back = index_memory_all(back, &n_back);
        ck_assert_uint_eq(n, 5);
        ck_assert_uint_eq(n_back, n);
        for (size_t i = 0; i < n; i++) {
                ck_assert_uint_eq(all_back[i].node_guid.v, all[i].node_guid.v);
                ck_assert_uint_eq(all_back[i].port, all[i].port);
                ck_assert_uint_eq(all_back[i].index, all[i].index);
                ck_assert_uint_eq(all_back[i].base, all[i].base);
                ck_assert_uint_eq(all_back[i].sequence, all[i].sequence);
                ck_assert_int_eq(all_back[i].lost, all[i].lost);
        }
}
END_TEST

START_TEST(no_indexes_yet)
{
        _cleanup_index_memory_ struct index_memory *m = NULL;
        bool damaged = true;
        size_t n;

        ck_assert_int_eq(state_dir_load_indexes(dir, &m, &damaged), 0);
        ck_assert(!damaged);
        (void) index_memory_all(m, &n);
        ck_assert_uint_eq(n, 0);
}
END_TEST

START_TEST(empty_memory_comes_back)
{
        _cleanup_index_memory_ struct index_memory *m = index_memory_new(), *back = NULL;
        bool damaged = true;
        size_t n;

        ck_assert_int_eq(state_dir_save_indexes(dir, m), 0);
        ck_assert_int_eq(state_dir_load_indexes(dir, &back, &damaged), 0);
        ck_assert(!damaged);
        (void) index_memory_all(back, &n);
        ck_assert_uint_eq(n, 0);
}
END_TEST

#define PORT(text) "{\"schema\": 1, \"ports\": [{\"node\": \"0x1\", \"port\": 1, \"freed\": [" \
                   "{\"index\": 1, \"base\": \"0x0010\", \"sequence\": 1}, " text "]}]}"

static const char *const damaged_files[] = {
        "",
        "{",
        "null",
        "[]",
        "{}",
        "\xff\xfe{}",
        "{\"schema\": 1}",
        "{\"schema\": 2, \"ports\": []}",
        "{\"schema\": \"1\", \"ports\": []}",
        "{\"schema\": 1, \"ports\": {}}",
        "{\"schema\": 1, \"ports\": [7]}",
        "{\"schema\": 1, \"ports\": [{\"node\": 1, \"port\": 1, \"freed\": []}]}",
        "{\"schema\": 1, \"ports\": [{\"node\": \"1\", \"port\": 1, \"freed\": []}]}",
        "{\"schema\": 1, \"ports\": [{\"node\": \"0x\", \"port\": 1, \"freed\": []}]}",
        "{\"schema\": 1, \"ports\": [{\"node\": \"0x-1\", \"port\": 1, \"freed\": []}]}",
        "{\"schema\": 1, \"ports\": [{\"node\": \"0x11111111111111111\", \"port\": 1, \"freed\": []}]}",
        "{\"schema\": 1, \"ports\": [{\"node\": \"0x1\", \"port\": 256, \"freed\": []}]}",
        "{\"schema\": 1, \"ports\": [{\"node\": \"0x1\", \"port\": -1, \"freed\": []}]}",
        "{\"schema\": 1, \"ports\": [{\"node\": \"0x1\", \"port\": 1.5, \"freed\": []}]}",
        "{\"schema\": 1, \"ports\": [{\"node\": \"0x1\", \"port\": 1}]}",
        "{\"schema\": 1, \"ports\": [], \"ports\": []}",
        PORT("7"),
        PORT("{}"),
        PORT("{\"index\": 65536, \"base\": \"0x0010\", \"sequence\": 1}"),
        PORT("{\"index\": \"1\", \"base\": \"0x0010\", \"sequence\": 1}"),
        PORT("{\"index\": 1, \"base\": 16, \"sequence\": 1}"),
        PORT("{\"index\": 1, \"base\": \"0x8000\", \"sequence\": 1}"),
        PORT("{\"index\": 1, \"base\": \"0x0010 \", \"sequence\": 1}"),
        PORT("{\"index\": 1, \"base\": \"0x0010\", \"sequence\": -1}"),
        PORT("{\"index\": 1, \"base\": \"0x0010\", \"sequence\": 99999999999999999999}"),
        PORT("{\"index\": 1, \"base\": \"0x0010\"}"),
};

START_TEST(damaged_indexes)
{
        _cleanup_index_memory_ struct index_memory *m = NULL;
        bool damaged = false;
        size_t n;

        write_file("indexes.json", damaged_files[_i], strlen(damaged_files[_i]));
        ck_assert_int_eq(state_dir_load_indexes(dir, &m, &damaged), 0);
        ck_assert(damaged);
        ck_assert_ptr_nonnull(m);
        (void) index_memory_all(m, &n);
        ck_assert_uint_eq(n, 0);
        /* and it can be written over */
        ck_assert_int_eq(state_dir_save_indexes(dir, m), 0);
}
END_TEST

/* The lines above are refused for the reason they are meant to be. */
START_TEST(good_indexes)
{
        static const char good[] = PORT("{\"index\": 2, \"base\": \"0x7fff\", \"sequence\": 9223372036854775807}");
        _cleanup_index_memory_ struct index_memory *m = NULL;
        bool damaged = true;
        size_t n;

        write_file("indexes.json", good, strlen(good));
        ck_assert_int_eq(state_dir_load_indexes(dir, &m, &damaged), 0);
        ck_assert(!damaged);
        (void) index_memory_all(m, &n);
        ck_assert_uint_eq(n, 2);
}
END_TEST

START_TEST(cut_off_indexes)
{
        static const char good[] = PORT("{\"index\": 2, \"base\": \"0x7fff\", \"sequence\": 2}");

        for (size_t cut = 0; cut < strlen(good); cut++) {
                _cleanup_index_memory_ struct index_memory *m = NULL;
                bool damaged = false;

                write_file("indexes.json", good, cut);
                ck_assert_int_eq(state_dir_load_indexes(dir, &m, &damaged), 0);
                ck_assert(damaged);
        }
}
END_TEST

/* --- the policy in force --------------------------------------------------------------------------------------------- */

START_TEST(policy_comes_back)
{
        static const char bytes[] = "version: 1\n\0\xff binary, too";
        const char *back;
        uint64_t generation = 0;
        size_t n;

        ck_assert_int_eq(state_dir_load_policy(dir, arena, &back, &n, &generation), -ENOENT);
        ck_assert_int_eq(state_dir_save_policy(dir, bytes, sizeof(bytes), 41), 0);
        ck_assert_int_eq(state_dir_save_policy(dir, bytes, sizeof(bytes), 42), 0);
        ck_assert_uint_eq(mode_of("policy.yaml"), 0600);
        ck_assert_uint_eq(mode_of("generation.json"), 0600);
        ck_assert_int_eq(state_dir_load_policy(dir, arena, &back, &n, &generation), 0);
        ck_assert_uint_eq(generation, 42);
        ck_assert_uint_eq(n, sizeof(bytes));
        ck_assert_int_eq(memcmp(back, bytes, n), 0);
}
END_TEST

START_TEST(policy_without_generation)
{
        static const char *const wrong[] = { "", "junk", "[]", "{\"generation\": \"7\"}", "{\"generation\": -7}" };
        const char *back;
        uint64_t generation;
        size_t n;

        ck_assert_int_eq(state_dir_save_policy(dir, "x", 1, 7), 0);
        for (size_t i = 0; i < ELEMENTS(wrong); i++) {
                write_file("generation.json", wrong[i], strlen(wrong[i]));
                generation = 99;
                ck_assert_int_eq(state_dir_load_policy(dir, arena, &back, &n, &generation), 0);
                ck_assert_uint_eq(generation, 0);
        }
        remove_file("generation.json");
        generation = 99;
        ck_assert_int_eq(state_dir_load_policy(dir, arena, &back, &n, &generation), 0);
        ck_assert_uint_eq(generation, 0);
        ck_assert_uint_eq(n, 1);
}
END_TEST

/* --- the lock -------------------------------------------------------------------------------------------------------- */

/* A process that takes the lock, says so, and holds it until it is told to go; it may crash holding it. */
static pid_t hold_lock(int *ret_go)
{
        int said[2], go[2];
        pid_t pid;
        char c;

        ck_assert_int_eq(pipe2(said, O_CLOEXEC), 0);
        ck_assert_int_eq(pipe2(go, O_CLOEXEC), 0);
        pid = fork();
        ck_assert_int_ge(pid, 0);
        if (pid == 0) {
                struct state_dir *mine;
                int other;

                close(go[1]);
                if (state_dir_open(path, &mine) < 0 || state_dir_lock(mine, &other) < 0)
                        _exit(1);
                (void) !write(said[1], "x", 1);
                (void) !read(go[0], &c, 1);
                _exit(0);
        }
        close(said[1]);
        close(go[0]);
        ck_assert_int_eq(read(said[0], &c, 1), 1);
        close(said[0]);
        *ret_go = go[1];
        return pid;
}

START_TEST(lock_is_held_by_another)
{
        int go, status, holder = -1;
        pid_t pid = hold_lock(&go);

        ck_assert_int_eq(state_dir_lock(dir, &holder), -EWOULDBLOCK);
        ck_assert_int_eq(holder, pid);
        write_file("lock", "junk", 4); /* a pid that nobody can read */
        ck_assert_int_eq(state_dir_lock(dir, &holder), -EWOULDBLOCK);
        ck_assert_int_eq(holder, 0);
        close(go);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_int_eq(status, 0);
        /* it ended without letting go */
        ck_assert_int_eq(state_dir_lock(dir, &holder), 0);
        ck_assert_int_eq(state_dir_lock(dir, &holder), 0);
}
END_TEST

START_TEST(lock_is_let_go)
{
        struct state_dir *other;
        int holder = -1;

        ck_assert_int_eq(state_dir_open(path, &other), 0);
        ck_assert_int_eq(state_dir_lock(dir, &holder), 0);
        ck_assert_int_eq(state_dir_lock(other, &holder), -EWOULDBLOCK);
        ck_assert_int_eq(holder, getpid());
        state_dir_unlock(dir);
        state_dir_unlock(dir);
        ck_assert_int_eq(state_dir_lock(other, &holder), 0);
        ck_assert_int_eq(state_dir_lock(dir, &holder), -EWOULDBLOCK);
        state_dir_close(other);
        ck_assert_int_eq(state_dir_lock(dir, &holder), 0);
        ck_assert_uint_eq(mode_of("lock"), 0600);
}
END_TEST

START_TEST(known_ports_come_back)
{
        struct known k = {}, again = {};
        struct known_port port = { { 1 }, { 2 }, NODE_CA, 3, "node \\x01 \"mlx5_0\"", { 4 }, 5, 6 };

        ck_assert_int_eq(state_dir_load_known(dir, &again), 0);
        ck_assert_uint_eq(again.n, 0);
        ck_assert_int_eq(known_add(&k, &port), 0);
        port.port_guid.v = 1;
        port.type = NODE_ROUTER;
        ck_assert_int_eq(known_add(&k, &port), 0);
        ck_assert_int_eq(known_add(&k, &port), 0);
        ck_assert_int_eq(state_dir_save_known(dir, &k), 0);
        ck_assert_int_eq(state_dir_load_known(dir, &again), 0);
        ck_assert_uint_eq(again.n, 2);
        ck_assert_mem_eq(again.ports, k.ports, 2 * sizeof(port));
        known_done(&again);
        known_done(&k);
}
END_TEST

START_TEST(known_ports_damaged)
{
        static const char *const bad[] = { "", "{", "[]", "{\"schema\": 2, \"ports\": []}", "{\"schema\": 1, \"ports\": [1]}",
                                           "{\"schema\": 1, \"ports\": [{\"node\": \"0x1\"}]}" };
        char file[256];

        snprintf(file, sizeof(file), "%s/known.json", path);
        for (size_t i = 0; i < ELEMENTS(bad); i++) {
                FILE *f = fopen(file, "we");
                struct known k = {};

                ck_assert_ptr_nonnull(f);
                ck_assert_int_ge(fputs(bad[i], f), 0);
                ck_assert_int_eq(fclose(f), 0);
                ck_assert_int_eq(state_dir_load_known(dir, &k), -EBADMSG);
                ck_assert_uint_eq(k.n, 0);
        }
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("state_dir");
        TCase *t = tcase_create("state_dir");
        SRunner *runner;
        int failed;

        tcase_add_checked_fixture(t, setup, teardown);
        tcase_set_timeout(t, 60);
        tcase_add_test(t, made_with_mode_0700);
        tcase_add_test(t, cannot_be_opened);
        tcase_add_test(t, indexes_come_back);
        tcase_add_test(t, no_indexes_yet);
        tcase_add_test(t, empty_memory_comes_back);
        tcase_add_loop_test(t, damaged_indexes, 0, (int) ELEMENTS(damaged_files));
        tcase_add_test(t, good_indexes);
        tcase_add_test(t, cut_off_indexes);
        tcase_add_test(t, policy_comes_back);
        tcase_add_test(t, policy_without_generation);
        tcase_add_test(t, lock_is_held_by_another);
        tcase_add_test(t, lock_is_let_go);
        tcase_add_test(t, known_ports_come_back);
        tcase_add_test(t, known_ports_damaged);
        suite_add_tcase(suite, t);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
