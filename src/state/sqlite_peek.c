/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "state/sqlite_peek.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/file.h>

#include "shell/file.h"
#include "state/sqlite_files.h"
#include "util/text.h"

#define SELECT "SELECT key, value FROM record WHERE key >= ?1 AND key < ?2 ORDER BY key"

static void close_p(sqlite3 **db)
{
        (void) sqlite3_close(*db);
}
#define _cleanup_db_ _cleanup_(close_p)

static void finalize_p(sqlite3_stmt **st)
{
        (void) sqlite3_finalize(*st);
}
#define _cleanup_statement_ _cleanup_(finalize_p)

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

static int connect_to(const char *dir, int dir_fd, sqlite3 **ret)
{
        const int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE |
                          SQLITE_OPEN_NOFOLLOW;
        _cleanup_free_ char *path = realpath(dir, NULL); /* SQLite refuses a path with a symbolic link */
        _cleanup_text_ struct text uri = {};
        int r = path ? make_uri(path, dir_fd, &uri) : -errno;

        if (r < 0)
                return r;
        if (sqlite3_open_v2(uri.bytes, ret, flags, NULL) != SQLITE_OK)
                return -EIO;
        (void) sqlite3_db_config(*ret, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        (void) sqlite3_db_config(*ret, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
        (void) sqlite3_db_config(*ret, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
        return 0;
}

static int check_version(sqlite3 *db)
{
        _cleanup_statement_ sqlite3_stmt *st = NULL;

        if (sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &st, NULL) != SQLITE_OK || sqlite3_step(st) != SQLITE_ROW)
                return -EIO;
        return sqlite3_column_int(st, 0) <= STORE_SCHEMA_VERSION ? 0 : -EPROTONOSUPPORT; /* 0: pkeyd has not opened it yet */
}

/* The first key after all that begin with the prefix. */
static void name_end(const char *prefix, char ret[STORE_KEY_MAX + 1])
{
        size_t n = strnlen(prefix, STORE_KEY_MAX);

        memcpy(ret, prefix, n);
        ret[n] = '\0';
        if (n > 0)
                ret[n - 1]++;
}

static int load(sqlite3 *db, const char *prefix, store_record_handler each, void *userdata)
{
        _cleanup_statement_ sqlite3_stmt *st = NULL;
        char end[STORE_KEY_MAX + 1];
        int code;

        name_end(prefix, end);
        if (sqlite3_prepare_v2(db, SELECT, -1, &st, NULL) != SQLITE_OK ||
            sqlite3_bind_text(st, 1, prefix, -1, SQLITE_STATIC) != SQLITE_OK ||
            sqlite3_bind_text(st, 2, end, -1, SQLITE_STATIC) != SQLITE_OK)
                return -EIO;
        while ((code = sqlite3_step(st)) == SQLITE_ROW) {
                const void *value = sqlite3_column_blob(st, 1);
                int r = each(userdata, (const char *) sqlite3_column_text(st, 0), value, (size_t) sqlite3_column_bytes(st, 1));

                if (r != 0)
                        return r;
        }
        return code == SQLITE_DONE ? 0 : -EIO;
}

int sqlite_peek(const char *dir, const char *prefix, store_record_handler each, void *userdata)
{
        _cleanup_close_ int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        _cleanup_db_ sqlite3 *db = NULL;

        if (dir_fd < 0)
                return -errno;
        /* shared, as every open store has it: no process moves the database away meanwhile */
        return sqlite_files_lock(dir_fd, LOCK_SH, 0) ?: connect_to(dir, dir_fd, &db) ?: check_version(db) ?:
               load(db, prefix, each, userdata);
}
