/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Tables as they were, as records of a store:
 *
 *     before/NUMBER/0xNODE/PORT   the table of a port before generation NUMBER wrote it first: its entries as four hexadecimal
 *                                 digits each, without unused ones at the end. NUMBER has 20 digits, PORT three
 *
 * To return to generation N, the layout of a port is the record of the lowest generation above N that has one for it. If there are
 * too many records, those of the oldest generations are deleted; an undo that goes so far back chooses other indexes.
 */

#include "store/store.h"
#include "subnet/layout.h"

#define RECORDS_BEFORE "before/"

/* With 128 entries a record takes half a kilobyte. */
#define RECORDS_MAX_BEFORE 131072

/* Which records there are. */
struct before_records {
        struct before_key {
                uint64_t generation;
                struct guid node_guid;
                uint8_t number;
        } *items;                    /* malloc'ed; ascending generations */
        size_t n, allocated;
};

void before_records_done(struct before_records *b);
/* Adds a key of a store, which are given in their order. Returns 0, -EBADMSG or -ENOMEM. */
int before_records_restore(struct before_records *b, const char *key);
/* Marks the ports of the subnet that have a record of this generation. */
void before_records_mark(const struct before_records *b, uint64_t generation, const struct subnet *s, bool *ret_has);

/* Puts the tables as those before this generation, and deletes the oldest records if there are too many. */
void records_put_before(struct store_transaction *t, const struct before_records *b, uint64_t generation, const struct layout *l);
/* The same was stored. If out of memory, a table is stored again before the next write, which may be later. */
void before_records_stored(struct before_records *b, uint64_t generation, const struct layout *l);

/* Adds the table of a record to a layout if it is of a generation above `after`. Returns 0, -EBADMSG or -ENOMEM. */
int before_record_read(struct layout *l, uint64_t after, const char *key, const void *value, size_t n);
