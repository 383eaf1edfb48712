/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "mad_engine/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"

#define SLOTS_MAX (UINT32_C(1) << 28)

static uint32_t *destination_bucket(const struct mad_engine_table *t, uint32_t destination)
{
        /* Fibonacci hashing: destinations tend to be small consecutive numbers, but need not. */
        return &t->by_destination[(destination * UINT32_C(2654435769) >> 7) & (t->n_buckets - 1)];
}

static uint32_t *tid_bucket(const struct mad_engine_table *t, uint32_t tid)
{
        return &t->by_tid[tid & (t->n_buckets - 1)];
}

void mad_engine_list_init(struct mad_engine_list *l)
{
        *l = (struct mad_engine_list) { .first = SLOT_NONE, .last = SLOT_NONE };
}

void mad_engine_list_append(struct mad_engine_table *t, struct mad_engine_list *l, uint32_t slot)
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

void mad_engine_list_remove(struct mad_engine_table *t, struct mad_engine_list *l, uint32_t slot)
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

static bool is_holder(const struct mad_transaction *x)
{
        return x->state == TRANSACTION_READY || x->state == TRANSACTION_FLYING || x->state == TRANSACTION_RESTING;
}

static void hash_destination(struct mad_engine_table *t, uint32_t slot)
{
        uint32_t *bucket = destination_bucket(t, t->slots[slot].request.destination);

        t->slots[slot].next_by_destination = *bucket;
        *bucket = slot;
}

static void hash_tid(struct mad_engine_table *t, uint32_t slot)
{
        uint32_t *bucket = tid_bucket(t, t->slots[slot].tid);

        t->slots[slot].next_by_tid = *bucket;
        *bucket = slot;
}

static void rehash(struct mad_engine_table *t)
{
        for (uint32_t i = 0; i < t->n_buckets; i++)
                t->by_destination[i] = t->by_tid[i] = SLOT_NONE;
        for (uint32_t i = 0; i < t->n_slots; i++) {
                if (is_holder(&t->slots[i]))
                        hash_destination(t, i);
                if (t->slots[i].has_tid)
                        hash_tid(t, i);
        }
}

/* n_slots is a power of two greater than what the table has. On failure the table is as it was. */
static int grow(struct mad_engine_table *t, uint32_t n_slots)
{
        _cleanup_free_ uint32_t *by_destination = calloc(n_slots, sizeof(uint32_t));
        _cleanup_free_ uint32_t *by_tid = calloc(n_slots, sizeof(uint32_t));
        struct mad_transaction *slots;

        if (!by_destination || !by_tid)
                return -ENOMEM;
        slots = reallocarray(t->slots, n_slots, sizeof(*slots));
        if (!slots)
                return -ENOMEM;
        memset(slots + t->n_slots, 0, (n_slots - t->n_slots) * sizeof(*slots));
        t->slots = slots;
        for (; t->n_slots < n_slots; t->n_slots++)
                mad_engine_list_append(t, &t->free, t->n_slots);

        free(t->by_destination);
        free(t->by_tid);
        t->by_destination = STEAL(by_destination);
        t->by_tid = STEAL(by_tid);
        t->n_buckets = n_slots;
        rehash(t);
        return 0;
}

int mad_engine_table_init(struct mad_engine_table *t, uint32_t n_slots)
{
        *t = (struct mad_engine_table) {};
        mad_engine_list_init(&t->free);
        return grow(t, n_slots);
}

void mad_engine_table_done(struct mad_engine_table *t)
{
        free(t->slots);
        free(t->by_destination);
        free(t->by_tid);
        *t = (struct mad_engine_table) {};
}

static uint32_t find_holder(const struct mad_engine_table *t, uint32_t destination)
{
        uint32_t slot = *destination_bucket(t, destination);

        while (slot != SLOT_NONE && t->slots[slot].request.destination != destination)
                slot = t->slots[slot].next_by_destination;
        return slot;
}

static void chain_append(struct mad_engine_table *t, uint32_t holder, uint32_t slot)
{
        struct mad_transaction *h = &t->slots[holder];

        t->slots[slot].state = TRANSACTION_CHAINED;
        if (h->chain_last != SLOT_NONE)
                t->slots[h->chain_last].next = slot;
        else
                h->chain_first = slot;
        h->chain_last = slot;
}

int mad_engine_table_add(struct mad_engine_table *t, const struct mad_request *request, uint32_t *ret)
{
        struct mad_transaction *x;
        uint32_t slot, holder;
        int r;

        if (t->free.first == SLOT_NONE) {
                if (t->n_slots >= SLOTS_MAX)
                        return -ENOMEM;
                r = grow(t, t->n_slots * 2);
                if (r < 0)
                        return r;
        }

        slot = t->free.first;
        mad_engine_list_remove(t, &t->free, slot);
        t->n_used++;
        x = &t->slots[slot];
        *x = (struct mad_transaction) {
                .request = *request,
                .state = TRANSACTION_READY,
                .previous = SLOT_NONE,
                .next = SLOT_NONE,
                .chain_first = SLOT_NONE,
                .chain_last = SLOT_NONE,
        };

        holder = find_holder(t, request->destination);
        if (holder != SLOT_NONE)
                chain_append(t, holder, slot);
        else
                hash_destination(t, slot);
        *ret = slot;
        return 0;
}

static void unhash_destination(struct mad_engine_table *t, uint32_t slot)
{
        uint32_t *at = destination_bucket(t, t->slots[slot].request.destination);

        while (*at != slot)
                at = &t->slots[*at].next_by_destination;
        *at = t->slots[slot].next_by_destination;
}

uint32_t mad_engine_table_pass_on(struct mad_engine_table *t, uint32_t holder)
{
        struct mad_transaction *h = &t->slots[holder];
        uint32_t heir = h->chain_first;

        unhash_destination(t, holder);
        if (heir == SLOT_NONE)
                return SLOT_NONE;

        t->slots[heir].state = TRANSACTION_READY;
        t->slots[heir].chain_first = t->slots[heir].next;
        t->slots[heir].chain_last = heir == h->chain_last ? SLOT_NONE : h->chain_last;
        t->slots[heir].next = SLOT_NONE;
        h->chain_first = h->chain_last = SLOT_NONE;
        hash_destination(t, heir);
        return heir;
}

void mad_engine_table_release(struct mad_engine_table *t, uint32_t slot)
{
        t->slots[slot].state = TRANSACTION_FREE;
        mad_engine_list_append(t, &t->free, slot);
        t->n_used--;
}

uint32_t mad_engine_table_find(const struct mad_engine_table *t, uint32_t tid)
{
        uint32_t slot = *tid_bucket(t, tid);

        while (slot != SLOT_NONE && t->slots[slot].tid != tid)
                slot = t->slots[slot].next_by_tid;
        return slot;
}

void mad_engine_table_set_tid(struct mad_engine_table *t, uint32_t slot, uint32_t tid)
{
        t->slots[slot].tid = tid;
        t->slots[slot].has_tid = true;
        hash_tid(t, slot);
}

void mad_engine_table_clear_tid(struct mad_engine_table *t, uint32_t slot)
{
        uint32_t *at = tid_bucket(t, t->slots[slot].tid);

        while (*at != slot)
                at = &t->slots[*at].next_by_tid;
        *at = t->slots[slot].next_by_tid;
        t->slots[slot].has_tid = false;
}
