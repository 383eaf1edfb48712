/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Claims (pins/claims.h) from one sweep to the next: which nodes claim a name, and since when. Each
 * is logged once, again when it is about another name, node or place, and once when it has ended.
 * The claim of a node that does not answer all queries stays as it was.
 */

#include "events/log.h"
#include "pins/claims.h"

struct identity;

struct identity_claim {
        struct guid node_guid, port_guid; /* port: the first that is connected; 0: the node has no endport */
        uint8_t number;
        struct lid lid;
        uint64_t since;                   /* seconds since 1970 */
        const char *label, *text;         /* text: claim_text() */
};

/* Returns owned, or NULL when out of memory. */
struct identity *identity_new(void);
struct identity *identity_free(struct identity *i);
DEFINE_CLEANUP(struct identity *, identity_free)

/* A policy is in force by these pins (NULL: names are not pinned) on this snapshot. `wall`: seconds since 1970. Returns 0 or
 * -ENOMEM (then nothing changed). */
int identity_see(struct identity *i, const struct pins *pins, const struct subnet *subnet, uint64_t generation, uint64_t wall,
                 struct log *log);

/* Ascending node GUID; valid until the next call of identity_see(). */
const struct identity_claim *identity_claims(const struct identity *i, uint32_t *ret_n);
