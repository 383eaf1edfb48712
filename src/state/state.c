/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "state/state.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "etcd/etcd_http.h"
#include "knowledge/table_records.h"
#include "shell/fabric.h"
#include "shell/file.h"
#include "state/directory_lock.h"
#include "state/sqlite_files.h"
#include "state/state_copy.h"
#include "state/state_import.h"
#include "util/scan.h"

#define BOOT_ID_FILE "/proc/sys/kernel/random/boot_id"

/* --- reports ------------------------------------------------------------------------------------------------------ */

/* Drops the report if there is no memory or room for it. */
static void __attribute__((format(printf, 5, 6)))
report(struct state *s, enum state_report_kind kind, const char *effect, const char *hint, const char *format, ...)
{
        struct state_report r = { .kind = kind, .effect = effect, .hint = hint };
        va_list ap;

        if (s->n_reports == STATE_MAX_REPORTS)
                return;
        va_start(ap, format);
        if (vasprintf(&r.text, format, ap) >= 0)
                s->reports[s->n_reports++] = r;
        va_end(ap);
}

static void drop_first_report(struct state *s)
{
        free(s->reports[0].text);
        memmove(s->reports, s->reports + 1, --s->n_reports * sizeof(s->reports[0]));
}

bool state_next_report(struct state *s, struct state_report *ret)
{
        if (s->shown)
                drop_first_report(s);
        s->shown = s->n_reports > 0;
        if (s->shown)
                *ret = s->reports[0];
        return s->shown;
}

#define OF_ANOTHER_USER \
        "the directory and its files must belong to the user that pkeyd runs as (chown -R pkeyd: DIRECTORY), and pkeyctl needs root"

/* What an error means, and what to do. why NULL: what etcd_http_explain() or strerror() returns. The last entry of each array is
 * for all other errors. */
static const struct explanation {
        int error;
        const char *why, *hint;
} of_directory[] = {
        { -EPROTONOSUPPORT, "a newer version of pkeyd wrote it",
          "install that version again, or move state.db away: then every port counts as never read" },
        { -EUCLEAN, "it is damaged, or was removed, and another process has it open", "end or restart the other process, pkeyd or pkeyctl" },
        { -ENOTRECOVERABLE, "it is damaged",
          "start or restart pkeyd, or use pkeyctl apply: they move it aside and begin an empty one; check the disk" },
        { -EBUSY, "another process has it open or locked", "end or restart the other process, pkeyd or pkeyctl" },
        { -EWOULDBLOCK, "pkeyctl store copy is moving its records", "what is in force stays, and pkeyd tries again" },
        { -EXDEV, "its records were moved to etcd, when store: etcd was set",
          "set store: etcd again, and run pkeyctl store copy sqlite; or remove the file `etcd` and state.db: then every port counts as "
          "never read" },
        { -EACCES, NULL, OF_ANOTHER_USER },
        { -ENOENT, NULL, "create the directory above the state directory, which pkeyd creates itself" },
        { -ENOTDIR, NULL, "name a directory: --state-dir" },
        { -ENOSPC, NULL, "make room on its file system" },
        { -EDQUOT, NULL, "make room on its file system" },
        { 0, NULL,
          "the directory and its files must belong to the user that pkeyd runs as (chown -R pkeyd: DIRECTORY), and their file system "
          "must be writable" },
}, of_etcd[] = {
        { -EPROTONOSUPPORT, "a newer version of pkeyd wrote it", "install that version again" },
        { -EEXIST, "state.db of this host has records from before store: etcd was set",
          "run pkeyctl store copy etcd to copy it to the cluster; if the cluster has the records of the other head node, move state.db away" },
        { -EUCLEAN, "it is not the same cluster as before, or an older copy of it", "check etcd in pkeyd.yaml, and the log of etcd" },
        { -EWOULDBLOCK, "pkeyctl store copy is moving its records", "what is in force stays, and pkeyd tries again" },
        { -EBUSY, "it was changed meanwhile", "what is in force stays, and pkeyd tries again" },
        { -ESTALE, NULL, "what is in force stays, and pkeyd tries again" },
        { -EHOSTUNREACH, NULL, "what is in force stays, and pkeyd tries again; etcdctl endpoint status shows the members" },
        { -EKEYREJECTED, NULL, "check etcd.ca_file in pkeyd.yaml, and the names in the certificates" },
        { -ENOLCK, "the lease of the lock has ended",
          "what is in force stays, and pkeyd tries again; etcdctl endpoint status shows the members" },
        { -EACCES, NULL, "check etcd.user and etcd.password_file in pkeyd.yaml, and the roles of that user in etcd" },
        { -EPERM, "this user may not use the state directory", OF_ANOTHER_USER },
        { -ENOSPC, NULL, "compact and defragment it with etcdctl, then etcdctl alarm disarm" },
        { 0, NULL, "check etcd in pkeyd.yaml, and the log of etcd" },
};

static const struct explanation *find_explanation(const struct state *s, int error)
{
        const struct explanation *e = s->etcd ? of_etcd : of_directory;

        while (e->error != 0 && e->error != error)
                e++;
        return e;
}

const char *state_explain(const struct state *s, int error)
{
        return find_explanation(s, error)->why ?: (s->etcd ? etcd_http_explain(error) : NULL) ?: strerror(-error);
}

const char *state_hint(const struct state *s, int error)
{
        return find_explanation(s, error)->hint;
}

/* --- the store ---------------------------------------------------------------------------------------------------- */

/* What was seen of a cluster is kept: another one, or an older copy, is noticed also after an outage. */
static void close_store(struct state *s)
{
        if (s->etcd && s->store)
                s->seen = etcd_store_seen(s->store);
        s->store = store_close(s->store);
}

/* Continues without a store, and reports the error if it is new. */
static void give_up(struct state *s, int error)
{
        const char *why = state_explain(s, error), *hint = state_hint(s, error);

        if (s->etcd && s->store && *etcd_store_problem(s->store)) {
                free(s->problem);
                s->problem = strdup(etcd_store_problem(s->store));
        }
        close_store(s);
        if (error != s->error)
                report(s, STATE_UNUSABLE, "pkeyd reads and compares tables, but writes none", hint, "%s cannot be used: %s%s%s%s", s->name,
                       why, s->problem ? " (" : "", s->problem ?: "", s->problem ? ")" : "");
        free(STEAL(s->problem));
        s->error = error;
}

static int commit_import(struct state *s, const struct store_transaction *t, const struct state_import *import)
{
        int r = store_commit(s->store, t);

        if (r < 0)
                return r;
        state_import_done(s->path, import);
        for (int i = 0; i < STATE_IMPORT_N_FILES; i++)
                if (import->errors[i] < 0 && import->errors[i] != -ENOENT)
                        report(s, STATE_DAMAGED, "pkeyd does not use it, and leaves it as it is",
                               "remove it if there is no intact copy", "%s/%s, of version 0.1.0: %s", s->path,
                               state_import_name((enum state_import_file) i),
                               import->errors[i] == -EBADMSG ? "it is damaged" : strerror(-import->errors[i]));
        return 0;
}

static int import_files(struct state *s)
{
        _cleanup_arena_ struct arena *a = arena_new();
        struct store_transaction t;
        struct state_import import;
        int r = store_is_empty(s->store);

        if (r <= 0)
                return r;
        if (!a)
                return -ENOMEM;
        store_transaction_init(&t, a);
        r = state_import_read(s->path, &t, &import);
        return r < 0 ? r : commit_import(s, &t, &import);
}

/* Makes the directory of one fabric for the user who owns the directory above it. */
static int make_directory(const char *path)
{
        _cleanup_identity_ struct file_identity owner = {};
        _cleanup_free_ char *copy = strdup(path);
        int r;

        /* a fabric may be the first of this host; its user is not known yet, and must get through */
        if (strncmp(path, STATE_DIR "/", strlen(STATE_DIR "/")) == 0)
                (void) mkdir(STATE_DIR, 0711);
        r = copy ? file_become_owner_of(dirname(copy), &owner) : -ENOMEM;
        if (r < 0)
                return r;
        return mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

/* Creates the directory if that is allowed; else returns -ENOENT if there is no database. To read a store in etcd, no directory is
 * needed. */
static int ensure_directory(const struct state *s)
{
        _cleanup_free_ char *database = file_path(s->path, SQLITE_FILES_NAME);

        if (s->access != STATE_READ)
                return make_directory(s->path);
        if (s->etcd)
                return 0;
        if (!database)
                return -ENOMEM;
        return access(database, F_OK) < 0 ? -errno : 0;
}

static int open_sqlite(struct state *s)
{
        _cleanup_free_ char *damaged = NULL;
        int r = file_exists(s->path, STATE_MARK);

        if (r == 0)
                r = sqlite_store_open(s->path, SQLITE_STORE_BUSY_MSEC, s->access, &s->store, &damaged);
        else if (r > 0)
                r = -EXDEV;
        if (r == -EUCLEAN && s->access == STATE_READ)
                r = -ENOTRECOVERABLE;
        if (damaged)
                report(s, STATE_DAMAGED, "every port counts as never read until its table is read",
                       "check the disk, and keep the file until the cause is known",
                       "%s/" SQLITE_FILES_NAME " is damaged and was moved to %s", s->path, damaged);
        return r == 0 && s->access != STATE_READ ? import_files(s) : r;
}

/* With it, open_sqlite() refuses a state.db that is older than the cluster. */
static int leave_mark(const struct state *s)
{
        static const char text[] = "What pkeyd remembers is in etcd; see pkeyd-etcd(7).\n";
        _cleanup_free_ char *path = file_path(s->path, STATE_MARK);

        if (!path)
                return -ENOMEM;
        if (s->access == STATE_READ || file_may_exist(s->path, STATE_MARK))
                return 0;
        return file_write(FILE_SHARED, path, text, strlen(text));
}

static int open_etcd(struct state *s)
{
        int r = etcd_store_open(s->etcd, &s->seen, &s->store, &s->problem);

        if (r == -EUCLEAN) {
                s->replaced = true;
                s->seen = (struct etcd_seen) {};
                r = etcd_store_open(s->etcd, NULL, &s->store, &s->problem);
        }
        if (r == 0 && s->access == STATE_SERVE)
                r = etcd_store_announce(s->store);
        return r == 0 && s->event ? etcd_store_attach(s->store, s->event) : r;
}

/* Returns whether it is another file than before. */
static bool note_file(struct state *s)
{
        _cleanup_free_ char *path = file_path(s->path, SQLITE_FILES_NAME);
        const dev_t device = s->device;
        const ino_t inode = s->inode;
        struct stat st = {};

        if (path)
                (void) stat(path, &st);
        s->device = st.st_dev;
        s->inode = st.st_ino;
        return inode > 0 && (st.st_dev != device || st.st_ino != inode);
}

/* Until the end of this process, or state_close(), nobody moves the records to another store. */
static int hold_store(struct state *s)
{
        if (s->access != STATE_SERVE || s->runs_fd >= 0)
                return 0;
        return directory_lock_take(s->path, DIRECTORY_LOCK_RUNS, LOCK_SH, &s->runs_fd, s->holder);
}

static void release_store(struct state *s)
{
        if (s->runs_fd >= 0)
                directory_lock_release(s->runs_fd);
        s->runs_fd = -1;
}

/* With a store in etcd -EACCES would be what etcd answers. */
static int prepare_directory(struct state *s, struct file_identity *owner)
{
        int r = ensure_directory(s) ?: file_become_owner_of(s->path, owner) ?: hold_store(s);

        if (r == 0 && s->etcd) {
                r = file_exists(s->path, SQLITE_FILES_NAME);
                r = r > 0 ? -EEXIST : r ?: leave_mark(s);
        }
        return r == -EACCES && s->etcd ? -EPERM : r;
}

static int open_store(struct state *s)
{
        _cleanup_identity_ struct file_identity owner = {};
        int r = prepare_directory(s, &owner);

        r = r ?: (s->etcd ? open_etcd(s) : open_sqlite(s));
        if (r == 0 && s->error < 0)
                report(s, STATE_USABLE, "pkeyd continues", NULL, "%s can be used again", s->name);
        if (r == 0 && !s->etcd)
                s->replaced |= note_file(s);
        if (r == 0)
                s->error = 0;
        else if (r == -ENOENT && s->access == STATE_READ)
                s->error = r;
        else
                give_up(s, r);
        return r;
}

/* The store is in place of one that was lost. Returns whether it is empty, or an error. */
static int inspect_replacement(struct state *s)
{
        int r = store_is_empty(s->store);

        if (r < 0)
                give_up(s, r);
        if (r > 0 && s->etcd)
                report(s, STATE_DAMAGED, "pkeyd stores again what it knows", "check etcd in pkeyd.yaml, and the log of etcd",
                       "%s has lost all records", s->name);
        s->stale = r == 0;
        s->replaced &= r <= 0;
        return r;
}

/* Opens the store again after it was lost. */
static void reopen(struct state *s)
{
        close_store(s);
        if (open_store(s) < 0)
                return;
        s->replaced |= s->etcd != NULL;
        (void) inspect_replacement(s);
}

/* --- opening ------------------------------------------------------------------------------------------------------ */

static int read_boot_id(struct state *s)
{
        _cleanup_arena_ struct arena *a = arena_new();
        const char *bytes;
        size_t n;
        int r = a ? file_read(a, BOOT_ID_FILE, sizeof(s->boot) - 1, &bytes, &n) : -ENOMEM;

        if (r < 0)
                return r;
        (void) snprintf(s->boot, sizeof(s->boot), "%.*s", (int) strcspn(bytes, "\n"), bytes);
        return 0;
}

static char *name_store(const char *path, const struct etcd_config *etcd)
{
        char *name;

        if (!etcd)
                return file_path(path, SQLITE_FILES_NAME);
        return asprintf(&name, "etcd (%s%s)", etcd->endpoints[0], etcd->n_endpoints > 1 ? ", ..." : "") < 0 ? NULL : name;
}

int state_open(struct state *s, const char *path, enum state_access access, const struct etcd_config *etcd)
{
        int r;

        *s = (struct state) { .access = access, .path = strdup(path), .etcd = etcd, .name = name_store(path, etcd), .runs_fd = -1 };
        if (!s->path || !s->name)
                return -ENOMEM;
        r = read_boot_id(s);
        if (r == 0)
                return open_store(s);
        /* without the boot ID nothing is known of how long a port has been absent */
        give_up(s, r);
        return r;
}

int state_attach(struct state *s, sd_event *event)
{
        s->event = event;
        return s->etcd && s->store ? etcd_store_attach(s->store, event) : 0;
}

void state_close(struct state *s)
{
        _cleanup_identity_ struct file_identity owner = {};

        if (s->path)
                (void) file_become_owner_of(s->path, &owner);
        state_unlock(s);
        (void) store_close(s->store);
        if (s->path)
                release_store(s);
        while (s->n_reports > 0)
                drop_first_report(s);
        free(s->path);
        free(s->name);
        free(s->problem);
        *s = (struct state) {};
}

/* --- loading ------------------------------------------------------------------------------------------------------ */

static int restore(void *userdata, const char *key, const void *value, size_t n)
{
        return remembered_restore(userdata, key, value, n);
}

static void report_records(struct state *s, const struct remembered *r)
{
        if (r->n_damaged > 0)
                report(s, STATE_DAMAGED, "pkeyd does not use damaged records",
                       "check the disk, unless another program wrote to it; please report this with a copy of it",
                       "%s: %zu record%s cannot be understood, one is %s", s->name, r->n_damaged, text_plural(r->n_damaged),
                       r->first_damaged);
}

static int load_records(struct state *s, struct remembered **ret)
{
        _cleanup_remembered_ struct remembered *m = remembered_new(s->boot);
        int r = m ? 0 : -ENOMEM;

        if (r == 0 && s->store)
                r = store_load(s->store, restore, m);
        if (r < 0)
                return r;
        remembered_end(m);
        report_records(s, m);
        s->stale = s->followed = s->replaced = false;
        *ret = STEAL(m);
        return 0;
}

int state_load(struct state *s, struct remembered **ret)
{
        _cleanup_identity_ struct file_identity owner = {};
        int r;

        if (s->path)
                (void) file_become_owner_of(s->path, &owner);
        r = load_records(s, ret);
        if (r == -EUCLEAN) {
                reopen(s);
                r = load_records(s, ret);
        }
        if (r < 0 && r != -ENOMEM) {
                give_up(s, r);
                r = load_records(s, ret);
        }
        return r;
}

/* Calls `each` for the records of a range. Returns as store_load_range(), or why there is no store. */
static int load_range(struct state *s, const char *first, const char *end, store_record_handler each, void *userdata)
{
        _cleanup_identity_ struct file_identity owner = {};

        if (!s->store)
                return s->error ?: -ENOENT;
        (void) file_become_owner_of(s->path, &owner);
        return store_load_range(s->store, first, end, each, userdata);
}

/* --- generations -------------------------------------------------------------------------------------------------- */

static int note_key(void *userdata, const char *key, const void *, size_t)
{
        struct generation_key k;

        return key && generation_key_read(key, &k) && !generation_history_note(userdata, &k) ? -ENOMEM : 0;
}

int state_read_history(struct state *s, uint64_t after, struct generation_history *ret)
{
        const struct store_key first = store_key(RECORDS_GENERATION_KEY, after + 1);
        int r;

        *ret = (struct generation_history) {};
        r = load_range(s, first.text, RECORDS_GENERATION "~", note_key, ret);
        if (r < 0)
                generation_history_done(ret);
        return r;
}

struct generation_reader {
        struct stored_files *files;
        struct arena *arena;
};

static int read_record(void *userdata, const char *key, const void *value, size_t n)
{
        struct generation_reader *g = userdata;
        struct generation_key k;
        int r;

        if (!key || !generation_key_read(key, &k)) {
                g->files->is_damaged = true;
                return 0;
        }
        r = stored_files_read(g->files, g->arena, &k, value, n);
        return r == -ENOMEM ? r : 0; /* the files know that they are damaged */
}

int state_read_generation(struct state *s, struct arena *a, uint64_t number, struct stored_files *ret)
{
        struct generation_reader reader = { ret, a };
        const struct store_key first = store_key(RECORDS_GENERATION_KEY, number);
        const struct store_key end = store_key(RECORDS_GENERATION_KEY, number + 1);
        int r;

        *ret = (struct stored_files) {};
        stored_files_begin(ret, number);
        r = load_range(s, first.text, end.text, read_record, &reader);
        if (r == 0 && ret->is_missing)
                r = -ENOENT;
        else if (r == 0 && !stored_files_end(ret))
                r = -EBADMSG;
        if (r < 0)
                stored_files_done(ret);
        return r;
}

int state_complain_generation(const struct state *s, struct findings *findings, uint64_t number, int r)
{
        if (r == -ENOMEM)
                return r;
        return findings_error(findings, FINDING_HOST_STATE_DIR,
                              r == -ENOENT || r == -EBADMSG ? "pkeyctl history lists the generations" : NULL,
                              "generation %" PRIu64 " cannot be read from the store: %s", number,
                              r == -ENOENT ? "it has no such generation" : r == -EBADMSG ? "its records are damaged" : state_explain(s, r));
}

struct layout_reader {
        struct layout *layout;
        uint64_t after;
};

static int read_table(void *userdata, const char *key, const void *value, size_t n)
{
        struct layout_reader *l = userdata;
        int r = key ? before_record_read(l->layout, l->after, key, value, n) : -EBADMSG;

        return r == -ENOMEM ? r : 0;
}

int state_read_layout(struct state *s, struct arena *a, uint64_t after, struct layout **ret)
{
        struct layout *layout = arena_new_object(a, struct layout);
        struct layout_reader reader = { layout, after };
        int r = layout ? 0 : -ENOMEM;

        if (r == 0)
                layout->arena = a;
        r = r ?: load_range(s, RECORDS_BEFORE, RECORDS_BEFORE "~", read_table, &reader);
        if (r < 0)
                return r;
        layout_sort(layout);
        *ret = layout;
        return 0;
}

/* --- the lock ----------------------------------------------------------------------------------------------------- */

static int lock_directory(struct state *s)
{
        return directory_lock_take(s->path, DIRECTORY_LOCK_WRITES, LOCK_EX, &s->lock_fd, s->holder);
}

static int take_directory_lock(struct state *s)
{
        int r = s->locked ? 0 : lock_directory(s);

        if (r == -ENOENT) { /* the directory was removed */
                _cleanup_identity_ struct file_identity owner = {};

                release_store(s);
                r = prepare_directory(s, &owner) ?: lock_directory(s);
        }
        if (r < 0 && r != -EWOULDBLOCK && r != -ENOMEM)
                give_up(s, r);
        s->locked = r == 0;
        return r;
}

void state_unlock(struct state *s)
{
        if (!s->locked)
                return;
        if (s->etcd && s->store)
                etcd_store_unlock(s->store);
        directory_lock_release(s->lock_fd);
        s->locked = false;
}

/* The store is another file: a new one, made by a process that moved a damaged one aside; or a copy, which may be old. Or it is
 * another cluster, or a backup of it was restored. */
static void distrust_tables(struct state *s, struct remembered *changed)
{
        knowledge_stop_following(changed->knowledge);
        report(s, STATE_DAMAGED, "every port counts as never read until its table is read",
               s->etcd ? "stop pkeyd on both hosts before you restore a backup; see pkeyd-etcd(7), BACKUPS"
                       : "stop pkeyd before you replace the file",
               "%s %s", s->name, s->etcd ? "is not the same cluster as before, or an older copy of it" : "was replaced by another file");
}

static int load_changes(struct state *s, struct remembered **ret_changed)
{
        bool replaced = s->replaced;
        int r = load_records(s, ret_changed);

        if (r == 0 && replaced)
                distrust_tables(s, *ret_changed);
        if (r == 0 || r == -ENOMEM)
                return r;
        give_up(s, r);
        return 0;
}

/* Loads all records again if another process has committed. Needs the lock, so that none commits meanwhile. */
static int refresh(struct state *s, struct remembered **ret_changed)
{
        int r = s->store ? store_changed(s->store) : -EUCLEAN;

        if (r == -EUCLEAN) {
                reopen(s);
                if (s->store && !s->stale)
                        return -EUCLEAN;
        } else if (r < 0) {
                give_up(s, r);
        } else {
                s->stale |= r > 0;
        }
        return s->store && (s->stale || s->followed) ? load_changes(s, ret_changed) : 0;
}

void state_load_again(struct state *s)
{
        s->stale = true;
}

/* Takes the lock of a store in etcd, which excludes other hosts. Opens the store first if there is none. */
static int take_shared_lock(struct state *s)
{
        int r;

        if (!s->etcd)
                return 0;
        if (!s->store) {
                r = open_store(s);
                if (r == 0 && s->replaced)
                        r = inspect_replacement(s);
                if (r != 0)
                        return r > 0 ? -EUCLEAN : r;
                s->stale = true; /* others may have committed meanwhile */
        }
        r = etcd_store_lock(s->store, s->holder);
        if (r < 0 && r != -EWOULDBLOCK && r != -ENOMEM)
                give_up(s, r);
        return r;
}

bool state_is_of_other_pkeyd(const struct state *s)
{
        return s->etcd && s->store && etcd_store_is_of_other_pkeyd(s->store);
}

bool state_is_outdated(struct state *s)
{
        int r = s->etcd && s->store && !s->stale ? store_changed(s->store) : 0;

        s->stale |= r > 0;
        return s->etcd && (!s->store || s->stale || s->followed || r < 0);
}

bool state_holds_lock(const struct state *s)
{
        return s->locked && (!s->etcd || (s->store && etcd_store_deadline(s->store) > clock_boot()));
}

int state_lock(struct state *s, const char **ret_holder, struct remembered **ret_changed)
{
        _cleanup_identity_ struct file_identity owner = {};
        int r = s->path ? file_become_owner_of(s->path, &owner) : -ENOENT;

        r = r ?: take_directory_lock(s) ?: take_shared_lock(s) ?: refresh(s, ret_changed);
        if (r == 0 && s->etcd && !state_holds_lock(s)) /* the lock or the store was lost while everything was loaded */
                r = s->error ?: -ENOLCK;
        if (r == -EWOULDBLOCK)
                *ret_holder = s->holder;
        if (r < 0)
                state_unlock(s);
        return r;
}

/* These records may be loaded once more, under the lock: they are those of a replaced store until another process stores. */
static int load_followed(struct state *s, struct remembered **ret_changed)
{
        bool replaced = s->replaced;
        int r = load_changes(s, ret_changed);

        s->replaced = replaced;
        return r;
}

int state_follow(struct state *s, struct remembered **ret_changed)
{
        int r;

        if (!s->etcd)
                return 0;
        r = s->store ? store_changed(s->store) : 0;
        if (r > 0 && !s->stale)
                s->replaced = false; /* another process has stored since it was */
        if (!s->store)
                r = open_store(s) ?: 1;
        if (r > 0 && !s->stale && s->store) /* each sweep of the writer stores when it was */
                r = etcd_store_changed_besides(s->store, KNOWLEDGE_DISCOVERY);
        if (r == -EUCLEAN) {
                reopen(s);
                r = s->store ? 1 : s->error;
        }
        s->stale |= r > 0;
        if (r >= 0 && s->stale)
                r = load_followed(s, ret_changed) ?: s->error;
        else if (r < 0 && r != -ENOMEM)
                give_up(s, r);
        s->followed = true;
        return r;
}

/* --- committing --------------------------------------------------------------------------------------------------- */

int state_commit(struct state *s, const struct store_transaction *t)
{
        _cleanup_identity_ struct file_identity owner = {};
        int r;

        if (!s->store)
                return s->error ?: -ENOENT;
        (void) file_become_owner_of(s->path, &owner);
        r = store_commit(s->store, t);
        if (r == -EUCLEAN)
                reopen(s);
        else if (r < 0 && r != -ENOMEM && s->etcd)
                give_up(s, r);
        return r;
}
