/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Private to leases/. Each file uses only those above it:
 *
 *     leases.c         the list of leases and of resting P_Keys, answers, the store
 *     lease_life.c     how a lease changes its state: time, what was read, stranded and frozen members
 *     lease_request.c  what callers ask for
 *     lease_edit.c     the members of open leases
 *     lease_policy.c   leases as partitions of a policy
 */

#include "leases/leases.h"
#include "policy/selector_match.h"

struct leases {
        struct lease **items;       /* malloc'ed, and the leases owned; ascending ID, an ended one before another with its ID */
        size_t n, allocated;
        struct lease *by_base[P_KEY_BASE_MASK + 1]; /* the lease in items that got this P_Key last, perhaps an ended one; or NULL */
        struct lease_rest *rests;   /* malloc'ed */
        size_t n_rests, allocated_rests;
        struct lease_answer *ready; /* malloc'ed; a queue, with room for an answer to each waiter */
        size_t n_ready, allocated_ready, n_waiting;
        bool need_plan;
};

/* The index of the first item with an ID that is not before this one. */
size_t leases_lower_bound(const struct leases *l, const char *id);
/* Adds it at its place. Takes it on 0; -ENOMEM. */
int leases_insert(struct leases *l, struct lease *lease);
/* The lease that has this base, in any state but ended; NULL: none. */
const struct lease *leases_find_base(const struct leases *l, uint16_t base);
/* Granting or active. */
bool lease_is_in_force(const struct lease *lease);

/* Adds a waiter to a lease, with room for the answer. Returns 0, -EBADMSG: too many callers wait for it; -ENOMEM. */
int lease_wait(struct leases *l, struct lease *lease, const struct lease_waiter *waiter, struct findings *findings);

#define LEASE_STORE_SPARE 10 /* seconds that a caller waits for the store at least, and beyond its time */

/* Answers the callers of a lease that was not stored in time; and when to call this next. */
void lease_answer_late(struct leases *l, struct lease *lease, usec_t now);
usec_t lease_answer_due(const struct lease *lease);

/* The lease has to be stored. */
void lease_unstored(struct lease *lease);
/* The state or the members of the lease have changed: it has to be stored, and another plan is needed. */
void lease_changed(struct leases *l, struct lease *lease);
/* From granting or active to releasing; to ended if no plan ever had it. why: a clause, which is copied. */
void lease_begin_release(struct leases *l, struct lease *lease, usec_t now, const char *why);
static inline usec_t lease_time_after(usec_t now, uint64_t seconds)
{
        return now + MIN(seconds, LEASE_LONGEST) * USEC_PER_SEC;
}
/* Sets `ends_due`; of an active lease `due`, too. */
void lease_set_ends_due(struct lease *lease, usec_t now, uint64_t wall);
/* Sets `due` to when the lease ends, or must be confirmed; and `ends_due`. */
void lease_set_due(struct lease *lease, usec_t now, uint64_t wall);
/* The members have changed: the time without members begins, goes on, or is over. */
void lease_set_empty_due(struct lease *lease, usec_t now);

/* --- requests ------------------------------------------------------------------------------------------------------------ */

#define LEASE_EXISTS_HINT "pkeyctl lease show has it; choose another ID, or release it first"

/* Those that take findings return 0; -EBADMSG: refused, the findings say why; or -ENOMEM. */

/* Finds the pool, if this caller may use it now, for a lease with this ID. */
int lease_find_pool(const struct lease_view *view, const struct lease_caller *by, const char *id, const char *name,
                    struct findings *findings, const struct policy_pool **ret);
/* Members can have this membership. */
int lease_check_membership(enum membership membership, struct findings *findings);
/* The pool has this P_Key. base: 0: any P_Key. */
int lease_check_base(const struct lease_view *view, const struct policy_pool *pool, uint16_t base, struct findings *findings);
/* Members can be selected now, by a text of n bytes. */
int lease_check_members(const struct lease_view *view, size_t n, size_t max, struct findings *findings);
/* A lease can have n members. */
int lease_check_number(size_t n, struct findings *findings);
/* All of them are ports of the pool. */
int lease_check_ports(const struct lease_view *view, const struct policy_pool *pool, const struct port_list *members,
                      struct findings *findings);
/* The lease is not being released. makes: the caller would make it otherwise; false: its members lose the P_Key anyway. */
int lease_check_releasing(const struct lease *lease, bool makes, struct findings *findings);
/* Makes a lease without members, which is in no list yet; *ret owned. */
int lease_make(struct leases *l, const struct lease_view *view, const struct lease_caller *by, const char *id,
               const struct lease_wish *wish, uint64_t timeout, const struct policy_pool *pool, struct findings *findings,
               struct lease **ret);
/* A caller that waits `timeout` seconds for the answer. */
struct lease_waiter lease_waiter_of(const struct lease_view *view, const struct lease_caller *by, enum lease_request_kind kind,
                                    uint64_t timeout);
/* Adds a lease to the list, with its first waiter. Takes the lease on 0. */
int lease_add(struct leases *l, struct lease *lease, const struct lease_waiter *waiter, struct findings *findings);
/* By port GUID. */
void lease_sort_members(struct lease *lease);
/* Sets which port the member is; its name is in the arena of the lease. Returns 0 or -ENOMEM. */
int lease_fill_member(struct lease *lease, const struct subnet *s, uint32_t port, struct lease_member *m);
const char *lease_caller_name(const struct lease_caller *by);
