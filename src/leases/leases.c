/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "ib/multicast.h"
#include "leases/leases_internal.h"
#include "util/text.h"
#include "util/vector.h"

/* --- words --------------------------------------------------------------------------------------------------------- */

DEFINE_WORDS_AND_BACK(lease_state, enum lease_state, "?", [LEASE_GRANTING] = "granting", [LEASE_ACTIVE] = "active",
                      [LEASE_RELEASING] = "releasing", [LEASE_ENDED] = "ended")
DEFINE_WORDS_AND_BACK(lease_edit_kind, enum lease_edit_kind, "?", [LEASE_ADD_MEMBERS] = "add", [LEASE_REMOVE_MEMBERS] = "remove",
                      [LEASE_SET_MEMBERS] = "set")
DEFINE_WORDS_AND_BACK(lease_outcome, enum lease_outcome, "?",
                      [LEASE_GRANTED] = "granted", [LEASE_GRANTED_PARTLY] = "partial", [LEASE_RENEWED] = "renewed",
                      [LEASE_EDITED] = "edited", [LEASE_RELEASED] = "released", [LEASE_IS_RELEASING] = "releasing",
                      [LEASE_FAILED] = "failed", [LEASE_REFUSED] = "refused", [LEASE_ELSEWHERE] = "elsewhere",
                      [LEASE_UNSTORED] = "unstored")

/* --- one lease ------------------------------------------------------------------------------------------------------ */

struct lease *lease_new(void)
{
        struct arena *a = arena_new();
        struct lease *lease = a ? arena_new_object(a, struct lease) : NULL;

        if (!lease) {
                arena_free(a);
                return NULL;
        }
        lease->arena = a;
        lease->ends_due = lease->due = lease->empty_due = USEC_INFINITY;
        lease->is_kept = true;
        return lease;
}

struct lease *lease_free(struct lease *lease)
{
        if (lease)
                arena_free(lease->arena); /* which has the lease itself, too */
        return NULL;
}

const char *lease_id_problem(const char *id)
{
        size_t n = strlen(id);

        if (n == 0)
                return "is empty";
        if (n > LEASE_ID_MAX)
                return "is longer than 128 characters";
        for (size_t i = 0; i < n; i++)
                if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:@+-", id[i]))
                        return "has a character other than letters, digits and ._:@+-";
        return id[0] == '-' ? "begins with '-'" : NULL;
}

const char *lease_qos_problem(const struct lease_qos *qos)
{
        if (qos->mtu != 2 && qos->mtu != 4)
                return "the MTU is not one that can be set (accepted: 2 and 4, in KiB)";
        if (qos->service_level > MULTICAST_MAX_SL)
                return "the service level is too high (accepted: 0 to 15)";
        return multicast_rate_code_of_tenths(qos->rate) > 0 ? NULL :
               "the rate is not one of InfiniBand (accepted: 25, 50, 100, ..., 12000, in 0.1 Gb/s)";
}

bool lease_is_in_force(const struct lease *lease)
{
        return lease->state == LEASE_GRANTING || lease->state == LEASE_ACTIVE;
}

uint32_t lease_n_in_force(const struct lease *lease)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < lease->n_members; i++)
                n += lease_member_is_in_force(&lease->members[i]);
        return n;
}

uint32_t lease_n_wanted(const struct lease *lease)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < lease->n_members; i++)
                n += !lease->members[i].is_leaving;
        return n;
}

uint32_t lease_n_confirmed(const struct lease *lease)
{
        uint32_t n = 0;

        for (uint32_t i = 0; lease_is_in_force(lease) && i < lease->n_members; i++)
                n += lease->members[i].state == LEASE_MEMBER_CONFIRMED && lease_member_is_in_force(&lease->members[i]);
        return n;
}

/* --- the list ------------------------------------------------------------------------------------------------------- */

struct leases *leases_new(void)
{
        return calloc(1, sizeof(struct leases));
}

struct leases *leases_free(struct leases *l)
{
        if (!l)
                return NULL;
        for (size_t i = 0; i < l->n; i++)
                lease_free(l->items[i]);
        free(l->items);
        free(l->rests);
        free(l->ready);
        free(l);
        return NULL;
}

size_t leases_lower_bound(const struct leases *l, const char *id)
{
        return LOWER_BOUND(item, l->items, l->n, strcmp((*item)->id, id) < 0);
}

const struct lease *leases_find(const struct leases *l, const char *id)
{
        for (size_t i = leases_lower_bound(l, id); i < l->n && strcmp(l->items[i]->id, id) == 0; i++)
                if (l->items[i]->state != LEASE_ENDED)
                        return l->items[i];
        return NULL;
}

bool leases_is_ending(const struct leases *l, const char *id)
{
        size_t i = leases_lower_bound(l, id);

        return i < l->n && strcmp(l->items[i]->id, id) == 0 && !leases_find(l, id);
}

const struct lease *leases_find_base(const struct leases *l, uint16_t base)
{
        const struct lease *lease = l->by_base[base];

        return lease && lease->state != LEASE_ENDED ? lease : NULL;
}

static bool base_rests(const struct leases *l, uint16_t base)
{
        for (size_t i = 0; i < l->n_rests; i++)
                if (l->rests[i].base == base && !l->rests[i].is_over)
                        return true;
        return false;
}

int leases_insert(struct leases *l, struct lease *lease)
{
        size_t at = leases_lower_bound(l, lease->id);
        int r;

        while (at < l->n && strcmp(l->items[at]->id, lease->id) == 0)
                at++;
        r = VECTOR_INSERT(NULL, l->items, l->n, l->allocated, at, lease);
        if (r == 0)
                l->by_base[lease->base] = lease;
        return r;
}

const struct lease *const *leases_list(const struct leases *l, size_t *ret_n)
{
        *ret_n = l->n;
        return (const struct lease *const *) l->items;
}

void leases_count(const struct leases *l, uint32_t ret[static LEASE_N_STATES])
{
        memset(ret, 0, LEASE_N_STATES * sizeof(*ret));
        for (size_t i = 0; i < l->n; i++)
                ret[l->items[i]->state]++;
}

const struct lease_rest *leases_rests(const struct leases *l, size_t *ret_n)
{
        *ret_n = l->n_rests;
        return l->rests;
}

/* --- answers -------------------------------------------------------------------------------------------------------- */

int lease_wait(struct leases *l, struct lease *lease, const struct lease_waiter *waiter, struct findings *findings)
{
        if (lease->n_waiters == LEASE_MAX_WAITERS)
                return findings_error(findings, FINDING_LEASE_NOT_NOW, NULL, "%d callers already wait for lease %s; try again later",
                                      LEASE_MAX_WAITERS, lease->id);
        if (VECTOR_EXTEND(NULL, l->ready, l->n_ready, l->allocated_ready, l->n_waiting + 1) < 0)
                return -ENOMEM;
        lease->waiters[lease->n_waiters++] = *waiter;
        l->n_waiting++;
        return 0;
}

static void format_answer(struct lease_answer *a, const struct lease *lease)
{
        const char *why = lease->why ?: "";

        switch (a->outcome) {
        case LEASE_GRANTED:
                (void) snprintf(a->text, sizeof(a->text), "lease %s is granted: P_Key 0x%04x, %u port%s", lease->id, lease->base,
                                lease->n_members, text_plural(lease->n_members));
                return;
        case LEASE_GRANTED_PARTLY:
                (void) snprintf(a->text, sizeof(a->text), "lease %s is in force at %u of %u ports: P_Key 0x%04x; the others could not "
                                "be confirmed", lease->id, lease_n_confirmed(lease), lease->n_members, lease->base);
                return;
        case LEASE_RENEWED:
                (void) snprintf(a->text, sizeof(a->text), "lease %s is renewed", lease->id);
                return;
        case LEASE_EDITED:
                (void) snprintf(a->text, sizeof(a->text), "lease %s has %u member%s: P_Key 0x%04x", lease->id, lease_n_wanted(lease),
                                text_plural(lease_n_wanted(lease)), lease->base);
                return;
        case LEASE_RELEASED:
                (void) snprintf(a->text, sizeof(a->text), "lease %s is released: no port has 0x%04x any more", lease->id,
                                lease->base);
                return;
        case LEASE_IS_RELEASING:
                (void) snprintf(a->text, sizeof(a->text), "lease %s is released, but a port may still hold P_Key 0x%04x; pkeyd does not "
                                "lease it again until it is gone (pkeyctl lease show %s)", lease->id, lease->base, lease->id);
                return;
        case LEASE_FAILED:
                (void) snprintf(a->text, sizeof(a->text), "lease %s is not granted: %s; %s", lease->id, why,
                                lease->state == LEASE_ENDED ? "everything was taken back" : "it is being taken back");
                return;
        case LEASE_UNSTORED:
                (void) snprintf(a->text, sizeof(a->text), "pkeyd could not store this; it may still be carried out, so ask again, or see "
                                "pkeyctl lease show %s", lease->id);
                return;
        case LEASE_REFUSED:
        case LEASE_ELSEWHERE:
                break;
        }
}

static void push_answer(struct leases *l, const struct lease *lease, const struct lease_waiter *waiter, enum lease_outcome outcome)
{
        struct lease_answer *a = &l->ready[l->n_ready];

        assert(l->n_ready < l->allocated_ready && l->n_waiting > 0);
        *a = (struct lease_answer) {
                .request = waiter->request, .outcome = outcome, .lease = lease->state == LEASE_ENDED ? NULL : lease,
        };
        format_answer(a, lease);
        l->n_ready++;
        l->n_waiting--;
}

/* When the answer is that the lease could not be stored. The caller may have waited for something else before: the store gets some
 * time in any case. */
static usec_t late_at(const struct lease *lease, const struct lease_waiter *waiter)
{
        return MAX(waiter->until, lease->unstored_at + LEASE_STORE_SPARE * USEC_PER_SEC);
}

/* Returns false: the waiter waits on. now: of a lease that is not stored. */
static bool find_outcome(const struct lease *lease, const struct lease_waiter *waiter, usec_t now, enum lease_outcome *ret)
{
        bool releases = waiter->kind == LEASE_RELEASE;

        if (lease->store != LEASE_IN_STORE) {
                *ret = LEASE_UNSTORED;
                return now >= late_at(lease, waiter);
        }
        switch (lease->state) {
        case LEASE_ACTIVE:
                *ret = waiter->kind == LEASE_RENEW ? LEASE_RENEWED : waiter->kind == LEASE_EDIT ? LEASE_EDITED :
                       lease_n_confirmed(lease) < lease->n_members ? LEASE_GRANTED_PARTLY : LEASE_GRANTED;
                return waiter->kind != LEASE_CREATE || !lease->is_unread;
        case LEASE_RELEASING:
                *ret = releases ? LEASE_IS_RELEASING : LEASE_FAILED;
                return lease->progress == LEASE_TRIED || lease->is_late;
        case LEASE_ENDED:
                *ret = releases ? LEASE_RELEASED : LEASE_FAILED;
                return true;
        case LEASE_GRANTING:
        case LEASE_N_STATES:
                break;
        }
        return false;
}

static void answer_waiters(struct leases *l, struct lease *lease, usec_t now)
{
        enum lease_outcome outcome;
        size_t kept = 0;

        for (size_t i = 0; i < lease->n_waiters; i++) {
                if (find_outcome(lease, &lease->waiters[i], now, &outcome))
                        push_answer(l, lease, &lease->waiters[i], outcome);
                else
                        lease->waiters[kept++] = lease->waiters[i];
        }
        lease->n_waiters = kept;
}

void lease_answer_late(struct leases *l, struct lease *lease, usec_t now)
{
        if (now < lease_answer_due(lease))
                return;
        if (lease->unstored_at == 0)
                lease->unstored_at = MAX(now, (usec_t) 1);
        answer_waiters(l, lease, now);
}

usec_t lease_answer_due(const struct lease *lease)
{
        usec_t due = USEC_INFINITY;

        for (size_t i = 0; i < lease->n_waiters && lease->store != LEASE_IN_STORE; i++)
                due = MIN(due, lease->unstored_at > 0 ? late_at(lease, &lease->waiters[i]) : 0);
        return due;
}

bool leases_next_answer(struct leases *l, struct lease_answer *ret)
{
        if (l->n_ready == 0)
                return false;
        *ret = l->ready[0];
        l->n_ready--;
        memmove(l->ready, l->ready + 1, l->n_ready * sizeof(*l->ready));
        return true;
}

/* The other host is not asked to repeat a release that is stored: there the lease may have ended by then. `to` has room for the
 * answers to its own waiters. */
static void pass_on(struct leases *to, bool is_own, const struct lease *lease, const struct lease_waiter *waiter)
{
        bool is_done = waiter->kind == LEASE_RELEASE && lease->store == LEASE_IN_STORE && lease->state == LEASE_RELEASING;
        struct lease_answer *a;

        if (VECTOR_EXTEND(NULL, to->ready, to->n_ready, to->allocated_ready, to->n_waiting + !is_own) < 0)
                return;
        a = &to->ready[to->n_ready++];
        *a = (struct lease_answer) { .request = waiter->request, .outcome = is_done ? LEASE_IS_RELEASING : LEASE_ELSEWHERE };
        format_answer(a, lease);
}

void leases_pass_on(struct leases *from, struct leases *to)
{
        for (size_t i = 0; i < from->n && from->n_waiting > 0; i++) {
                struct lease *lease = from->items[i];

                for (; lease->n_waiters > 0; from->n_waiting--)
                        pass_on(to, to == from, lease, &lease->waiters[--lease->n_waiters]);
        }
}

/* --- the store ------------------------------------------------------------------------------------------------------ */

void lease_unstored(struct lease *lease)
{
        if (lease->store == LEASE_IN_STORE)
                lease->unstored_at = 0;
        lease->store = LEASE_TO_STORE;
}

bool leases_are_stored(const struct leases *l)
{
        for (size_t i = 0; i < l->n; i++)
                if (l->items[i]->store != LEASE_IN_STORE)
                        return false;
        for (size_t i = 0; i < l->n_rests; i++)
                if (l->rests[i].store != LEASE_IN_STORE)
                        return false;
        return true;
}

static void move_all(struct leases *l, enum lease_store from, enum lease_store to)
{
        for (size_t i = 0; i < l->n; i++)
                if (l->items[i]->store == from)
                        l->items[i]->store = to;
        for (size_t i = 0; i < l->n_rests; i++)
                if (l->rests[i].store == from)
                        l->rests[i].store = to;
}

void leases_storing(struct leases *l)
{
        move_all(l, LEASE_TO_STORE, LEASE_STORING);
}

void leases_answer(struct leases *l)
{
        for (size_t i = 0; i < l->n && l->n_waiting > 0; i++)
                if (l->items[i]->store == LEASE_IN_STORE)
                        answer_waiters(l, l->items[i], 0);
}

static void drop_ended(struct leases *l)
{
        size_t n = 0, n_rests = 0;

        for (size_t i = 0; i < l->n; i++) {
                struct lease *lease = l->items[i];

                if (lease->state == LEASE_ENDED && lease->store == LEASE_IN_STORE) {
                        if (l->by_base[lease->base] == lease)
                                l->by_base[lease->base] = NULL;
                        lease_free(lease);
                } else {
                        l->items[n++] = lease;
                }
        }
        l->n = n;
        for (size_t i = 0; i < l->n_rests; i++)
                if (!l->rests[i].is_over || l->rests[i].store != LEASE_IN_STORE)
                        l->rests[n_rests++] = l->rests[i];
        l->n_rests = n_rests;
}

void leases_stored(struct leases *l)
{
        move_all(l, LEASE_STORING, LEASE_IN_STORE);
        leases_answer(l);
        drop_ended(l);
}

void leases_unstore(struct leases *l)
{
        for (size_t i = 0; i < l->n; i++)
                lease_unstored(l->items[i]);
        for (size_t i = 0; i < l->n_rests; i++)
                l->rests[i].store = LEASE_TO_STORE;
}

int leases_restore(struct leases *l, struct lease *lease)
{
        int r;

        if (leases_find(l, lease->id) || leases_find_base(l, lease->base))
                return -EBADMSG;
        lease->progress = LEASE_CHANGED; /* earlier decisions may have had it */
        lease->is_unread = true;
        r = leases_insert(l, lease);
        if (r == 0)
                l->need_plan = true;
        return r;
}

int leases_restore_rest(struct leases *l, const struct lease_rest *rest)
{
        return base_rests(l, rest->base) ? -EBADMSG : VECTOR_ADD(NULL, l->rests, l->n_rests, l->allocated_rests, *rest);
}

/* --- the plan ------------------------------------------------------------------------------------------------------- */

/* The plan that is being made is without the members that were taken out. */
static void drop_leaving(struct lease *lease)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < lease->n_members; i++) {
                lease->members[i].is_changed = false;
                if (!lease->members[i].is_leaving)
                        lease->members[n++] = lease->members[i];
        }
        lease->n_members = n;
}

bool leases_need_plan(const struct leases *l)
{
        return l->need_plan;
}

bool leases_planned(struct leases *l)
{
        bool changed = l->need_plan;

        l->need_plan = false;
        for (size_t i = 0; i < l->n; i++) {
                l->items[i]->progress = MAX(l->items[i]->progress, LEASE_PLANNED);
                drop_leaving(l->items[i]);
        }
        return changed;
}
