/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The requests of etcd's API (rpc.proto, as the gateway maps it to JSON), and what is read from the answers. Keys and values are
 * in base64, 64-bit numbers are strings, and a member that is 0 or empty is missing.
 *
 * Functions that make JSON return a new reference, NULL: out of memory. They accept NULL for a part, and then return NULL; they
 * take the references of their parts in any case.
 */

#include <stddef.h>
#include <stdint.h>

#include "util/arena.h"
#include "util/json.h"

/* --- keys ------------------------------------------------------------------------------------------------------------- */

struct etcd_key {
        char text[512];
};

/* "/pkeyd/FOLDER/NAME", or "/pkeyd@FABRIC/FOLDER/NAME" for one of several fabrics. folder: with its slash; "": none. */
struct etcd_key etcd_key(const char *fabric, const char *folder, const char *name);

/* In the folders other than `record/`, names begin with a letter or a digit: all of them are from FIRST to before END. */
#define ETCD_NAMES_FIRST ""
#define ETCD_NAMES_END   "~"

/* --- requests --------------------------------------------------------------------------------------------------------- */

#define ETCD_RANGE        "/v3/kv/range"
#define ETCD_TRANSACTION  "/v3/kv/txn"
#define ETCD_LEASE_GRANT  "/v3/lease/grant"
#define ETCD_LEASE_RENEW  "/v3/lease/keepalive"
#define ETCD_LEASE_REVOKE "/v3/lease/revoke"

/* ETCD_RANGE: the records from `key` to before `end`, limit of them at most; end NULL: this key only. revision: as they were then;
 * 0: as they are. */
json_t *etcd_range(const char *key, const char *end, unsigned limit, uint64_t revision);
/* Of these keys those that were put after a revision, without values; the answer's `count` is that of all keys. */
json_t *etcd_changes(const char *key, const char *end, unsigned limit, uint64_t after);

/* ETCD_LEASE_GRANT; ETCD_LEASE_RENEW and ETCD_LEASE_REVOKE. */
json_t *etcd_lease_grant(unsigned seconds);
json_t *etcd_lease_reference(uint64_t lease);

/* Operations of a transaction: read one record, read a range, put, delete. end: as in etcd_range(). lease: when this lease ends,
 * the key is gone; 0: it stays. */
json_t *etcd_op_get(const char *key);
json_t *etcd_op_range(const char *key, const char *end, unsigned limit, bool keys_only);
json_t *etcd_op_put(const char *key, const void *value, size_t n, uint64_t lease);
json_t *etcd_op_delete(const char *key, const char *end);

/* Conditions: the key was created, or last put, at this revision; 0: it does not exist. */
json_t *etcd_if_created(const char *key, uint64_t revision);
json_t *etcd_if_modified(const char *key, uint64_t revision);

/* ETCD_TRANSACTION: operations that are carried out if all conditions hold; both are arrays. */
json_t *etcd_transaction(json_t *conditions, json_t *operations);
/* Adds the operations that are carried out otherwise. */
json_t *etcd_or_else(json_t *transaction, json_t *operations);

/* --- answers ---------------------------------------------------------------------------------------------------------- */

/* A member that is missing is 0. Returns false if it is not a number. */
bool etcd_number(const json_t *object, const char *name, uint64_t *ret);

struct etcd_header {
        uint64_t cluster, revision;
};
bool etcd_read_header(const json_t *answer, struct etcd_header *ret);

/* Of a transaction: whether its conditions held; what operation i has read, NULL if there is no such operation. */
bool etcd_succeeded(const json_t *answer);
const json_t *etcd_range_of(const json_t *answer, size_t i);

/* value has a NUL after its n bytes. */
struct etcd_record {
        const char *key;
        const char *value;
        size_t n;
        uint64_t created, modified, lease;
};

/* Record i of a range that was read, in the arena. Returns 0, -ENOENT (there is none), -EPROTO, -ENOMEM. */
int etcd_read_record(const json_t *range, size_t i, struct arena *a, struct etcd_record *ret);
/* There are more records than the limit allowed. */
bool etcd_has_more(const json_t *range);
