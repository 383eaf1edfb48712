/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Index memory: which indexes of a P_Key table were used before.
 *
 * Queue pairs are bound to indexes. A freed index must not go to another base while an unused one is left, because a process may
 * still use it. So pkeyd remembers for each port which free indexes were used before, by which base, and in which order they were
 * freed. If another program removed an entry (a subnet manager that rewrites what it remembers, a host that rebooted), the base did
 * not give up its index: it gets the same index again, where queue pairs expect it. Without this memory the highest index in use is
 * the best guess; losing it costs no correctness.
 *
 * The memory is a mutable object of its own (malloc'ed, not in the arena of a generation). It keeps a list of the ports that
 * changed since they were stored, so that a change of one port is stored as one record.
 */

#include "desired/desired.h"
#include "subnet/observed.h"

struct index_memory;

struct index_port {
        struct guid node_guid;
        uint8_t number;
};

/* One index that is free now and was used before. */
struct freed_index {
        struct guid node_guid;
        uint8_t port;
        uint16_t index;
        uint16_t base;     /* the last base that used it */
        bool full;         /* by a full entry */
        uint64_t sequence; /* lower: freed earlier */
        bool lost;         /* another program freed it: if the base returns, it gets this index again */
};

/* Returns owned, or NULL: out of memory. */
struct index_memory *index_memory_new(void);
struct index_memory *index_memory_free(struct index_memory *m);
DEFINE_CLEANUP(struct index_memory *, index_memory_free)
#define _cleanup_index_memory_ _cleanup_(index_memory_free_p)

/* The freed indexes of one port, oldest first. The array is valid until the memory changes. */
const struct freed_index *index_memory_get(const struct index_memory *m, struct guid node_guid, uint8_t port, size_t *ret_n);

/* Records that an index changed from one value to another (0: unused), by a write of pkeyd or (lost) by another program. Call it
 * for each entry that is seen to change. Returns 0 or -ENOMEM. */
int index_memory_note(struct index_memory *m, struct guid node_guid, uint8_t port, uint16_t index, struct p_key before,
                      struct p_key after, bool lost);

/* Records that a Set put `key` at an index that was free before and is free now, if the Set was carried out. An index that is
 * remembered already stays as it is. Otherwise it counts as lost before all others, which are more likely to have been used; of
 * such guesses the latest comes first. Returns 0 or -ENOMEM. */
int index_memory_note_open(struct index_memory *m, struct guid node_guid, uint8_t port, uint16_t index, struct p_key key);

/* Calls index_memory_note(lost) for every entry that changed from one observation of the fabric to the next (`before` contains what
 * pkeyd wrote in between, because apply updates it). Tables that were not read in both are skipped. With `desired` (NULL: none; on
 * the subnet of `after`) the pkeyd of another host writes by that policy: an entry that disappeared and that no policy wants is not
 * lost, but freed as if this host had done it. Returns 0 or -ENOMEM. */
int index_memory_note_changes(struct index_memory *m, const struct observed *before, const struct observed *after,
                              const struct desired *desired);

/* All freed indexes, ascending by (node GUID, port, sequence). The array is valid until the memory changes. */
const struct freed_index *index_memory_all(const struct index_memory *m, size_t *ret_n);

/* Adds a freed index from the store, with its sequence. Returns 0 or -ENOMEM. */
int index_memory_restore(struct index_memory *m, const struct freed_index *record);

/* The ports whose freed indexes changed since they were stored, ascending, without those of index_memory_restore(). Valid until the
 * memory changes. */
const struct index_port *index_memory_unstored(const struct index_memory *m, size_t *ret_n);
/* Marks all of these ports as stored. */
void index_memory_stored(struct index_memory *m);
/* Marks every port with freed indexes as not stored, because the store was lost. Returns 0 or -ENOMEM. */
int index_memory_unstore(struct index_memory *m);
