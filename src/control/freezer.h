/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Frozen ports (policy/freeze.h) from one sweep to the next: what the last policy in force gave each port before it was frozen,
 * which ports are frozen, since when, and what of that was logged.
 *
 * What a port was given is in memory only. After a restart nothing is known of a port that is frozen then: what the policy
 * certainly gives it is the least, what its lines say or its table may hold the most. Knowledge of tables (knowledge/) is another
 * matter: that is stored.
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

/* Returns owned, or NULL when memory is out. */
struct freezer *freezer_new(void);
struct freezer *freezer_free(struct freezer *f);
DEFINE_CLEANUP(struct freezer *, freezer_free)

/* For knowledge_set_policy(): what the policy gives each port. `all`, of these memberships, is of a larger subnet, with ports
 * that are not there now; NULL: only those of the decision count. A frozen port is given a range (policy/freeze.h), and so is a
 * port that is not there and is contested. Returns 0 or -ENOMEM; *ret lives in the arena, or borrows from the decision. */
int freezer_limit(const struct freezer *f, struct arena *a, const struct reconciled *decision,
                  const struct memberships *memberships, struct desired *all, const struct desired **ret);

/* A decision is in force: remembers what it gives those that were discovered completely, and logs which ports are frozen from
 * now on, and which are not any more.
 * `wall` in seconds since 1970. Returns 0 or -ENOMEM (then all is as before). */
int freezer_see(struct freezer *f, const struct reconciled *decision, uint64_t generation, uint64_t wall, struct log *log);

/* Frozen endports, ascending (node GUID, number); valid until the next call of freezer_see(). */
const struct frozen_port *freezer_ports(const struct freezer *f, uint32_t *ret_n);
