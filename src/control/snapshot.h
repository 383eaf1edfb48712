/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A snapshot of the fabric: what is there, and what the tables of its ports hold. The subnet never changes; observed is kept
 * true by every survey and every apply until the next discovery makes another snapshot. `failed` marks the ports that are
 * to be read again soon: those that did not answer or did not do as they were asked in the last sweep.
 *
 * Whoever needs a snapshot for longer than a call holds a reference.
 */

#include "knowledge/knowledge.h"
#include "subnet/survey.h"

struct snapshot {
        unsigned n_refs;
        struct arena *arena; /* owns what follows */
        struct subnet *subnet;
        struct observed *observed;
        bool *failed;        /* by port of the subnet */
};

/* With an arena only, for the discovery to fill, and one reference. Returns owned, or NULL when memory is out. */
struct snapshot *snapshot_new(void);
struct snapshot *snapshot_ref(struct snapshot *s);
/* Accepts NULL, returns NULL. */
struct snapshot *snapshot_unref(struct snapshot *s);
DEFINE_CLEANUP(struct snapshot *, snapshot_unref)

/* When the subnet is there: all tables unknown. Returns 0 or -ENOMEM. */
int snapshot_prepare(struct snapshot *s);

/* Ports whose tables were read, or could not be read, in `seen` (of the same subnet) take the place of what was known. */
void snapshot_merge(struct snapshot *s, const struct observed *seen);

/* What was read in `seen` goes into the knowledge, and what was not read in the snapshot is taken from there: a look while OpenSM
 * wrote may have found it otherwise. wall: seconds since 1970. Returns 0 or -ENOMEM. */
int snapshot_learn(struct snapshot *s, struct knowledge *k, const struct observed *seen, uint64_t wall);

/* Ports that failed. *ret_ports in the arena a. Returns 0 or -ENOMEM. */
int snapshot_failed_ports(const struct snapshot *s, struct arena *a, uint32_t **ret_ports, uint32_t *ret_n);
/* Failed are exactly the ports that could not be read. */
void snapshot_reset_failed(struct snapshot *s);
uint32_t snapshot_n_failed(const struct snapshot *s);
