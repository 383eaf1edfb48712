/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Finds the ports of a fabric that selectors select. A matcher belongs to one policy and one subnet; it keeps the ports of each
 * group, so that a group in a hundred partitions is matched once.
 */

#include <stdlib.h>

#include "pins/claims.h"
#include "policy/selector.h"
#include "subnet/known.h"
#include "util/macros.h"

#define MATCHER_HINTS 50 /* searches for similar names, which take time */

/* Endports, ascending, each once. */
struct port_list {
        uint32_t *ports;
        uint8_t *contested;           /* of each: why it is not certain that the selector selects it (enum freeze) */
        uint32_t n;
};

static inline bool port_list_holds(const struct port_list *list, uint32_t port)
{
        return FIND_SORTED(p, list->ports, list->n, ORDER(*p, port));
}

/* Whether it is certain that the selector selects the port. */
static inline bool port_list_holds_certainly(const struct port_list *list, uint32_t port)
{
        const uint32_t *at = FIND_SORTED(p, list->ports, list->n, ORDER(*p, port));

        return at && list->contested[at - list->ports] == FREEZE_NONE;
}

struct matcher {
        struct arena *arena;          /* borrows; scratch */
        struct report *report;        /* borrows */
        const struct policy *policy;  /* borrows; may be NULL */
        const struct subnet *subnet;  /* borrows; with the names that count for the policy (pins_view) */
        const struct known *known;    /* borrows; the ports seen before; NULL: none; set after matcher_init */
        const struct pins *pins;      /* borrows; for `larger`; NULL: names are not pinned; set after matcher_init */
        struct matcher *larger;       /* for the subnet with the ports in `known` added; NULL: not needed so far */
        bool in_force;                /* a switch name that several switches have selects them all; set after matcher_init */
        uint32_t *twin;               /* of each CA: another CA of the same name and device, or SUBNET_NONE */
        bool *has_twin;               /* of each node: it is a CA with a twin, not on the host that pkeyd runs on: contested */
        struct port_list *groups;     /* of each group; ports NULL: not matched so far */
        uint32_t *found;              /* the ports found so far for the current selector */
        uint32_t n_found;
        uint8_t *why;                 /* of each port in `found`: why it is contested (enum freeze) */
        uint8_t *member;              /* of each port: 1 + enum freeze if it is in the current list; else 0 */
        unsigned hints;               /* how many more searches for similar names may run; they take time */
};

/* Everything lives in the arena. Returns 0 or -ENOMEM. */
int matcher_init(struct matcher *m, struct arena *arena, const struct policy *policy, const struct subnet *subnet,
                 struct report *report);

/* Finds the endports that a selector selects. Reports a selector without a match, names of a range that are missing, and a name
 * that several switches or adapters have. Returns 0 or -ENOMEM. */
int matcher_match(struct matcher *m, const struct selector *s, struct port_list *ret);

/* The union of several selectors. */
int matcher_match_list(struct matcher *m, struct selector *const *selectors, uint32_t n, struct port_list *ret);
