/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "state/sqlite_store.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/file.h>

#include "shell/file.h"
#include "state/sqlite_files.h"
#include "util/text.h"

#define STRING(x)  STRING_(x)
#define STRING_(x) #x

/* "pkey": marks a database as pkeyd's, of any version. */
#define APPLICATION_ID 1886086521
#define RECORDS        "CREATE TABLE record(key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID"

/* Not in WAL mode yet: the whole database is in one file, which is then renamed. Its version stays 0 until accept_new(). */
#define CREATE                                                                                                         \
        "PRAGMA synchronous = FULL; BEGIN IMMEDIATE; PRAGMA application_id = " STRING(APPLICATION_ID) ";"              \
        RECORDS "; COMMIT"
#define SET_VERSION "PRAGMA user_version = " STRING(STORE_SCHEMA_VERSION)

/* Changes with each commit of another connection. */
#define DATA_VERSION "PRAGMA data_version"

/* After a large transaction the -wal is truncated to the size limit. */
#define CONFIGURE                                                                                                      \
        "PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY; PRAGMA synchronous = FULL;"                          \
        "PRAGMA journal_size_limit = 4194304"

enum statement {
        STATEMENT_BEGIN,
        STATEMENT_COMMIT,
        STATEMENT_ROLLBACK,
        STATEMENT_PUT,
        STATEMENT_DELETE,
        STATEMENT_LOAD,
        STATEMENT_LOAD_RANGE,
        N_STATEMENTS,
};

static const char *const sql[N_STATEMENTS] = {
        [STATEMENT_BEGIN] = "BEGIN IMMEDIATE",
        [STATEMENT_COMMIT] = "COMMIT",
        [STATEMENT_ROLLBACK] = "ROLLBACK",
        [STATEMENT_PUT] = "INSERT OR REPLACE INTO record(key, value) VALUES(?1, ?2)",
        [STATEMENT_DELETE] = "DELETE FROM record WHERE key = ?1",
        [STATEMENT_LOAD] = "SELECT key, value FROM record ORDER BY key",
        [STATEMENT_LOAD_RANGE] = "SELECT key, value FROM record WHERE key >= ?1 AND key < ?2 ORDER BY key",
};

struct sqlite_store {
        struct store store; /* first */
        char *dir; /* without symbolic links: SQLite refuses a path that has one */
        int dir_fd; /* also holds the lock of the directory */
        unsigned busy_msec;
        enum state_access access;
        sqlite3 *db; /* NULL: not connected */
        sqlite3_stmt *statements[N_STATEMENTS];
        int64_t data_version; /* as it was last read */
        bool loading;
};

static struct sqlite_store *of_store(struct store *s)
{
        return (struct sqlite_store *) s;
}

/* --- errors ------------------------------------------------------------------------------------------------------- */

/* An admin can act on the errors that are named here; the others become -EIO. Callers set errno to 0 first, since SQLite's own copy
 * of errno may be from an earlier error. */
static int io_error(int code)
{
        if (code == SQLITE_IOERR_NOMEM)
                return -ENOMEM;
        return errno == ENOSPC || errno == EDQUOT || errno == EROFS ? -errno : -EIO;
}

static int error_of(sqlite3 *db, int code)
{
        switch (code & 0xff) {
        case SQLITE_OK:
        case SQLITE_ROW:
        case SQLITE_DONE:
                return 0;
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
        case SQLITE_PROTOCOL: /* other processes won each race for a lock */
                return -EBUSY;
        case SQLITE_NOMEM:
                return -ENOMEM;
        case SQLITE_FULL:
                return -ENOSPC;
        case SQLITE_READONLY:
                return -EROFS;
        case SQLITE_IOERR:
                return io_error(code);
        case SQLITE_CANTOPEN:
                return sqlite3_system_errno(db) ? -sqlite3_system_errno(db) : -EIO;
        /* All statements are constant, so one that is wrong means that the tables are not pkeyd's. */
        case SQLITE_ERROR:
        case SQLITE_SCHEMA:
        case SQLITE_CONSTRAINT:
        case SQLITE_MISMATCH:
        case SQLITE_CORRUPT:
        case SQLITE_NOTADB:
                return -EUCLEAN;
        default:
                return -EIO;
        }
}

/* --- statements --------------------------------------------------------------------------------------------------- */

static void finalize_p(sqlite3_stmt **st)
{
        (void) sqlite3_finalize(*st);
}
#define _cleanup_statement_ _cleanup_(finalize_p)

/* Prepares a statement and steps to its first row. All of these queries have one in a sound database; else it is -EUCLEAN. */
static int query(sqlite3 *db, const char *text, sqlite3_stmt **ret)
{
        _cleanup_statement_ sqlite3_stmt *st = NULL;
        int code = sqlite3_prepare_v2(db, text, -1, &st, NULL);

        if (code == SQLITE_OK)
                code = sqlite3_step(st);
        if (code != SQLITE_ROW)
                return error_of(db, code) ?: -EUCLEAN;
        *ret = STEAL(st);
        return 0;
}

static int query_number(sqlite3 *db, const char *text, int64_t *ret)
{
        _cleanup_statement_ sqlite3_stmt *st = NULL;
        int r = query(db, text, &st);

        if (r == 0)
                *ret = sqlite3_column_int64(st, 0);
        return r;
}

/* Runs statements without parameters. */
static int execute(sqlite3 *db, const char *text)
{
        return error_of(db, sqlite3_exec(db, text, NULL, NULL, NULL));
}

/* Runs a prepared statement without rows, whose parameters are bound. */
static int run(struct sqlite_store *s, enum statement which)
{
        int r = error_of(s->db, sqlite3_step(s->statements[which]));

        (void) sqlite3_reset(s->statements[which]);
        (void) sqlite3_clear_bindings(s->statements[which]);
        return r;
}

static int prepare(struct sqlite_store *s)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < N_STATEMENTS; i++)
                r = error_of(s->db, sqlite3_prepare_v3(s->db, sql[i], -1, SQLITE_PREPARE_PERSISTENT, &s->statements[i], NULL));
        return r;
}

/* --- the connection ----------------------------------------------------------------------------------------------- */

static void disconnect(struct sqlite_store *s)
{
        for (size_t i = 0; i < N_STATEMENTS; i++) {
                (void) sqlite3_finalize(s->statements[i]);
                s->statements[i] = NULL;
        }
        (void) sqlite3_close(s->db);
        s->db = NULL;
}

/* Until the database was checked, closing it must not write its -wal into it: it may have to be moved aside as it is. */
static int open_connection(const char *name, int flags, sqlite3 **ret)
{
        int code = sqlite3_open_v2(name, ret, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_NOFOLLOW, NULL);

        if (code == SQLITE_OK) {
                (void) sqlite3_extended_result_codes(*ret, 1);
                (void) sqlite3_db_config(*ret, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
                (void) sqlite3_db_config(*ret, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
                (void) sqlite3_db_config(*ret, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
        }
        return code;
}

static int connect_to(struct sqlite_store *s, const char *name)
{
        _cleanup_free_ char *path = file_path(s->dir, name);
        int code;

        if (!path)
                return -ENOMEM;
        code = open_connection(path, SQLITE_OPEN_READWRITE, &s->db);
        if (!s->db)
                return -ENOMEM;
        if (code == SQLITE_OK)
                code = sqlite3_busy_timeout(s->db, (int) s->busy_msec);
        return error_of(s->db, code);
}

static int check_version(sqlite3 *db, bool *ret_is_new)
{
        int64_t id = 0, version = 0;
        int r = query_number(db, "PRAGMA application_id", &id) ?: query_number(db, "PRAGMA user_version", &version);

        if (r < 0)
                return r;
        if (id == APPLICATION_ID && version > STORE_SCHEMA_VERSION)
                return -EPROTONOSUPPORT;
        *ret_is_new = version == 0;
        return id == APPLICATION_ID && (version == STORE_SCHEMA_VERSION || version == 0) ? 0 : -EUCLEAN;
}

/* Only the one table is allowed, because a trigger or a view could change what our statements do. */
static int check_schema(sqlite3 *db)
{
        static const char text[] = "SELECT count(*) = 1 AND max(type = 'table' AND name = 'record' AND sql = '" RECORDS
                                   "') FROM sqlite_master";
        int64_t is_ours = 0;
        int r = query_number(db, text, &is_ours);

        return r == 0 && !is_ours ? -EUCLEAN : r;
}

/* quick_check reports a page that could not be read as damage. But then the disk or the memory has failed, and the next try may
 * succeed. */
static int quick_check(sqlite3 *db)
{
        _cleanup_statement_ sqlite3_stmt *st = NULL;
        const char *text;
        int r = query(db, "PRAGMA quick_check(1)", &st);

        if (r < 0)
                return r;
        text = (const char *) sqlite3_column_text(st, 0);
        if (!text)
                return -ENOMEM;
        if (strcmp(text, "ok") == 0)
                return 0;
        return strstr(text, "get page") || strstr(text, "get the page") ? -EIO : -EUCLEAN;
}

/* SQLite reads an incomplete last page as if zeros followed, which quick_check does not notice. */
static int check_size(struct sqlite_store *s)
{
        int64_t page_size = 0;
        int r = query_number(s->db, "PRAGMA page_size", &page_size);

        return r == 0 && !sqlite_files_is_whole(s->dir_fd, page_size) ? -EUCLEAN : r;
}

static int set_wal_mode(sqlite3 *db)
{
        _cleanup_statement_ sqlite3_stmt *st = NULL;
        const char *mode;
        int r = query(db, "PRAGMA journal_mode = WAL", &st);

        if (r < 0)
                return r;
        mode = (const char *) sqlite3_column_text(st, 0);
        return mode && strcmp(mode, "wal") == 0 ? 0 : -EOPNOTSUPP;
}

/* Returns 0 if the database is sound and belongs to pkeyd. */
static int check_database(struct sqlite_store *s, bool *ret_is_new)
{
        int r = check_version(s->db, ret_is_new) ?: execute(s->db, CONFIGURE) ?: check_schema(s->db) ?: check_size(s) ?:
                quick_check(s->db);

        /* The file itself can be written, so its header is wrong. */
        return r == 0 && sqlite3_db_readonly(s->db, "main") != 0 ? -EUCLEAN : r;
}

static int find_damaged(const struct sqlite_store *s, char **ret)
{
        _cleanup_free_ char *name = NULL;
        int r = sqlite_files_newest_damaged(s->dir_fd, &name);

        if (r < 0 || !name)
                return r;
        *ret = file_path(s->dir, name);
        return *ret ? 0 : -ENOMEM;
}

/* Reports the database that was moved aside, and sets the version. If a process is killed or the disk is full before that, or pkeyd
 * is to report it, too, the version stays 0 and the next process reports it. */
static int accept_new(struct sqlite_store *s, char **ret_damaged)
{
        _cleanup_free_ char *damaged = NULL;
        int r = find_damaged(s, &damaged);

        if (r == 0 && (!damaged || s->access == STATE_SERVE))
                r = execute(s->db, SET_VERSION);
        if (r == 0)
                *ret_damaged = STEAL(damaged);
        return r;
}

/* -ENOENT: there is no database; -EUCLEAN: it is damaged. */
static int open_database(struct sqlite_store *s, char **ret_damaged)
{
        bool is_new = false;
        int r = sqlite_files_check(s->dir_fd);

        errno = 0;
        r = r ?: connect_to(s, SQLITE_FILES_NAME) ?: check_database(s, &is_new) ?: set_wal_mode(s->db) ?: prepare(s);
        if (r == 0 && is_new && s->access != STATE_READ)
                r = accept_new(s, ret_damaged);
        r = r ?: query_number(s->db, DATA_VERSION, &s->data_version);
        if (r == 0)
                (void) sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
        else
                disconnect(s);
        return r;
}

/* --- a new database ----------------------------------------------------------------------------------------------- */

static int create_new(struct sqlite_store *s)
{
        int r = sqlite_files_make_new(s->dir_fd);

        errno = 0;
        r = r ?: connect_to(s, SQLITE_FILES_NAME_NEW) ?: execute(s->db, CREATE);
        disconnect(s);
        if (r < 0)
                sqlite_files_remove_new(s->dir_fd);
        return r;
}

/* Replaces the database by an empty one. That is complete before anything is moved, so on a full disk nothing changes. */
static int replace_database(struct sqlite_store *s, char **ret_damaged)
{
        return create_new(s) ?: sqlite_files_replace(s->dir_fd) ?: open_database(s, ret_damaged);
}

/* Opens or replaces the database while no other process uses it. `why`: the error of open_database() before that. */
static int open_exclusively(struct sqlite_store *s, int why, char **ret_damaged)
{
        int r = sqlite_files_lock(s->dir_fd, LOCK_EX, s->busy_msec);

        if (r < 0)
                return r == -EBUSY && why == -EUCLEAN ? why : r;
        r = open_database(s, ret_damaged); /* another process may have replaced it by now */
        if (r == -ENOENT || r == -EUCLEAN)
                r = replace_database(s, ret_damaged);
        return r < 0 ? r : sqlite_files_lock(s->dir_fd, LOCK_SH, s->busy_msec);
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* An admin may remove or replace the files without taking the lock. */
static int check_in_place(struct sqlite_store *s)
{
        int moved = 0, code = sqlite3_file_control(s->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved);

        return code == SQLITE_OK && moved ? -EUCLEAN : error_of(s->db, code);
}

/* *ret is NULL if the column does not hold a valid key. */
static int read_key(sqlite3_stmt *st, const char **ret)
{
        const char *key;

        *ret = NULL;
        if (sqlite3_column_type(st, 0) != SQLITE_TEXT) /* before reading it, since that converts it to text */
                return 0;
        key = (const char *) sqlite3_column_text(st, 0);
        if (!key)
                return -ENOMEM;
        if (strlen(key) == (size_t) sqlite3_column_bytes(st, 0) && store_key_is_valid(key))
                *ret = key;
        return 0;
}

/* Calls `each` with NULL for what no transaction can have written. */
static int pass_record(sqlite3_stmt *st, store_record_handler each, void *userdata)
{
        bool is_value = sqlite3_column_type(st, 1) == SQLITE_BLOB;
        const void *value;
        const char *key;
        size_t n;
        int r = read_key(st, &key);

        if (r < 0)
                return r;
        value = is_value ? sqlite3_column_blob(st, 1) : NULL;
        n = is_value ? (size_t) sqlite3_column_bytes(st, 1) : 0;
        if (!value && n > 0)
                return -ENOMEM;
        if (!is_value || n > STORE_VALUE_MAX)
                return each(userdata, key, NULL, 0);
        return each(userdata, key, value ?: "", n);
}

static int pass_records(sqlite3_stmt *st, store_record_handler each, void *userdata)
{
        int code;

        while ((code = sqlite3_step(st)) == SQLITE_ROW) {
                int r = pass_record(st, each, userdata);

                if (r != 0)
                        return r;
        }
        return error_of(sqlite3_db_handle(st), code);
}

static int load_by(struct sqlite_store *s, enum statement which, store_record_handler each, void *userdata)
{
        sqlite3_stmt *st = s->statements[which];
        int r;

        s->loading = true;
        r = check_in_place(s) ?: pass_records(st, each, userdata);
        s->loading = false;
        (void) sqlite3_reset(st);
        return r;
}

static int load(struct store *store, const char *first, const char *end, store_record_handler each, void *userdata)
{
        struct sqlite_store *s = of_store(store);
        sqlite3_stmt *st = s->statements[STATEMENT_LOAD_RANGE];
        int code;

        assert(!s->loading);
        errno = 0;
        if (!first)
                return load_by(s, STATEMENT_LOAD, each, userdata);
        code = sqlite3_bind_text(st, 1, first, -1, SQLITE_STATIC);
        if (code == SQLITE_OK)
                code = sqlite3_bind_text(st, 2, end, -1, SQLITE_STATIC);
        return code == SQLITE_OK ? load_by(s, STATEMENT_LOAD_RANGE, each, userdata) : error_of(s->db, code);
}

static int changed(struct store *store)
{
        struct sqlite_store *s = of_store(store);
        int64_t version = 0;
        int r;

        assert(!s->loading);
        errno = 0;
        r = check_in_place(s) ?: query_number(s->db, DATA_VERSION, &version);
        if (r < 0)
                return r;
        r = version != s->data_version;
        s->data_version = version;
        return r;
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

static int run_op(struct sqlite_store *s, const struct store_op *op)
{
        enum statement which = op->value ? STATEMENT_PUT : STATEMENT_DELETE;
        int code = sqlite3_bind_text(s->statements[which], 1, op->key, -1, SQLITE_STATIC);

        if (code == SQLITE_OK && op->value)
                code = sqlite3_bind_blob64(s->statements[which], 2, op->value, op->n, SQLITE_STATIC);
        return code == SQLITE_OK ? run(s, which) : error_of(s->db, code);
}

/* To be called between BEGIN and COMMIT. */
static int run_ops(struct sqlite_store *s, const struct store_transaction *t)
{
        int r = check_in_place(s);

        for (size_t i = 0; r == 0 && i < t->n; i++)
                r = run_op(s, &t->ops[i]);
        return r;
}

static int commit(struct store *store, const struct store_transaction *t)
{
        struct sqlite_store *s = of_store(store);
        int r = t->error;

        assert(!s->loading);
        errno = 0;
        if (r < 0 || t->n == 0)
                return r;
        r = run(s, STATEMENT_BEGIN) ?: run_ops(s, t) ?: run(s, STATEMENT_COMMIT);
        /* SQLite rolls back by itself after some errors. */
        if (!sqlite3_get_autocommit(s->db))
                (void) run(s, STATEMENT_ROLLBACK);
        return r;
}

/* --- opening and closing ------------------------------------------------------------------------------------------ */

static struct store *close_store(struct store *store)
{
        struct sqlite_store *s = of_store(store);

        disconnect(s);
        if (s->dir_fd >= 0)
                (void) close(s->dir_fd);
        free(s->dir);
        free(s);
        return NULL;
}

static const struct store_operations operations = { .load = load, .commit = commit, .changed = changed, .close = close_store };

static int open_store(struct sqlite_store *s, const char *dir, char **ret_damaged)
{
        int r;

        s->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (s->dir_fd < 0)
                return -errno;
        s->dir = realpath(dir, NULL);
        if (!s->dir)
                return -errno;
        r = sqlite_files_lock(s->dir_fd, LOCK_SH, s->busy_msec) ?: open_database(s, ret_damaged);
        return s->access != STATE_READ && (r == -ENOENT || r == -EUCLEAN) ? open_exclusively(s, r, ret_damaged) : r;
}

int sqlite_store_open(const char *dir, unsigned busy_msec, enum state_access access, struct store **ret, char **ret_damaged)
{
        struct sqlite_store *s = calloc(1, sizeof(*s));
        _cleanup_store_ struct store *store = s ? &s->store : NULL;
        _cleanup_free_ char *damaged = NULL;
        int r;

        if (!s)
                return -ENOMEM;
        *s = (struct sqlite_store) { .store.operations = &operations, .busy_msec = busy_msec, .access = access, .dir_fd = -1 };
        r = open_store(s, dir, &damaged);
        if (r < 0)
                return r;
        *ret_damaged = STEAL(damaged);
        *ret = STEAL(store);
        return 0;
}

/* --- reading beside it -------------------------------------------------------------------------------------------- */

static void close_p(sqlite3 **db)
{
        (void) sqlite3_close(*db);
}

/* Without a -wal no process has the database open, and it is complete. Then it is opened as immutable, because SQLite would create
 * a -wal and leave it behind. */
static int make_uri(const char *dir, int dir_fd, struct text *ret)
{
        bool in_use = faccessat(dir_fd, SQLITE_FILES_NAME "-wal", F_OK, 0) == 0;

        text_add(ret, "file:");
        for (const char *p = dir; *p; p++)
                text_add(ret, isalnum((unsigned char) *p) || *p == '/' ? "%c" : "%%%02x", (unsigned char) *p);
        text_add(ret, "/" SQLITE_FILES_NAME "?mode=ro%s", in_use ? "" : "&immutable=1");
        return ret->failed ? -ENOMEM : 0;
}

static int connect_beside(const char *dir, int dir_fd, sqlite3 **ret)
{
        _cleanup_free_ char *path = realpath(dir, NULL);
        _cleanup_text_ struct text uri = {};
        int r = path ? make_uri(path, dir_fd, &uri) : -errno;
        int64_t version = 0;
        int code;

        if (r < 0)
                return r;
        code = open_connection(uri.bytes, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, ret);
        r = error_of(*ret, code) ?: query_number(*ret, "PRAGMA user_version", &version);
        return r == 0 && version > STORE_SCHEMA_VERSION ? -EPROTONOSUPPORT : r; /* 0: pkeyd has not opened it yet */
}

/* All keys are ASCII. */
static int pass_prefix(sqlite3 *db, const char *prefix, store_record_handler each, void *userdata)
{
        static const char text[] = "SELECT key, value FROM record WHERE key >= ?1 AND key < ?1 || char(127) ORDER BY key";
        _cleanup_statement_ sqlite3_stmt *st = NULL;
        int code = sqlite3_prepare_v2(db, text, -1, &st, NULL);

        if (code == SQLITE_OK)
                code = sqlite3_bind_text(st, 1, prefix, -1, SQLITE_STATIC);
        return code == SQLITE_OK ? pass_records(st, each, userdata) : error_of(db, code);
}

int sqlite_store_peek(const char *dir, const char *prefix, store_record_handler each, void *userdata)
{
        _cleanup_close_ int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        _cleanup_(close_p) sqlite3 *db = NULL;

        if (dir_fd < 0)
                return -errno;
        errno = 0;
        /* shared, as every open store has it: no process moves the database away meanwhile */
        return sqlite_files_lock(dir_fd, LOCK_SH, 0) ?: connect_beside(dir, dir_fd, &db) ?: pass_prefix(db, prefix, each, userdata);
}
