/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Index memory: what a P_Key table cannot tell.
 *
 * Queue pairs are bound to indexes. An index that was freed must not go to another base while an unused one is left, for
 * a process may still hold it. So pkeyd remembers, per port, which free indexes were used before, by which base, and in
 * which order they were freed. An entry that somebody else took away (a subnet manager that rewrites what it remembers, a
 * host that rebooted) did not leave its index: put back, it stands where queue pairs look for it. Without this memory the
 * highest index in use is the best guess; losing it loses no correctness.
 *
 * The memory is a mutable object of its own (malloc'ed, not in a generation's arena). It counts the ports that changed since
 * they were stored, so that a change of one port costs one record.
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
        uint16_t base;     /* the last that used it */
        bool full;         /* by a full entry */
        uint64_t sequence; /* the lower, the longer ago it was freed */
        bool lost;         /* not pkeyd freed it: if the base comes back, it belongs there again */
};

/* Returns owned, or NULL when memory is out. */
struct index_memory *index_memory_new(void);
struct index_memory *index_memory_free(struct index_memory *m);
DEFINE_CLEANUP(struct index_memory *, index_memory_free)
#define _cleanup_index_memory_ _cleanup_(index_memory_free_p)

/* The freed indexes of one port, oldest first. The array is valid until the memory changes. */
const struct freed_index *index_memory_get(const struct index_memory *m, struct guid node_guid, uint8_t port,
                                           size_t *ret_n);

/* An index passed from one value to another (0: unused): by pkeyd's hand, or (_lost) by somebody else's. Call it for each
 * entry seen to change. Returns 0 or -ENOMEM. */
int index_memory_note(struct index_memory *m, struct guid node_guid, uint8_t port, uint16_t index, struct p_key before,
                      struct p_key after);
int index_memory_note_lost(struct index_memory *m, struct guid node_guid, uint8_t port, uint16_t index,
                           struct p_key before, struct p_key after);

/* A Set that may have been carried out put `key` at an index that was free before, and is now. Unless it is remembered
 * already it counts as lost longer ago than all others, which are likelier to have been used, and of such guesses the latest
 * counts. Returns 0 or -ENOMEM. */
int index_memory_note_open(struct index_memory *m, struct guid node_guid, uint8_t port, uint16_t index, struct p_key key);

/* index_memory_note_lost for every entry that changed from one look at the fabric to the next (what pkeyd writes between two
 * looks is in the first one already: apply keeps it true). Tables that were not read in both are passed over. With
 * `desired` (NULL: none; on the subnet of `after`) the pkeyd of another host writes by that policy: an entry that went and
 * that nobody should have is not lost, it was freed, as if by this host's own hand. Returns 0 or -ENOMEM. */
int index_memory_learn_written(struct index_memory *m, const struct observed *before, const struct observed *after,
                               const struct desired *desired);

/* Of everything: another one if anything changed. */
uint64_t index_memory_digest(const struct index_memory *m);

/* Everything, for writing it down, ascending (node GUID, port, sequence); and adding one record read back (sequence
 * kept). The array is valid until the memory changes. */
const struct freed_index *index_memory_all(const struct index_memory *m, size_t *ret_n);
int index_memory_restore(struct index_memory *m, const struct freed_index *record);

/* The ports whose freed indexes changed since they were stored, ascending; those that index_memory_restore() added to are not
 * among them. The array is valid until the memory changes. */
const struct index_port *index_memory_unstored(const struct index_memory *m, size_t *ret_n);
/* All of them were stored. */
void index_memory_stored(struct index_memory *m);
/* The store was lost: every port with freed indexes is to be stored anew. Returns 0 or -ENOMEM. */
int index_memory_unstore(struct index_memory *m);
