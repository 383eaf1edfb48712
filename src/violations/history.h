/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What a policy gave to whom before: for each endport and base the last change, and the generation and time it came
 * with. Fed with the memberships of each generation that comes in force and of each new snapshot.
 *
 * What was last known of an endport is compared with what it is given now. An endport that was never seen before has no
 * past, so it gives no change; one that vanished and comes back is compared with what it was when it was last there. A
 * new snapshot of the same generation with the same memberships changes nothing; where a host was renamed or plugged in
 * elsewhere it may be given something else by the same policy, and that is a change too, marked as such: else "it was
 * never a member" would be said of a host that was one ten minutes ago.
 *
 * Bounded: HISTORY_MAX_CHANGES changes, the oldest go first, and HISTORY_MAX_GONE endports (HISTORY_MAX_GONE_ITEMS of
 * their memberships) that are not there any more, those gone longest go first. Each learning makes all of it anew, so
 * a failed one leaves the old.
 */

#include "policy/policy.h"
#include "util/cleanup.h"

#define HISTORY_MAX_CHANGES    65536
#define HISTORY_MAX_GONE       16384
#define HISTORY_MAX_GONE_ITEMS 262144

struct membership_history;

/* The last change of an endport's membership in a partition. */
struct membership_change {
        struct guid port_guid;
        uint16_t base;
        enum membership before, after;
        uint64_t generation;          /* with which it changed */
        bool same_policy;             /* the generation was in force before: the fabric changed, not the policy */
        usec_t away_since;            /* it was not in the fabric since then, and more than one generation was in force: which
                                         of them it was is not known. 0: it was there */
        usec_t when;                  /* monotonic; the latest that it can have been */
        const char *partition;        /* the name it had; borrowed until the next membership_history_learn */
        uint32_t name;                /* where the history keeps that; of no interest to others */
};

struct membership_history *membership_history_new(void);
struct membership_history *membership_history_free(struct membership_history *h);
DEFINE_CLEANUP(struct membership_history *, membership_history_free)

/* What is in force from now on; `now` never goes back. Where both the snapshot and the generation are new, first the generation
 * before, with the new snapshot: else a host that was plugged in elsewhere changed by the new generation. 0 or -ENOMEM (then
 * nothing was learned). */
int membership_history_learn(struct membership_history *h, usec_t now, uint64_t generation,
                             const struct memberships *m);

/* Base 0: the last change in any partition. NULL: none is known. */
const struct membership_change *membership_history_find(const struct membership_history *h, struct guid port_guid,
                                                        uint16_t base);
/* All that are known of an endport, ascending base. */
const struct membership_change *membership_history_of(const struct membership_history *h, struct guid port_guid,
                                                      uint32_t *ret_n);
/* Since when every change of this endport is known: then it was first seen, or the last of its changes that had to
 * make room came. USEC_INFINITY: it was never seen. */
usec_t membership_history_known_since(const struct membership_history *h, struct guid port_guid);
