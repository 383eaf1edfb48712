/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What the pins mean for a snapshot: by which names the policy knows its nodes, and which of them call themselves otherwise.
 */

#include "pins/pins.h"

/* The snapshot as the policy sees it: nodes have their names by the table in pins.h. Ports have the same indexes. p NULL: names are
 * not pinned, and *ret is `s`. Returns 0 or -ENOMEM; *ret in the arena, or `s`; it borrows from both, as long as the pins do not
 * change. */
int pins_view(struct arena *a, const struct pins *p, const struct subnet *s, const struct subnet **ret);

/* A node that calls itself by a name that is not pinned to it. */
struct claim {
        uint32_t node;            /* of the snapshot */
        const struct pin *pin;    /* its own, whose name it has for the policy; NULL: it has none, and no name */
        const struct pin *holder; /* of another node that has the name, and this device if there is one; NULL: none */
};

/* The claims in a snapshot, ascending node. Nodes that did not answer all queries, or have no name yet, claim nothing. p NULL:
 * there are none. Returns 0 or -ENOMEM; *ret in the arena, it borrows from p. */
int pins_find_claims(struct arena *a, const struct pins *p, const struct subnet *s, struct claim **ret, uint32_t *ret_n);

/* One sentence: the node, where it is, what it calls itself, who has that name, and what it is for the policy. What an admin can
 * do, with the command that accepts the claim. Allocated from a; NULL: out of memory. */
const char *claim_text(struct arena *a, const struct subnet *s, const struct claim *claim);
const char *claim_way_out(struct arena *a, const struct subnet *s, const struct claim *claim);
/* The first endport of the node that is connected, else its first one; SUBNET_NONE: it has none. */
uint32_t claim_port(const struct subnet *s, const struct claim *claim);

/* Adds a warning for each claim. Returns 0 or -ENOMEM. */
int pins_report_claims(const struct pins *p, const struct subnet *s, struct findings *findings);
