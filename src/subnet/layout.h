/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A layout: which P_Key stood at which index, in tables as they once were. An undo puts entries back where queue pairs expect them.
 * Tables are named by node GUID and port number, because the fabric may have changed since. */

#include "subnet/subnet.h"

struct layout_table {
        struct guid node_guid;
        uint8_t number;
        uint16_t n;                  /* entries; after them all are unused */
        const struct p_key *entries; /* host byte order */
        size_t turn;                 /* in which the tables were added */
};

struct layout {
        struct arena *arena;         /* borrowed; has everything below */
        struct layout_table *tables; /* ascending (node_guid, number, turn) after layout_sort() */
        size_t n, allocated;
};

/* Adds a table; of two tables of one port the first counts. Copies the entries. Returns 0 or -ENOMEM. */
int layout_add(struct layout *l, struct guid node_guid, uint8_t number, const struct p_key *entries, uint16_t n);
/* To be called once, after the last layout_add(). */
void layout_sort(struct layout *l);
/* NULL: the layout (which may be NULL) has no table of this port. */
const struct layout_table *layout_find(const struct layout *l, struct guid node_guid, uint8_t number);
