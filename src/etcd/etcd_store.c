/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A transaction has a name, ID, which no other one has: the revision of the lock, and a number that counts up. One of up to
 * ETCD_MAX_OPS operations and ETCD_MAX_BYTES is one transaction of etcd. A larger one is committed in steps:
 *
 *     1. The parts of older transactions that were not committed are deleted.
 *     2. Parts are put: redo/ID/000000, redo/ID/000001, ..., each the operations of one transaction of etcd, as JSON. No record
 *        changes.
 *     3. One transaction of etcd puts `redo`, and `commit` with ID. From now on the whole transaction counts as committed.
 *     4. For each part, in order, one transaction of etcd carries out its operations and deletes it.
 *     5. `redo` is deleted.
 *
 * Any process that finds `redo` does steps 4 and 5 before it reads, and before it commits; if some of the parts that should
 * be left are missing, it refuses the store. Each of these steps has the condition that the part, or `redo`, is as it was read.
 *
 * Any request may take effect late, or more than once (etcd_http.h). The invariant: it has no effect after a later commit.
 *
 *   - Steps 1 to 3, and a small transaction, have two conditions: the lock is still that of this process, and `commit` still has
 *     the revision up to which this process knows the records. Each commit changes that. So of the transactions that are based on
 *     the same revision one is committed, once. If the conditions do not hold, the content of `commit` says whether an earlier copy
 *     of the same request has changed it.
 *   - Until step 3, a copy of step 2 puts the same part again. A copy of step 1 does not delete parts of its own transaction, since
 *     older names sort before newer ones.
 *   - A copy of step 4 or 5 finds that its key is gone; after step 3 no copy of step 2 can put a part again.
 *   - `redo` is gone before the next commit: a process knows the records of a revision when steps 4 and 5 of that commit are done,
 *     and does its own before it commits again.
 *   - The lock is put with a new lease each time: with one that was revoked or has ended, etcd refuses it.
 *
 * A transaction whose commit returned an error may still take effect, until the next one is committed or the lock is gone. After
 * step 1 of the next one nothing is left of it: then its step 3 changes no record.
 *
 * Version 0.2.0 put parts as redo/000000, ..., and `redo` without ID, and its step 1 could be late. Its transactions are carried
 * out in the same way, and refused if they lack parts. 0.2.0 carries out those of this version, too.
 */
#include "etcd/etcd_store.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "etcd/etcd_lease.h"
#include "etcd/etcd_message.h"
#include "shell/shell.h"

#define TIMEOUT        (3 * USEC_PER_SEC)
#define PAGE           128u /* records */
#define RECORDS_END    "\x7f" /* after every key of a record */
#define MAX_TRIES      5    /* while other processes change what is read */
#define ID_SIZE        40
#define COMMIT_SIZE    (LOCK_HOLDER_SIZE + ID_SIZE + 16)

/* A large transaction that is committed, but may not be carried out yet. */
struct redo {
        uint64_t revision;            /* of `redo`; 0: there is none */
        size_t n_parts;
        char id[ID_SIZE];             /* "": version 0.2.0 committed it */
};

struct etcd_store {
        struct store store;           /* first */
        const struct etcd_config *config;
        char host[64];                /* this one */
        char holder[LOCK_HOLDER_SIZE]; /* this process */
        sd_event *loop;               /* of its own, so that it runs while a caller waits */
        sd_event_source *attached;    /* of that loop on a caller's */
        struct etcd_http *http;
        struct etcd_lease lease;
        struct etcd_lease running;    /* of the key that announces this process */
        bool announces;
        uint64_t lock;                /* revision that created the lock; 0: this process does not hold it */
        uint64_t cluster;             /* its ID; 0: not known yet */
        uint64_t seen;                /* revision of `commit` up to which everything was loaded, or committed here */
        uint64_t loaded;              /* revision at which all records were loaded; 0: they were not */
        uint64_t n_loaded;            /* how many there were */
        uint64_t n_transactions;      /* that this process has begun to commit */
        char id[ID_SIZE];             /* the name of the last one */
        struct redo redo;             /* a transaction of this process that is half done */
        char last_writer[COMMIT_SIZE]; /* content of `commit` */
        char last_pkeyd[LOCK_HOLDER_SIZE]; /* content of `served` */
        bool has_version;             /* `version` is in the cluster */
        bool loading;
};

static struct etcd_store *of_store(struct store *s)
{
        return (struct etcd_store *) s;
}

/* A key of this store that is in no folder: "lock", "redo", ... */
static struct etcd_key key_of(const struct etcd_store *s, const char *name)
{
        return etcd_key(s->config->fabric, "", name);
}

static struct etcd_key record_key(const struct etcd_store *s, const char *name)
{
        return etcd_key(s->config->fabric, "record/", name);
}

static struct etcd_key part_key(const struct etcd_store *s, const char *id, const char *name)
{
        char folder[ID_SIZE + 8];

        (void) snprintf(folder, sizeof(folder), "redo/%s%s", id, *id ? "/" : "");
        return etcd_key(s->config->fabric, folder, name);
}

/* Sends a request, and waits for the answer. Checks that it is the same cluster as before. ret_revision may be NULL. */
static int call(struct etcd_store *s, const char *path, json_t *body, json_t **ret, uint64_t *ret_revision)
{
        struct etcd_header header;
        int r = etcd_http_call(s->http, path, body, TIMEOUT, ret);

        if (r < 0)
                return r;
        if (!etcd_read_header(*ret, &header))
                return -EPROTO;
        if (s->cluster > 0 && s->cluster != header.cluster)
                return -EUCLEAN;
        s->cluster = header.cluster;
        if (ret_revision)
                *ret_revision = header.revision;
        return 0;
}

/* Carries out the operations if the condition holds. Returns 1: it does; 0: it does not; or an error. */
static int transact(struct etcd_store *s, json_t *condition, json_t *operations)
{
        _cleanup_json_ json_t *answer = NULL;
        int r = call(s, ETCD_TRANSACTION, etcd_transaction(json_pack("[o]", condition), operations), &answer, NULL);

        return r < 0 ? r : etcd_succeeded(answer);
}

/* --- keys that are not records ---------------------------------------------------------------------------------------- */

/* The keys that are not records, at one moment. */
struct overview {
        uint64_t revision;            /* of that moment */
        uint64_t commit;              /* revision of the last commit; 0: there was none */
        struct redo redo;
};

enum { AT_COMMIT, AT_REDO, AT_VERSION, AT_SERVED };

static json_t *make_inspection(const struct etcd_store *s)
{
        return etcd_transaction(json_array(), json_pack("[o, o, o, o]", etcd_op_get(key_of(s, "commit").text),
                                                        etcd_op_get(key_of(s, "redo").text),
                                                        etcd_op_get(key_of(s, "version").text),
                                                        etcd_op_get(key_of(s, "served").text)));
}

/* Reads the one record of an answer. Returns 0, -EPROTO, -ENOMEM; without a record *ret is zeroed. */
static int read_single(const json_t *answer, size_t i, struct arena *a, struct etcd_record *ret)
{
        int r = etcd_read_record(etcd_range_of(answer, i), 0, a, ret);

        if (r == -ENOENT)
                *ret = (struct etcd_record) {};
        return r == -ENOENT ? 0 : r;
}

static int check_version(const struct etcd_record *version)
{
        char *end;
        unsigned long v;

        if (!version->key)
                return 0;
        v = strtoul(version->value, &end, 10);
        if (version->n == 0 || *end)
                return -EPROTO;
        return v == STORE_SCHEMA_VERSION ? 0 : -EPROTONOSUPPORT;
}

/* The number of the parts, and the name of the transaction. */
static int read_redo(const struct etcd_record *redo, struct redo *ret)
{
        char *end;

        *ret = (struct redo) { .revision = redo->modified };
        if (!redo->key)
                return 0;
        ret->n_parts = strtoul(redo->value, &end, 10);
        if (*end == ' ')
                (void) snprintf(ret->id, sizeof(ret->id), "%s", ++end);
        return redo->n == 0 || strcmp(end, ret->id) != 0 ? -EPROTO : 0;
}

static int inspect(struct etcd_store *s, struct overview *ret)
{
        _cleanup_arena_ struct arena *a = arena_new();
        struct etcd_record commit, redo_record, version, served;
        _cleanup_json_ json_t *answer = NULL;
        struct redo redo;
        uint64_t revision;
        int r = a ? call(s, ETCD_TRANSACTION, make_inspection(s), &answer, &revision) : -ENOMEM;

        r = r ?: read_single(answer, AT_COMMIT, a, &commit) ?: read_single(answer, AT_REDO, a, &redo_record) ?:
                read_single(answer, AT_VERSION, a, &version) ?: read_single(answer, AT_SERVED, a, &served) ?:
                check_version(&version) ?: read_redo(&redo_record, &redo);
        if (r < 0)
                return r;
        if (commit.modified < s->seen)
                return -EUCLEAN;
        s->has_version = version.key;
        *ret = (struct overview) { revision, commit.modified, redo };
        (void) snprintf(s->last_writer, sizeof(s->last_writer), "%s", commit.value ?: "");
        (void) snprintf(s->last_pkeyd, sizeof(s->last_pkeyd), "%s", served.value ?: "");
        return 0;
}

/* --- a large transaction: the second half ------------------------------------------------------------------------------ */

/* Copies a part to the records. Returns 0, also if another process has done it. */
static int redo_part(struct etcd_store *s, const struct etcd_record *part)
{
        _cleanup_json_ json_t *operations = json_loadb(part->value, part->n, 0, NULL);
        int r;

        if (!json_is_array(operations))
                return -EPROTO;
        if (json_array_append_new(operations, etcd_op_delete(part->key, NULL)) < 0)
                return -ENOMEM;
        r = transact(s, etcd_if_modified(part->key, part->modified), STEAL(operations));
        return r < 0 ? r : 0;
}

/* A part that is read together with `redo` is committed; one of version 0.2.0 that is read later may be of the next transaction. */
static json_t *make_next_part(const struct etcd_store *s, const char *id)
{
        const struct etcd_key first = part_key(s, id, ETCD_NAMES_FIRST), end = part_key(s, id, ETCD_NAMES_END);

        return etcd_transaction(json_array(), json_pack("[o, o]", etcd_op_get(key_of(s, "redo").text),
                                                        etcd_op_range(first.text, end.text, 1, false)));
}

/* Whether this is the next part, and no later one is missing. n: how many there are. */
static bool is_whole(const struct etcd_store *s, const struct redo *redo, const struct etcd_record *part, uint64_t n)
{
        char *end;
        unsigned long i = strtoul(part->key + strlen(part_key(s, redo->id, "").text), &end, 10);

        return !*end && i + n == redo->n_parts;
}

/* Returns 1 if there was a part; 0: there is none, or the transaction is complete. */
static int redo_next_part(struct etcd_store *s, const struct redo *redo)
{
        _cleanup_arena_ struct arena *a = arena_new();
        _cleanup_json_ json_t *answer = NULL;
        struct etcd_record record, part;
        uint64_t n;
        int r = a ? call(s, ETCD_TRANSACTION, make_next_part(s, redo->id), &answer, NULL) : -ENOMEM;

        r = r ?: read_single(answer, 0, a, &record) ?: read_single(answer, 1, a, &part);
        if (r < 0 || record.modified != redo->revision || !part.key)
                return r;
        if (!etcd_number(etcd_range_of(answer, 1), "count", &n) || !is_whole(s, redo, &part, n))
                return -EPROTO;
        r = redo_part(s, &part);
        return r < 0 ? r : 1;
}

static int complete(struct etcd_store *s, const struct redo *redo)
{
        const struct etcd_key key = key_of(s, "redo");
        int r;

        do
                r = redo_next_part(s, redo);
        while (r > 0);
        if (r < 0)
                return r;
        r = transact(s, etcd_if_modified(key.text, redo->revision), json_pack("[o]", etcd_op_delete(key.text, NULL)));
        return r < 0 ? r : 0;
}

/* Completes the transaction that an earlier commit left half done, if there is one. */
static int complete_own(struct etcd_store *s)
{
        int r = s->redo.revision > 0 ? complete(s, &s->redo) : 0;

        if (r == 0)
                s->redo = (struct redo) {};
        return r;
}

/* Inspects until no large transaction is half done. */
static int inspect_whole(struct etcd_store *s, struct overview *ret)
{
        int r;

        for (int i = 0; i < MAX_TRIES; i++) {
                r = inspect(s, ret);
                if (r < 0 || ret->redo.revision == 0)
                        return r;
                r = complete(s, &ret->redo);
                if (r < 0)
                        return r;
        }
        return -EBUSY;
}

/* --- the processes that use it ---------------------------------------------------------------------------------------- */

static int announce(struct etcd_store *s)
{
        struct etcd_key key;
        char id[24];
        int r;

        etcd_lease_give_back(&s->running);
        r = etcd_lease_take(&s->running, s->http, s->loop, s->config->lease);
        if (r < 0)
                return r;
        (void) snprintf(id, sizeof(id), "%016" PRIx64, s->running.id);
        key = etcd_key(s->config->fabric, "running/", id);
        r = transact(s, etcd_if_created(key.text, 0),
                     json_pack("[o]", etcd_op_put(key.text, s->holder, strlen(s->holder), s->running.id)));
        if (r < 0)
                etcd_lease_give_back(&s->running);
        return r < 0 ? r : 0;
}

int etcd_store_announce(struct store *store)
{
        struct etcd_store *s = of_store(store);

        s->announces = true;
        return announce(s);
}

int etcd_store_find_running(struct store *store, char ret_holder[LOCK_HOLDER_SIZE])
{
        struct etcd_store *s = of_store(store);
        const struct etcd_key first = etcd_key(s->config->fabric, "running/", ETCD_NAMES_FIRST);
        const struct etcd_key end = etcd_key(s->config->fabric, "running/", ETCD_NAMES_END);
        _cleanup_arena_ struct arena *a = arena_new();
        _cleanup_json_ json_t *answer = NULL;
        struct etcd_record record;
        int r = a ? call(s, ETCD_RANGE, etcd_range(first.text, end.text, 1, 0), &answer, NULL) : -ENOMEM;

        r = r ?: etcd_read_record(answer, 0, a, &record);
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        (void) snprintf(ret_holder, LOCK_HOLDER_SIZE, "%s", record.value);
        return -EWOULDBLOCK;
}

/* --- loading ---------------------------------------------------------------------------------------------------------- */

/* A range of records, which is read page by page. */
struct pages {
        struct etcd_key next, end;    /* where the next page begins (empty: there is none), and where the range ends */
        uint64_t revision;            /* all pages show the records as they were then */
        size_t n_prefix;              /* characters in front of the key of a record */
        uint64_t n;                   /* records so far */
};

/* Passes NULL for a key or a value that no transaction can have put there. */
static int pass_record(const struct pages *p, const struct etcd_record *record, store_record_handler each, void *userdata)
{
        const char *key = record->key + p->n_prefix;

        if (!store_key_is_valid(key))
                return each(userdata, NULL, NULL, 0);
        if (record->n > STORE_VALUE_MAX)
                return each(userdata, key, NULL, 0);
        return each(userdata, key, record->value, record->n);
}

/* The next page begins after this key; if it is too long to be pkeyd's, after all keys with the same beginning. */
static void begin_after(struct pages *p, const char *key)
{
        const size_t max = sizeof(p->next.text) - 2;

        (void) snprintf(p->next.text, sizeof(p->next.text), "%.*s%c", (int) max, key, strlen(key) > max ? '\xff' : '!');
}

/* Refuses records that are not in the range, and an answer that announces more but does not advance: load_at() would never end. */
static int pass_records(struct pages *p, const json_t *answer, store_record_handler each, void *userdata)
{
        const struct etcd_key first = p->next;

        for (size_t i = 0;; i++) {
                _cleanup_arena_ struct arena *a = arena_new();
                struct etcd_record record;
                int r = a ? etcd_read_record(answer, i, a, &record) : -ENOMEM;

                if (r == -ENOENT)
                        break;
                if (r == 0 && (strcmp(record.key, first.text) < 0 || strcmp(record.key, p->end.text) >= 0))
                        r = -EPROTO;
                if (r < 0)
                        return r;
                p->n++;
                begin_after(p, record.key);
                r = pass_record(p, &record, each, userdata);
                if (r != 0)
                        return r;
        }
        if (!etcd_has_more(answer))
                p->next.text[0] = '\0';
        else if (strcmp(p->next.text, first.text) <= 0)
                return -EPROTO;
        return 0;
}

/* A load has many pages, and the caller's loop, which answers the watchdog, does not run meanwhile. */
static int load_page(struct etcd_store *s, struct pages *p, store_record_handler each, void *userdata)
{
        _cleanup_json_ json_t *answer = NULL;
        int r = call(s, ETCD_RANGE, etcd_range(p->next.text, p->end.text, PAGE, p->revision), &answer, NULL);

        (void) sd_notify(0, "WATCHDOG=1");
        return r < 0 ? r : pass_records(p, answer, each, userdata);
}

static int load_at(struct etcd_store *s, const struct overview *at, const char *first, const char *end, store_record_handler each,
                   void *userdata, uint64_t *ret_n)
{
        struct pages p = {
                .next = record_key(s, first), .end = record_key(s, end), .revision = at->revision,
                .n_prefix = strlen(record_key(s, "").text),
        };
        int r = 0;

        while (r == 0 && p.next.text[0])
                r = load_page(s, &p, each, userdata);
        *ret_n = p.n;
        return r;
}

static int load(struct store *store, const char *first, const char *end, store_record_handler each, void *userdata)
{
        struct etcd_store *s = of_store(store);
        struct overview at;
        uint64_t n;
        int r;

        assert(!s->loading);
        s->loading = true;
        r = inspect_whole(s, &at) ?: load_at(s, &at, first ?: "", end ?: RECORDS_END, each, userdata, &n);
        s->loading = false;
        if (r >= 0 && !first)
                s->seen = at.commit;
        if (r == 0 && !first) {
                s->loaded = at.revision;
                s->n_loaded = n;
        }
        return r;
}

int etcd_store_changed_besides(struct store *store, const char *key)
{
        struct etcd_store *s = of_store(store);
        const struct etcd_key first = record_key(s, ""), end = record_key(s, RECORDS_END), besides = record_key(s, key);
        _cleanup_arena_ struct arena *a = arena_new();
        _cleanup_json_ json_t *answer = NULL;
        struct etcd_record record;
        uint64_t n;
        int r = a ? call(s, ETCD_RANGE, etcd_changes(first.text, end.text, 2, s->loaded), &answer, NULL) : -ENOMEM;

        if (r == 0 && !etcd_number(answer, "count", &n))
                r = -EPROTO;
        if (r < 0)
                return r;
        if (s->loaded == 0 || n != s->n_loaded)
                return 1;
        for (size_t i = 0; (r = etcd_read_record(answer, i, a, &record)) == 0; i++)
                if (strcmp(record.key, besides.text) != 0)
                        return 1;
        return r == -ENOENT ? 0 : r;
}

static int changed(struct store *store)
{
        struct etcd_store *s = of_store(store);
        struct overview now;
        int r = inspect_whole(s, &now);

        if (r == 0 && s->announces && s->running.deadline <= clock_boot())
                r = announce(s);
        if (r < 0)
                return r;
        r = now.commit != s->seen;
        s->seen = now.commit;
        return r;
}

/* --- the lock --------------------------------------------------------------------------------------------------------- */

static json_t *make_lock(const struct etcd_store *s)
{
        const struct etcd_key lock = key_of(s, "lock");

        return etcd_or_else(etcd_transaction(json_pack("[o]", etcd_if_created(lock.text, 0)),
                                             json_pack("[o]", etcd_op_put(lock.text, s->holder, strlen(s->holder), s->lease.id))),
                            json_pack("[o]", etcd_op_get(lock.text)));
}

/* The lock exists. This process holds it if an earlier attempt of the request has arrived. */
static int adopt_or_name_holder(struct etcd_store *s, const json_t *answer, char ret_holder[LOCK_HOLDER_SIZE])
{
        _cleanup_arena_ struct arena *a = arena_new();
        struct etcd_record lock;
        int r = a ? read_single(answer, 0, a, &lock) : -ENOMEM;

        if (r < 0)
                return r;
        if (lock.key && lock.lease == s->lease.id) {
                s->lock = lock.created;
                return 0;
        }
        (void) snprintf(ret_holder, LOCK_HOLDER_SIZE, "%s", lock.value ?: "");
        return -EWOULDBLOCK;
}

static int take_lock(struct etcd_store *s, char ret_holder[LOCK_HOLDER_SIZE])
{
        _cleanup_json_ json_t *answer = NULL;
        uint64_t revision;
        int r = call(s, ETCD_TRANSACTION, make_lock(s), &answer, &revision);

        if (r < 0)
                return r;
        if (!etcd_succeeded(answer))
                return adopt_or_name_holder(s, answer, ret_holder);
        s->lock = revision;
        return 0;
}

/* Puts the version of a new store, before its first record. */
static int put_version(struct etcd_store *s)
{
        const struct etcd_key key = key_of(s, "version");
        char text[8];
        int r;

        if (s->has_version)
                return 0;
        (void) snprintf(text, sizeof(text), "%d", STORE_SCHEMA_VERSION);
        r = transact(s, etcd_if_created(key.text, 0), json_pack("[o]", etcd_op_put(key.text, text, strlen(text), 0)));
        s->has_version = r > 0;
        return r < 0 ? r : 0;
}

usec_t etcd_store_deadline(const struct store *store)
{
        const struct etcd_store *s = (const struct etcd_store *) store;

        return s->lock > 0 ? s->lease.deadline : 0;
}

int etcd_store_lock(struct store *store, char ret_holder[LOCK_HOLDER_SIZE])
{
        struct etcd_store *s = of_store(store);
        int r;

        if (etcd_store_deadline(store) > clock_boot())
                return 0;
        etcd_store_unlock(store);
        r = etcd_lease_take(&s->lease, s->http, s->loop, s->config->lease) ?: take_lock(s, ret_holder) ?: put_version(s);
        if (r < 0)
                etcd_store_unlock(store);
        return r;
}

void etcd_store_unlock(struct store *store)
{
        struct etcd_store *s = of_store(store);

        s->lock = 0;
        etcd_lease_give_back(&s->lease);
}

/* --- committing ------------------------------------------------------------------------------------------------------- */

typedef const struct store_op *store_op_p;

/* The operations that count: the last one on each key. */
struct last_ops {
        store_op_p *ops;
        size_t n;
};

DEFINE_COMPARE(compare_ops, store_op_p, strcmp((*a)->key, (*b)->key) ?: ORDER(*a, *b))

static int find_last(struct arena *a, const struct store_transaction *t, struct last_ops *ret)
{
        store_op_p *ops = arena_new_array(a, store_op_p, t->n);
        size_t n = 0;

        if (!ops)
                return -ENOMEM;
        for (size_t i = 0; i < t->n; i++)
                ops[i] = &t->ops[i];
        SORT(ops, t->n, compare_ops);
        for (size_t i = 0; i < t->n; i++)
                if (i + 1 == t->n || strcmp(ops[i]->key, ops[i + 1]->key) != 0)
                        ops[n++] = ops[i];
        *ret = (struct last_ops) { ops, n };
        return 0;
}

/* The operations from *at on that fit in one transaction of etcd, at least one. Moves *at past them. NULL: out of memory. */
static json_t *make_operations(const struct etcd_store *s, const struct last_ops *l, size_t *at)
{
        _cleanup_json_ json_t *operations = json_array();
        size_t n_bytes = 0, first = *at;

        for (; *at < l->n && *at - first < ETCD_MAX_OPS; ++*at) {
                const struct store_op *op = l->ops[*at];
                const struct etcd_key key = record_key(s, op->key);

                n_bytes += strlen(op->key) + op->n;
                if (n_bytes > ETCD_MAX_BYTES && *at > first)
                        break;
                if (json_array_append_new(operations, op->value ? etcd_op_put(key.text, op->value, op->n, 0)
                                                                : etcd_op_delete(key.text, NULL)) < 0)
                        return NULL;
        }
        return STEAL(operations);
}

/* The content of `commit` after the present transaction. */
static void name_commit(const struct etcd_store *s, char ret[COMMIT_SIZE])
{
        (void) snprintf(ret, COMMIT_SIZE, "%s, transaction %s", s->holder, s->id);
}

static json_t *make_fenced(const struct etcd_store *s, json_t *operations)
{
        const struct etcd_key lock = key_of(s, "lock"), commit = key_of(s, "commit");
        json_t *conditions = json_pack("[o, o]", etcd_if_created(lock.text, s->lock), etcd_if_modified(commit.text, s->seen));

        return etcd_or_else(etcd_transaction(conditions, operations),
                            json_pack("[o, o]", etcd_op_get(lock.text), etcd_op_get(commit.text)));
}

/* The conditions do not hold. Returns 0 if an earlier copy of the request has committed the present transaction, at *ret_revision;
 * or why not. */
static int read_winner(struct etcd_store *s, const json_t *answer, uint64_t *ret_revision)
{
        _cleanup_arena_ struct arena *a = arena_new();
        struct etcd_record lock, commit;
        char mine[COMMIT_SIZE];
        int r = a ? read_single(answer, 0, a, &lock) ?: read_single(answer, 1, a, &commit) : -ENOMEM;

        if (r < 0)
                return r;
        name_commit(s, mine);
        if (commit.key && strcmp(commit.value, mine) == 0) {
                *ret_revision = commit.modified;
                return 0;
        }
        if (lock.created == s->lock)
                return -EBUSY;
        s->lease.deadline = 0;
        return -ENOLCK;
}

/* One transaction of etcd, if this process still holds the lock, and nothing was committed that it does not know. */
static int transact_fenced(struct etcd_store *s, json_t *operations, uint64_t *ret_revision)
{
        _cleanup_json_ json_t *answer = NULL;
        uint64_t revision;
        int r = call(s, ETCD_TRANSACTION, make_fenced(s, operations), &answer, &revision);

        if (r < 0)
                return r;
        if (!etcd_succeeded(answer))
                return read_winner(s, answer, ret_revision);
        *ret_revision = revision;
        return 0;
}

static json_t *append(json_t *operations, json_t *operation)
{
        if (json_array_append_new(operations, operation) == 0)
                return operations;
        json_decref(operations);
        return NULL;
}

/* The last step: from now on the transaction counts. */
static int commit_fenced(struct etcd_store *s, json_t *operations)
{
        char text[COMMIT_SIZE];

        name_commit(s, text);
        operations = append(operations, etcd_op_put(key_of(s, "commit").text, text, strlen(text), 0));
        if (s->announces)
                operations = append(operations, etcd_op_put(key_of(s, "served").text, s->holder, strlen(s->holder), 0));
        return transact_fenced(s, operations, &s->seen);
}

static int put_part(struct etcd_store *s, size_t part, json_t *operations)
{
        _cleanup_json_ json_t *mine = operations;
        _cleanup_free_ char *text = mine ? json_dumps(mine, JSON_COMPACT) : NULL;
        char name[24];
        uint64_t revision;

        if (!text)
                return -ENOMEM;
        (void) snprintf(name, sizeof(name), "%06zu", part);
        return transact_fenced(s, json_pack("[o]", etcd_op_put(part_key(s, s->id, name).text, text, strlen(text), 0)), &revision);
}

/* Deletes parts of older transactions, which were not committed. */
static int delete_parts(struct etcd_store *s)
{
        const struct etcd_key first = part_key(s, "", ETCD_NAMES_FIRST), end = part_key(s, "", s->id);
        uint64_t revision;

        return transact_fenced(s, json_pack("[o]", etcd_op_delete(first.text, end.text)), &revision);
}

static int commit_large(struct etcd_store *s, const struct last_ops *l)
{
        char text[ID_SIZE + 24];
        size_t at = 0, n_parts = 0;
        int r = delete_parts(s);

        while (r == 0 && at < l->n)
                r = put_part(s, n_parts++, make_operations(s, l, &at));
        if (r < 0)
                return r;
        (void) snprintf(text, sizeof(text), "%zu %s", n_parts, s->id);
        r = commit_fenced(s, json_pack("[o]", etcd_op_put(key_of(s, "redo").text, text, strlen(text), 0)));
        if (r < 0)
                return r;
        s->redo = (struct redo) { .revision = s->seen, .n_parts = n_parts };
        memcpy(s->redo.id, s->id, sizeof(s->id));
        (void) complete_own(s); /* if it fails, the next commit or the next reader does what is left */
        return 0;
}

static int commit(struct store *store, const struct store_transaction *t)
{
        _cleanup_arena_ struct arena *a = arena_new();
        struct etcd_store *s = of_store(store);
        _cleanup_json_ json_t *operations = NULL;
        struct last_ops last;
        size_t at = 0;
        int r = t->error;

        assert(!s->loading);
        if (r < 0 || t->n == 0)
                return r;
        if (s->lock == 0)
                return -ENOLCK;
        r = a ? find_last(a, t, &last) : -ENOMEM;
        r = r ?: complete_own(s); /* otherwise its parts would replace newer records, or a large transaction would delete them */
        if (r < 0)
                return r;
        /* sorts after older names, and after the parts of version 0.2.0 */
        (void) snprintf(s->id, sizeof(s->id), "t%016" PRIx64 "-%08" PRIx64, s->lock, ++s->n_transactions);
        operations = make_operations(s, &last, &at);
        if (!operations)
                return -ENOMEM;
        return at < last.n ? commit_large(s, &last) : commit_fenced(s, STEAL(operations));
}

/* --- on a caller's loop ----------------------------------------------------------------------------------------------- */

/* Runs what is due on the loop of the store, and leaves it so that its descriptor wakes the caller's loop. */
static void run_loop(struct etcd_store *s, bool arm)
{
        etcd_http_settle(s->http);
        do
                while (sd_event_run(s->loop, 0) > 0)
                        ;
        while (arm && sd_event_prepare(s->loop) > 0 && sd_event_dispatch(s->loop) > 0);
}

static int on_ready(sd_event_source *, int, uint32_t, void *userdata)
{
        run_loop(userdata, false);
        return 0;
}

static int on_prepare(sd_event_source *, void *userdata)
{
        run_loop(userdata, true);
        return 0;
}

int etcd_store_attach(struct store *store, sd_event *event)
{
        struct etcd_store *s = of_store(store);
        int r = sd_event_add_io(event, &s->attached, sd_event_get_fd(s->loop), EPOLLIN, on_ready, s);

        return r < 0 ? r : sd_event_source_set_prepare(s->attached, on_prepare);
}

/* --- opening and closing ---------------------------------------------------------------------------------------------- */

const char *etcd_store_problem(const struct store *store)
{
        return etcd_http_problem(((const struct etcd_store *) store)->http);
}

static struct store *close_store(struct store *store)
{
        struct etcd_store *s = of_store(store);

        if (s->http) {
                etcd_store_unlock(store);
                etcd_lease_give_back(&s->running);
        }
        sd_event_source_disable_unref(s->attached);
        s->http = etcd_http_free(s->http);
        sd_event_unref(s->loop);
        free(s);
        return NULL;
}

static const struct store_operations operations = { .load = load, .commit = commit, .changed = changed, .close = close_store };

bool etcd_store_is_of_other_pkeyd(const struct store *store)
{
        const struct etcd_store *s = (const struct etcd_store *) store;
        char here[sizeof(s->host) + 8];

        (void) snprintf(here, sizeof(here), " on %s (", s->host);
        if (*s->last_pkeyd && strcmp(s->last_pkeyd, s->holder) != 0)
                return true;
        return *s->last_writer && !strstr(s->last_writer, here); /* pkeyctl, or a pkeyd older than `served` */
}

static void name_holder(struct etcd_store *s)
{
        (void) gethostname(s->host, sizeof(s->host) - 1);
        (void) snprintf(s->holder, sizeof(s->holder), "%s on %s (process %d)", program_invocation_short_name, s->host, (int) getpid());
}

struct etcd_seen etcd_store_seen(const struct store *store)
{
        const struct etcd_store *s = (const struct etcd_store *) store;

        return (struct etcd_seen) { s->cluster, s->seen };
}

int etcd_store_open(const struct etcd_config *config, const struct etcd_seen *seen, struct store **ret, char **ret_problem)
{
        struct etcd_store *s = calloc(1, sizeof(*s));
        _cleanup_store_ struct store *store = s ? &s->store : NULL;
        struct overview now;
        int r;

        if (!s)
                return -ENOMEM;
        s->store.operations = &operations;
        s->config = config;
        s->cluster = seen ? seen->cluster : 0;
        s->seen = seen ? seen->commit : 0;
        name_holder(s);
        r = sd_event_new(&s->loop);
        if (r >= 0)
                r = etcd_http_new(s->loop, config, &s->http);
        if (r >= 0)
                r = inspect_whole(s, &now);
        if (r < 0 && s->http && *etcd_http_problem(s->http))
                *ret_problem = strdup(etcd_http_problem(s->http));
        if (r < 0)
                return r;
        s->seen = now.commit;
        *ret = STEAL(store);
        return 0;
}
