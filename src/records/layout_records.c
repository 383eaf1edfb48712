/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "records/layout_records.h"

#include <errno.h>
#include <string.h>

#include "util/scan.h"
#include "util/text.h"
#include "util/vector.h"

#define BEFORE_KEY RECORDS_BEFORE "%020" PRIu64 "/0x%016" PRIx64 "/%03u" /* format: generation, node GUID, port number */

/* --- keys ----------------------------------------------------------------------------------------------------------- */

static struct store_key name_record(const struct before_key *k)
{
        return store_key(BEFORE_KEY, k->generation, k->node_guid.v, k->number);
}

static bool read_key(const char *key, struct before_key *ret)
{
        struct scan s = { key, key + strlen(key) };
        uint64_t generation, node, number;

        if (!scan_word(&s, RECORDS_BEFORE) || !scan_number(&s, 10, INT64_MAX, &generation) || !scan_word(&s, "/0x") ||
            !scan_number(&s, 16, UINT64_MAX, &node) || !scan_char(&s, '/') || !scan_number(&s, 10, UINT8_MAX, &number))
                return false;
        *ret = (struct before_key) { .generation = generation, .node_guid = { node }, .number = (uint8_t) number };
        return strcmp(key, name_record(ret).text) == 0;
}

void before_records_done(struct before_records *b)
{
        free(b->items);
        *b = (struct before_records) {};
}

int before_records_restore(struct before_records *b, const char *key)
{
        struct before_key k;

        if (!read_key(key, &k) || (b->n > 0 && b->items[b->n - 1].generation > k.generation))
                return -EBADMSG;
        return VECTOR_ADD(NULL, b->items, b->n, b->allocated, k);
}

void before_records_mark(const struct before_records *b, uint64_t generation, const struct subnet *s, bool *ret_has)
{
        for (size_t i = b->n; i > 0 && b->items[i - 1].generation >= generation; i--) {
                const struct before_key *k = &b->items[i - 1];
                uint32_t port = subnet_find_port_of(s, k->node_guid, k->number);

                if (k->generation == generation && port != SUBNET_NONE)
                        ret_has[port] = true;
        }
}

/* --- to the store --------------------------------------------------------------------------------------------------- */

/* How many of the oldest records to delete, so that there is room for `more` of this generation: those of whole generations before
 * it. */
static size_t n_surplus(const struct before_records *b, uint64_t generation, size_t more)
{
        size_t n = 0;

        while (n < b->n && b->n - n + more > RECORDS_MAX_BEFORE && b->items[n].generation < generation) {
                uint64_t oldest = b->items[n].generation;

                while (n < b->n && b->items[n].generation == oldest)
                        n++;
        }
        return n;
}

static struct before_key key_of(uint64_t generation, const struct layout_table *t)
{
        return (struct before_key) { .generation = generation, .node_guid = t->node_guid, .number = t->number };
}

static void put(struct store_transaction *t, uint64_t generation, const struct layout_table *table)
{
        const struct before_key key = key_of(generation, table);
        _cleanup_text_ struct text value = {};

        p_keys_to_hex(&value, table->entries, table->n);
        if (value.failed)
                t->error = t->error ?: -ENOMEM;
        else
                store_put(t, name_record(&key).text, value.bytes, value.n);
}

void records_put_before(struct store_transaction *t, const struct before_records *b, uint64_t generation, const struct layout *l)
{
        size_t surplus = n_surplus(b, generation, l->n);

        for (size_t i = 0; i < surplus; i++)
                store_delete(t, name_record(&b->items[i]).text);
        for (size_t i = 0; i < l->n; i++)
                put(t, generation, &l->tables[i]);
}

void before_records_stored(struct before_records *b, uint64_t generation, const struct layout *l)
{
        size_t surplus = n_surplus(b, generation, l->n), at;

        if (surplus > 0)
                memmove(b->items, b->items + surplus, (b->n -= surplus) * sizeof(*b->items));
        if (l->n == 0 || VECTOR_EXTEND(NULL, b->items, b->n, b->allocated, l->n) < 0)
                return;
        /* a generation that never came into force may have records already */
        at = LOWER_BOUND(item, b->items, b->n, item->generation <= generation);
        memmove(b->items + at + l->n, b->items + at, (b->n - at) * sizeof(*b->items));
        for (size_t i = 0; i < l->n; i++)
                b->items[at + i] = key_of(generation, &l->tables[i]);
        b->n += l->n;
}

/* --- reading -------------------------------------------------------------------------------------------------------- */

int before_record_read(struct layout *l, uint64_t after, const char *key, const void *value, size_t n)
{
        size_t n_entries = n / 4;
        _cleanup_free_ struct p_key *entries = calloc(n_entries + 1, sizeof(*entries));
        struct before_key k;

        if (!entries)
                return -ENOMEM;
        if (!value || n_entries > UINT16_MAX || !p_keys_from_hex(value, n, entries, n_entries) || !read_key(key, &k))
                return -EBADMSG;
        return k.generation > after ? layout_add(l, k.node_guid, k.number, entries, (uint16_t) n_entries) : 0;
}
