/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A snapshot of the fabric: its nodes, ports and links, and the tables of its ports. The subnet never changes; every survey and
 * every apply updates `observed`, until the next discovery makes another snapshot. `failed` marks ports that must be read again
 * soon: those that did not answer, or refused a write, in the last sweep.
 *
 * A caller that needs a snapshot for longer than a call holds a reference.
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

/* With an arena only, which discovery fills. Returns owned, with one reference, or NULL when out of memory. */
struct snapshot *snapshot_new(void);
struct snapshot *snapshot_ref(struct snapshot *s);
/* Accepts NULL, returns NULL. */
struct snapshot *snapshot_unref(struct snapshot *s);
DEFINE_CLEANUP(struct snapshot *, snapshot_unref)

/* After discovery has set the subnet: all tables are unknown. Returns 0 or -ENOMEM. */
int snapshot_prepare(struct snapshot *s);

/* Updates the tables of ports that were read, or could not be read, in `seen` (of the same subnet). */
void snapshot_merge(struct snapshot *s, const struct observed *seen);

/* Adds to the knowledge the tables that `seen` read, then fills from it the tables that the snapshot could not read (a survey that
 * ran while OpenSM wrote may be older). wall: seconds since 1970. Returns 0 or -ENOMEM. */
int snapshot_learn(struct snapshot *s, struct knowledge *k, const struct observed *seen, uint64_t wall);

/* The failed ports, snapshot_n_failed() of them, in the arena a. NULL: out of memory. */
uint32_t *snapshot_failed_ports(const struct snapshot *s, struct arena *a);
/* Marks exactly the ports that could not be read as failed. */
void snapshot_reset_failed(struct snapshot *s);
uint32_t snapshot_n_failed(const struct snapshot *s);
