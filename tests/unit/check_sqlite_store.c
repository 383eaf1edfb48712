/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "shell/file.h"
#include "state/sqlite_store.h"
#include "util/text.h"

#define BUSY_MSEC 50

static char top[64], dir[128];
static struct arena *arena;
static struct store *store;
static struct store_transaction t;

/* --- a disk that fails for SQLite ------------------------------------------------------------------------------------- */

static unsigned n_syncs;
static int sync_error, write_error, read_error; /* errno; 0: none */

static int count_sync(void)
{
        n_syncs++;
        errno = sync_error;
        return sync_error ? -1 : 0;
}

/* Replace those of the C library. Syncing does nothing, to save time: these tests kill processes, not hosts. */
int fsync(int fd)
{
        (void) fd;
        return count_sync();
}

int fdatasync(int fd)
{
        (void) fd;
        return count_sync();
}

static unsigned writes_left; /* before write_error */

static ssize_t write_at(int fd, const void *bytes, size_t n, off_t offset)
{
        if (!write_error || writes_left > 0) {
                writes_left -= writes_left > 0;
                return pwrite(fd, bytes, n, offset);
        }
        errno = write_error;
        return -1;
}

static ssize_t read_at(int fd, void *bytes, size_t n, off_t offset)
{
        errno = read_error;
        return read_error ? -1 : pread(fd, bytes, n, offset);
}

static void watch_the_disk(void)
{
        sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);

        /* the build of SQLite decides which of these names it uses */
        ck_assert_int_eq(vfs->xSetSystemCall(vfs, "pwrite", (sqlite3_syscall_ptr) write_at), SQLITE_OK);
        ck_assert_int_eq(vfs->xSetSystemCall(vfs, "pwrite64", (sqlite3_syscall_ptr) write_at), SQLITE_OK);
        ck_assert_int_eq(vfs->xSetSystemCall(vfs, "pread", (sqlite3_syscall_ptr) read_at), SQLITE_OK);
        ck_assert_int_eq(vfs->xSetSystemCall(vfs, "pread64", (sqlite3_syscall_ptr) read_at), SQLITE_OK);
}

/* --- memory ------------------------------------------------------------------------------------------------------------ */

static unsigned n_allocations, failing; /* the one that fails; 0: none */
static sqlite3_mem_methods memory;

static bool may_allocate(void)
{
        return !failing || ++n_allocations != failing;
}

static void *sqlite_malloc(int n)
{
        return may_allocate() ? memory.xMalloc(n) : NULL;
}

static void *sqlite_realloc(void *p, int n)
{
        return may_allocate() ? memory.xRealloc(p, n) : NULL;
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
        return may_allocate() ? __real_calloc(n, size) : NULL;
}

/* To be called before SQLite is first used. Without lookaside every allocation is visible to the tests. */
static bool watch_the_memory(void)
{
        sqlite3_mem_methods watched;

        if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &memory) != SQLITE_OK)
                return false;
        watched = memory;
        watched.xMalloc = sqlite_malloc;
        watched.xRealloc = sqlite_realloc;
        return sqlite3_config(SQLITE_CONFIG_MALLOC, &watched) == SQLITE_OK &&
               sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0) == SQLITE_OK &&
               sqlite3_config(SQLITE_CONFIG_PAGECACHE, NULL, 0, 0) == SQLITE_OK;
}

/* --- files ------------------------------------------------------------------------------------------------------------- */

/* The path stays valid for the next three calls. */
static const char *path_of(const char *name)
{
        static char paths[4][512];
        static unsigned next;
        char *path = paths[next++ % ELEMENTS(paths)];

        snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
        return path;
}

static void empty_directory(void)
{
        DIR *d = opendir(dir);
        const struct dirent *entry;

        ck_assert_ptr_nonnull(d);
        while ((entry = readdir(d)))
                if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
                        ck_assert_int_eq(remove(path_of(entry->d_name)), 0);
        closedir(d);
}

/* Counts the names in the directory that have this prefix. */
static unsigned count_files(const char *prefix)
{
        DIR *d = opendir(dir);
        const struct dirent *entry;
        unsigned n = 0;

        ck_assert_ptr_nonnull(d);
        while ((entry = readdir(d)))
                n += entry->d_name[0] != '.' && strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
        closedir(d);
        return n;
}

static bool exists(const char *path)
{
        struct stat st;

        return lstat(path, &st) == 0;
}

static unsigned mode_of(const char *name)
{
        struct stat st;

        ck_assert_int_eq(lstat(path_of(name), &st), 0);
        return st.st_mode & 07777;
}

static char *read_file(const char *path, size_t *ret_n)
{
        const char *bytes = NULL;

        ck_assert_msg(file_read(arena, path, 64u << 20, &bytes, ret_n) == 0, "%s", path);
        return (char *) bytes;
}

static void write_file(const char *name, const void *bytes, size_t n)
{
        FILE *f = fopen(path_of(name), "we");

        ck_assert_ptr_nonnull(f);
        ck_assert_uint_eq(fwrite(bytes, 1, n, f), n);
        ck_assert_int_eq(fclose(f), 0);
}

/* --- stores ------------------------------------------------------------------------------------------------------------ */

static int try_open(struct store **ret, char **ret_damaged)
{
        return sqlite_store_open(dir, BUSY_MSEC, STATE_SERVE, ret, ret_damaged);
}

/* Opens the store, which must not be damaged. */
static struct store *open_store(void)
{
        struct store *s = NULL;
        char *damaged = (char *) "untouched";

        ck_assert_int_eq(try_open(&s, &damaged), 0);
        ck_assert_msg(!damaged, "%s", damaged);
        ck_assert_ptr_nonnull(s);
        return s;
}

/* Opens the store, whose database must be moved aside. *ret_damaged: its new path, in the arena. */
static struct store *open_damaged(const char **ret_damaged)
{
        struct store *s = NULL;
        char *damaged = NULL;

        ck_assert_int_eq(try_open(&s, &damaged), 0);
        ck_assert_ptr_nonnull(damaged);
        ck_assert_uint_eq(strlen(damaged) - strlen(dir), strlen("/state.db.damaged-YYYYMMDDTHHMMSSZ"));
        ck_assert_ptr_nonnull(strstr(damaged, "/state.db.damaged-2"));
        *ret_damaged = arena_strdup(arena, damaged);
        free(damaged);
        return s;
}

static void check_refused(int error)
{
        struct store *s = NULL;
        char *damaged = NULL;
        int r = try_open(&s, &damaged);

        ck_assert_msg(r == error, "%s instead of %s", strerror(-r), strerror(-error));
        ck_assert_ptr_null(s);
        ck_assert_ptr_null(damaged);
}

static struct store_transaction *begin(void)
{
        store_transaction_init(&t, arena);
        return &t;
}

static int try_put(struct store *s, const char *key, const char *value)
{
        store_put(begin(), key, value, strlen(value));
        return store_commit(s, &t);
}

static void put(struct store *s, const char *key, const char *value)
{
        ck_assert_int_eq(try_put(s, key, value), 0);
}

static int add_text(void *userdata, const char *key, const void *value, size_t n)
{
        text_add(userdata, "%s=", key);
        text_add_n(userdata, value, n);
        text_add(userdata, ";");
        return 0;
}

/* "key=value;..." of all records, in the arena. */
static const char *dump(struct store *s)
{
        _cleanup_text_ struct text text = {};

        ck_assert_int_eq(store_load(s, add_text, &text), 0);
        return text.n > 0 ? text_copy(arena, &text) : "";
}

/* A connection of another program. */
static sqlite3 *connect_other(void)
{
        sqlite3 *db = NULL;

        ck_assert_int_eq(sqlite3_open(path_of("state.db"), &db), SQLITE_OK);
        return db;
}

static void exec(sqlite3 *db, const char *statements)
{
        char *error = NULL;
        int code = sqlite3_exec(db, statements, NULL, NULL, &error);

        ck_assert_msg(code == SQLITE_OK, "%s: %s", statements, error);
}

static void exec_other(const char *statements)
{
        sqlite3 *db = connect_other();

        exec(db, statements);
        ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}

static int ask_other(const char *question)
{
        sqlite3 *db = connect_other();
        sqlite3_stmt *st = NULL;
        int answer;

        ck_assert_int_eq(sqlite3_prepare_v2(db, question, -1, &st, NULL), SQLITE_OK);
        ck_assert_int_eq(sqlite3_step(st), SQLITE_ROW);
        answer = sqlite3_column_int(st, 0);
        sqlite3_finalize(st);
        ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
        return answer;
}

static void setup(void)
{
        strcpy(top, "/tmp/check_sqlite_store.XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(top));
        snprintf(dir, sizeof(dir), "%s/state", top);
        ck_assert_int_eq(mkdir(dir, 0700), 0);
        arena = arena_new();
        watch_the_disk();
}

static void teardown(void)
{
        failing = 0;
        sync_error = write_error = read_error = 0;
        store = store_close(store);
        ck_assert_ptr_null(store);
        arena = arena_free(arena);
        empty_directory();
        ck_assert_int_eq(rmdir(dir), 0);
        ck_assert_int_eq(rmdir(top), 0);
}

/* --- records ----------------------------------------------------------------------------------------------------------- */

START_TEST(made_with_mode_0600)
{
        mode_t mask = umask(0);

        store = open_store();
        put(store, "a", "1");
        ck_assert_uint_eq(mode_of("state.db"), 0600);
        ck_assert_uint_eq(mode_of("state.db-wal"), 0600);
        ck_assert_uint_eq(mode_of("state.db-shm"), 0600);
        store = store_close(store);
        ck_assert_uint_eq(count_files(""), 1);
        (void) umask(0777);
        ck_assert_int_eq(unlink(path_of("state.db")), 0);
        store = open_store();
        ck_assert_uint_eq(mode_of("state.db"), 0600);
        (void) umask(mask);
}
END_TEST

START_TEST(records_come_back)
{
        store = open_store();
        ck_assert_str_eq(dump(store), "");
        store_put(begin(), "b/2", "two", 3);
        store_put(&t, "a", "", 0);
        store_put(&t, "~", "last", 4);
        store_put(&t, "B", "upper", 5);
        store_put(&t, "!", "first", 5);
        store_put(&t, "b/10", "ten", 3);
        ck_assert_int_eq(store_commit(store, &t), 0);
        ck_assert_str_eq(dump(store), "!=first;B=upper;a=;b/10=ten;b/2=two;~=last;");
        store = store_close(store);
        store = open_store();
        ck_assert_str_eq(dump(store), "!=first;B=upper;a=;b/10=ten;b/2=two;~=last;");
}
END_TEST

START_TEST(replaced_and_deleted)
{
        store = open_store();
        put(store, "a", "1");
        put(store, "a", "other");
        put(store, "b", "2");
        ck_assert_str_eq(dump(store), "a=other;b=2;");
        store_delete(begin(), "a");
        store_delete(&t, "absent");
        ck_assert_int_eq(store_commit(store, &t), 0);
        ck_assert_str_eq(dump(store), "b=2;");
        /* in the order of the operations */
        store_delete(begin(), "b");
        store_put(&t, "b", "3", 1);
        store_put(&t, "c", "4", 1);
        store_delete(&t, "c");
        ck_assert_int_eq(store_commit(store, &t), 0);
        ck_assert_str_eq(dump(store), "b=3;");
}
END_TEST

START_TEST(nothing_to_commit)
{
        struct store *other;

        store = open_store();
        other = open_store();
        ck_assert_int_eq(store_commit(store, begin()), 0);
        ck_assert_int_eq(store_changed(other), 0);
        store_close(other);
}
END_TEST

struct bytes {
        const void *bytes;
        size_t n;
        bool found;
};

static int compare_bytes(void *userdata, const char *key, const void *value, size_t n)
{
        struct bytes *expected = userdata;

        ck_assert_str_eq(key, "k");
        ck_assert_ptr_nonnull(value);
        ck_assert_uint_eq(n, expected->n);
        ck_assert_int_eq(memcmp(value, expected->bytes, n), 0);
        expected->found = true;
        return 0;
}

START_TEST(values_are_bytes)
{
        static char all[256], largest[STORE_VALUE_MAX];
        struct bytes values[] = { { all, sizeof(all), false }, { all, 1, false }, { "", 0, false },
                                  { largest, sizeof(largest), false } };

        for (unsigned i = 0; i < sizeof(all); i++)
                all[i] = (char) i;
        for (size_t i = 0; i < sizeof(largest); i++)
                largest[i] = (char) (i * i >> 3);
        store = open_store();
        for (size_t i = 0; i < ELEMENTS(values); i++) {
                store_put(begin(), "k", values[i].bytes, values[i].n);
                ck_assert_int_eq(store_commit(store, &t), 0);
                ck_assert_int_eq(store_load(store, compare_bytes, &values[i]), 0);
                ck_assert(values[i].found);
        }
}
END_TEST

START_TEST(wrong_transactions)
{
        static const char too_large[STORE_VALUE_MAX + 1];

        store = open_store();
        store_put(begin(), "a", "1", 1);
        store_put(&t, "a b", "1", 1);
        ck_assert_int_eq(store_commit(store, &t), -EINVAL);
        store_put(begin(), "a", "1", 1);
        store_put(&t, "b", too_large, sizeof(too_large));
        ck_assert_int_eq(store_commit(store, &t), -EFBIG);
        ck_assert_str_eq(dump(store), "");
}
END_TEST

static int stop_at_b(void *userdata, const char *key, const void *value, size_t n)
{
        (void) value;
        (void) n;
        ++*(int *) userdata;
        return strcmp(key, "b") == 0 ? 7 : 0;
}

START_TEST(handler_ends_the_load)
{
        int n = 0;

        store = open_store();
        put(store, "a", "1");
        put(store, "b", "2");
        put(store, "c", "3");
        ck_assert_int_eq(store_load(store, stop_at_b, &n), 7);
        ck_assert_int_eq(n, 2);
        /* loading leaves no lock */
        exec_other("PRAGMA wal_checkpoint(TRUNCATE); BEGIN EXCLUSIVE; COMMIT");
        put(store, "d", "4");
        ck_assert_str_eq(dump(store), "a=1;b=2;c=3;d=4;");
}
END_TEST

static struct store *meanwhile;

static int commit_meanwhile(void *userdata, const char *key, const void *value, size_t n)
{
        add_text(userdata, key, value, n);
        if (strcmp(key, "a") == 0) {
                store_put(begin(), "b", "new", 3);
                store_put(&t, "c", "new", 3);
                ck_assert_int_eq(store_commit(meanwhile, &t), 0);
        }
        return 0;
}

START_TEST(load_is_of_one_moment)
{
        _cleanup_text_ struct text text = {};

        store = open_store();
        meanwhile = open_store();
        put(store, "a", "old");
        put(store, "b", "old");
        ck_assert_int_eq(store_load(store, commit_meanwhile, &text), 0);
        ck_assert_str_eq(text_copy(arena, &text), "a=old;b=old;");
        ck_assert_str_eq(dump(store), "a=old;b=new;c=new;");
        store_close(meanwhile);
}
END_TEST

START_TEST(changed_by_another)
{
        struct store *other;

        store = open_store();
        put(store, "a", "1");
        other = open_store();
        ck_assert_int_eq(store_changed(other), 0);
        ck_assert_int_eq(store_changed(store), 0);
        put(store, "a", "2");
        ck_assert_int_eq(store_changed(store), 0);
        ck_assert_int_eq(store_changed(other), 1);
        ck_assert_int_eq(store_changed(other), 0);
        put(store, "a", "3");
        put(store, "a", "4");
        ck_assert_str_eq(dump(other), "a=4;");
        ck_assert_int_eq(store_changed(other), 1);
        ck_assert_int_eq(store_changed(other), 0);
        store_close(other);
}
END_TEST

static int check_number(void *userdata, const char *key, const void *value, size_t n)
{
        unsigned *next = userdata;
        char expected[32];

        if (strcmp(key, "a") == 0)
                return 0;
        snprintf(expected, sizeof(expected), "n/%06u", *next);
        ck_assert_str_eq(key, expected);
        ck_assert_uint_eq(n, 60);
        ck_assert_int_eq(*(const char *) value, (char) *next);
        ++*next;
        return 0;
}

START_TEST(many_records)
{
        char key[32], value[60];
        unsigned next = 0;
        struct stat st;

        store = open_store();
        begin();
        for (unsigned i = 0; i < 100000; i++) {
                unsigned k = i * 7919 % 100000; /* a permutation */

                snprintf(key, sizeof(key), "n/%06u", k);
                memset(value, (int) k, sizeof(value));
                store_put(&t, key, value, sizeof(value));
        }
        ck_assert_int_eq(store_commit(store, &t), 0);
        ck_assert_int_eq(store_load(store, check_number, &next), 0);
        ck_assert_uint_eq(next, 100000);
        /* the -wal shrinks again */
        ck_assert_int_eq(stat(path_of("state.db-wal"), &st), 0);
        ck_assert_int_gt(st.st_size, 5 << 20);
        put(store, "a", "1");
        put(store, "a", "2");
        ck_assert_int_eq(stat(path_of("state.db-wal"), &st), 0);
        ck_assert_int_le(st.st_size, 5 << 20);
        store = store_close(store);
        store = open_store();
        next = 0;
        ck_assert_int_eq(store_load(store, check_number, &next), 0);
        ck_assert_uint_eq(next, 100000);
}
END_TEST

/* --- all or nothing ---------------------------------------------------------------------------------------------------- */

START_TEST(another_holds_the_lock)
{
        sqlite3 *other;

        store = open_store();
        put(store, "a", "1");
        other = connect_other();
        exec(other, "BEGIN IMMEDIATE");
        store_put(begin(), "a", "2", 1);
        store_put(&t, "b", "2", 1);
        ck_assert_int_eq(store_commit(store, &t), -EBUSY);
        ck_assert_str_eq(dump(store), "a=1;");
        exec(other, "ROLLBACK");
        ck_assert_str_eq(dump(store), "a=1;");
        ck_assert_int_eq(store_commit(store, &t), 0);
        ck_assert_str_eq(dump(store), "a=2;b=2;");
        ck_assert_int_eq(sqlite3_close(other), SQLITE_OK);
}
END_TEST

START_TEST(waits_for_the_lock)
{
        char *damaged = NULL;
        sqlite3 *other;
        pid_t pid;
        int go[2];

        ck_assert_int_eq(sqlite_store_open(dir, 60000, STATE_SERVE, &store, &damaged), 0);
        ck_assert_int_eq(pipe(go), 0);
        pid = fork();
        if (pid == 0) {
                other = connect_other();
                exec(other, "BEGIN IMMEDIATE");
                (void) !write(go[1], "x", 1);
                usleep(100000);
                _exit(sqlite3_close(other));
        }
        ck_assert_int_eq(read(go[0], &(char) { 0 }, 1), 1);
        put(store, "a", "1");
        ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
        close(go[0]);
        close(go[1]);
}
END_TEST

/* Each disk error, first in an operation and then in the commit. */
START_TEST(disk_fails)
{
        static const struct {
                int *which, error, expected;
        } cases[] = {
                { &write_error, ENOSPC, -ENOSPC }, { &write_error, EDQUOT, -EDQUOT }, { &write_error, EIO, -EIO },
                { &write_error, EROFS, -EROFS },   { &sync_error, EIO, -EIO },
        };
        static const char large[STORE_VALUE_MAX];

        store = open_store();
        put(store, "a", "1");
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                store_put(begin(), "a", "2", 1);
                store_put(&t, "b", "2", 1);
                for (unsigned k = 0; k < 10; k++) {
                        char key[8];

                        snprintf(key, sizeof(key), "c/%u", k);
                        store_put(&t, key, large, i % 2 ? sizeof(large) : 1); /* every other case exceeds the cache */
                }
                *cases[i].which = cases[i].error;
                ck_assert_int_eq(store_commit(store, &t), cases[i].expected);
                *cases[i].which = 0;
                ck_assert_str_eq(dump(store), "a=1;");
                put(store, "a", "1");
        }
        store = store_close(store);
        store = open_store();
        ck_assert_str_eq(dump(store), "a=1;");
}
END_TEST

/* An operation fails with an error after which SQLite does not roll back by itself. */
START_TEST(operation_fails)
{
        store = open_store();
        put(store, "a", "1");
        exec_other("CREATE TRIGGER refuse BEFORE INSERT ON record WHEN NEW.key = 'c' BEGIN SELECT RAISE(ABORT, 'no'); END");
        store_put(begin(), "a", "2", 1);
        store_put(&t, "b", "2", 1);
        store_put(&t, "c", "2", 1);
        store_put(&t, "d", "2", 1);
        ck_assert_int_eq(store_commit(store, &t), -EUCLEAN);
        ck_assert_str_eq(dump(store), "a=1;");
        exec_other("DROP TRIGGER refuse");
        ck_assert_int_eq(store_commit(store, &t), 0);
        ck_assert_str_eq(dump(store), "a=2;b=2;c=2;d=2;");
}
END_TEST

START_TEST(commit_syncs)
{
        store = open_store();
        for (unsigned i = 0; i < 5; i++) {
                n_syncs = 0;
                put(store, "a", "1");
                ck_assert_uint_ge(n_syncs, 1);
        }
}
END_TEST

#define PER_TRANSACTION 20

static void commit_numbered(struct store *s, unsigned n)
{
        char key[32], value[300];

        begin();
        memset(value, (int) n, sizeof(value));
        for (unsigned i = 0; i < PER_TRANSACTION; i++) {
                snprintf(key, sizeof(key), "n/%06u/%02u", n, i);
                store_put(&t, key, value, sizeof(value));
        }
        store_put(&t, "last", &n, sizeof(n));
        if (store_commit(s, &t) < 0)
                _exit(1);
}

/* Commits transactions first, first + 1, ..., and reports each, until it is killed. */
static pid_t start_numbered(unsigned first, int *ret_reports)
{
        int ends[2];
        pid_t pid;

        ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
        pid = fork();
        ck_assert_int_ge(pid, 0);
        if (pid == 0) {
                struct store *s = NULL;
                char *damaged = NULL;

                if (sqlite_store_open(dir, 10000, STATE_SERVE, &s, &damaged) < 0 || damaged)
                        _exit(1);
                for (unsigned n = first;; n++) {
                        commit_numbered(s, n);
                        if (write(ends[1], &n, sizeof(n)) != sizeof(n))
                                _exit(1);
                }
        }
        close(ends[1]);
        *ret_reports = ends[0];
        return pid;
}

struct numbered {
        unsigned last, n;
};

static int count_numbered(void *userdata, const char *key, const void *value, size_t n)
{
        struct numbered *found = userdata;
        unsigned number = found->n / PER_TRANSACTION + 1;
        char expected[32];

        if (strcmp(key, "last") == 0) {
                ck_assert_uint_eq(n, sizeof(found->last));
                memcpy(&found->last, value, n);
                return 0;
        }
        snprintf(expected, sizeof(expected), "n/%06u/%02u", number, found->n % PER_TRANSACTION);
        ck_assert_str_eq(key, expected);
        ck_assert_uint_eq(n, 300);
        ck_assert_int_eq(((const char *) value)[299], (char) number);
        found->n++;
        return 0;
}

/* Checks that transactions 1 to n are complete, and returns n. */
static unsigned check_numbered(struct store *s)
{
        struct numbered found = {};

        ck_assert_int_eq(store_load(s, count_numbered, &found), 0);
        ck_assert_uint_eq(found.n, found.last * PER_TRANSACTION);
        return found.last;
}

START_TEST(killed_while_it_commits)
{
        unsigned last = 0, reported;
        int reports, status;
        pid_t pid;

        srand(1);
        for (unsigned round = 0; round < 30; round++) {
                pid = start_numbered(last + 1, &reports);
                reported = last;
                if (round % 3 == 0) /* on a slow host it may not get so far by itself */
                        ck_assert_int_eq(read(reports, &reported, sizeof(reported)), sizeof(reported));
                usleep((useconds_t) rand() % 40000);
                ck_assert_int_eq(kill(pid, SIGKILL), 0);
                ck_assert_int_eq(waitpid(pid, &status, 0), pid);
                ck_assert(WIFSIGNALED(status));
                while (read(reports, &reported, sizeof(reported)) == sizeof(reported))
                        ;
                close(reports);
                store = open_store();
                last = check_numbered(store);
                store = store_close(store);
                ck_assert_msg(last == reported || last == reported + 1, "%u reported, %u there", reported, last);
        }
}
END_TEST

/* This process reads while the writer is killed, and has the store open afterwards. */
START_TEST(killed_beside_another)
{
        unsigned last;
        int reports;
        pid_t pid;

        srand(2);
        store = open_store();
        for (unsigned round = 0; round < 10; round++) {
                pid = start_numbered(check_numbered(store) + 1, &reports);
                ck_assert_int_eq(read(reports, &last, sizeof(last)), sizeof(last));
                ck_assert_uint_ge(check_numbered(store), last);
                usleep((useconds_t) rand() % 10000);
                ck_assert_int_eq(kill(pid, SIGKILL), 0);
                ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
                while (read(reports, &last, sizeof(last)) == sizeof(last))
                        ;
                close(reports);
                ck_assert_uint_ge(check_numbered(store), last);
                ck_assert_int_eq(store_changed(store), 1);
        }
}
END_TEST

/* What a process leaves that was killed while it created the database is not damage. */
START_TEST(killed_while_it_is_made)
{
        struct store *s = NULL;
        char *damaged = NULL;
        pid_t pid;

        srand(3);
        for (unsigned round = 0; round < 40; round++) {
                pid = fork();
                ck_assert_int_ge(pid, 0);
                if (pid == 0)
                        _exit(try_open(&s, &damaged) < 0);
                usleep((useconds_t) rand() % 12000);
                (void) kill(pid, SIGKILL);
                ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
                store = open_store();
                put(store, "a", "1");
                ck_assert_uint_eq(count_files("state.db.new"), 0);
                store = store_close(store);
                empty_directory();
        }
}
END_TEST

static void commit_many(const char *name)
{
        struct store *s = NULL;
        char *damaged = NULL, key[32];

        if (sqlite_store_open(dir, 60000, STATE_SERVE, &s, &damaged) < 0 || damaged)
                _exit(1);
        for (unsigned i = 0; i < 100; i++) {
                snprintf(key, sizeof(key), "%s/%02u", name, i);
                store_put(begin(), key, name, strlen(name));
                store_put(&t, "both", name, strlen(name));
                if (store_commit(s, &t) < 0 || store_changed(s) < 0)
                        _exit(2);
        }
        store_close(s);
        _exit(0);
}

/* The same from the first open on, in a directory without a database. */
START_TEST(processes_at_the_same_time)
{
        static const char *const names[] = { "p", "q", "r", "s" };
        pid_t pids[ELEMENTS(names)];
        int status;

        for (size_t i = 0; i < ELEMENTS(names); i++) {
                pids[i] = fork();
                ck_assert_int_ge(pids[i], 0);
                if (pids[i] == 0)
                        commit_many(names[i]);
        }
        for (size_t i = 0; i < ELEMENTS(names); i++) {
                ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
                ck_assert_int_eq(status, 0);
        }
        ck_assert_uint_eq(count_files("state.db.damaged"), 0);
        store = open_store();
        ck_assert_int_eq(ask_other("SELECT count(*) FROM record"), 401);
}
END_TEST

/* --- damage ------------------------------------------------------------------------------------------------------------ */

/* A database of several pages, closed. */
static void make_good(void)
{
        char key[32], value[300];

        store = open_store();
        begin();
        memset(value, 'v', sizeof(value));
        for (unsigned i = 0; i < 200; i++) {
                snprintf(key, sizeof(key), "k/%03u", i);
                store_put(&t, key, value, sizeof(value));
        }
        ck_assert_int_eq(store_commit(store, &t), 0);
        store = store_close(store);
        ck_assert_uint_eq(count_files(""), 1);
}

static void check_same_bytes(const char *path, const char *bytes, size_t n)
{
        size_t n_now = 0;
        const char *now = read_file(path, &n_now);

        ck_assert_uint_eq(n_now, n);
        ck_assert_int_eq(memcmp(now, bytes, n), 0);
}

/* Expects that state.db is moved aside unchanged, and that an empty store takes its place. */
static void check_moved_aside(const char *what)
{
        const char *damaged = NULL, *bytes;
        size_t n = 0;

        bytes = read_file(path_of("state.db"), &n);
        store = open_damaged(&damaged);
        check_same_bytes(damaged, bytes, n);
        ck_assert_uint_eq(mode_of("state.db"), 0600);
        ck_assert_msg(dump(store)[0] == '\0', "%s", what);
        put(store, "new", "1");
        store = store_close(store);
        /* that store is not damaged the next time */
        store = open_store();
        ck_assert_str_eq(dump(store), "new=1;");
        store = store_close(store);
        ck_assert_uint_eq(count_files("state.db.new"), 0);
        empty_directory();
}

START_TEST(damaged_bytes)
{
        static const size_t sizes[] = { 1, 15, 16, 99, 100, 511, 512, 4096, 10000 };
        static char bytes[10000];
        size_t n = 0;
        char *good;

        srand(4);
        for (size_t i = 0; i < sizeof(bytes); i++)
                bytes[i] = (char) rand();
        for (size_t i = 0; i < ELEMENTS(sizes); i++) {
                write_file("state.db", bytes, sizes[i]);
                check_moved_aside("random bytes");
        }
        memset(bytes, 0, sizeof(bytes));
        for (size_t i = 0; i < ELEMENTS(sizes); i++) {
                write_file("state.db", bytes, sizes[i]);
                check_moved_aside("zeros");
        }
        write_file("state.db", "", 0);
        check_moved_aside("empty");
        make_good();
        good = read_file(path_of("state.db"), &n);
        ck_assert_uint_ge(n, 10 * 4096);
        for (size_t cut = 1; cut < n; cut += 1777) {
                write_file("state.db", good, n - cut);
                check_moved_aside("truncated");
        }
        for (size_t page = 0; page < n; page += 4096) {
                char *zeroed = arena_alloc_array(arena, n, 1);

                memcpy(zeroed, good, n);
                memset(zeroed + page, 0, 4096);
                write_file("state.db", zeroed, n);
                check_moved_aside("zeroed page");
        }
}
END_TEST

#define ID    "PRAGMA application_id = 1886086521;"
#define TABLE "CREATE TABLE record(key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;"

/* Databases, but not pkeyd's. */
static const char *const foreign[] = {
        "CREATE TABLE other(a, b)",
        "PRAGMA user_version = 99; CREATE TABLE other(a, b)",
        "PRAGMA user_version = 1;" TABLE,
        ID "PRAGMA user_version = -1;" TABLE,
        ID "PRAGMA user_version = 1",
        ID "PRAGMA user_version = 1; CREATE TABLE record(key TEXT PRIMARY KEY, value BLOB)",
        ID "PRAGMA user_version = 1; CREATE VIEW record AS SELECT '' AS key, x'' AS value",
        ID "PRAGMA user_version = 1;" TABLE "CREATE TABLE other(a)",
        ID "PRAGMA user_version = 1;" TABLE "CREATE INDEX other ON record(value)",
        ID "PRAGMA user_version = 1;" TABLE
           "CREATE TRIGGER other AFTER INSERT ON record BEGIN DELETE FROM record; END",
};

START_TEST(foreign_databases)
{
        exec_other(foreign[_i]);
        check_moved_aside(foreign[_i]);
}
END_TEST

/* The same statements without a change are accepted, so the databases above are refused for their changes. */
START_TEST(own_database)
{
        exec_other(ID "PRAGMA user_version = 1;" TABLE "INSERT INTO record VALUES('a', x'31')");
        store = open_store();
        ck_assert_str_eq(dump(store), "a=1;");
        ck_assert_int_eq(ask_other("PRAGMA user_version"), STORE_SCHEMA_VERSION);
        ck_assert_int_eq(ask_other("SELECT journal_mode = 'wal' FROM pragma_journal_mode"), 1);
}
END_TEST

/* A file format that this SQLite can read but not write: byte 18 of the header. */
START_TEST(header_says_read_only)
{
        size_t n = 0;
        char *bytes;

        make_good();
        bytes = read_file(path_of("state.db"), &n);
        bytes[18] = 3;
        write_file("state.db", bytes, n);
        check_moved_aside("write version");
}
END_TEST

/* After random damage the store opens, and loading it returns records or -EUCLEAN. */
START_TEST(random_damage)
{
        unsigned n_moved = 0, n_kept = 0;
        const char *good;
        size_t n = 0;

        make_good();
        good = read_file(path_of("state.db"), &n);
        srand(5);
        for (unsigned round = 0; round < 150; round++) {
                _cleanup_text_ struct text text = {};
                char *bytes = arena_alloc_array(arena, n, 1), *damaged = NULL;
                int r;

                memcpy(bytes, good, n);
                for (unsigned i = 0; i < 1 + round / 20; i++)
                        bytes[(size_t) rand() % (round % 3 ? n : 4096)] = (char) rand();
                write_file("state.db", bytes, n);
                r = try_open(&store, &damaged);
                if (r == -EPROTONOSUPPORT)
                        continue; /* the damage may also raise the version */
                ck_assert_int_eq(r, 0);
                r = store_load(store, add_text, &text);
                ck_assert(r == 0 || (r == -EUCLEAN && !damaged));
                n_moved += damaged != NULL;
                n_kept += !damaged;
                free(damaged);
                store = store_close(store);
                empty_directory();
        }
        ck_assert_uint_gt(n_moved, 10);
        ck_assert_uint_gt(n_kept, 10);
}
END_TEST

START_TEST(newer_version)
{
        const char *bytes;
        size_t n = 0;

        make_good();
        exec_other("PRAGMA user_version = 2; CREATE TABLE other(a); PRAGMA wal_checkpoint(TRUNCATE)");
        bytes = read_file(path_of("state.db"), &n);
        check_refused(-EPROTONOSUPPORT);
        check_same_bytes(path_of("state.db"), bytes, n);
        ck_assert_uint_eq(count_files("state.db.damaged"), 0);
        exec_other("DROP TABLE other; PRAGMA user_version = 1");
        store = open_store();
        ck_assert_ptr_nonnull(strstr(dump(store), "k/199=v"));
}
END_TEST

/* A database of another process whose records are still in its -wal. */
static void leave_wal(void)
{
        int reports;
        unsigned n;
        pid_t pid = start_numbered(1, &reports);

        ck_assert_int_eq(read(reports, &n, sizeof(n)), sizeof(n));
        ck_assert_int_eq(kill(pid, SIGKILL), 0);
        ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
        close(reports);
        ck_assert(exists(path_of("state.db-wal")));
}

START_TEST(moved_with_its_wal)
{
        const char *damaged = NULL, *bytes, *wal;
        size_t n = 0, n_wal = 0;

        make_good();
        leave_wal();
        write_file("state.db", "damaged", 7);
        bytes = read_file(path_of("state.db"), &n);
        wal = read_file(path_of("state.db-wal"), &n_wal);
        ck_assert_uint_gt(n_wal, 0);
        store = open_damaged(&damaged);
        ck_assert_str_eq(dump(store), "");
        check_same_bytes(damaged, bytes, n);
        check_same_bytes(arena_printf(arena, "%s-wal", damaged), wal, n_wal);
        ck_assert(exists(arena_printf(arena, "%s-shm", damaged)));
}
END_TEST

/* SQLite would delete the -wal of an empty file. */
START_TEST(emptied_beside_its_wal)
{
        const char *damaged = NULL, *wal;
        size_t n = 0;

        leave_wal();
        write_file("state.db", "", 0);
        wal = read_file(path_of("state.db-wal"), &n);
        store = open_damaged(&damaged);
        check_same_bytes(arena_printf(arena, "%s-wal", damaged), wal, n);
}
END_TEST

/* A -wal without its database is not used for a new one. */
START_TEST(wal_without_database)
{
        const char *damaged = NULL, *wal;
        size_t n = 0;

        leave_wal();
        wal = read_file(path_of("state.db-wal"), &n);
        ck_assert_int_eq(unlink(path_of("state.db")), 0);
        store = open_damaged(&damaged);
        ck_assert_str_eq(dump(store), "");
        check_same_bytes(arena_printf(arena, "%s-wal", damaged), wal, n);
}
END_TEST

/* No damaged database overwrites an older one, not even in the same second; the newest is reported. */
START_TEST(damaged_again_and_again)
{
        char *damaged, *before = NULL;

        for (unsigned i = 0; i < 5; i++) {
                size_t n = 0;

                write_file("state.db", "damaged", i + 1);
                damaged = NULL;
                ck_assert_int_eq(try_open(&store, &damaged), 0);
                ck_assert_ptr_nonnull(damaged);
                ck_assert(!before || strcmp(damaged, before) > 0);
                (void) read_file(damaged, &n);
                ck_assert_uint_eq(n, i + 1);
                ck_assert_uint_eq(count_files("state.db.damaged-"), i + 1);
                free(before);
                before = damaged;
                store = store_close(store);
        }
        free(before);
}
END_TEST

/* A process that was killed after it moved a database aside has not reported that. */
START_TEST(moved_aside_before)
{
        const char *damaged = NULL;

        write_file("state.db.damaged-20260101T000000Z", "old", 3);
        write_file("state.db.damaged-20260102T000000Z", "new", 3);
        write_file("state.db.damaged-20260102T000000Z-wal", "wal", 3);
        write_file("state.db.other", "", 0);
        store = open_damaged(&damaged);
        ck_assert_str_eq(damaged + strlen(dir), "/state.db.damaged-20260102T000000Z");
        store = store_close(store);
        store = open_store();
        ck_assert_uint_eq(count_files("state.db.damaged-"), 3);
}
END_TEST

/* The disk becomes full at each possible write. The first process that can open the store reports the damaged database, once. */
START_TEST(reported_once)
{
        unsigned n_full = 0, n_moved = 0;
        const char *damaged = NULL;
        int r;

        do {
                char *now = NULL;

                write_file("state.db", "damaged", 7);
                write_error = ENOSPC;
                writes_left = n_full;
                r = try_open(&store, &now);
                write_error = 0;
                ck_assert(r == 0 || (r == -ENOSPC && !now && !store));
                if (r < 0) {
                        n_moved += count_files("state.db.damaged-") > 0;
                        store = open_damaged(&damaged);
                } else {
                        ck_assert_ptr_nonnull(now);
                        free(now);
                }
                ck_assert_uint_eq(count_files("state.db.damaged-"), 1);
                store = store_close(store);
                store = open_store();
                store = store_close(store);
                empty_directory();
                n_full++;
        } while (r < 0);
        ck_assert_uint_gt(n_full, 3);
        ck_assert_uint_gt(n_moved, 0);
}
END_TEST

/* A damaged database is not moved while another process has it open. */
START_TEST(damaged_while_it_is_open)
{
        const char *damaged = NULL;
        char *bytes;
        size_t n = 0;

        make_good();
        store = open_store();
        bytes = read_file(path_of("state.db"), &n);
        memset(bytes + 2 * 4096, 0, 4096);
        write_file("state.db", bytes, n);
        check_refused(-EUCLEAN);
        ck_assert_uint_eq(count_files("state.db.damaged"), 0);
        store = store_close(store);
        store = open_damaged(&damaged);
}
END_TEST

/* While one process replaces the database no other one can open it. */
START_TEST(another_replaces_it)
{
        int fd;

        make_good();
        fd = open(dir, O_RDONLY | O_DIRECTORY);
        ck_assert_int_eq(flock(fd, LOCK_EX), 0);
        check_refused(-EBUSY);
        ck_assert_int_eq(flock(fd, LOCK_SH), 0);
        store = open_store();
        store = store_close(store);
        ck_assert_int_eq(unlink(path_of("state.db")), 0);
        check_refused(-EBUSY);
        close(fd);
        store = open_store();
}
END_TEST

static void check_useless(int error)
{
        ck_assert_int_eq(store_load(store, add_text, &(struct text) {}), error);
        ck_assert_int_eq(store_changed(store), error);
        ck_assert_int_eq(try_put(store, "a", "1"), error);
}

START_TEST(removed_while_it_is_open)
{
        make_good();
        store = open_store();
        ck_assert_int_eq(rename(path_of("state.db"), path_of("elsewhere")), 0);
        check_useless(-EUCLEAN);
        exec_other(ID "PRAGMA user_version = 1;" TABLE);
        check_useless(-EUCLEAN);
        store = store_close(store);
        store = open_store();
        put(store, "a", "1");
}
END_TEST

static int load_nothing(void *userdata, const char *key, const void *value, size_t n)
{
        (void) userdata;
        (void) key;
        (void) value;
        (void) n;
        return 0;
}

struct wrong_records {
        unsigned n_without_key, n_without_value, n_right;
};

static int count_wrong(void *userdata, const char *key, const void *value, size_t n)
{
        struct wrong_records *count = userdata;

        ck_assert(value || n == 0);
        count->n_without_key += !key;
        count->n_without_value += !value;
        count->n_right += key && value;
        return 0;
}

/* Keys and values that no transaction can have written are NULL, and do not hide other records. */
START_TEST(wrong_types)
{
        static const struct {
                const char *insert;
                bool has_key, has_value;
        } cases[] = {
                { "INSERT INTO record VALUES('a b', x'')", false, true },
                { "INSERT INTO record VALUES('', x'')", false, true },
                { "INSERT INTO record VALUES('a' || char(0) || 'b', x'')", false, true },
                { "INSERT INTO record VALUES(printf('%0201d', 1), x'')", false, true },
                { "INSERT INTO record VALUES('\xc3\xa4', x'')", false, true },
                { "INSERT INTO record VALUES(x'61', x'')", false, true },
                { "INSERT INTO record VALUES(x'', 'text')", false, false },
                { "INSERT INTO record VALUES('a', 'text')", true, false },
                { "INSERT INTO record VALUES('a', '')", true, false },
                { "INSERT INTO record VALUES('a', 1)", true, false },
                { "INSERT INTO record VALUES('a', 1.5)", true, false },
                { "INSERT INTO record VALUES('a', zeroblob(1048577))", true, false },
                { "INSERT INTO record VALUES('a', x'')", true, true },
        };

        make_good();
        store = open_store();
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct wrong_records good = {}, count = {};

                ck_assert_int_eq(store_load(store, count_wrong, &good), 0);
                ck_assert(good.n_right > 0 && good.n_without_key + good.n_without_value == 0);
                exec_other(cases[i].insert);
                ck_assert_int_eq(store_load(store, count_wrong, &count), 0);
                ck_assert_msg(count.n_without_key == !cases[i].has_key && count.n_without_value == !cases[i].has_value &&
                                      count.n_right == good.n_right + (cases[i].has_key && cases[i].has_value),
                              "%s", cases[i].insert);
                exec_other("DELETE FROM record WHERE key NOT LIKE 'k/%' OR typeof(key) <> 'text'");
        }
}
END_TEST

START_TEST(damage_noticed_later)
{
        char *bytes;
        size_t n = 0;

        make_good();
        store = open_store();
        /* a commit of another process, so that the store reads its pages again */
        exec_other("INSERT INTO record VALUES('l', x''); PRAGMA wal_checkpoint(TRUNCATE)");
        bytes = read_file(path_of("state.db"), &n);
        memset(bytes + 4096, 0xff, n - 4096);
        write_file("state.db", bytes, n);
        ck_assert_int_eq(store_load(store, load_nothing, NULL), -EUCLEAN);
        ck_assert_int_eq(try_put(store, "k/100", "1"), -EUCLEAN);
}
END_TEST

START_TEST(table_dropped_while_it_is_open)
{
        make_good();
        store = open_store();
        exec_other("DROP TABLE record");
        ck_assert_int_eq(store_load(store, load_nothing, NULL), -EUCLEAN);
        ck_assert_int_eq(try_put(store, "a", "1"), -EUCLEAN);
        exec_other(TABLE);
        put(store, "a", "1");
}
END_TEST

/* --- stores that cannot be opened --------------------------------------------------------------------------------------- */

START_TEST(not_a_file)
{
        struct stat st;

        ck_assert_int_eq(mkdir(path_of("state.db"), 0700), 0);
        check_refused(-EISDIR);
        ck_assert_int_eq(rmdir(path_of("state.db")), 0);
        ck_assert_int_eq(mkfifo(path_of("state.db"), 0600), 0);
        check_refused(-EINVAL);
        ck_assert_int_eq(unlink(path_of("state.db")), 0);
        ck_assert_int_eq(symlink("nowhere", path_of("state.db")), 0);
        check_refused(-ELOOP);
        ck_assert(!exists(path_of("nowhere")));
        ck_assert_int_eq(unlink(path_of("state.db")), 0);
        make_good();
        ck_assert_int_eq(rename(path_of("state.db"), path_of("good")), 0);
        ck_assert_int_eq(symlink("good", path_of("state.db")), 0);
        check_refused(-ELOOP);
        ck_assert_int_eq(lstat(path_of("state.db"), &st), 0);
        ck_assert(S_ISLNK(st.st_mode));
        ck_assert_uint_eq(count_files("state.db.damaged"), 0);
}
END_TEST

START_TEST(not_a_directory)
{
        struct store *s = NULL;
        char *damaged = NULL;

        ck_assert_int_eq(sqlite_store_open(path_of("absent"), BUSY_MSEC, STATE_SERVE, &s, &damaged), -ENOENT);
        write_file("file", "", 0);
        ck_assert_int_eq(sqlite_store_open(path_of("file"), BUSY_MSEC, STATE_SERVE, &s, &damaged), -ENOTDIR);
        ck_assert_ptr_null(s);
}
END_TEST

/* The state directory itself may be a symbolic link, as systemd makes them. */
START_TEST(directory_by_a_link)
{
        char link[128];

        make_good();
        snprintf(link, sizeof(link), "%s/link", top);
        ck_assert_int_eq(symlink("state", link), 0);
        ck_assert_int_eq(sqlite_store_open(link, BUSY_MSEC, STATE_SERVE, &store, &(char *) { NULL }), 0);
        ck_assert_ptr_nonnull(strstr(dump(store), "k/000=v"));
        ck_assert_int_eq(unlink(link), 0);
}
END_TEST

/* The result of opening the store in a process of an unprivileged user. */
static int open_as_user(void)
{
        struct store *s = NULL;
        char *damaged = NULL;
        int status, r;
        pid_t pid = fork();

        ck_assert_int_ge(pid, 0);
        if (pid == 0) {
                if (geteuid() == 0 && seteuid(65534) < 0)
                        _exit(0);
                r = try_open(&s, &damaged);
                _exit(damaged ? 0 : -r);
        }
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert(WIFEXITED(status));
        return -WEXITSTATUS(status);
}

START_TEST(no_permission)
{
        make_good();
        if (geteuid() == 0) {
                ck_assert_int_eq(chown(top, 65534, (gid_t) -1), 0);
                ck_assert_int_eq(chown(dir, 65534, (gid_t) -1), 0);
                ck_assert_int_eq(chown(path_of("state.db"), 65534, (gid_t) -1), 0);
        }
        ck_assert_int_eq(open_as_user(), 0);
        ck_assert_int_eq(chmod(path_of("state.db"), 0), 0);
        ck_assert_int_eq(open_as_user(), -EACCES);
        ck_assert_int_eq(chmod(path_of("state.db"), 0400), 0);
        ck_assert_int_eq(open_as_user(), -EACCES);
        ck_assert_int_eq(chmod(path_of("state.db"), 0600), 0);
        ck_assert_int_eq(chmod(dir, 0500), 0);
        ck_assert_int_eq(open_as_user(), -EACCES);
        ck_assert_int_eq(chmod(dir, 0700), 0);
        ck_assert_int_eq(open_as_user(), 0);
        ck_assert_uint_eq(count_files("state.db.damaged"), 0);
}
END_TEST

/* A disk that cannot be read or written is not damage of the database: nothing is moved. */
START_TEST(disk_fails_at_opening)
{
        make_good();
        read_error = EIO;
        check_refused(-EIO);
        read_error = 0;
        ck_assert_uint_eq(count_files("state.db.damaged"), 0);
        store = open_store();
        ck_assert_ptr_nonnull(strstr(dump(store), "k/199=v"));
}
END_TEST

START_TEST(disk_is_full_at_opening)
{
        const char *damaged = NULL;

        write_error = ENOSPC;
        check_refused(-ENOSPC);
        ck_assert_uint_eq(count_files(""), 0);
        write_file("state.db", "damaged", 7);
        check_refused(-ENOSPC);
        check_same_bytes(path_of("state.db"), "damaged", 7);
        ck_assert_uint_eq(count_files("state.db.damaged"), 0);
        write_error = 0;
        store = open_damaged(&damaged);
}
END_TEST

/* A new database is on the disk before it gets its name. */
START_TEST(new_one_is_synced)
{
        sync_error = EIO;
        check_refused(-EIO);
        ck_assert_uint_eq(count_files(""), 0);
}
END_TEST

/* --- memory runs out ---------------------------------------------------------------------------------------------------- */

/* Returns the first error. */
static int use_store(void)
{
        struct store *s = NULL;
        char *damaged = NULL;
        int r;

        r = try_open(&s, &damaged);
        if (r == 0)
                r = store_commit(s, &t);
        if (r == 0)
                r = store_load(s, load_nothing, NULL);
        if (r == 0)
                r = MIN(store_changed(s), 0);
        store_close(s);
        ck_assert_msg(!damaged, "allocation %u", failing);
        return r;
}

/* Each allocation fails once: that never counts as damage, and the store stays intact. */
static void fail_each(void)
{
        unsigned n_failed = 0;
        int r;

        store_put(begin(), "a", "1", 1);
        for (unsigned which = 1;; which++) {
                n_allocations = 0;
                failing = which;
                r = use_store();
                failing = 0;
                if (n_allocations < which)
                        break;
                /* SQLite works without some */
                ck_assert_msg(r == 0 || r == -ENOMEM || r == -EIO, "allocation %u: %s", which, strerror(-r));
                ck_assert_uint_eq(count_files("state.db.damaged"), 0);
                n_failed += r == -ENOMEM;
        }
        ck_assert_int_eq(r, 0);
        ck_assert_uint_gt(n_failed, 50);
}

START_TEST(memory_runs_out)
{
        make_good();
        fail_each();
        store = open_store();
        ck_assert_ptr_nonnull(strstr(dump(store), "a=1;"));
        ck_assert_ptr_nonnull(strstr(dump(store), "k/199=v"));
}
END_TEST

/* --- reading beside it ------------------------------------------------------------------------------------------------- */

/* "key=value;..." of the records with this prefix, in the arena. */
static const char *peek(const char *in, const char *prefix, int expected)
{
        _cleanup_text_ struct text text = {};
        int r = sqlite_store_peek(in, prefix, add_text, &text);

        ck_assert_msg(r == expected, "%s", strerror(-r));
        return text.n > 0 ? text_copy(arena, &text) : "";
}

START_TEST(peek_beside_a_store)
{
        sqlite3 *other;

        store = open_store();
        put(store, "k/1", "a");
        put(store, "k/2", "b");
        put(store, "j/1", "c");
        put(store, "k0", "d");
        ck_assert_str_eq(peek(dir, "k/", 0), "k/1=a;k/2=b;");
        ck_assert_str_eq(peek(dir, "i", 0), "");
        other = connect_other();
        exec(other, "BEGIN IMMEDIATE; DELETE FROM record");
        ck_assert_str_eq(peek(dir, "j", 0), "j/1=c;");
        exec(other, "ROLLBACK");
        ck_assert_int_eq(sqlite3_close(other), SQLITE_OK);
        ck_assert_str_eq(dump(store), "j/1=c;k/1=a;k/2=b;k0=d;");
}
END_TEST

/* Nobody has it open: nothing is created beside it, and no name of a directory is a problem. */
START_TEST(peek_alone)
{
        const char *strange = arena_printf(arena, "%s/a %%41?mode=rw#&'", top), *link = arena_printf(arena, "%s/link", top);

        store = open_store();
        put(store, "k/1", "a");
        store = store_close(store);
        ck_assert_str_eq(peek(dir, "k/", 0), "k/1=a;");
        ck_assert_uint_eq(count_files(""), 1);
        ck_assert_int_eq(symlink(dir, link), 0);
        ck_assert_str_eq(peek(link, "k/", 0), "k/1=a;");
        ck_assert_int_eq(unlink(link), 0);
        ck_assert_int_eq(rename(dir, strange), 0);
        ck_assert_str_eq(peek(strange, "k/", 0), "k/1=a;");
        (void) peek(dir, "k/", -ENOENT);
        ck_assert_int_eq(rename(strange, dir), 0);
}
END_TEST

static int stop(void *userdata, const char *key, const void *value, size_t n)
{
        (void) key;
        (void) value;
        (void) n;
        return ++*(int *) userdata;
}

START_TEST(peek_fails)
{
        int n = 0, dir_fd;

        (void) peek(dir, "k/", -ENOENT);
        ck_assert_uint_eq(count_files(""), 0);
        store = open_store();
        put(store, "k/1", "a");
        put(store, "k/2", "a");
        ck_assert_int_eq(sqlite_store_peek(dir, "k/", stop, &n), 1);
        ck_assert_int_eq(n, 1);
        store = store_close(store);
        dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        ck_assert_int_eq(flock(dir_fd, LOCK_EX), 0);
        (void) peek(dir, "k/", -EBUSY);
        ck_assert_int_eq(close(dir_fd), 0);
        exec_other("PRAGMA user_version = 2");
        (void) peek(dir, "k/", -EPROTONOSUPPORT);
        exec_other("PRAGMA user_version = 1; DROP TABLE record");
        (void) peek(dir, "k/", -EUCLEAN);
        write_file("state.db", "SQLite", 6);
        (void) peek(dir, "k/", -EUCLEAN);
        ck_assert_uint_eq(count_files("state.db.damaged"), 0);
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("sqlite_store");
        TCase *c = tcase_create("sqlite_store");
        SRunner *runner;
        int failed;

        if (!watch_the_memory())
                return EXIT_FAILURE;
        tcase_add_checked_fixture(c, setup, teardown);
        tcase_set_timeout(c, 300);
        tcase_add_test(c, made_with_mode_0600);
        tcase_add_test(c, records_come_back);
        tcase_add_test(c, replaced_and_deleted);
        tcase_add_test(c, nothing_to_commit);
        tcase_add_test(c, values_are_bytes);
        tcase_add_test(c, wrong_transactions);
        tcase_add_test(c, handler_ends_the_load);
        tcase_add_test(c, load_is_of_one_moment);
        tcase_add_test(c, changed_by_another);
        tcase_add_test(c, many_records);
        tcase_add_test(c, another_holds_the_lock);
        tcase_add_test(c, waits_for_the_lock);
        tcase_add_test(c, disk_fails);
        tcase_add_test(c, operation_fails);
        tcase_add_test(c, commit_syncs);
        tcase_add_test(c, killed_while_it_commits);
        tcase_add_test(c, killed_beside_another);
        tcase_add_test(c, killed_while_it_is_made);
        tcase_add_test(c, processes_at_the_same_time);
        tcase_add_test(c, damaged_bytes);
        tcase_add_loop_test(c, foreign_databases, 0, (int) ELEMENTS(foreign));
        tcase_add_test(c, own_database);
        tcase_add_test(c, header_says_read_only);
        tcase_add_test(c, random_damage);
        tcase_add_test(c, newer_version);
        tcase_add_test(c, moved_with_its_wal);
        tcase_add_test(c, emptied_beside_its_wal);
        tcase_add_test(c, wal_without_database);
        tcase_add_test(c, damaged_again_and_again);
        tcase_add_test(c, moved_aside_before);
        tcase_add_test(c, reported_once);
        tcase_add_test(c, damaged_while_it_is_open);
        tcase_add_test(c, another_replaces_it);
        tcase_add_test(c, removed_while_it_is_open);
        tcase_add_test(c, wrong_types);
        tcase_add_test(c, damage_noticed_later);
        tcase_add_test(c, table_dropped_while_it_is_open);
        tcase_add_test(c, not_a_file);
        tcase_add_test(c, not_a_directory);
        tcase_add_test(c, directory_by_a_link);
        tcase_add_test(c, no_permission);
        tcase_add_test(c, disk_fails_at_opening);
        tcase_add_test(c, disk_is_full_at_opening);
        tcase_add_test(c, new_one_is_synced);
        tcase_add_test(c, memory_runs_out);
        tcase_add_test(c, peek_beside_a_store);
        tcase_add_test(c, peek_alone);
        tcase_add_test(c, peek_fails);
        suite_add_tcase(suite, c);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
