/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "leases/leases_internal.h"
#include "util/text.h"
#include "util/vector.h"

#define MAX_NAMED  8 /* ports in a sentence */
#define SWEEP_WAIT (30 * USEC_PER_SEC) /* how long a caller waits for the sweep that revokes, or that was not in time */

/* --- changes -------------------------------------------------------------------------------------------------------- */

void lease_changed(struct leases *l, struct lease *lease)
{
        lease_unstored(lease);
        lease->progress = MIN(lease->progress, LEASE_CHANGED);
        l->need_plan = true;
}

void lease_begin_release(struct leases *l, struct lease *lease, usec_t now, const char *why)
{
        assert(lease_is_in_force(lease));
        lease->why = arena_strdup(lease->arena, why) ?: "out of memory";
        lease->empty_due = USEC_INFINITY;
        if (lease->progress > LEASE_NEW) {
                lease->state = LEASE_RELEASING;
                lease->is_late = false;
                lease->due = now + SWEEP_WAIT;
                lease_changed(l, lease);
        } else {
                lease->state = LEASE_ENDED;
                lease->due = USEC_INFINITY;
                lease_unstored(lease);
        }
}

/* Adds the names of some members that wait. Returns how many such members there are. */
static uint32_t name_waiting(const struct lease *lease, struct text *t)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < lease->n_members; i++) {
                if (lease->members[i].state != LEASE_MEMBER_WAITS || n++ >= MAX_NAMED)
                        continue;
                text_add(t, "%s%s", n > 1 ? ", " : "", lease->members[i].name);
        }
        if (n > MAX_NAMED)
                text_add(t, " and %u more", n - MAX_NAMED);
        return n;
}

/* --- time ----------------------------------------------------------------------------------------------------------- */

/* When the wall clock reaches `until`; but a wall clock that was set back makes the time no longer than `most` seconds. */
static usec_t time_of_wall(usec_t now, uint64_t wall, uint64_t until, uint64_t most)
{
        return lease_time_after(now, MIN(until > wall ? until - wall : 0, most));
}

void lease_set_ends_due(struct lease *lease, usec_t now, uint64_t wall)
{
        lease->ends_due = lease->ends > 0 ? time_of_wall(now, wall, lease->ends, lease->seconds) : USEC_INFINITY;
        if (lease->state == LEASE_ACTIVE)
                lease->due = lease->ends_due;
}

void lease_set_due(struct lease *lease, usec_t now, uint64_t wall)
{
        lease->due = lease->state == LEASE_GRANTING ? time_of_wall(now, wall, lease->confirm_by, lease->timeout) : USEC_INFINITY;
        lease_set_ends_due(lease, now, wall);
}

void lease_set_empty_due(struct lease *lease, usec_t now)
{
        bool waits = lease->state == LEASE_ACTIVE && lease->is_open && !lease->is_kept && lease_n_wanted(lease) == 0;

        if (!waits)
                lease->empty_due = USEC_INFINITY;
        else if (lease->empty_due == USEC_INFINITY)
                lease->empty_due = lease_time_after(now, lease->rest);
}

void leases_start(struct leases *l, usec_t now, uint64_t wall)
{
        for (size_t i = 0; i < l->n; i++) {
                lease_set_due(l->items[i], now, wall);
                lease_set_empty_due(l->items[i], now);
        }
        for (size_t i = 0; i < l->n_rests; i++)
                l->rests[i].due = time_of_wall(now, wall, l->rests[i].until, l->rests[i].seconds);
}

static void grant(struct lease *lease, struct log *log)
{
        uint32_t n = lease_n_in_force(lease);

        lease->state = LEASE_ACTIVE;
        lease_unstored(lease);
        lease->due = lease->ends_due;
        log_add(log, LOG_EVENT_LEASE_GRANTED, NULL, "lease %s is granted: P_Key 0x%04x of pool %s, %u port%s", lease->id, lease->base,
                lease->wish.pool, n, text_plural(n));
}

/* What could be confirmed stays, if the caller wanted that. */
static bool leave_out(struct leases *l, struct lease *lease)
{
        bool any = false;

        for (uint32_t i = 0; i < lease->n_members; i++)
                any |= lease->members[i].state == LEASE_MEMBER_CONFIRMED;
        if (!lease->wish.partial || !any)
                return false;
        for (uint32_t i = 0; i < lease->n_members; i++)
                if (lease->members[i].state == LEASE_MEMBER_WAITS)
                        lease->members[i].state = LEASE_MEMBER_LEFT_OUT;
        lease_changed(l, lease);
        return true;
}

static void time_out(struct leases *l, struct lease *lease, usec_t now, struct log *log)
{
        _cleanup_text_ struct text names = {}, why = {};
        uint32_t n = name_waiting(lease, &names);

        text_add(&why, "%u of %u ports could not be confirmed in %" PRIu64 " s: %s", n, lease->n_members, lease->timeout,
                 names.bytes ?: "?");
        log_add(log, LOG_EVENT_LEASE_FAILED, NULL, "lease %s: %s", lease->id, why.bytes ?: "?");
        if (leave_out(l, lease))
                grant(lease, log);
        else
                lease_begin_release(l, lease, now, why.bytes ?: "some ports could not be confirmed in time");
}

static void reach_due(struct leases *l, struct lease *lease, usec_t now, struct log *log)
{
        if (lease->state == LEASE_GRANTING && lease->progress == LEASE_PLANNED && !lease->is_late) {
                lease->is_late = true; /* the sweep that writes its tables decides, if it ends soon */
                lease->due = now + SWEEP_WAIT;
        } else if (lease->state == LEASE_GRANTING) {
                time_out(l, lease, now, log);
        } else if (lease->state == LEASE_ACTIVE) {
                log_add(log, LOG_EVENT_LEASE_RELEASED, NULL, "lease %s: it has expired; P_Key 0x%04x is revoked", lease->id,
                        lease->base);
                lease_begin_release(l, lease, now, "it has expired");
        } else {
                lease->is_late = true;
                lease->due = USEC_INFINITY;
        }
}

/* The edit that took its last member is stored and answered first. */
static usec_t empty_due(const struct lease *lease)
{
        return lease->store == LEASE_IN_STORE && lease->n_waiters == 0 ? lease->empty_due : USEC_INFINITY;
}

static void release_empty(struct leases *l, struct lease *lease, usec_t now, struct log *log)
{
        log_add(log, LOG_EVENT_LEASE_RELEASED, NULL, "lease %s: it had no members for %" PRIu64 " s; P_Key 0x%04x is free again after "
                "its rest", lease->id, lease->rest, lease->base);
        lease_begin_release(l, lease, now, "it had no members");
}

void leases_tick(struct leases *l, usec_t now, struct log *log)
{
        for (size_t i = 0; i < l->n; i++) {
                struct lease *lease = l->items[i];

                if (now >= lease->due)
                        reach_due(l, lease, now, log);
                if (now >= empty_due(lease))
                        release_empty(l, lease, now, log);
                lease_answer_late(l, lease, now);
        }
        for (size_t i = 0; i < l->n_rests; i++)
                if (now >= l->rests[i].due && !l->rests[i].is_over) {
                        l->rests[i].is_over = true;
                        l->rests[i].store = LEASE_TO_STORE;
                }
}

usec_t leases_due(const struct leases *l)
{
        usec_t due = USEC_INFINITY;

        for (size_t i = 0; i < l->n; i++)
                due = MIN(due, MIN(MIN(l->items[i]->due, empty_due(l->items[i])), lease_answer_due(l->items[i])));
        for (size_t i = 0; i < l->n_rests; i++)
                if (!l->rests[i].is_over)
                        due = MIN(due, l->rests[i].due);
        return due;
}

/* --- what was read -------------------------------------------------------------------------------------------------- */

static bool find_entry(const struct observed_table *t, struct p_key key, uint16_t *ret)
{
        for (uint32_t i = 0; t->source == TABLE_READ && i < t->capacity; i++)
                if (t->entries[i].v == key.v) {
                        *ret = (uint16_t) i;
                        return true;
                }
        return false;
}

/* Whether the switch lets the P_Key through: the leaf port certainly does not filter, or has the entry, too. */
static bool leaf_passes(const struct observed *o, uint32_t port, struct p_key key)
{
        const struct subnet *s = o->subnet;
        uint32_t leaf = subnet_leaf_port(s, port);
        const struct observed_table *t = leaf == SUBNET_NONE ? NULL : &o->tables[leaf];
        uint16_t at;

        if (!t)
                return !subnet_port_is_behind_unknown(s, &s->ports[port]);
        return !subnet_port_is_managed(s, &s->ports[leaf]) ||
               !(t->enforce_inbound || t->enforce_outbound || t->enforcement_doubted) || find_entry(t, key, &at);
}

/* Whether a member's table was read with the entry, at index 0 if it belongs there, and its switch lets the P_Key through. *ret:
 * the index of the entry, also if the rest is false. */
static bool was_read_back(const struct observed *o, const struct lease *lease, const struct lease_member *m, uint16_t *ret)
{
        struct p_key key = p_key_make(lease->base, m->membership == MEMBERSHIP_FULL);
        uint32_t port = subnet_find_endport(o->subnet, m->port);

        return port != SUBNET_NONE && find_entry(&o->tables[port], key, ret) && (!m->index0 || *ret == 0) &&
               leaf_passes(o, port, key);
}

/* Returns whether all members in force are confirmed. */
static bool confirm_members(struct lease *lease, const struct observed *o)
{
        bool all = true;

        lease->is_unread = false;
        for (uint32_t i = 0; i < lease->n_members; i++) {
                struct lease_member *m = &lease->members[i];

                if (!lease_member_is_in_force(m))
                        continue;
                m->state = was_read_back(o, lease, m, &m->index) ? LEASE_MEMBER_CONFIRMED : LEASE_MEMBER_WAITS;
                all &= m->state == LEASE_MEMBER_CONFIRMED;
        }
        return all;
}

/* A lease that is granting, after a plan with it was carried out as far as possible. */
static void see_granting(struct leases *l, struct lease *lease, const struct observed *o, usec_t now, struct log *log)
{
        lease->progress = LEASE_TRIED;
        if (confirm_members(lease, o))
                grant(lease, log);
        else if (lease->is_late)
                time_out(l, lease, now, log);
}

static int rest(struct leases *l, const struct lease *lease, usec_t now, uint64_t wall)
{
        struct lease_rest rest = {
                .base = lease->base, .seconds = lease->rest, .until = wall + lease->rest, .due = lease_time_after(now, lease->rest),
        };

        return lease->rest > 0 ? leases_restore_rest(l, &rest) : 0;
}

static const char *holder_label(struct arena *a, const struct subnet *s, const struct knowledge_record *r)
{
        uint32_t port = subnet_find_port_of(s, r->name.node, r->name.number);

        if (port != SUBNET_NONE)
                return subnet_port_label(a, s, port) ?: "?";
        return arena_printf(a, "port %u of node 0x%016" PRIx64, r->name.number, r->name.node.v) ?: "?";
}

/* A lease that is releasing, after a plan without it was carried out as far as possible. holder: a record that may hold its P_Key;
 * NULL: none does. */
static int see_released(struct leases *l, struct lease *lease, const struct knowledge_record *holder, const struct observed *o,
                        usec_t now, uint64_t wall, struct log *log)
{
        int r;

        if (holder) {
                const char *label = holder_label(lease->arena, o->subnet, holder);

                if (lease->progress != LEASE_TRIED)
                        log_add(log, LOG_EVENT_LEASE_HELD, NULL, "lease %s is released, but %s, and perhaps other ports, may still hold "
                                "P_Key 0x%04x; pkeyd does not lease it again until each of them confirms its removal; if a host is gone "
                                "for good: pkeyctl forget",
                                lease->id, label, lease->base);
                lease->progress = LEASE_TRIED;
                lease->due = USEC_INFINITY;
                return 0;
        }
        r = rest(l, lease, now, wall);
        if (r < 0)
                return r;
        lease->state = LEASE_ENDED;
        lease->due = USEC_INFINITY;
        lease_unstored(lease);
        log_add(log, LOG_EVENT_LEASE_RELEASED, NULL, "lease %s has ended (%s): no port has 0x%04x any more", lease->id, lease->why,
                lease->base);
        return 0;
}

/* Whether a port may hold the P_Key of a lease that is releasing. If that is not counted, the holders have to be listed. */
static bool may_be_held(const struct leases *l, const struct knowledge *k)
{
        for (size_t i = 0; i < l->n; i++)
                if (l->items[i]->state == LEASE_RELEASING && l->items[i]->progress >= LEASE_PLANNED &&
                    (!knowledge_is_counted(k) || knowledge_may_hold(k, l->items[i]->base)))
                        return true;
        return false;
}

/* A holder of each base; NULL: no base of a lease that is releasing has one. */
static int find_holders(const struct leases *l, const struct knowledge *k, uint32_t **ret)
{
        *ret = NULL;
        if (!may_be_held(l, k))
                return 0;
        *ret = calloc(P_KEY_BASE_MASK + 1, sizeof(**ret));
        if (!*ret)
                return -ENOMEM;
        knowledge_list_holders(k, *ret);
        return 0;
}

int leases_see(struct leases *l, const struct observed *observed, const struct knowledge *k, bool only_changed, usec_t now,
               uint64_t wall, struct log *log)
{
        _cleanup_free_ uint32_t *holders = NULL;
        int r = find_holders(l, k, &holders);

        for (size_t i = 0; r == 0 && i < l->n; i++) {
                struct lease *lease = l->items[i];
                const struct knowledge_record *holder = holders ? knowledge_get(k, holders[lease->base]) : NULL;

                if (lease->progress < LEASE_PLANNED)
                        continue;
                if (lease->state == LEASE_RELEASING)
                        r = see_released(l, lease, holder, observed, now, wall, log);
                else if (lease->state == LEASE_GRANTING)
                        see_granting(l, lease, observed, now, log);
                else if (lease->state == LEASE_ACTIVE && (!only_changed || lease->is_open))
                        (void) confirm_members(lease, observed);
        }
        return r;
}

void leases_confirm(struct leases *l, const struct observed *observed)
{
        for (size_t i = 0; i < l->n; i++)
                if (l->items[i]->state == LEASE_ACTIVE)
                        (void) confirm_members(l->items[i], observed);
}

/* --- frozen members ------------------------------------------------------------------------------------------------- */

static bool give_up(struct leases *l, struct lease *lease, const struct subnet *s, const enum freeze *frozen, usec_t now,
                    struct log *log)
{
        _cleanup_text_ struct text why = {};
        uint32_t n = 0;

        for (uint32_t i = 0; i < lease->n_members; i++) {
                struct lease_member *m = &lease->members[i];
                uint32_t port = subnet_find_endport(s, m->port);

                if (port == SUBNET_NONE || frozen[port] == FREEZE_NONE || m->state == LEASE_MEMBER_LEFT_OUT)
                        continue;
                if (lease->wish.partial)
                        m->state = LEASE_MEMBER_LEFT_OUT; /* its entry is revoked */
                if (n++ == 0)
                        text_add(&why, "%s is frozen: %s", m->name, freeze_reason(frozen[port]));
        }
        if (n == 0)
                return false;
        log_add(log, LOG_EVENT_LEASE_FAILED, NULL, "lease %s: %s%s", lease->id, why.bytes ?: "?",
                n > 1 ? "; other ports of the lease are frozen, too" : "");
        if (lease->wish.partial && lease_n_in_force(lease) > 0)
                lease_changed(l, lease);
        else
                lease_begin_release(l, lease, now, why.bytes ?: "a port is frozen");
        return true;
}

bool leases_give_up_frozen(struct leases *l, const struct subnet *s, const enum freeze *frozen, usec_t now, struct log *log)
{
        bool any = false;

        for (size_t i = 0; i < l->n; i++)
                if (l->items[i]->state == LEASE_GRANTING && !l->items[i]->is_stranded)
                        any |= give_up(l, l->items[i], s, frozen, now, log);
        return any;
}
