/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What selectors mean in a fabric. A matcher goes with one policy and one subnet; it remembers what groups matched, so
 * that a group used by a hundred partitions is looked up once.
 */

#include "policy/selector.h"
#include "subnet/known.h"

/* Endports, ascending, each once. */
struct port_list {
        uint32_t *ports;
        uint8_t *contested;           /* of each: why it may not be meant after all (enum freeze) */
        uint32_t n;
};

struct matcher {
        struct arena *arena;          /* borrows; scratch */
        struct report *report;        /* borrows */
        const struct policy *policy;  /* borrows; may be NULL */
        const struct subnet *subnet;  /* borrows */
        const struct known *known;    /* borrows; the ports seen so far; NULL: none; set after matcher_init */
        struct matcher *larger;       /* of the subnet with all of these; NULL: not needed until now */
        uint32_t *first_port;         /* of each node, and one behind the last */
        bool in_force;                /* a switch name that several have means all of them; set after matcher_init */
        uint32_t *twin;               /* of each CA: another CA of the same name and device, or SUBNET_NONE */
        bool *has_twin;               /* of each CA: there is another one, and it is not the host that pkeyd runs on */
        struct port_list *groups;
        bool *group_known;
        uint32_t *found;              /* the ports found so far for the current selector, each once */
        uint32_t n_found;
        uint8_t *why;                 /* of each port in `found`: why it is contested (enum freeze) */
        uint8_t *member;              /* of each port: 1 + enum freeze if it is in the current list; else 0 */
        unsigned hints;               /* "did you mean" searches left */
};

/* Everything lives in the arena. Returns 0 or -ENOMEM. */
int matcher_init(struct matcher *m, struct arena *arena, const struct policy *policy, const struct subnet *subnet,
                 struct report *report);

/* The endports a selector means. What is odd about it is reported: nothing matches, a part of a range does not exist, a
 * switch name that several switches have, two nodes of one name. Returns 0 or -ENOMEM. */
int matcher_match(struct matcher *m, const struct selector *s, struct port_list *ret);

/* The same for several together. */
int matcher_match_list(struct matcher *m, struct selector *const *selectors, uint32_t n, struct port_list *ret);
