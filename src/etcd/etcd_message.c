/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "etcd/etcd_message.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "util/base64.h"
#include "util/scan.h"

static json_t *encode(const void *bytes, size_t n)
{
        _cleanup_free_ char *text = malloc(BASE64_SIZE(n));

        if (!text)
                return NULL;
        base64_encode(bytes, n, text);
        return json_string(text);
}

static json_t *encode_key(const char *key)
{
        return encode(key, strlen(key));
}

static json_t *number(uint64_t v)
{
        return json_sprintf("%" PRIu64, v);
}

/* --- keys ------------------------------------------------------------------------------------------------------------- */

struct etcd_key etcd_key(const char *fabric, const char *folder, const char *name)
{
        struct etcd_key key;
        int n = snprintf(key.text, sizeof(key.text), "/pkeyd%s%s/%s%s", fabric ? "@" : "", fabric ?: "", folder, name);

        assert(n > 0 && (size_t) n < sizeof(key.text));
        return key;
}

/* --- requests --------------------------------------------------------------------------------------------------------- */

/* Adds a member to an object; the object is gone if that fails. */
static json_t *add(json_t *object, const char *name, json_t *value)
{
        if (json_object_set_new(object, name, value) == 0)
                return object;
        json_decref(object);
        return NULL;
}

static json_t *add_end(json_t *range, const char *end)
{
        return end ? add(range, "range_end", encode_key(end)) : range;
}

json_t *etcd_range(const char *key, const char *end, unsigned limit, uint64_t revision)
{
        return add_end(json_pack("{so, so, so}", "key", encode_key(key), "limit", number(limit), "revision", number(revision)), end);
}

json_t *etcd_changes(const char *key, const char *end, unsigned limit, uint64_t after)
{
        return add(add(etcd_range(key, end, limit, 0), "keys_only", json_true()), "min_mod_revision", number(after + 1));
}

json_t *etcd_lease_grant(unsigned seconds)
{
        return json_pack("{so}", "TTL", number(seconds));
}

json_t *etcd_lease_reference(uint64_t lease)
{
        return json_pack("{so}", "ID", number(lease));
}

json_t *etcd_op_range(const char *key, const char *end, unsigned limit, bool keys_only)
{
        return json_pack("{so}", "request_range", add(etcd_range(key, end, limit, 0), "keys_only", json_boolean(keys_only)));
}

json_t *etcd_op_get(const char *key)
{
        return etcd_op_range(key, NULL, 1, false);
}

json_t *etcd_op_put(const char *key, const void *value, size_t n, uint64_t lease)
{
        return json_pack("{s{so, so, so}}", "request_put", "key", encode_key(key), "value", encode(value, n), "lease", number(lease));
}

json_t *etcd_op_delete(const char *key, const char *end)
{
        return json_pack("{so}", "request_delete_range", add_end(json_pack("{so}", "key", encode_key(key)), end));
}

json_t *etcd_if_created(const char *key, uint64_t revision)
{
        return json_pack("{so, ss, ss, so}", "key", encode_key(key), "target", "CREATE", "result", "EQUAL", "create_revision",
                         number(revision));
}

json_t *etcd_if_modified(const char *key, uint64_t revision)
{
        return json_pack("{so, ss, ss, so}", "key", encode_key(key), "target", "MOD", "result", "EQUAL", "mod_revision",
                         number(revision));
}

json_t *etcd_transaction(json_t *conditions, json_t *operations)
{
        return json_pack("{so, so}", "compare", conditions, "success", operations);
}

json_t *etcd_or_else(json_t *transaction, json_t *operations)
{
        return add(transaction, "failure", operations);
}

/* --- answers ---------------------------------------------------------------------------------------------------------- */

bool etcd_number(const json_t *object, const char *name, uint64_t *ret)
{
        const json_t *j = json_object_get(object, name);
        const char *text = json_string_value(j);
        struct scan s = { text, text ? text + strlen(text) : NULL };

        *ret = 0;
        if (!j)
                return true;
        return text && scan_number(&s, 10, UINT64_MAX, ret) && s.p == s.end;
}

bool etcd_read_header(const json_t *answer, struct etcd_header *ret)
{
        const json_t *header = json_object_get(answer, "header");

        return header && etcd_number(header, "cluster_id", &ret->cluster) && etcd_number(header, "revision", &ret->revision) &&
               ret->cluster > 0 && ret->revision > 0;
}

bool etcd_succeeded(const json_t *answer)
{
        return json_is_true(json_object_get(answer, "succeeded"));
}

const json_t *etcd_range_of(const json_t *answer, size_t i)
{
        return json_object_get(json_array_get(json_object_get(answer, "responses"), i), "response_range");
}

/* Returns 0, -EPROTO, -ENOMEM. */
static int decode(const json_t *object, const char *name, struct arena *a, const char **ret, size_t *ret_n)
{
        const json_t *j = json_object_get(object, name);
        const char *text = j ? json_string_value(j) : "";
        char *bytes;

        if (!text)
                return -EPROTO;
        bytes = arena_new_array(a, char, BASE64_BYTES(strlen(text)) + 1);
        if (!bytes)
                return -ENOMEM;
        if (!base64_decode(text, bytes, ret_n))
                return -EPROTO;
        bytes[*ret_n] = '\0';
        *ret = bytes;
        return 0;
}

int etcd_read_record(const json_t *range, size_t i, struct arena *a, struct etcd_record *ret)
{
        const json_t *kv = json_array_get(json_object_get(range, "kvs"), i);
        size_t n;
        int r;

        if (!kv)
                return -ENOENT;
        r = decode(kv, "key", a, &ret->key, &n) ?: decode(kv, "value", a, &ret->value, &ret->n);
        if (r < 0)
                return r;
        return strlen(ret->key) == n && etcd_number(kv, "create_revision", &ret->created) &&
               etcd_number(kv, "mod_revision", &ret->modified) && etcd_number(kv, "lease", &ret->lease) ? 0 : -EPROTO;
}

bool etcd_has_more(const json_t *range)
{
        return json_is_true(json_object_get(range, "more"));
}
