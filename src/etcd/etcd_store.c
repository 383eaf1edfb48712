/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A transaction of up to ETCD_MAX_OPS operations and ETCD_MAX_BYTES is one transaction of etcd. A larger one is committed in steps:
 *
 *     1. Parts are put: redo/000000, redo/000001, ..., each the operations of one transaction of etcd, as JSON. No record changes.
 *     2. One transaction of etcd puts `redo` and `commit`. From now on the whole transaction counts as committed.
 *     3. For each part, in order, one transaction of etcd carries out its operations and deletes it.
 *     4. `redo` is deleted.
 *
 * Any process that finds `redo` does steps 3 and 4 before it reads. Each of their transactions has the condition that the part, or
 * `redo`, is still the same, so nothing happens twice; and a part is read together with `redo`, so it is of that transaction. A
 * process that did not complete its own transaction does so before it commits the next one.
 */
#include "etcd/etcd_store.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "etcd/etcd_lease.h"
#include "etcd/etcd_message.h"
#include "shell/shell.h"

#define TIMEOUT        (3 * USEC_PER_SEC)
#define GIVE_BACK      USEC_PER_SEC
#define PAGE           128u /* records */
#define MAX_TRIES      5    /* while other processes change what is read */

struct etcd_store {
        struct store store;           /* first */
        const struct etcd_config *config;
        char host[64];                /* this one */
        char holder[LOCK_HOLDER_SIZE]; /* this process */
        sd_event *loop;               /* of its own, so that it runs while a caller waits */
        sd_event_source *attached;    /* of that loop on a caller's */
        struct etcd_http *http;
        struct etcd_lease lease;
        uint64_t lock;                /* revision that created the lock; 0: this process does not hold it */
        uint64_t cluster;             /* its ID; 0: not known yet */
        uint64_t seen;                /* revision of `commit` up to which everything was loaded, or committed here */
        uint64_t redo;                /* revision of `redo` of a transaction of this process that is half done; 0: none is */
        char last_writer[LOCK_HOLDER_SIZE]; /* content of `commit` */
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

static struct etcd_key part_key(const struct etcd_store *s, const char *name)
{
        return etcd_key(s->config->fabric, "redo/", name);
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

/* Carries out the operations if the condition holds. Returns 1: it does; 0: it does not; or an error. ret_revision may be NULL. */
static int transact(struct etcd_store *s, json_t *condition, json_t *operations, uint64_t *ret_revision)
{
        _cleanup_json_ json_t *answer = NULL;
        int r = call(s, ETCD_TRANSACTION, etcd_transaction(json_pack("[o]", condition), operations), &answer, ret_revision);

        return r < 0 ? r : etcd_succeeded(answer);
}

/* --- keys that are not records ---------------------------------------------------------------------------------------- */

/* The keys that are not records, at one moment. */
struct overview {
        uint64_t revision;            /* of that moment */
        uint64_t commit;              /* revision of the last commit; 0: there was none */
        uint64_t redo;                /* revision of `redo`; 0: there is none */
};

enum { AT_COMMIT, AT_REDO, AT_VERSION };

static json_t *make_inspection(const struct etcd_store *s)
{
        return etcd_transaction(json_array(), json_pack("[o, o, o]", etcd_op_get(key_of(s, "commit").text),
                                                        etcd_op_get(key_of(s, "redo").text),
                                                        etcd_op_get(key_of(s, "version").text)));
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

static int inspect(struct etcd_store *s, struct overview *ret)
{
        _cleanup_arena_ struct arena *a = arena_new();
        struct etcd_record commit, redo, version;
        _cleanup_json_ json_t *answer = NULL;
        uint64_t revision;
        int r = a ? call(s, ETCD_TRANSACTION, make_inspection(s), &answer, &revision) : -ENOMEM;

        r = r ?: read_single(answer, AT_COMMIT, a, &commit) ?: read_single(answer, AT_REDO, a, &redo) ?:
                read_single(answer, AT_VERSION, a, &version) ?: check_version(&version);
        if (r < 0)
                return r;
        if (commit.modified < s->seen)
                return -EUCLEAN;
        s->has_version = version.key;
        *ret = (struct overview) { revision, commit.modified, redo.modified };
        (void) snprintf(s->last_writer, sizeof(s->last_writer), "%s", commit.value ?: "");
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
        r = transact(s, etcd_if_modified(part->key, part->modified), STEAL(operations), NULL);
        return r < 0 ? r : 0;
}

/* A part that is read together with `redo` is committed; one that is read later may be of the next transaction. */
static json_t *make_next_part(const struct etcd_store *s)
{
        const struct etcd_key first = part_key(s, ETCD_NAMES_FIRST), end = part_key(s, ETCD_NAMES_END);

        return etcd_transaction(json_array(), json_pack("[o, o]", etcd_op_get(key_of(s, "redo").text),
                                                        etcd_op_range(first.text, end.text, 1, false)));
}

/* Returns 1 if `redo` still has this revision and there was a part; 0 if not. */
static int redo_next_part(struct etcd_store *s, uint64_t revision)
{
        _cleanup_arena_ struct arena *a = arena_new();
        _cleanup_json_ json_t *answer = NULL;
        struct etcd_record redo, part;
        int r = a ? call(s, ETCD_TRANSACTION, make_next_part(s), &answer, NULL) : -ENOMEM;

        r = r ?: read_single(answer, 0, a, &redo) ?: read_single(answer, 1, a, &part);
        if (r < 0 || redo.modified != revision || !part.key)
                return r;
        r = redo_part(s, &part);
        return r < 0 ? r : 1;
}

/* `redo` had this revision. */
static int redo(struct etcd_store *s, uint64_t revision)
{
        const struct etcd_key key = key_of(s, "redo");
        int r;

        do
                r = redo_next_part(s, revision);
        while (r > 0);
        if (r < 0)
                return r;
        r = transact(s, etcd_if_modified(key.text, revision), json_pack("[o]", etcd_op_delete(key.text, NULL)), NULL);
        return r < 0 ? r : 0;
}

/* Completes the transaction that an earlier commit left half done, if there is one. */
static int redo_own(struct etcd_store *s)
{
        int r = s->redo > 0 ? redo(s, s->redo) : 0;

        if (r == 0)
                s->redo = 0;
        return r;
}

/* Inspects until no large transaction is half done. */
static int inspect_whole(struct etcd_store *s, struct overview *ret)
{
        int r;

        for (int i = 0; i < MAX_TRIES; i++) {
                r = inspect(s, ret);
                if (r < 0 || ret->redo == 0)
                        return r;
                r = redo(s, ret->redo);
                if (r < 0)
                        return r;
        }
        return -EBUSY;
}

/* --- loading ---------------------------------------------------------------------------------------------------------- */

/* A range of records, which is read page by page. */
struct pages {
        struct etcd_key next, end;    /* where the next page begins (empty: there is none), and where the range ends */
        uint64_t revision;            /* all pages show the records as they were then */
        size_t n_prefix;              /* characters in front of the key of a record */
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

/* The next page begins behind this key; if it is too long to be pkeyd's, behind all keys with the same beginning. */
static void begin_behind(struct pages *p, const char *key)
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
                begin_behind(p, record.key);
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

static int load_page(struct etcd_store *s, struct pages *p, store_record_handler each, void *userdata)
{
        _cleanup_json_ json_t *answer = NULL;
        int r = call(s, ETCD_RANGE, etcd_range(p->next.text, p->end.text, PAGE, p->revision), &answer, NULL);

        return r < 0 ? r : pass_records(p, answer, each, userdata);
}

static int load_at(struct etcd_store *s, const struct overview *at, const char *first, const char *end, store_record_handler each,
                   void *userdata)
{
        struct pages p = {
                .next = record_key(s, first), .end = record_key(s, end), .revision = at->revision,
                .n_prefix = strlen(record_key(s, "").text),
        };
        int r = 0;

        while (r == 0 && p.next.text[0])
                r = load_page(s, &p, each, userdata);
        return r;
}

static int load(struct store *store, const char *first, const char *end, store_record_handler each, void *userdata)
{
        struct etcd_store *s = of_store(store);
        struct overview at;
        int r;

        assert(!s->loading);
        s->loading = true;
        r = inspect_whole(s, &at) ?: load_at(s, &at, first ?: "", end ?: "\x7f", each, userdata);
        s->loading = false;
        if (r >= 0 && !first)
                s->seen = at.commit;
        return r;
}

static int changed(struct store *store)
{
        struct etcd_store *s = of_store(store);
        struct overview now;
        int r = inspect_whole(s, &now);

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
static int read_holder(struct etcd_store *s, const json_t *answer, char ret_holder[LOCK_HOLDER_SIZE])
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
                return read_holder(s, answer, ret_holder);
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
        r = transact(s, etcd_if_created(key.text, 0), json_pack("[o]", etcd_op_put(key.text, text, strlen(text), 0)), NULL);
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
        r = etcd_lease_take(&s->lease, s->http, s->loop, s->config->lease, TIMEOUT) ?: take_lock(s, ret_holder) ?: put_version(s);
        if (r < 0)
                etcd_store_unlock(store);
        return r;
}

void etcd_store_unlock(struct store *store)
{
        struct etcd_store *s = of_store(store);

        s->lock = 0;
        etcd_lease_give_back(&s->lease, GIVE_BACK);
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

/* The operations from *at on that fit in one transaction of etcd, at least one. Moves *at behind them. NULL: out of memory. */
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

/* One transaction of etcd, if this process still holds the lock. ret_revision may be NULL. */
static int commit_fenced(struct etcd_store *s, json_t *operations, uint64_t *ret_revision)
{
        uint64_t revision;
        int r = transact(s, etcd_if_created(key_of(s, "lock").text, s->lock), operations, &revision);

        if (r < 0)
                return r;
        if (r == 0) {
                s->lease.deadline = 0;
                return -ENOLCK;
        }
        if (ret_revision)
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

static json_t *append_commit(const struct etcd_store *s, json_t *operations)
{
        return append(operations, etcd_op_put(key_of(s, "commit").text, s->holder, strlen(s->holder), 0));
}

static int put_part(struct etcd_store *s, size_t part, json_t *operations)
{
        _cleanup_json_ json_t *mine = operations;
        _cleanup_free_ char *text = mine ? json_dumps(mine, JSON_COMPACT) : NULL;
        char name[24];

        if (!text)
                return -ENOMEM;
        (void) snprintf(name, sizeof(name), "%06zu", part);
        return commit_fenced(s, json_pack("[o]", etcd_op_put(part_key(s, name).text, text, strlen(text), 0)), NULL);
}

/* Deletes parts of a transaction that was not committed. */
static int delete_parts(struct etcd_store *s)
{
        const struct etcd_key first = part_key(s, ETCD_NAMES_FIRST), end = part_key(s, ETCD_NAMES_END);

        return commit_fenced(s, json_pack("[o]", etcd_op_delete(first.text, end.text)), NULL);
}

static int commit_large(struct etcd_store *s, const struct last_ops *l)
{
        char text[24];
        size_t at = 0, n_parts = 0;
        uint64_t revision;
        int r = delete_parts(s);

        while (r == 0 && at < l->n)
                r = put_part(s, n_parts++, make_operations(s, l, &at));
        if (r < 0)
                return r;
        (void) snprintf(text, sizeof(text), "%zu", n_parts);
        r = commit_fenced(s, append_commit(s, json_pack("[o]", etcd_op_put(key_of(s, "redo").text, text, strlen(text), 0))),
                          &revision);
        if (r < 0)
                return r;
        s->seen = s->redo = revision;
        (void) redo_own(s); /* if it fails, the next commit or the next reader does what is left */
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
        r = r ?: redo_own(s); /* otherwise its parts would replace newer records, or a large transaction would delete them */
        if (r < 0)
                return r;
        operations = make_operations(s, &last, &at);
        if (!operations)
                return -ENOMEM;
        return at < last.n ? commit_large(s, &last) : commit_fenced(s, append_commit(s, STEAL(operations)), &s->seen);
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

static int on_ready(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        (void) source;
        (void) fd;
        (void) events;
        run_loop(userdata, false);
        return 0;
}

static int on_prepare(sd_event_source *source, void *userdata)
{
        (void) source;
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

        if (s->http)
                etcd_store_unlock(store);
        sd_event_source_disable_unref(s->attached);
        s->http = etcd_http_free(s->http);
        sd_event_unref(s->loop);
        free(s);
        return NULL;
}

static const struct store_operations operations = { .load = load, .commit = commit, .changed = changed, .close = close_store };

bool etcd_store_is_of_other_host(const struct store *store)
{
        const struct etcd_store *s = (const struct etcd_store *) store;
        char here[sizeof(s->host) + 8];

        (void) snprintf(here, sizeof(here), " on %s (", s->host);
        return *s->last_writer && !strstr(s->last_writer, here);
}

static void name_holder(struct etcd_store *s)
{
        (void) gethostname(s->host, sizeof(s->host) - 1);
        (void) snprintf(s->holder, sizeof(s->holder), "%s on %s (process %d)", program_invocation_short_name, s->host, (int) getpid());
}

int etcd_store_open(const struct etcd_config *config, struct store **ret, char **ret_problem)
{
        struct etcd_store *s = calloc(1, sizeof(*s));
        _cleanup_store_ struct store *store = s ? &s->store : NULL;
        struct overview now;
        int r;

        if (!s)
                return -ENOMEM;
        s->store.operations = &operations;
        s->config = config;
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
