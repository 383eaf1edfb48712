/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * conditions/: what lasts from one sweep to the next, and is logged when it begins, changes and ends: frozen ports here, nodes that
 * claim a name in identity.h. Both read the decision of a sweep; they know neither what decides, nor what is written.
 *
 * Frozen ports (policy/freeze.h) from one sweep to the next: the entries that the last policy in force gave each port before it was
 * frozen, which ports are frozen, and since when. Changes are logged.
 *
 * These entries are in memory only. If a port is frozen after a restart, nothing is known of them: then the least is what the
 * policy certainly gives the port, and the most is what its lines give it or its table may hold. (Knowledge of tables, in
 * knowledge/, is stored.)
 */

#include "events/log.h"
#include "knowledge/knowledge.h"
#include "reconcile.h"

struct freezer;

struct frozen_port {
        struct guid node_guid, port_guid;
        uint8_t number;
        struct lid lid;
        enum freeze why;
        uint64_t since;          /* seconds since 1970 */
        const char *label, *text; /* text: reconcile_frozen_text() */
};

/* Returns owned, or NULL when out of memory. */
struct freezer *freezer_new(void);
struct freezer *freezer_free(struct freezer *f);
DEFINE_CLEANUP(struct freezer *, freezer_free)

/* What the policy gives each port, for knowledge_set_policy(). `all`, of these memberships, is for a larger subnet, with ports that
 * are absent now; NULL: only the ports of the decision count. A frozen port gets a range (policy/freeze.h), and so does an absent
 * port that is contested. Returns 0 or -ENOMEM; *ret lives in the arena, or borrows from the decision. */
int freezer_limit(const struct freezer *f, struct arena *a, const struct reconciled *decision,
                  const struct memberships *memberships, struct desired *all, const struct desired **ret);

/* A decision is in force: remembers what it gives the ports that were discovered completely, and logs which ports are frozen from
 * now on, and which are not any more. `wall`: seconds since 1970. Returns 0 or -ENOMEM (then nothing changed). */
int freezer_see(struct freezer *f, const struct reconciled *decision, uint64_t generation, uint64_t wall, struct log *log);

/* Frozen endports, ascending (node GUID, number); valid until the next call of freezer_see(). */
const struct frozen_port *freezer_ports(const struct freezer *f, uint32_t *ret_n);
/* One of them; NULL: it is not frozen. */
const struct frozen_port *freezer_find(const struct freezer *f, struct guid node, uint8_t number);
