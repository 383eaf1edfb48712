/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plan/index_memory.h"

#include <errno.h>
#include <string.h>

#include "util/vector.h"

/* One sorted array, ascending by (node GUID, port, sequence). Changes are rare (an entry freed or taken), lookups frequent. */
struct index_memory {
        struct freed_index *items;
        size_t n, allocated;
        uint64_t next_sequence;
        struct index_port *unstored; /* ascending */
        size_t n_unstored, allocated_unstored;
};

/* Sequence 0 is for guesses: they sort before every index that is known to have been freed. */
struct index_memory *index_memory_new(void)
{
        struct index_memory *m = calloc(1, sizeof(*m));

        if (m)
                m->next_sequence = 1;
        return m;
}

struct index_memory *index_memory_free(struct index_memory *m)
{
        if (m) {
                free(m->items);
                free(m->unstored);
        }
        free(m);
        return NULL;
}

/* --- what is to be stored ----------------------------------------------------------------------------------------------- */

static int mark_unstored(struct index_memory *m, struct guid node_guid, uint8_t number)
{
        size_t at = LOWER_BOUND(port, m->unstored, m->n_unstored,
                                (ORDER(port->node_guid.v, node_guid.v) ?: ORDER(port->number, number)) < 0);

        if (at < m->n_unstored && m->unstored[at].node_guid.v == node_guid.v && m->unstored[at].number == number)
                return 0;
        return VECTOR_INSERT(NULL, m->unstored, m->n_unstored, m->allocated_unstored, at,
                             (struct index_port) { .node_guid = node_guid, .number = number });
}

const struct index_port *index_memory_unstored(const struct index_memory *m, size_t *ret_n)
{
        *ret_n = m->n_unstored;
        return m->unstored;
}

void index_memory_stored(struct index_memory *m)
{
        m->n_unstored = 0;
}

int index_memory_unstore(struct index_memory *m)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < m->n; i++)
                r = mark_unstored(m, m->items[i].node_guid, m->items[i].port);
        return r;
}

/* --- freed indexes ------------------------------------------------------------------------------------------------------ */

static int compare_ports(const struct freed_index *item, struct guid node_guid, uint8_t port)
{
        return ORDER(item->node_guid.v, node_guid.v) ?: ORDER(item->port, port);
}

/* The first record that is not before (node, port, sequence). */
static size_t lower_bound(const struct index_memory *m, struct guid node_guid, uint8_t port, uint64_t sequence)
{
        return LOWER_BOUND(item, m->items, m->n, (compare_ports(item, node_guid, port) ?: ORDER(item->sequence, sequence)) < 0);
}

const struct freed_index *index_memory_get(const struct index_memory *m, struct guid node_guid, uint8_t port, size_t *ret_n)
{
        size_t first = lower_bound(m, node_guid, port, 0), n = 0;

        while (first + n < m->n && compare_ports(&m->items[first + n], node_guid, port) == 0)
                n++;
        *ret_n = n;
        return n ? &m->items[first] : NULL;
}

static int insert(struct index_memory *m, const struct freed_index *record)
{
        size_t at = lower_bound(m, record->node_guid, record->port, record->sequence);

        while (at < m->n && compare_ports(&m->items[at], record->node_guid, record->port) == 0 &&
               m->items[at].sequence == record->sequence)
                at++; /* guesses, in the order in which they were made */
        return VECTOR_INSERT(NULL, m->items, m->n, m->allocated, at, *record);
}

static bool remembers(const struct index_memory *m, struct guid node_guid, uint8_t port, uint16_t index)
{
        size_t i = lower_bound(m, node_guid, port, 0);

        while (i < m->n && compare_ports(&m->items[i], node_guid, port) == 0)
                if (m->items[i++].index == index)
                        return true;
        return false;
}

static void forget(struct index_memory *m, struct guid node_guid, uint8_t port, uint16_t index)
{
        size_t i = lower_bound(m, node_guid, port, 0);

        while (i < m->n && compare_ports(&m->items[i], node_guid, port) == 0)
                if (m->items[i].index == index) {
                        memmove(&m->items[i], &m->items[i + 1], (m->n - i - 1) * sizeof(*m->items));
                        m->n--;
                } else
                        i++;
}

static struct freed_index make_record(struct guid node_guid, uint8_t port, uint16_t index, struct p_key key, bool lost)
{
        return (struct freed_index) {
                .node_guid = node_guid, .port = port, .index = index, .base = p_key_base(key), .full = p_key_is_full(key),
                .lost = lost,
        };
}

int index_memory_note(struct index_memory *m, struct guid node_guid, uint8_t port, uint16_t index, struct p_key before,
                      struct p_key after, bool lost)
{
        struct freed_index record = make_record(node_guid, port, index, before, lost);

        if (p_key_is_used(after) ? !remembers(m, node_guid, port, index) : !p_key_is_used(before))
                return 0;
        if (mark_unstored(m, node_guid, port) < 0)
                return -ENOMEM;
        forget(m, node_guid, port, index);
        if (p_key_is_used(after))
                return 0;
        record.sequence = m->next_sequence++;
        return insert(m, &record);
}

int index_memory_note_open(struct index_memory *m, struct guid node_guid, uint8_t port, uint16_t index, struct p_key key)
{
        const struct freed_index record = make_record(node_guid, port, index, key, true);

        if (remembers(m, node_guid, port, index))
                return 0;
        return mark_unstored(m, node_guid, port) < 0 ? -ENOMEM : insert(m, &record);
}

/* want NULL: every entry that disappeared was lost. */
static int note_table(struct index_memory *m, const struct subnet *s, uint32_t port, const struct observed_table *before,
                      const struct observed_table *after, const struct desired_port *want)
{
        const struct subnet_port *p = &s->ports[port];
        int r = 0;

        if (before->source != TABLE_READ || after->source != TABLE_READ || before->capacity != after->capacity)
                return 0;
        for (uint16_t i = 0; i < after->capacity && r == 0; i++)
                if (before->entries[i].v != after->entries[i].v)
                        r = index_memory_note(
                                m, s->nodes[p->node].guid, p->number, i, before->entries[i], after->entries[i],
                                !want || p_keys_hold_base(want->wanted, want->n_wanted, p_key_base(before->entries[i])));
        return r;
}

int index_memory_note_changes(struct index_memory *m, const struct observed *before, const struct observed *after,
                              const struct desired *desired)
{
        int r = 0;

        for (uint32_t i = 0, j = 0; r == 0 && observed_next_common(after, before, &i, &j); i++, j++)
                r = note_table(m, after->subnet, i, &before->tables[j], &after->tables[i], desired ? &desired->ports[i] : NULL);
        return r;
}

const struct freed_index *index_memory_all(const struct index_memory *m, size_t *ret_n)
{
        *ret_n = m->n;
        return m->items;
}

int index_memory_restore(struct index_memory *m, const struct freed_index *record)
{
        if (record->sequence >= m->next_sequence && record->sequence < UINT64_MAX)
                m->next_sequence = record->sequence + 1;
        forget(m, record->node_guid, record->port, record->index);
        return insert(m, record);
}
