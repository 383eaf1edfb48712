/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "actions/snapshot.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

struct snapshot *snapshot_ref(struct snapshot *s)
{
        assert(!s || s->n_refs > 0);
        if (s)
                s->n_refs++;
        return s;
}

struct snapshot *snapshot_unref(struct snapshot *s)
{
        assert(!s || s->n_refs > 0);
        if (!s || --s->n_refs > 0)
                return NULL;
        arena_free(s->arena);
        free(s);
        return NULL;
}

struct snapshot *snapshot_new(void)
{
        _cleanup_(snapshot_unref_p) struct snapshot *s = calloc(1, sizeof(*s));

        if (!s)
                return NULL;
        s->n_refs = 1;
        s->arena = arena_new();
        return s->arena ? STEAL(s) : NULL;
}

int snapshot_prepare(struct snapshot *s)
{
        assert(s->subnet && !s->observed);
        s->failed = arena_new_array(s->arena, bool, s->subnet->n_ports);
        if (!s->failed)
                return -ENOMEM;
        return observed_new(s->arena, s->subnet, &s->observed);
}

void snapshot_merge(struct snapshot *s, const struct observed *seen)
{
        assert(seen->subnet == s->subnet);
        for (uint32_t i = 0; i < s->subnet->n_ports; i++) {
                const struct observed_table *from = &seen->tables[i];
                struct observed_table *to = &s->observed->tables[i];

                if (!from->entries || !to->entries)
                        continue;
                if (from->source == TABLE_READ) {
                        memcpy(to->entries, from->entries, from->capacity * sizeof(from->entries[0]));
                        to->source = TABLE_READ;
                } else if (!observed_table_failed(from)) {
                        continue; /* was not queried */
                } else if (to->source == TABLE_READ) {
                        to->source = TABLE_ASSUMED;
                }
                to->failure = from->failure;
                to->mad_status = from->mad_status;
        }
}

int snapshot_learn(struct snapshot *s, struct knowledge *k, const struct observed *seen, uint64_t wall)
{
        int r = knowledge_see_tables(k, seen, wall);

        if (r == 0)
                knowledge_recall(k, s->observed);
        return r;
}

void snapshot_reset_failed(struct snapshot *s)
{
        for (uint32_t i = 0; i < s->subnet->n_ports; i++)
                s->failed[i] = observed_table_failed(&s->observed->tables[i]);
}

uint32_t snapshot_n_failed(const struct snapshot *s)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < s->subnet->n_ports; i++)
                n += s->failed[i];
        return n;
}

uint32_t *snapshot_failed_ports(const struct snapshot *s, struct arena *a)
{
        uint32_t *ports = arena_new_array(a, uint32_t, snapshot_n_failed(s));

        for (uint32_t i = 0, n = 0; ports && i < s->subnet->n_ports; i++)
                if (s->failed[i])
                        ports[n++] = i;
        return ports;
}
