/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "records/lease_records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "records/lease_json.h"

#define REST_KEY RECORDS_REST "0x%04x"

static json_t *rest_to_json(const struct lease_rest *r)
{
        return json_pack("{s:I, s:I}", "seconds", (json_int_t) r->seconds, "until", (json_int_t) r->until);
}

static void put_lease(struct store_transaction *t, const struct lease *lease)
{
        const struct store_key key = store_key(RECORDS_LEASE "%s", lease->id);

        if (lease->state == LEASE_ENDED)
                store_delete(t, key.text);
        else
                store_put_json(t, key.text, lease_to_json(lease));
}

static void put_rest(struct store_transaction *t, const struct lease_rest *rest)
{
        const struct store_key key = store_key(REST_KEY, rest->base);

        if (rest->is_over)
                store_delete(t, key.text);
        else
                store_put_json(t, key.text, rest_to_json(rest));
}

void records_put_leases(struct store_transaction *t, const struct leases *l)
{
        const struct lease *const *leases;
        const struct lease_rest *rests;
        size_t n;

        /* an ended lease comes before a new one with its ID */
        leases = leases_list(l, &n);
        for (size_t i = 0; i < n; i++)
                if (leases[i]->store != LEASE_IN_STORE)
                        put_lease(t, leases[i]);
        rests = leases_rests(l, &n);
        for (size_t i = 0; i < n; i++)
                if (rests[i].store != LEASE_IN_STORE)
                        put_rest(t, &rests[i]);
}

static int restore_lease(struct leases *l, const struct known *known, const char *id, const json_t *o)
{
        _cleanup_(lease_free_p) struct lease *lease = lease_new();
        int r;

        if (!lease)
                return -ENOMEM;
        lease->id = arena_strdup(lease->arena, id);
        if (!lease->id || lease_id_problem(id) || !lease_from_json(o, known, lease))
                return -EBADMSG;
        lease->store = LEASE_IN_STORE;
        r = leases_restore(l, lease);
        if (r == 0)
                (void) STEAL(lease);
        return r;
}

static int restore_rest(struct leases *l, const char *key, const json_t *o)
{
        struct lease_rest rest = { .store = LEASE_IN_STORE };
        unsigned long base = strtoul(key + strlen(RECORDS_REST), NULL, 16);

        if (base == 0 || base > P_KEY_BASE_MASK || strcmp(key, store_key(REST_KEY, (unsigned) base).text) != 0 ||
            !lease_rest_from_json(o, &rest))
                return -EBADMSG;
        rest.base = (uint16_t) base;
        return leases_restore_rest(l, &rest);
}

int lease_record_restore(struct leases *l, const struct known *known, const char *key, const void *value, size_t n)
{
        _cleanup_json_ json_t *o = json_loadb(value, n, JSON_REJECT_DUPLICATES, NULL);

        if (strncmp(key, RECORDS_LEASE, strlen(RECORDS_LEASE)) == 0)
                return restore_lease(l, known, key + strlen(RECORDS_LEASE), o);
        return restore_rest(l, key, o);
}
