/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "knowledge/knowledge_internal.h"

static_assert(HASH_INDEX_NONE == KNOWLEDGE_NONE, "HASH_INDEX_FIND() is KNOWLEDGE_NONE if there is no such record");

struct knowledge *knowledge_new(void)
{
        struct knowledge *k = calloc(1, sizeof(*k));

        if (k)
                k->doubt_at = USEC_INFINITY;
        return k;
}

struct knowledge *knowledge_free(struct knowledge *k)
{
        if (!k)
                return NULL;
        for (size_t i = 0; i < k->n; i++) {
                free(k->records[i].entries);
                free(k->records[i].writes);
                free(k->records[i].places);
                free(k->records[i].vouched_by);
        }
        free(k->records);
        hash_index_done(&k->index);
        knowledge_counts_done(&k->counts);
        free(k);
        return NULL;
}

/* --- records ------------------------------------------------------------------------------------------------------- */

static uint64_t hash_of(struct knowledge_name name)
{
        return hash_mix(hash_mix(0, name.node.v), (uint64_t) name.kind << 8 | name.number);
}

uint32_t knowledge_find(const struct knowledge *k, struct knowledge_name name)
{
        return HASH_INDEX_FIND(i, &k->index, hash_of(name), knowledge_same_name(k->records[i].name, name));
}

int knowledge_ensure_record(struct knowledge *k, struct knowledge_name name, uint32_t *ret)
{
        *ret = knowledge_find(k, name);
        if (*ret != KNOWLEDGE_NONE)
                return 0;
        if (VECTOR_GROW(NULL, k->records, k->n, k->allocated) < 0 || hash_index_reserve(&k->index, (uint32_t) k->n + 1) < 0)
                return -ENOMEM;
        *ret = (uint32_t) k->n++;
        k->records[*ret] = (struct knowledge_record) {
                .name = name, .presence = KNOWLEDGE_ABSENT, .presence_before = KNOWLEDGE_ABSENT, .filters_unsure = true,
                .other_end = KNOWLEDGE_NONE,
        };
        hash_index_add(&k->index, *ret, hash_of(name));
        return 0;
}

struct knowledge_name knowledge_name_of(const struct subnet *s, const struct subnet_port *p)
{
        return (struct knowledge_name) {
                .node = s->nodes[p->node].guid, .number = p->number,
                .kind = p->role == PORT_ENDPORT ? KNOWLEDGE_ENDPORT : KNOWLEDGE_LEAF,
        };
}

const struct knowledge_record *knowledge_get(const struct knowledge *k, uint32_t record)
{
        assert(record == KNOWLEDGE_NONE || record < k->n);
        return record == KNOWLEDGE_NONE ? NULL : &k->records[record];
}

uint32_t knowledge_n_records(const struct knowledge *k)
{
        return (uint32_t) k->n;
}

uint32_t knowledge_find_port(const struct knowledge *k, const struct subnet *s, uint32_t port)
{
        return knowledge_find(k, knowledge_name_of(s, &s->ports[port]));
}

void knowledge_forget_read(struct knowledge_record *r)
{
        free(STEAL(r->entries));
        r->n_writes = 0;
        r->vouched = r->is_unfollowed = r->is_stored = false;
}

void knowledge_set_capacity(struct knowledge_record *r, uint16_t capacity)
{
        if (r->capacity == capacity)
                return;
        knowledge_forget_read(r);
        r->capacity = capacity;
}

/* Returns a copy of n items, or NULL: there is no array, or out of memory. */
static void *copy_array(const void *items, size_t n, size_t size)
{
        void *copy = items ? calloc(MAX(n, (size_t) 1), size) : NULL;

        if (copy)
                memcpy(copy, items, n * size);
        return copy;
}

static int copy_record(struct knowledge_record *to, const struct knowledge_record *from)
{
        *to = *from;
        to->entries = copy_array(from->entries, from->capacity, sizeof(*to->entries));
        to->writes = copy_array(from->writes, from->n_writes, sizeof(*to->writes));
        to->places = copy_array(from->places, from->n_places, sizeof(*to->places));
        to->vouched_by = from->vouched_by ? strdup(from->vouched_by) : NULL;
        to->n_allocated = from->n_writes;
        if (!to->entries != !from->entries || !to->writes != !from->writes || !to->places != !from->places ||
            !to->vouched_by != !from->vouched_by)
                return -ENOMEM;
        return 0;
}

struct knowledge *knowledge_copy(const struct knowledge *from)
{
        _cleanup_(knowledge_free_p) struct knowledge *k = knowledge_new();
        uint32_t record;
        int r = k ? 0 : -ENOMEM;

        for (size_t i = 0; r == 0 && i < from->n; i++) {
                r = knowledge_ensure_record(k, from->records[i].name, &record) ?:
                    copy_record(&k->records[record], &from->records[i]);
        }
        if (r < 0)
                return NULL;
        k->now = from->now;
        k->wall = from->wall;
        k->absent_hold = from->absent_hold;
        return knowledge_counts_rebuild(k) < 0 ? NULL : STEAL(k);
}

/* --- which fabric -------------------------------------------------------------------------------------------------- */

bool knowledge_is_of_other_fabric(const struct knowledge *k, const struct subnet *s)
{
        for (uint32_t i = 0; i < s->n_ports; i++)
                if (s->ports[i].role == PORT_ENDPORT && knowledge_find_port(k, s, i) != KNOWLEDGE_NONE)
                        return false;
        return k->n > 0;
}

/* --- the policy ---------------------------------------------------------------------------------------------------- */

void knowledge_drop_policy(struct knowledge *k)
{
        k->counts.valid = false;
        for (size_t i = 0; i < k->n; i++)
                k->records[i].policy = NULL;
}

int knowledge_set_policy(struct knowledge *k, const struct desired *desired)
{
        const struct subnet *s = desired ? desired->subnet : NULL;

        knowledge_drop_policy(k);
        for (uint32_t i = 0; s && i < s->n_ports; i++) {
                uint32_t record = knowledge_find_port(k, s, i);

                if (record != KNOWLEDGE_NONE && !subnet_port_is_incomplete(s, &s->ports[i]))
                        k->records[record].policy = &desired->ports[i];
        }
        return knowledge_counts_rebuild(k);
}

static const struct desired_port *copy_policy(struct arena *a, const struct desired_port *from)
{
        struct desired_port *copy = arena_copy(a, from, 1);

        if (!copy)
                return NULL;
        copy->wanted = arena_copy(a, from->wanted, from->n_wanted);
        copy->most = from->most ? copy_policy(a, from->most) : NULL;
        return copy->wanted && !copy->most == !from->most ? copy : NULL;
}

void knowledge_doubt_absence(struct knowledge *k)
{
        k->counts.valid = false;
        k->doubt_at = USEC_INFINITY;
        for (size_t i = 0; i < k->n; i++)
                k->records[i].may_be_back = k->records[i].presence == KNOWLEDGE_ABSENT;
}

void knowledge_doubt_absence_after(struct knowledge *k, usec_t now, usec_t when)
{
        k->doubt_at = when;
        if (now > when)
                knowledge_doubt_absence(k);
}

int knowledge_apply_doubt(struct knowledge *k, usec_t now)
{
        if (now <= k->doubt_at)
                return 0;
        knowledge_doubt_absence(k);
        return knowledge_counts_rebuild(k);
}

int knowledge_keep_policy(struct knowledge *k, struct arena *a)
{
        for (size_t i = 0; i < k->n; i++) {
                struct knowledge_record *r = &k->records[i];

                if (r->policy && !(r->policy = copy_policy(a, r->policy))) {
                        knowledge_drop_policy(k);
                        return -ENOMEM;
                }
        }
        knowledge_doubt_absence(k);
        return knowledge_counts_rebuild(k);
}

bool knowledge_is_counted(const struct knowledge *k)
{
        return k->counts.valid;
}

void knowledge_change_policy(struct knowledge *k, uint32_t record, const struct desired_port *policy)
{
        uint32_t port = knowledge_port_of(k, record);

        assert(k->counts.valid && record < k->n);
        if (port != KNOWLEDGE_NONE)
                knowledge_counts_change_all(k, record, -1);
        k->records[record].policy = policy;
        if (port != KNOWLEDGE_NONE)
                knowledge_counts_change_all(k, record, 1);
}
