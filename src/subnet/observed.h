/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Observed tables: the P_Key table of every managed port as it was last read. The survey fills it, apply keeps it true
 * for what it writes, the planner and verify read it.
 */

#include "subnet/subnet.h"

enum table_source {
        TABLE_UNKNOWN, /* never read, and nothing is assumed: entries are all 0 */
        TABLE_READ,    /* read from the port */
        TABLE_ASSUMED, /* the port did not answer; this is what it held when it last did */
};

struct observed_table {
        struct p_key *entries;    /* capacity entries, host byte order; NULL if the port is not managed */
        uint16_t capacity;
        enum table_source source;
        enum mad_outcome failure; /* of a port that was not read: why; MAD_ANSWERED if there was no attempt */
        uint16_t mad_status;      /* of MAD_REFUSED */
        bool is_stranger;         /* of MAD_REFUSED: another node answers at its address */
        bool enforce_inbound, enforce_outbound; /* external ports: the bits of PortInfo as last known */
        bool enforcement_doubted; /* a write of those bits was sent, and nobody knows whether it arrived; whatever source says */
};

struct observed {
        const struct subnet *subnet;   /* borrows */
        struct observed_table *tables; /* subnet->n_ports of them, same index as subnet->ports */
};

/* All tables TABLE_UNKNOWN, sized by capacity, in the arena. Returns 0 or -ENOMEM. */
int observed_new(struct arena *a, const struct subnet *subnet, struct observed **ret);
/* The same with the tables of those ports that `has_table` chooses, in place of all managed ones. */
int observed_new_of(struct arena *a, const struct subnet *subnet,
                    bool (*has_table)(const struct subnet *s, const struct subnet_port *p), struct observed **ret);

/* Lives in the arena; borrows what `from` does. NULL: out of memory. */
struct observed *observed_copy(struct arena *a, const struct observed *from);

/* Entries in use. */
static inline uint32_t observed_table_count(const struct observed_table *t)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < t->capacity; i++)
                n += p_key_is_used(t->entries[i]);
        return n;
}

static inline uint16_t observed_table_blocks(const struct observed_table *t)
{
        return (uint16_t) ((t->capacity + P_KEY_BLOCK_ENTRIES - 1) / P_KEY_BLOCK_ENTRIES);
}

/* A whole block with zeros behind the table's end / the other way round (what is behind the end is ignored). */
void observed_table_get_block(const struct observed_table *t, uint16_t block, struct p_key ret[P_KEY_BLOCK_ENTRIES]);
void observed_table_set_block(struct observed_table *t, uint16_t block,
                              const struct p_key entries[P_KEY_BLOCK_ENTRIES]);

/* At which index of this port's table the default partition is, as a full member where there is such an entry; -1: nowhere that
 * is known. */
int observed_default_index(const struct observed *o, uint32_t port);

/* Two snapshots side by side: moves *i (of x) and *j (of y) on to the next port that both have, by node GUID and port number,
 * beginning with where they stand. False: there is none. The caller steps over a pair with i++, j++. */
bool observed_next_common(const struct observed *x, const struct observed *y, uint32_t *i, uint32_t *j);
