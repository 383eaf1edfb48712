/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * store/: what pkeyd remembers, as records: keys with values, ordered by key.
 *
 * A store survives a crash at any instruction. It has few operations, so that it can be a file (state/sqlite_store.h) or a
 * cluster of other hosts (etcd/etcd_store.h):
 *
 *     load      all records, or those of a range, in the order of their keys, as they are at one moment
 *     commit    a transaction: a list of puts and deletes, all or none of which take effect; durable when it returns
 *     changed   whether another process has committed since the last call
 *
 * Keys are paths: `table/endport/0x0002c90300800001/1`, `generation/...`, `known/...` (records/stored_records.h has all). They are
 * compared as bytes, so a number in a key has leading zeros if its order matters. Values are bytes; the writer of a record defines
 * them.
 *
 * This folder is what all stores have in common: what a valid key is, a transaction while it is built, and the operations of a
 * store. The operations of a transaction take effect in their order: the last one on a key counts.
 *
 * This folder does not know where records are kept, or what they mean.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "util/arena.h"

/* The version of the tables of state.db and of the values of all records together. A store with a newer version is refused. */
#define STORE_SCHEMA_VERSION 1

/* A key has 1 to STORE_KEY_MAX bytes of printable ASCII without blanks, a value 0 to STORE_VALUE_MAX bytes. */
#define STORE_KEY_MAX   200
#define STORE_VALUE_MAX ((size_t) 1 << 20)
/* Who holds the lock of a store, for people. */
#define LOCK_HOLDER_SIZE 192

struct store_op {
        const char *key;
        const void *value; /* NULL: delete the record, if it exists */
        size_t n;
};

/* Errors stick: put and delete without checks, then check `error` once. With an error the transaction must not be committed: it is
 * not complete. */
struct store_transaction {
        struct arena *arena; /* borrowed; everything below is in it */
        struct store_op *ops;
        size_t n, allocated;
        int error; /* the first since init: 0, -ENOMEM, -EINVAL (not a key), -EFBIG (a value over STORE_VALUE_MAX) */
};

/* Called for each record that is loaded; borrows key and value until it returns. A key or a value that no transaction can have
 * put there, so that another program must have written it, is NULL. A return value other than 0 ends the load, which returns it. */
typedef int (*store_record_handler)(void *userdata, const char *key, const void *value, size_t n);

/* An empty transaction. Borrows the arena. */
void store_transaction_init(struct store_transaction *t, struct arena *a);
/* Creates or replaces a record. Copies key and value; value may be NULL if n is 0. */
void store_put(struct store_transaction *t, const char *key, const void *value, size_t n);
/* Puts an object as compact JSON. Takes the object; NULL: out of memory. */
void store_put_json(struct store_transaction *t, const char *key, json_t *object);
/* Copies the key. */
void store_delete(struct store_transaction *t, const char *key);

struct store_key {
        char text[STORE_KEY_MAX + 1];
};
/* A key by a format, whose result must not be too long. */
struct store_key store_key(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool store_key_is_valid(const char *key);

/* --- stores --------------------------------------------------------------------------------------------------------- */

/* The first member of each kind of store. Each kind documents the errors of its own. */
struct store {
        const struct store_operations *operations;
};

struct store_operations {
        int (*load)(struct store *s, const char *first, const char *end, store_record_handler each, void *userdata);
        int (*commit)(struct store *s, const struct store_transaction *t);
        int (*changed)(struct store *s);
        struct store *(*close)(struct store *s);
};

/* Calls `each` for all records, ordered by key, as they are at one moment. `each` must not use the store. Returns 0, what `each`
 * returned if that is not 0, or an error as store_commit(). */
static inline int store_load(struct store *s, store_record_handler each, void *userdata)
{
        return s->operations->load(s, NULL, NULL, each, userdata);
}

/* The same for the records whose keys are at least `first` and less than `end`. */
static inline int store_load_range(struct store *s, const char *first, const char *end, store_record_handler each, void *userdata)
{
        return s->operations->load(s, first, end, each, userdata);
}

/* Returns 1 if it has no records, 0 if it has, or an error as store_commit(). */
int store_is_empty(struct store *s);

/* Commits all or nothing of a transaction. Returns 0 when it is durable, the error of the transaction if it has one, -ENOMEM,
 * -ENOSPC, or
 *
 *     -EUCLEAN  the store was lost, removed or replaced: close it and open it again */
static inline int store_commit(struct store *s, const struct store_transaction *t)
{
        return s->operations->commit(s, t);
}

/* Returns 1 if another process, or another store of this process, has committed since the last call, or since the store was
 * opened; else 0. Errors as store_commit(). */
static inline int store_changed(struct store *s)
{
        return s->operations->changed(s);
}

/* Accepts NULL; returns NULL. */
static inline struct store *store_close(struct store *s)
{
        return s ? s->operations->close(s) : NULL;
}
DEFINE_CLEANUP(struct store *, store_close)
#define _cleanup_store_ _cleanup_(store_close_p)
