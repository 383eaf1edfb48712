/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "state/state_copy.h"

#include <errno.h>
#include <string.h>
#include <sys/file.h>

#include "etcd/etcd_store.h"
#include "shell/file.h"
#include "state/directory_lock.h"
#include "state/sqlite_files.h"
#include "state/sqlite_store.h"

struct both {
        struct store *sqlite, *etcd;
        int runs_fd, lock_fd;
};

static int open_both(struct both *b, const char *dir, const struct etcd_config *etcd, struct state_copy *c)
{
        _cleanup_free_ char *damaged = NULL;
        int r = directory_lock_take(dir, DIRECTORY_LOCK_RUNS, LOCK_EX, &b->runs_fd, c->holder) ?:
                directory_lock_take(dir, DIRECTORY_LOCK_WRITES, LOCK_EX, &b->lock_fd, c->holder);

        r = r ?: sqlite_store_open(dir, SQLITE_STORE_BUSY_MSEC, STATE_SERVE, &b->sqlite, &damaged);
        if (r == 0 && damaged)
                r = -EUCLEAN;
        r = r ?: etcd_store_open(etcd, NULL, &b->etcd, &c->problem);
        return r ?: etcd_store_lock(b->etcd, c->holder) ?: etcd_store_find_running(b->etcd, c->holder);
}

static void close_both(struct both *b)
{
        b->sqlite = store_close(b->sqlite);
        b->etcd = store_close(b->etcd);
        if (b->lock_fd >= 0)
                directory_lock_release(b->lock_fd);
        if (b->runs_fd >= 0)
                directory_lock_release(b->runs_fd);
}

/* --- the records ------------------------------------------------------------------------------------------------------ */

static int add_record(void *userdata, const char *key, const void *value, size_t n)
{
        if (!key || !value)
                return -EBADMSG;
        store_put(userdata, key, value, n);
        return 0;
}

/* The records that are expected next. */
struct comparison {
        const struct store_op *next, *end;
};

static int compare_record(void *userdata, const char *key, const void *value, size_t n)
{
        struct comparison *c = userdata;
        const struct store_op *op = c->next;

        if (op == c->end || !key || !value || strcmp(op->key, key) != 0 || op->n != n || memcmp(op->value, value, n) != 0)
                return -ENOTEMPTY;
        c->next++;
        return 0;
}

/* An earlier copy may have ended after its commit. Returns 0 if the store has exactly these records, or -ENOTEMPTY. */
static int check_copied(struct store *to, const struct store_transaction *t)
{
        struct comparison c = { t->ops, t->ops + t->n };
        int r = store_load(to, compare_record, &c);

        return r == 0 && c.next != c.end ? -ENOTEMPTY : r;
}

static int copy_records(struct store *from, struct store *to, struct state_copy *c)
{
        _cleanup_arena_ struct arena *a = arena_new();
        struct store_transaction t;
        int r = a ? store_is_empty(to) : -ENOMEM;
        bool is_empty = r > 0;

        if (r < 0)
                return r;
        store_transaction_init(&t, a);
        r = store_load(from, add_record, &t) ?: t.error;
        if (r == 0 && is_empty && t.n == 0)
                r = -ENOENT;
        if (r == 0)
                r = is_empty ? store_commit(to, &t) : check_copied(to, &t);
        c->n = t.n;
        return r;
}

/* --- the directory ---------------------------------------------------------------------------------------------------- */

/* To be called after the database was closed: that leaves no -wal. */
static int rename_database(const char *dir, struct state_copy *c)
{
        _cleanup_free_ char *path = file_path(dir, SQLITE_FILES_NAME);
        char now[SQLITE_FILES_TIME_SIZE], name[64];
        int r = sqlite_files_time(now);

        if (r < 0)
                return r;
        (void) snprintf(name, sizeof(name), SQLITE_FILES_NAME ".copied-%s", now);
        c->kept = file_path(dir, name);
        if (!path || !c->kept)
                return -ENOMEM;
        return rename(path, c->kept) < 0 ? -errno : 0;
}

static int remove_file(const char *dir, const char *name)
{
        _cleanup_free_ char *path = file_path(dir, name);

        if (!path)
                return -ENOMEM;
        return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
}

int state_copy(const char *dir, const struct etcd_config *etcd, bool to_etcd, struct state_copy *ret)
{
        _cleanup_identity_ struct file_identity owner = {};
        struct both b = { .runs_fd = -1, .lock_fd = -1 };
        bool is_new = !file_may_exist(dir, SQLITE_FILES_NAME);
        int r;

        *ret = (struct state_copy) { .prefix = etcd_key(etcd->fabric, "record/", "") };
        if (to_etcd && is_new)
                return -ENOENT;
        r = file_become_owner_of(dir, &owner) ?: open_both(&b, dir, etcd, ret);
        r = r ?: copy_records(to_etcd ? b.sqlite : b.etcd, to_etcd ? b.etcd : b.sqlite, ret);
        b.sqlite = store_close(b.sqlite);
        if (r == 0)
                r = to_etcd ? rename_database(dir, ret) : remove_file(dir, STATE_MARK);
        else if (is_new && b.lock_fd >= 0) /* with an empty state.db, the store in etcd would be refused */
                (void) remove_file(dir, SQLITE_FILES_NAME);
        close_both(&b);
        return r;
}

void state_copy_done(struct state_copy *c)
{
        free(c->kept);
        free(c->problem);
        *c = (struct state_copy) {};
}
