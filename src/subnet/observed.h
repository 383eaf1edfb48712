/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Observed tables: the P_Key table of every managed port as it was last read. The survey fills them, apply updates what it writes,
 * the planner and verify read them. */

#include "subnet/subnet.h"

enum table_source {
        TABLE_UNKNOWN, /* never read, and nothing is assumed: all entries are 0 */
        TABLE_READ,    /* read from the port */
        TABLE_ASSUMED, /* the port did not answer; this is what it held when it was last read */
};

struct observed_table {
        struct p_key *entries;    /* capacity entries, host byte order; NULL if the port is not managed */
        uint16_t capacity;
        enum table_source source;
        enum mad_outcome failure; /* why the port was not read; MAD_ANSWERED if there was no attempt */
        uint16_t mad_status;      /* of MAD_REFUSED */
        bool is_stranger;         /* of MAD_REFUSED: another node answers at its address */
        bool enforce_inbound, enforce_outbound; /* external ports: the bits of PortInfo as last known */
        bool enforcement_doubted; /* a write of those bits was sent and not confirmed; independent of source */
};

struct observed {
        const struct subnet *subnet;   /* borrows */
        struct observed_table *tables; /* subnet->n_ports tables, by the index of the port */
};

/* Creates tables that are TABLE_UNKNOWN and as large as their capacity, in the arena. Returns 0 or -ENOMEM. */
int observed_new(struct arena *a, const struct subnet *subnet, struct observed **ret);
/* The same with tables for the ports that `has_table` chooses, instead of all managed ones. */
int observed_new_of(struct arena *a, const struct subnet *subnet,
                    bool (*has_table)(const struct subnet *s, const struct subnet_port *p), struct observed **ret);

/* Lives in the arena; borrows what `from` borrows. NULL: out of memory. */
struct observed *observed_copy(struct arena *a, const struct observed *from);

/* True if the port was asked for its table, which could not be read. */
static inline bool observed_table_failed(const struct observed_table *t)
{
        return t->entries && t->source != TABLE_READ && t->failure != MAD_ANSWERED;
}

/* Whether a switch port checks the P_Keys of outbound or inbound packets: the bits as apply left them; without `o`, or if that is
 * of another snapshot, as discovery saw them. */
enum observed_filter {
        OBSERVED_FILTER_OFF,
        OBSERVED_FILTER_ON,
        OBSERVED_FILTER_DOUBTED, /* a write was sent and not confirmed */
};
enum observed_filter observed_filter(const struct subnet *s, const struct observed *o, uint32_t port, bool outbound);

/* The number of entries in use. */
static inline uint32_t observed_table_count(const struct observed_table *t)
{
        return p_keys_count(t->entries, t->capacity);
}

static inline uint16_t observed_table_blocks(const struct observed_table *t)
{
        return p_key_table_blocks(t->capacity);
}

/* Gets a whole block, with zeros past the end of the table; sets one, and ignores what is past the end. */
static inline void observed_table_get_block(const struct observed_table *t, uint16_t block, struct p_key ret[P_KEY_BLOCK_ENTRIES])
{
        p_keys_get_block(t->entries, t->capacity, block, ret);
}
void observed_table_set_block(struct observed_table *t, uint16_t block, const struct p_key entries[P_KEY_BLOCK_ENTRIES]);

/* The index of the default partition in this port's table, of the full entry if there is one; -1: it has none, as far as is
 * known. */
int observed_default_index(const struct observed *o, uint32_t port);

/* Iterates over two snapshots: moves *i (of x) and *j (of y) on to the next port that both have, by node GUID and port number,
 * starting where they are. Returns false if there is none. The caller continues after a pair with i++, j++. */
bool observed_next_common(const struct observed *x, const struct observed *y, uint32_t *i, uint32_t *j);
