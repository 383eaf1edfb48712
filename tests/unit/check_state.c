/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "shell/file.h"
#include "state/directory_lock.h"
#include "state/state.h"

static char top[64], path[128];
static struct state state;
static struct arena *arena;

/* --- files -------------------------------------------------------------------------------------------------------- */

/* Syncing does nothing, to save time: these tests kill processes, not hosts. */
int fsync(int fd)
{
        (void) fd;
        return 0;
}

int fdatasync(int fd)
{
        (void) fd;
        return 0;
}

static const char *file(const char *name)
{
        return arena_printf(arena, "%s/%s", path, name);
}

static void write_file(const char *name, const char *bytes, size_t n)
{
        FILE *f = fopen(file(name), "we");

        ck_assert_ptr_nonnull(f);
        ck_assert_uint_eq(fwrite(bytes, 1, n, f), n);
        ck_assert_int_eq(fclose(f), 0);
}

static void write_text(const char *name, const char *text)
{
        write_file(name, text, strlen(text));
}

static bool exists(const char *name)
{
        return access(file(name), F_OK) == 0;
}

static unsigned mode_of(const char *name)
{
        struct stat st;

        ck_assert_int_eq(stat(file(name), &st), 0);
        return st.st_mode & 07777;
}

static void remove_database(void)
{
        ck_assert_int_eq(unlink(file("state.db")), 0);
        (void) unlink(file("state.db-wal"));
        (void) unlink(file("state.db-shm"));
}

#define USER 65534

static void setup(void)
{
        arena = arena_new();
        strcpy(top, "/tmp/check_state.XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(top));
        snprintf(path, sizeof(path), "%s/state", top);
        ck_assert_int_eq(state_open(&state, path, STATE_WRITE, NULL), 0);
}

static void remove_files(void)
{
        DIR *d = opendir(path);

        for (struct dirent *e; d && (e = readdir(d));)
                if (e->d_name[0] != '.' && unlink(file(e->d_name)) < 0)
                        (void) rmdir(file(e->d_name));
        if (d)
                (void) closedir(d);
}

static void remove_directory(void)
{
        remove_files();
        ck_assert_int_eq(rmdir(path), 0);
}

static void teardown(void)
{
        state_close(&state);
        remove_directory();
        ck_assert_int_eq(rmdir(top), 0);
        arena = arena_free(arena);
}

/* --- records ------------------------------------------------------------------------------------------------------ */

static void open_again(int expected)
{
        state_close(&state);
        ck_assert_int_eq(state_open(&state, path, STATE_WRITE, NULL), expected);
}

static struct remembered *load(void)
{
        struct remembered *m = NULL;

        ck_assert_int_eq(state_load(&state, &m), 0);
        ck_assert_ptr_nonnull(m);
        return m;
}

static int lock(struct state *s, const char **ret_holder)
{
        _cleanup_remembered_ struct remembered *changed = NULL;
        int r = state_lock(s, ret_holder, &changed);

        ck_assert_ptr_null(changed);
        return r;
}

static size_t n_freed(const struct remembered *m)
{
        size_t n;

        (void) index_memory_all(m->indexes, &n);
        return n;
}

static int commit_record(struct state *s, const char *key, const char *value)
{
        struct store_transaction t;

        store_transaction_init(&t, arena);
        store_put(&t, key, value, strlen(value));
        return state_commit(s, &t);
}

/* A record of a port with one freed index. */
static int commit_index(struct state *s, unsigned node)
{
        return commit_record(s, arena_printf(arena, RECORDS_INDEX_KEY, (uint64_t) node, 1u),
                             arena_printf(arena, "{\"node\":\"0x%x\",\"port\":1,\"freed\":[{\"index\":1,\"base\":\"0x0010\","
                                                 "\"sequence\":1}]}", node));
}

/* A record of a P_Key table that was read. */
static int commit_table(struct state *s)
{
        return commit_record(s, "table/endport/0x0000000000000100/1",
                             "{\"capacity\":2,\"read\":true,\"entries\":\"8001\",\"read_at\":1,\"presence\":\"there\",\"since\":2,"
                             "\"seen_at\":300,\"seen\":1,\"boot\":\"x\",\"place\":\"\",\"vouched\":false,\"vouched_by\":\"\","
                             "\"vouched_at\":0,\"writes\":[]}");
}

/* Whether the record of that table is trusted, or the table counts as never read. */
static void check_table(const struct remembered *m, bool is_believed)
{
        uint32_t record = knowledge_find(m->knowledge, (struct knowledge_name) { { 0x100 }, 1, KNOWLEDGE_ENDPORT });

        ck_assert_uint_ne(record, KNOWLEDGE_NONE);
        ck_assert_int_eq(knowledge_get(m->knowledge, record)->is_unfollowed, !is_believed);
}

/* Expects the next report to have this kind, and this in its text. */
static void check_report(enum state_report_kind kind, const char *text)
{
        struct state_report r;

        ck_assert_msg(state_next_report(&state, &r), "%s", text);
        ck_assert_msg(r.kind == kind && strstr(r.text, text) && strstr(r.text, path), "%s", r.text);
        ck_assert(*r.effect && (kind == STATE_USABLE ? !r.hint : *r.hint != 0));
}

static void check_no_report(void)
{
        struct state_report r;

        ck_assert_msg(!state_next_report(&state, &r), "%s", r.text);
}

START_TEST(made_with_mode_0700)
{
        ck_assert_uint_eq(mode_of("."), 0700);
        ck_assert_uint_eq(mode_of("state.db"), 0600);
        open_again(0);
        check_no_report();
}
END_TEST

START_TEST(comes_back)
{
        _cleanup_remembered_ struct remembered *empty = load(), *m = NULL;
        _cleanup_arena_ struct arena *a = arena_new();
        const char *boot;
        size_t n;

        ck_assert_int_eq(file_read(a, "/proc/sys/kernel/random/boot_id", 64, &boot, &n), 0);
        ck_assert_uint_eq(n_freed(empty), 0);
        ck_assert_str_eq(empty->boot, arena_strndup(a, boot, n - 1));
        ck_assert_int_eq(commit_index(&state, 1), 0);
        open_again(0);
        m = load();
        ck_assert_uint_eq(n_freed(m), 1);
        check_no_report();
}
END_TEST

START_TEST(damaged_records)
{
        _cleanup_remembered_ struct remembered *m = NULL;

        ck_assert_int_eq(commit_record(&state, "index/0x0000000000000001/1", "{"), 0);
        ck_assert_int_eq(commit_index(&state, 2), 0);
        m = load();
        ck_assert_uint_eq(n_freed(m), 1);
        check_report(STATE_DAMAGED, "1 record cannot be understood, one is index/0x0000000000000001/1");
        check_no_report();
}
END_TEST

/* Records of types that pkeyd does not write are damaged; the others are loaded, and the store works. */
START_TEST(records_of_wrong_types)
{
        static const struct {
                const char *change, *report;
        } cases[] = {
                { "UPDATE record SET value = CAST(value AS TEXT) WHERE key LIKE '%1/1'",
                  "1 record cannot be understood, one is index/0x0000000000000001/1" },
                { "UPDATE record SET value = 1 WHERE key LIKE '%1/1'",
                  "1 record cannot be understood, one is index/0x0000000000000001/1" },
                { "UPDATE record SET key = CAST(key AS BLOB) WHERE key LIKE '%1/1'", "1 record cannot be understood" },
        };
        const char *holder;

        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                _cleanup_remembered_ struct remembered *m = NULL;
                sqlite3 *db;

                ck_assert_int_eq(commit_index(&state, 1), 0);
                ck_assert_int_eq(commit_index(&state, 2), 0);
                state_close(&state);
                ck_assert_int_eq(sqlite3_open(file("state.db"), &db), SQLITE_OK);
                ck_assert_int_eq(sqlite3_exec(db, cases[i].change, NULL, NULL, NULL), SQLITE_OK);
                ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
                ck_assert_int_eq(state_open(&state, path, STATE_WRITE, NULL), 0);
                m = load();
                ck_assert_uint_eq(n_freed(m), 1);
                check_report(STATE_DAMAGED, cases[i].report);
                check_no_report();
                ck_assert_int_eq(lock(&state, &holder), 0);
                ck_assert_int_eq(commit_index(&state, 1), 0);
        }
}
END_TEST

/* --- reading only ------------------------------------------------------------------------------------------------- */

START_TEST(only_reading)
{
        _cleanup_remembered_ struct remembered *m = NULL, *nothing = NULL;

        ck_assert_int_eq(commit_index(&state, 1), 0);
        state_close(&state);
        ck_assert_int_eq(state_open(&state, path, STATE_READ, NULL), 0);
        m = load();
        ck_assert_uint_eq(n_freed(m), 1);
        state_close(&state);
        remove_database();
        write_text("indexes.json", "{\"schema\": 1, \"ports\": []}");
        ck_assert_int_eq(state_open(&state, path, STATE_READ, NULL), -ENOENT);
        nothing = load();
        ck_assert_uint_eq(n_freed(nothing), 0);
        ck_assert_int_eq(commit_index(&state, 1), -ENOENT);
        check_no_report();
        ck_assert(!exists("state.db"));
        ck_assert(exists("indexes.json"));
        state_close(&state);
        ck_assert_int_eq(state_open(&state, file("none"), STATE_READ, NULL), -ENOENT);
        check_no_report();
        ck_assert(!exists("none"));
}
END_TEST

START_TEST(never_opened)
{
        struct remembered *m = NULL;
        struct state none = {};
        const char *holder;

        ck_assert_int_eq(state_load(&none, &m), 0);
        remembered_free(m);
        ck_assert_int_eq(lock(&none, &holder), -ENOENT);
        ck_assert_int_eq(commit_index(&none, 1), -ENOENT);
        state_close(&none);
}
END_TEST

/* --- a store that does not work ----------------------------------------------------------------------------------- */

START_TEST(cannot_be_opened)
{
        struct state other;
        struct state_report r;

        ck_assert_int_eq(state_open(&other, arena_printf(arena, "%s/no/such", top), STATE_WRITE, NULL), -ENOENT);
        ck_assert(state_next_report(&other, &r));
        ck_assert_int_eq(r.kind, STATE_UNUSABLE);
        ck_assert_msg(strstr(r.hint, "create the directory above"), "%s", r.hint);
        state_close(&other);
        ck_assert_int_eq(state_open(&other, file("state.db"), STATE_WRITE, NULL), -ENOTDIR);
        ck_assert(state_next_report(&other, &r));
        ck_assert_msg(strstr(r.hint, "name a directory"), "%s", r.hint);
        state_close(&other);
}
END_TEST

/* A file that a user cannot look for is not taken for one that is there. */
START_TEST(another_user)
{
        static const enum state_access accesses[] = { STATE_READ, STATE_WRITE };
        struct state_report r;
        struct state other;

        if (geteuid() != 0)
                return;
        ck_assert_int_eq(chmod(top, 0755), 0);
        for (size_t i = 0; i < ELEMENTS(accesses); i++) {
                ck_assert_int_eq(seteuid(USER), 0);
                ck_assert_int_eq(state_open(&other, path, accesses[i], NULL), -EACCES);
                ck_assert_int_eq(seteuid(0), 0);
                ck_assert(state_next_report(&other, &r));
                ck_assert_msg(strstr(r.text, "state.db cannot be used: Permission denied"), "%s", r.text);
                ck_assert_msg(strstr(r.hint, "pkeyctl needs root"), "%s", r.hint);
                state_close(&other);
        }
}
END_TEST

/* The error is reported once and commits fail. When the store can be opened, everything must be stored again. */
START_TEST(cannot_be_opened_yet)
{
        _cleanup_remembered_ struct remembered *m = NULL;
        const char *holder;

        state_close(&state);
        remove_database();
        ck_assert_int_eq(mkdir(file("state.db"), 0700), 0);
        ck_assert_int_eq(state_open(&state, path, STATE_WRITE, NULL), -EISDIR);
        check_report(STATE_UNUSABLE, "state.db cannot be used: Is a directory");
        m = load();
        ck_assert_uint_eq(n_freed(m), 0);
        ck_assert_int_eq(commit_index(&state, 1), -EISDIR);
        ck_assert_int_eq(lock(&state, &holder), 0);
        ck_assert_int_eq(commit_index(&state, 1), -EISDIR);
        check_no_report();
        ck_assert_int_eq(rmdir(file("state.db")), 0);
        ck_assert_int_eq(lock(&state, &holder), -EUCLEAN);
        check_report(STATE_USABLE, "state.db can be used again");
        ck_assert_int_eq(lock(&state, &holder), 0);
        ck_assert_int_eq(commit_index(&state, 1), 0);
        check_no_report();
}
END_TEST

static void take_away(void)
{
        ck_assert_int_eq(rename(file("state.db"), file("elsewhere")), 0);
        ck_assert_int_eq(mkdir(file("state.db"), 0700), 0);
}

static void put_back(void)
{
        ck_assert_int_eq(rmdir(file("state.db")), 0);
        ck_assert_int_eq(rename(file("elsewhere"), file("state.db")), 0);
}

/* The records that the store has then replace those in memory. */
START_TEST(opened_later_with_records)
{
        _cleanup_remembered_ struct remembered *changed = NULL;
        const char *holder;

        ck_assert_int_eq(commit_index(&state, 1), 0);
        ck_assert_int_eq(commit_table(&state), 0);
        state_close(&state);
        take_away();
        ck_assert_int_eq(state_open(&state, path, STATE_WRITE, NULL), -EISDIR);
        check_report(STATE_UNUSABLE, "Is a directory");
        remembered_free(load());
        put_back();
        ck_assert_int_eq(state_lock(&state, &holder, &changed), 0);
        ck_assert_ptr_nonnull(changed);
        ck_assert_uint_eq(n_freed(changed), 1);
        check_table(changed, true);
        check_report(STATE_USABLE, "can be used again");
        check_no_report();
        ck_assert_int_eq(lock(&state, &holder), 0);
}
END_TEST

/* What another process has committed meanwhile is loaded, and the tables are trusted. */
START_TEST(lost_for_a_while)
{
        _cleanup_remembered_ struct remembered *changed = NULL;
        struct state other;
        const char *holder;

        ck_assert_int_eq(commit_table(&state), 0);
        take_away();
        ck_assert_int_eq(lock(&state, &holder), 0);
        check_report(STATE_UNUSABLE, "Is a directory");
        state_unlock(&state);
        put_back();
        ck_assert_int_eq(state_open(&other, path, STATE_WRITE, NULL), 0);
        ck_assert_int_eq(commit_index(&other, 1), 0);
        state_close(&other);
        ck_assert_int_eq(state_lock(&state, &holder, &changed), 0);
        ck_assert_ptr_nonnull(changed);
        ck_assert_uint_eq(n_freed(changed), 1);
        check_table(changed, true);
        check_report(STATE_USABLE, "can be used again");
        check_no_report();
}
END_TEST

START_TEST(of_a_newer_version)
{
        sqlite3 *db;

        state_close(&state);
        ck_assert_int_eq(sqlite3_open(file("state.db"), &db), SQLITE_OK);
        ck_assert_int_eq(sqlite3_exec(db, "PRAGMA user_version = 99", NULL, NULL, NULL), SQLITE_OK);
        ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
        ck_assert_int_eq(state_open(&state, path, STATE_WRITE, NULL), -EPROTONOSUPPORT);
        check_report(STATE_UNUSABLE, "a newer version of pkeyd wrote it");
        ck_assert_int_eq(commit_index(&state, 1), -EPROTONOSUPPORT);
}
END_TEST

START_TEST(damaged_database)
{
        static const struct {
                enum state_access access;
                bool reports;
        } opens[] = {{STATE_READ, false}, {STATE_WRITE, true}, {STATE_SERVE, true}, {STATE_SERVE, false}, {STATE_WRITE, false}};
        _cleanup_remembered_ struct remembered *m = NULL;

        ck_assert_int_eq(commit_index(&state, 1), 0);
        state_close(&state);
        remove_database();
        write_text("state.db", "this is no database, and never was one");
        ck_assert_int_eq(state_open(&state, path, STATE_READ, NULL), -ENOTRECOVERABLE);
        check_report(STATE_UNUSABLE, "state.db cannot be used: it is damaged");
        state_close(&state);
        ck_assert_int_eq(state_open(&state, path, STATE_WRITE, NULL), 0);
        check_report(STATE_DAMAGED, "state.db is damaged and was moved to");
        check_no_report();
        m = load();
        ck_assert_uint_eq(n_freed(m), 0);
        ck_assert_int_eq(commit_index(&state, 1), 0);
        /* pkeyd has not reported it yet */
        for (size_t i = 0; i < ELEMENTS(opens); i++) {
                state_close(&state);
                ck_assert_int_eq(state_open(&state, path, opens[i].access, NULL), 0);
                if (opens[i].reports)
                        check_report(STATE_DAMAGED, "state.db is damaged and was moved to");
                check_no_report();
        }
}
END_TEST

/* --- two processes ------------------------------------------------------------------------------------------------ */

START_TEST(another_committed)
{
        _cleanup_remembered_ struct remembered *first = load(), *changed = NULL, *again = NULL;
        struct state other;
        const char *holder;

        ck_assert_int_eq(commit_index(&state, 1), 0);
        ck_assert_int_eq(lock(&state, &holder), 0); /* its own commit does not count as a change */
        state_unlock(&state);
        ck_assert_int_eq(state_open(&other, path, STATE_WRITE, NULL), 0);
        ck_assert_int_eq(commit_index(&other, 2), 0);
        ck_assert_int_eq(commit_table(&other), 0);
        ck_assert_int_eq(state_lock(&state, &holder, &changed), 0);
        ck_assert_ptr_nonnull(changed);
        ck_assert_uint_eq(n_freed(changed), 2);
        check_table(changed, true);
        check_no_report();
        ck_assert_int_eq(lock(&state, &holder), 0);
        ck_assert_int_eq(commit_index(&other, 3), 0);
        ck_assert_int_eq(state_lock(&state, &holder, &again), 0);
        ck_assert_ptr_nonnull(again);
        ck_assert_uint_eq(n_freed(again), 3);
        state_close(&other);
}
END_TEST

/* --- a database that is removed ----------------------------------------------------------------------------------- */

START_TEST(removed_before_a_commit)
{
        _cleanup_remembered_ struct remembered *m = NULL;
        const char *holder;

        ck_assert_int_eq(commit_index(&state, 1), 0);
        remove_database();
        ck_assert_int_eq(commit_index(&state, 2), -EUCLEAN);
        ck_assert_int_eq(lock(&state, &holder), 0);
        ck_assert_int_eq(commit_index(&state, 1), 0);
        ck_assert_int_eq(commit_index(&state, 2), 0);
        open_again(0);
        m = load();
        ck_assert_uint_eq(n_freed(m), 2);
}
END_TEST

START_TEST(removed_before_a_lock)
{
        struct state other;
        const char *holder;

        remove_database();
        ck_assert_int_eq(lock(&state, &holder), -EUCLEAN);
        ck_assert_int_eq(state_open(&other, path, STATE_WRITE, NULL), 0);
        ck_assert_int_eq(lock(&other, &holder), 0); /* the failed lock was released */
        state_close(&other);
        ck_assert_int_eq(lock(&state, &holder), 0);
        ck_assert_int_eq(commit_index(&state, 1), 0);
}
END_TEST

START_TEST(removed_with_its_directory)
{
        char other[LOCK_HOLDER_SIZE];
        const char *holder;
        int fd;

        state_close(&state);
        ck_assert_int_eq(state_open(&state, path, STATE_SERVE, NULL), 0);
        remove_directory();
        ck_assert_int_eq(lock(&state, &holder), -EUCLEAN);
        ck_assert_int_eq(lock(&state, &holder), 0);
        ck_assert_int_eq(commit_index(&state, 1), 0);
        ck_assert_int_eq(directory_lock_take(path, DIRECTORY_LOCK_WRITES, LOCK_EX, &fd, other), -EWOULDBLOCK);
        ck_assert_int_eq(directory_lock_take(path, DIRECTORY_LOCK_RUNS, LOCK_EX, &fd, other), -EWOULDBLOCK);
}
END_TEST

START_TEST(removed_with_its_directory_for_good)
{
        const char *holder;

        remove_directory();
        ck_assert_int_eq(close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)), 0);
        ck_assert_int_eq(lock(&state, &holder), -ENOTDIR);
        check_report(STATE_UNUSABLE, "state.db cannot be used: Not a directory");
        ck_assert_int_eq(lock(&state, &holder), -ENOTDIR);
        check_no_report();
        ck_assert_int_eq(unlink(path), 0);
        ck_assert_int_eq(lock(&state, &holder), -EUCLEAN);
        check_report(STATE_USABLE, "state.db can be used again");
        ck_assert_int_eq(lock(&state, &holder), 0);
}
END_TEST

START_TEST(removed_before_it_is_loaded)
{
        _cleanup_remembered_ struct remembered *m = NULL;

        ck_assert_int_eq(commit_index(&state, 1), 0);
        remove_database();
        m = load();
        ck_assert_uint_eq(n_freed(m), 0);
        ck_assert_int_eq(commit_index(&state, 1), 0);
}
END_TEST

/* A file that was replaced before the first load is trusted. */
START_TEST(replaced_before_it_is_loaded)
{
        _cleanup_remembered_ struct remembered *m = NULL, *changed = NULL;
        const char *elsewhere = file("elsewhere");
        struct state other;
        const char *holder;

        ck_assert_int_eq(state_open(&other, elsewhere, STATE_WRITE, NULL), 0);
        ck_assert_int_eq(commit_table(&other), 0);
        state_close(&other);
        remove_database();
        ck_assert_int_eq(rename(file("elsewhere/state.db"), file("state.db")), 0);
        ck_assert_int_eq(rmdir(elsewhere), 0);
        m = load();
        check_table(m, true);
        ck_assert_int_eq(state_open(&other, path, STATE_WRITE, NULL), 0);
        ck_assert_int_eq(commit_index(&other, 1), 0);
        state_close(&other);
        ck_assert_int_eq(state_lock(&state, &holder, &changed), 0);
        ck_assert_ptr_nonnull(changed);
        check_table(changed, true);
        check_no_report();
}
END_TEST

/* An admin replaces the file, for example by a backup: its records are loaded, but its tables count as never read. _i: the commit
 * or the lock notices it first. */
START_TEST(replaced)
{
        _cleanup_remembered_ struct remembered *changed = NULL, *again = NULL;
        const char *elsewhere = file("elsewhere");
        struct state other;
        const char *holder;

        ck_assert_int_eq(commit_index(&state, 1), 0);
        ck_assert_int_eq(state_open(&other, elsewhere, STATE_WRITE, NULL), 0);
        ck_assert_int_eq(commit_index(&other, 2), 0);
        ck_assert_int_eq(commit_index(&other, 3), 0);
        ck_assert_int_eq(commit_table(&other), 0);
        state_close(&other);
        remove_database();
        ck_assert_int_eq(rename(file("elsewhere/state.db"), file("state.db")), 0);
        ck_assert_int_eq(rmdir(elsewhere), 0);
        if (_i == 0)
                ck_assert_int_eq(commit_index(&state, 1), -EUCLEAN);
        ck_assert_int_eq(state_lock(&state, &holder, &changed), 0);
        ck_assert_ptr_nonnull(changed);
        ck_assert_uint_eq(n_freed(changed), 2);
        check_table(changed, false);
        check_report(STATE_DAMAGED, "was replaced by another file");
        ck_assert_int_eq(lock(&state, &holder), 0);
        ck_assert_int_eq(commit_index(&state, 1), 0);
        ck_assert_int_eq(state_open(&other, path, STATE_WRITE, NULL), 0);
        ck_assert_int_eq(commit_index(&other, 4), 0);
        state_close(&other);
        ck_assert_int_eq(state_lock(&state, &holder, &again), 0);
        ck_assert_ptr_nonnull(again);
        check_table(again, true); /* later commits are trusted */
        check_no_report();
}
END_TEST

/* Another file that cannot be loaded at once is still another file. */
START_TEST(replaced_and_lost_for_a_while)
{
        _cleanup_remembered_ struct remembered *changed = NULL;
        struct state other;
        const char *holder;

        ck_assert_int_eq(state_open(&other, file("other"), STATE_WRITE, NULL), 0);
        ck_assert_int_eq(commit_table(&other), 0);
        state_close(&other);
        remove_database();
        ck_assert_int_eq(rename(file("other/state.db"), file("state.db")), 0);
        ck_assert_int_eq(rmdir(file("other")), 0);
        ck_assert_int_eq(commit_index(&state, 1), -EUCLEAN);
        take_away();
        ck_assert_int_eq(lock(&state, &holder), 0);
        check_report(STATE_UNUSABLE, "Is a directory");
        put_back();
        ck_assert_int_eq(state_lock(&state, &holder, &changed), 0);
        ck_assert_ptr_nonnull(changed);
        check_table(changed, false);
        check_report(STATE_USABLE, "can be used again");
        check_report(STATE_DAMAGED, "was replaced by another file");
}
END_TEST

/* No process creates a new store while this one has the old one open, since this one still has all records in memory. */
START_TEST(removed_and_open)
{
        struct state other;

        remove_database();
        ck_assert_int_eq(state_open(&other, path, STATE_WRITE, NULL), -EBUSY);
        state_close(&other);
}
END_TEST

/* --- the lock ----------------------------------------------------------------------------------------------------- */

/* Starts a process that takes the lock, reports that, and holds it until it gets a byte; it may be killed before. */
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
                struct remembered *changed = NULL;
                struct state mine;
                const char *other;

                close(go[1]);
                if (state_open(&mine, path, STATE_WRITE, NULL) < 0 || state_lock(&mine, &other, &changed) < 0)
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
        int go, status;
        const char *holder = NULL;
        pid_t pid = hold_lock(&go);

        ck_assert_int_eq(lock(&state, &holder), -EWOULDBLOCK);
        ck_assert_str_eq(holder, arena_printf(arena, "process %d", (int) pid));
        write_file("lock", "junk", 4); /* not a pid */
        ck_assert_int_eq(lock(&state, &holder), -EWOULDBLOCK);
        ck_assert_str_eq(holder, "another process");
        close(go);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_int_eq(status, 0);
        /* it ended without releasing the lock */
        ck_assert_int_eq(lock(&state, &holder), 0);
        ck_assert_int_eq(lock(&state, &holder), 0);
}
END_TEST

START_TEST(lock_is_let_go)
{
        struct state other;
        const char *holder = NULL;

        ck_assert_int_eq(state_open(&other, path, STATE_WRITE, NULL), 0);
        ck_assert_int_eq(lock(&state, &holder), 0);
        ck_assert_int_eq(lock(&other, &holder), -EWOULDBLOCK);
        ck_assert_str_eq(holder, arena_printf(arena, "process %d", (int) getpid()));
        state_unlock(&state);
        state_unlock(&state);
        ck_assert_int_eq(lock(&other, &holder), 0);
        ck_assert_int_eq(lock(&state, &holder), -EWOULDBLOCK);
        state_close(&other);
        ck_assert_int_eq(lock(&state, &holder), 0);
        ck_assert_uint_eq(mode_of("lock"), 0600);
}
END_TEST

/* --- a directory of another user ---------------------------------------------------------------------------------- */

static void check_owners(void)
{
        DIR *d = opendir(path);
        unsigned n = 0;
        struct stat st;

        ck_assert_ptr_nonnull(d);
        for (struct dirent *e; (e = readdir(d));) {
                if (strcmp(e->d_name, "..") == 0)
                        continue;
                ck_assert_int_eq(lstat(file(e->d_name), &st), 0);
                ck_assert_msg(st.st_uid == USER && st.st_gid == USER, "%s belongs to %u:%u", e->d_name, st.st_uid, st.st_gid);
                n++;
        }
        (void) closedir(d);
        ck_assert_uint_ge(n, 5); /* the directory, state.db, -wal, -shm, lock */
}

/* Opens, locks and commits in a process of that user. */
static int use_as_user(void)
{
        int status;
        pid_t pid;

        fflush(NULL);
        pid = fork();
        if (pid == 0) {
                struct state s;
                const char *holder;

                if (setgid(USER) < 0 || setuid(USER) < 0 || state_open(&s, path, STATE_WRITE, NULL) < 0 || lock(&s, &holder) < 0)
                        _exit(1);
                _exit(commit_index(&s, 1) == 0 ? 0 : 2);
        }
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert(WIFEXITED(status));
        return WEXITSTATUS(status);
}

/* pkeyctl runs as root, pkeyd as a user of its own: what root makes in that user's directory belongs to the user. */
START_TEST(root_in_a_directory_of_a_user)
{
        const char *holder;

        if (geteuid() != 0)
                return;
        ck_assert_int_eq(chown(top, USER, USER), 0);
        state_close(&state);
        remove_directory();
        open_again(0); /* the directory is new */
        ck_assert_int_eq(lock(&state, &holder), 0);
        ck_assert_int_eq(commit_index(&state, 1), 0);
        check_owners();
        state_unlock(&state);
        ck_assert_int_eq(use_as_user(), 0);
        check_owners();

        state_close(&state);
        remove_files(); /* the directory is there */
        open_again(0);
        ck_assert_int_eq(lock(&state, &holder), 0);
        ck_assert_int_eq(commit_index(&state, 1), 0);
        check_owners();

        state_close(&state);
        write_text("state.db", "damaged");
        ck_assert_int_eq(chown(file("state.db"), USER, USER), 0);
        open_again(0); /* it is moved aside */
        ck_assert_int_eq(commit_index(&state, 1), 0);
        check_owners();
        state_close(&state);
        ck_assert_int_eq(use_as_user(), 0);
}
END_TEST

/* --- files of version 0.1.0 --------------------------------------------------------------------------------------- */

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

#define KNOWN "{\"schema\": 1, \"ports\": [{\"node\": \"0x0000000000000001\", \"port\": 1, \"type\": 1, \"seen\": 7, " \
              "\"port_guid\": \"0x0000000000000002\", \"description\": \"node1 mlx5_0\", " \
              "\"switch\": \"0x0000000000000000\", \"switch_port\": 0}%s]}"

static const char good_indexes[] = PORT("{\"index\": 2, \"base\": \"0x7fff\", \"sequence\": 9223372036854775807}");

/* A state directory that only version 0.1.0 has used. */
static void begin_import(void)
{
        state_close(&state);
        remove_database();
        write_text("indexes.json", good_indexes);
        write_text("known.json", arena_printf(arena, KNOWN, ""));
        write_text("policy.yaml", "version: 1\n");
        write_text("generation.json", "{\"schema\": 1, \"generation\": 42, \"time\": \"2026-01-02T03:04:05Z\"}");
}

static void check_files(const char *const *names, size_t n, const char *suffix)
{
        for (size_t i = 0; i < n; i++)
                ck_assert_msg(exists(arena_printf(arena, "%s%s", names[i], suffix)), "%s%s", names[i], suffix);
}

static const char *const import_names[] = { "indexes.json", "known.json", "policy.yaml", "generation.json" };

START_TEST(import_once)
{
        _cleanup_remembered_ struct remembered *m = NULL, *again = NULL;

        begin_import();
        ck_assert_int_eq(state_open(&state, path, STATE_WRITE, NULL), 0);
        check_no_report();
        m = load();
        ck_assert_uint_eq(n_freed(m), 2);
        ck_assert_uint_eq(m->known.n, 1);
        ck_assert_str_eq(m->known.ports[0].description, "node1 mlx5_0");
        ck_assert_uint_eq(m->generation, 42);
        ck_assert_uint_eq(m->n_policy, strlen("version: 1\n"));
        ck_assert_mem_eq(m->policy, "version: 1\n", m->n_policy);
        check_files(import_names, 4, ".imported");
        for (size_t i = 0; i < 4; i++)
                ck_assert(!exists(import_names[i]));
        write_text("indexes.json", "{");
        open_again(0);
        check_no_report();
        again = load();
        ck_assert_uint_eq(n_freed(again), 2);
        ck_assert(exists("indexes.json"));
}
END_TEST

START_TEST(import_time)
{
        sqlite3 *db;
        sqlite3_stmt *st;

        begin_import();
        ck_assert_int_eq(state_open(&state, path, STATE_WRITE, NULL), 0);
        state_close(&state);
        ck_assert_int_eq(sqlite3_open(file("state.db"), &db), SQLITE_OK);
        ck_assert_int_eq(sqlite3_prepare_v2(db, "SELECT value FROM record WHERE key = 'generation/00000000000000000042'", -1, &st,
                                            NULL), SQLITE_OK);
        ck_assert_int_eq(sqlite3_step(st), SQLITE_ROW);
        ck_assert_ptr_nonnull(strstr((const char *) sqlite3_column_text(st, 0), "\"time\":1767323045,"));
        (void) sqlite3_finalize(st);
        ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}
END_TEST

/* No part of a damaged file is imported, and all of the others. */
static void check_not_imported(const char *name)
{
        ck_assert_int_eq(state_open(&state, path, STATE_WRITE, NULL), 0);
        check_report(STATE_DAMAGED, arena_printf(arena, "/%s, of version 0.1.0: it is damaged", name));
        check_no_report();
        for (size_t i = 0; i < 4; i++)
                ck_assert(exists(import_names[i]) == (strcmp(import_names[i], name) == 0));
}

START_TEST(damaged_indexes)
{
        _cleanup_remembered_ struct remembered *m = NULL;

        begin_import();
        write_text("indexes.json", damaged_files[_i]);
        check_not_imported("indexes.json");
        m = load();
        ck_assert_uint_eq(n_freed(m), 0);
        ck_assert_uint_eq(m->known.n, 1);
        ck_assert_uint_eq(m->n_damaged, 0);
}
END_TEST

START_TEST(damaged_known)
{
        static const char *const bad[] = { "", "{", "[]", "{\"schema\": 2, \"ports\": []}", "{\"schema\": 1, \"ports\": [1]}",
                                           "{\"schema\": 1, \"ports\": [{\"node\": \"0x1\"}]}" };
        _cleanup_remembered_ struct remembered *m = NULL;

        begin_import();
        write_text("known.json", _i < (int) ELEMENTS(bad) ? bad[_i] : arena_printf(arena, KNOWN, ", {\"port\": 1}"));
        check_not_imported("known.json");
        m = load();
        ck_assert_uint_eq(m->known.n, 0);
        ck_assert_uint_eq(n_freed(m), 2);
}
END_TEST

/* A policy without generation.json gets number 1. */
START_TEST(damaged_generation)
{
        static const char *const wrong[] = {
                "", "junk", "[]", "{\"generation\": \"7\"}", "{\"generation\": -7}", "{\"generation\": 0}",
        };
        _cleanup_remembered_ struct remembered *m = NULL;

        begin_import();
        write_text("generation.json", wrong[_i]);
        check_not_imported("generation.json");
        m = load();
        ck_assert_uint_eq(m->generation, 1);
        ck_assert_uint_eq(m->n_policy, strlen("version: 1\n"));
}
END_TEST

START_TEST(import_of_some)
{
        _cleanup_remembered_ struct remembered *m = NULL;

        begin_import();
        ck_assert_int_eq(unlink(file("policy.yaml")), 0);
        ck_assert_int_eq(unlink(file("known.json")), 0);
        ck_assert_int_eq(state_open(&state, path, STATE_WRITE, NULL), 0);
        check_no_report();
        m = load();
        ck_assert_uint_eq(m->generation, 0);
        ck_assert_ptr_null(m->policy);
        ck_assert_uint_eq(n_freed(m), 2);
        ck_assert(exists("indexes.json.imported"));
        ck_assert(exists("generation.json"));
}
END_TEST

/* A process that only reads does not import them. */
START_TEST(import_by_a_writer)
{
        state_close(&state);
        write_text("indexes.json", good_indexes);
        ck_assert_int_eq(state_open(&state, path, STATE_READ, NULL), 0);
        ck_assert(exists("indexes.json"));
        open_again(0);
        ck_assert(!exists("indexes.json"));
}
END_TEST

/* The directory belongs to pkeyd, and the process is root's pkeyctl: a link must not lead it to a file that pkeyd may not read. */
START_TEST(import_through_a_link)
{
        _cleanup_remembered_ struct remembered *m = NULL;
        const char *secret = arena_printf(arena, "%s/secret", top);

        if (geteuid() != 0)
                return;
        state_close(&state);
        remove_files();
        ck_assert_int_eq(chown(path, USER, USER), 0);
        ck_assert_int_eq(chmod(top, 0711), 0);
        write_text("../secret", good_indexes);
        ck_assert_int_eq(chmod(secret, 0600), 0);
        ck_assert_int_eq(symlink(secret, file("indexes.json")), 0);
        open_again(0);
        check_report(STATE_DAMAGED, "Permission denied");
        ck_assert(exists("indexes.json"));
        m = load();
        ck_assert_uint_eq(n_freed(m), 0);
        ck_assert_int_eq(unlink(secret), 0);
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("state");
        TCase *t = tcase_create("state");
        SRunner *runner;
        int failed;

        tcase_add_checked_fixture(t, setup, teardown);
        tcase_set_timeout(t, 60);
        tcase_add_test(t, made_with_mode_0700);
        tcase_add_test(t, comes_back);
        tcase_add_test(t, damaged_records);
        tcase_add_test(t, records_of_wrong_types);
        tcase_add_test(t, only_reading);
        tcase_add_test(t, never_opened);
        tcase_add_test(t, cannot_be_opened);
        tcase_add_test(t, another_user);
        tcase_add_test(t, cannot_be_opened_yet);
        tcase_add_test(t, opened_later_with_records);
        tcase_add_test(t, lost_for_a_while);
        tcase_add_test(t, of_a_newer_version);
        tcase_add_test(t, damaged_database);
        tcase_add_test(t, another_committed);
        tcase_add_test(t, removed_before_a_commit);
        tcase_add_test(t, removed_before_a_lock);
        tcase_add_test(t, removed_with_its_directory);
        tcase_add_test(t, removed_with_its_directory_for_good);
        tcase_add_test(t, removed_before_it_is_loaded);
        tcase_add_test(t, replaced_before_it_is_loaded);
        tcase_add_loop_test(t, replaced, 0, 2);
        tcase_add_test(t, replaced_and_lost_for_a_while);
        tcase_add_test(t, removed_and_open);
        tcase_add_test(t, lock_is_held_by_another);
        tcase_add_test(t, lock_is_let_go);
        tcase_add_test(t, root_in_a_directory_of_a_user);
        tcase_add_test(t, import_once);
        tcase_add_test(t, import_time);
        tcase_add_loop_test(t, damaged_indexes, 0, (int) ELEMENTS(damaged_files));
        tcase_add_loop_test(t, damaged_known, 0, 7);
        tcase_add_loop_test(t, damaged_generation, 0, 6);
        tcase_add_test(t, import_of_some);
        tcase_add_test(t, import_by_a_writer);
        tcase_add_test(t, import_through_a_link);
        suite_add_tcase(suite, t);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
