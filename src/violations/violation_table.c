/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "violations/violation_table.h"

#include <assert.h>
#include <errno.h>

static void set_host(const struct violation_host **to, const struct violation_host *host)
{
        violation_host_ref(host);
        violation_host_unref(*to);
        *to = host;
}

static void set_hosts(struct violation_record *r, const struct violation_record *key)
{
        set_host(&r->host, key->host);
        set_host(&r->from, key->from);
        set_host(&r->to, key->to);
}

void violation_table_init(struct violation_table *t)
{
        for (size_t i = 0; i < LIFE_N; i++)
                record_list_init(&t->lives[i]);
        for (size_t i = 0; i < REPORT_N_STATES; i++)
                record_list_init(&t->reports[i]);
}

void violation_table_done(struct violation_table *t)
{
        for (uint32_t i = 0; i < t->n; i++)
                set_hosts(&t->entries[i].record, &(struct violation_record) {});
        free(t->entries);
        free(t->life_links);
        free(t->report_links);
        free(t->sorted);
        hash_index_done(&t->index);
}

/* With one key between the same two ends, whatever the QPs: they come and go with each job. */
static int compare_notices(const struct notice *a, const struct notice *b)
{
        const uint64_t x[] = { a->key, a->lid1.v, a->lid2.v, a->gid1.prefix, a->gid1.id, a->gid2.prefix, a->gid2.id };
        const uint64_t y[] = { b->key, b->lid1.v, b->lid2.v, b->gid1.prefix, b->gid1.id, b->gid2.prefix, b->gid2.id };
        int c = 0;

        for (size_t i = 0; i < ELEMENTS(x) && c == 0; i++)
                c = ORDER(x[i], y[i]);
        return c;
}

/* The notice of a counter's record is all 0. */
int violation_compare_records(const void *a, const void *b)
{
        const struct violation_record *x = a, *y = b;

        return violation_port_compare(&x->port, &y->port) ?: ORDER(x->source, y->source) ?:
               violation_compare_hosts(x->host, y->host) ?: compare_notices(&x->notice, &y->notice) ?:
               violation_compare_hosts(x->from, y->from) ?: violation_compare_hosts(x->to, y->to);
}

static uint64_t hash_of(const struct violation_record *r)
{
        const struct notice *n = &r->notice;
        uint64_t h = hash_mix(violation_port_hash(r->port), r->source);

        if (r->source < VIOLATION_N_COUNTERS)
                return hash_mix(h, r->host ? r->host->guid.v : 0);
        h = hash_mix(h, (uint64_t) n->key << 32 | (uint32_t) n->lid1.v << 16 | n->lid2.v);
        return hash_mix(hash_mix(h, n->gid1.id), n->gid2.id);
}

uint32_t violation_table_find(const struct violation_table *t, const struct violation_record *key)
{
        return HASH_INDEX_FIND(i, &t->index, hash_of(key), violation_compare_records(&t->entries[i].record, key) == 0);
}

void violation_table_set_life(struct violation_table *t, uint32_t entry, enum life life)
{
        struct violation_entry *e = &t->entries[entry];

        assert(entry < t->n);
        record_list_remove(&t->lives[e->life], t->life_links, entry);
        e->life = life;
        record_list_append(&t->lives[life], t->life_links, entry);
}

void violation_table_set_report_state(struct violation_table *t, uint32_t entry, enum report_state state)
{
        struct violation_entry *e = &t->entries[entry];

        assert(entry < t->n);
        if (e->report_state != REPORT_NONE)
                record_list_remove(&t->reports[e->report_state], t->report_links, entry);
        e->report_state = state;
        if (state != REPORT_NONE)
                record_list_append(&t->reports[state], t->report_links, entry);
}

static int grow(struct violation_table *t)
{
        uint32_t n = MAX(t->allocated * 2, 64u);

        if (record_array_grow(&t->entries, sizeof(*t->entries), n) < 0 ||
            record_array_grow(&t->life_links, sizeof(*t->life_links), n) < 0 ||
            record_array_grow(&t->report_links, sizeof(*t->report_links), n) < 0 ||
            record_array_grow(&t->sorted, sizeof(*t->sorted), n) < 0 || hash_index_reserve(&t->index, n) < 0)
                return -ENOMEM;
        t->allocated = n;
        return 0;
}

/* Removes the entry that has been quiet longest from the table and from all lists. */
static uint32_t evict(struct violation_table *t)
{
        uint32_t i = VIOLATION_NONE;

        for (enum life life = 0; i == VIOLATION_NONE; life++)
                i = t->lives[life].first;
        set_hosts(&t->entries[i].record, &(struct violation_record) {});
        violation_table_set_report_state(t, i, REPORT_NONE);
        record_list_remove(&t->lives[t->entries[i].life], t->life_links, i);
        hash_index_remove(&t->index, i);
        return i;
}

/* A place for one more entry. */
static uint32_t make_room(struct violation_table *t)
{
        if (t->n == VIOLATIONS_MAX_RECORDS)
                return evict(t);
        if (t->n == t->allocated && grow(t) < 0)
                return VIOLATION_NONE;
        return t->n++;
}

uint32_t violation_table_take(struct violation_table *t, const struct violation_record *key)
{
        uint32_t i = violation_table_find(t, key);

        if (i == VIOLATION_NONE) {
                i = make_room(t);
                if (i == VIOLATION_NONE)
                        return i;
                t->entries[i] = (struct violation_entry) {
                        .record = { .port = key->port, .source = key->source, .notice = key->notice },
                        .life = LIFE_IDLE, .report_state = REPORT_NONE,
                };
                hash_index_add(&t->index, i, hash_of(key));
                record_list_append(&t->lives[LIFE_IDLE], t->life_links, i);
        }
        set_hosts(&t->entries[i].record, key);
        return i;
}
