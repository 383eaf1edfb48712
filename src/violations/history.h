/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The membership history: for each endport and base the last change of its membership, with the generation and the time. It learns
 * the memberships of each generation that comes in force and of each new snapshot.
 *
 * The partition of a lease is one of the policy that was resolved, so that leases are learned as lines of a policy are.
 *
 * The memberships of an endport are compared with those that it had when it was last seen. An endport that is seen for the first
 * time has no change. A new snapshot of the same generation with the same memberships changes nothing. If a host was renamed or
 * plugged in elsewhere, the same policy may give it other memberships; that is a change, too, marked as such: otherwise a report
 * would state that a host was never a member although it was one ten minutes ago.
 *
 * Bounded: HISTORY_MAX_CHANGES changes, of which the oldest go first, and HISTORY_MAX_GONE endports (HISTORY_MAX_GONE_ITEMS of
 * their memberships) that are not in the fabric any more, of which those gone longest go first. Each learning builds all of it
 * anew, so that a failed one leaves the old.
 */

#include "policy/policy.h"
#include "util/macros.h"

#define HISTORY_MAX_CHANGES    65536
#define HISTORY_MAX_GONE       16384
#define HISTORY_MAX_GONE_ITEMS 262144

struct membership_history;

/* The last change of an endport's membership in a partition. */
struct membership_change {
        struct guid port_guid;
        uint16_t base;
        enum membership before, after;
        uint64_t generation;          /* that changed it */
        bool by_lease;                /* the generation was in force before: the lease that the partition is, or was, changed */
        bool same_policy;             /* the generation was in force before: the fabric changed, not the policy or a lease */
        usec_t away_since;            /* the endport was not in the fabric since then, and several generations were in force: any
                                         of them may have changed it. 0: it was in the fabric */
        usec_t when;                  /* monotonic; the latest possible time */
        const char *partition;        /* as policy_partition_label() had it; borrowed until the next membership_history_learn */
        uint32_t name;                /* index of that; private to the history */
};

struct membership_history *membership_history_new(void);
struct membership_history *membership_history_free(struct membership_history *h);
DEFINE_CLEANUP(struct membership_history *, membership_history_free)

/* Takes the memberships that are valid from now on; `now` never goes back. If both the snapshot and the generation are new, call it
 * first for the old generation with the new snapshot: otherwise the new generation would seem to have changed a host that was
 * plugged in elsewhere. 0 or -ENOMEM (then nothing was learned). */
int membership_history_learn(struct membership_history *h, usec_t now, uint64_t generation, const struct memberships *m);

/* NULL: no change is known. */
const struct membership_change *membership_history_find(const struct membership_history *h, struct guid port_guid, uint16_t base);
/* All that are known of an endport, ascending base. */
const struct membership_change *membership_history_of(const struct membership_history *h, struct guid port_guid, uint32_t *ret_n);
/* Since when every change of this endport is known: since it was first seen, or since the newest change that had to make room.
 * USEC_INFINITY: it was never seen. */
usec_t membership_history_known_since(const struct membership_history *h, struct guid port_guid);
