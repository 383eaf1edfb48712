/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>

#include "util/vector.h"
#include "violations/violation_table.h"

#define AT_START 64

void violation_table_init(struct violations *v)
{
        for (size_t i = 0; i < LIFE_N; i++)
                record_list_init(&v->lives[i]);
        for (size_t i = 0; i < REPORT_N_STATES; i++)
                record_list_init(&v->report_lists[i]);
        counter_samples_init(&v->samples);
}

void violation_table_done(struct violations *v)
{
        for (uint32_t i = 0; i < v->n; i++)
                violation_entry_set_hosts(&v->entries[i], NULL, NULL, NULL);
        free(v->entries);
        free(v->life_links);
        free(v->report_links);
        free(v->sorted);
        free(v->ports);
        hash_index_done(&v->index);
        counter_samples_done(&v->samples);
}

/* With one key between the same two ends. QPs are not looked at: they come and go with each job. */
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
        int c = violation_port_compare(&x->port, &y->port);

        if (c == 0)
                c = ORDER(x->source, y->source) ?: violation_compare_hosts(x->host, y->host);
        c = c ?: compare_notices(&x->notice, &y->notice);
        return c ?: violation_compare_hosts(x->from, y->from) ?: violation_compare_hosts(x->to, y->to);
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

static struct violation_record identity(const struct violation_key *key)
{
        struct violation_record r = {
                .port = key->port, .source = key->source, .host = key->host, .from = key->from, .to = key->to,
        };

        if (key->notice)
                r.notice = *key->notice;
        return r;
}

static uint32_t find(const struct violations *v, const struct violation_record *who)
{
        uint32_t i = hash_index_first(&v->index, hash_of(who));

        while (i != VIOLATION_NONE && violation_compare_records(&v->entries[i].record, who) != 0)
                i = hash_index_next(&v->index, i);
        return i;
}

uint32_t violation_table_find(const struct violations *v, const struct violation_key *key)
{
        const struct violation_record who = identity(key);

        return find(v, &who);
}

void violation_table_set_life(struct violations *v, uint32_t entry, enum life life)
{
        struct violation_entry *e = &v->entries[entry];

        record_list_remove(&v->lives[e->life], v->life_links, entry);
        e->life = life;
        record_list_append(&v->lives[life], v->life_links, entry);
}

void violation_table_set_report_state(struct violations *v, uint32_t entry, enum report_state state)
{
        struct violation_entry *e = &v->entries[entry];

        if (e->report_state != REPORT_NONE)
                record_list_remove(&v->report_lists[e->report_state], v->report_links, entry);
        e->report_state = state;
        if (state != REPORT_NONE)
                record_list_append(&v->report_lists[state], v->report_links, entry);
}

/* One array of the entries' kind, with room for n. */
static int grow_array(void *array, size_t size, uint32_t n)
{
        size_t allocated = 0;

        return vector_reserve(NULL, array, size, 0, &allocated, n);
}

static int grow(struct violations *v)
{
        uint32_t n = v->allocated ? v->allocated * 2 : AT_START;

        if (grow_array(&v->entries, sizeof(*v->entries), n) < 0 ||
            grow_array(&v->life_links, sizeof(*v->life_links), n) < 0 ||
            grow_array(&v->report_links, sizeof(*v->report_links), n) < 0 ||
            grow_array(&v->sorted, sizeof(*v->sorted), n) < 0 || grow_array(&v->ports, sizeof(*v->ports), n) < 0 ||
            hash_index_reserve(&v->index, n) < 0)
                return -ENOMEM;
        v->allocated = n;
        return 0;
}

/* Takes the entry that was quiet longest out of everything. */
static uint32_t evict(struct violations *v)
{
        uint32_t i = v->lives[LIFE_IDLE].first;

        if (i == VIOLATION_NONE)
                i = v->lives[LIFE_CALMED].first;
        if (i == VIOLATION_NONE)
                i = v->lives[LIFE_MOVED].first;
        if (i == VIOLATION_NONE)
                i = v->lives[LIFE_ACTIVE].first;
        violation_entry_set_hosts(&v->entries[i], NULL, NULL, NULL);
        violation_table_set_report_state(v, i, REPORT_NONE);
        record_list_remove(&v->lives[v->entries[i].life], v->life_links, i);
        hash_index_remove(&v->index, i);
        return i;
}

uint32_t violation_table_take(struct violations *v, const struct violation_key *key)
{
        const struct violation_record who = identity(key);
        uint32_t i = find(v, &who);

        if (i != VIOLATION_NONE)
                return i;
        if (v->n == VIOLATIONS_MAX_RECORDS)
                i = evict(v);
        else if (v->n == v->allocated && grow(v) < 0)
                return VIOLATION_NONE;
        else
                i = v->n++;
        v->entries[i] = (struct violation_entry) { .record = who, .life = LIFE_IDLE, .report_state = REPORT_NONE };
        hash_index_add(&v->index, i, hash_of(&who));
        record_list_append(&v->lives[LIFE_IDLE], v->life_links, i);
        return i;
}
