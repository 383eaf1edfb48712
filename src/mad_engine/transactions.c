/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "mad_engine/transactions.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define SLOTS_MAX (UINT32_C(1) << 28)

static_assert(HASH_INDEX_NONE == SLOT_NONE, "hash_index_first() returns SLOT_NONE if there is no such transaction");

/* No two destinations have the same hash. They are mixed because they are often, but not always, small consecutive numbers;
 * transaction IDs are mixed already, and are their own hash. */
static uint64_t hash_of_destination(uint32_t destination)
{
        return hash_mix(0, destination);
}

void mad_transaction_list_init(struct mad_transaction_list *l)
{
        *l = (struct mad_transaction_list) { .first = SLOT_NONE, .last = SLOT_NONE };
}

void mad_transaction_list_append(struct mad_transactions *t, struct mad_transaction_list *l, uint32_t slot)
{
        t->slots[slot].previous = l->last;
        t->slots[slot].next = SLOT_NONE;
        if (l->last != SLOT_NONE)
                t->slots[l->last].next = slot;
        else
                l->first = slot;
        l->last = slot;
        l->n++;
}

void mad_transaction_list_remove(struct mad_transactions *t, struct mad_transaction_list *l, uint32_t slot)
{
        uint32_t previous = t->slots[slot].previous, next = t->slots[slot].next;

        if (previous != SLOT_NONE)
                t->slots[previous].next = next;
        else
                l->first = next;
        if (next != SLOT_NONE)
                t->slots[next].previous = previous;
        else
                l->last = previous;
        l->n--;
}

/* n_slots is a power of two greater than the present number. On failure nothing changes. */
static int grow(struct mad_transactions *t, uint32_t n_slots)
{
        struct mad_transaction *slots;

        if (hash_index_reserve(&t->by_destination, n_slots) < 0 || hash_index_reserve(&t->by_tid, n_slots) < 0)
                return -ENOMEM;
        slots = reallocarray(t->slots, n_slots, sizeof(*slots));
        if (!slots)
                return -ENOMEM;
        memset(slots + t->n_slots, 0, (n_slots - t->n_slots) * sizeof(*slots));
        t->slots = slots;
        for (; t->n_slots < n_slots; t->n_slots++)
                mad_transaction_list_append(t, &t->free, t->n_slots);
        return 0;
}

int mad_transactions_init(struct mad_transactions *t, uint32_t n_slots)
{
        *t = (struct mad_transactions) {};
        mad_transaction_list_init(&t->free);
        return grow(t, n_slots);
}

void mad_transactions_done(struct mad_transactions *t)
{
        free(t->slots);
        hash_index_done(&t->by_destination);
        hash_index_done(&t->by_tid);
        *t = (struct mad_transactions) {};
}

int mad_transactions_add(struct mad_transactions *t, const struct mad_request *request, uint32_t *ret)
{
        struct mad_transaction *x;
        uint32_t slot, holder;

        if (t->free.first == SLOT_NONE && (t->n_slots >= SLOTS_MAX || grow(t, t->n_slots * 2) < 0))
                return -ENOMEM;

        slot = t->free.first;
        mad_transaction_list_remove(t, &t->free, slot);
        t->n_used++;
        x = &t->slots[slot];
        *x = (struct mad_transaction) { .request = *request, .state = TRANSACTION_READY };
        mad_transaction_list_init(&x->chain);

        holder = hash_index_first(&t->by_destination, hash_of_destination(request->destination));
        if (holder != SLOT_NONE) {
                x->state = TRANSACTION_CHAINED;
                mad_transaction_list_append(t, &t->slots[holder].chain, slot);
        } else {
                hash_index_add(&t->by_destination, slot, hash_of_destination(request->destination));
        }
        *ret = slot;
        return 0;
}

uint32_t mad_transactions_pass_on(struct mad_transactions *t, uint32_t holder)
{
        struct mad_transaction *h = &t->slots[holder];
        uint32_t heir = h->chain.first;

        hash_index_remove(&t->by_destination, holder);
        if (heir == SLOT_NONE)
                return SLOT_NONE;

        mad_transaction_list_remove(t, &h->chain, heir);
        t->slots[heir].state = TRANSACTION_READY;
        t->slots[heir].chain = h->chain;
        mad_transaction_list_init(&h->chain);
        hash_index_add(&t->by_destination, heir, hash_of_destination(h->request.destination));
        return heir;
}

void mad_transactions_unchain(struct mad_transactions *t, uint32_t slot)
{
        uint32_t holder = hash_index_first(&t->by_destination, hash_of_destination(t->slots[slot].request.destination));

        assert(t->slots[slot].state == TRANSACTION_CHAINED && holder != SLOT_NONE);
        mad_transaction_list_remove(t, &t->slots[holder].chain, slot);
}

void mad_transactions_release(struct mad_transactions *t, uint32_t slot)
{
        assert(slot < t->n_slots);
        t->slots[slot].state = TRANSACTION_FREE;
        mad_transaction_list_append(t, &t->free, slot);
        t->n_used--;
}

uint32_t mad_transactions_find(const struct mad_transactions *t, uint32_t tid)
{
        return hash_index_first(&t->by_tid, tid);
}

void mad_transactions_set_tid(struct mad_transactions *t, uint32_t slot, uint32_t tid)
{
        t->slots[slot].tid = tid;
        t->slots[slot].has_tid = true;
        hash_index_add(&t->by_tid, slot, tid);
}

void mad_transactions_clear_tid(struct mad_transactions *t, uint32_t slot)
{
        hash_index_remove(&t->by_tid, slot);
        t->slots[slot].has_tid = false;
}
