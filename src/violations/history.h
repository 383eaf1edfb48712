/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What a policy gave to whom before: for each endport and base the last change, and the generation and time it came with.
 * Fed with the memberships of each generation that comes in force and of each new picture; bounded (the oldest go first).
 */

#include "policy/policy.h"
#include "util/cleanup.h"

struct membership_history;

/* The last change of an endport's membership in a partition. */
struct membership_change {
        struct guid port_guid;
        uint16_t base;
        enum membership before, after;
        uint64_t generation;          /* with which it changed */
        usec_t when;                  /* monotonic */
        const char *partition;        /* the name it had; borrowed until the next membership_history_learn */
};

struct membership_history *membership_history_new(void);
struct membership_history *membership_history_free(struct membership_history *h);
DEFINE_CLEANUP(struct membership_history *, membership_history_free)

/* What is in force from now on. A generation's first picture after another generation gives changes; an endport that was
 * not there before gives none. 0 or -ENOMEM (then nothing was learned). */
int membership_history_learn(struct membership_history *h, usec_t now, uint64_t generation, const struct memberships *m);

/* Base 0: the last change in any partition. NULL: none is known. */
const struct membership_change *membership_history_find(const struct membership_history *h, struct guid port_guid,
                                                        uint16_t base);
