/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The engine's transactions: an array of slots that grows, with slots named by index; lists through it; and two hashes over it, by
 * transaction ID and by destination. Every operation takes constant time; memory is allocated only if more requests wait than ever
 * before.
 *
 * Of all transactions to one destination the *holder* may be sent; the others wait in a chain behind it, in the order in which they
 * came. So "at most one in flight to a destination" and "in order" need no further check.
 *
 * This file does not know the time, or what a MAD is.
 */

#include "ib/mad.h"
#include "util/hash_index.h"

#define SLOT_NONE UINT32_MAX

enum mad_transaction_state {
        TRANSACTION_FREE,
        TRANSACTION_CHAINED, /* behind the holder of its destination */
        TRANSACTION_READY,   /* holder; to be sent as soon as the window allows */
        TRANSACTION_FLYING,  /* holder; sent, no answer yet */
        TRANSACTION_QUIET,   /* holder; sent, and not in flight any more, but its timeout is not over */
        TRANSACTION_RESTING, /* holder; the answer was busy or the host could not send it: it waits before it is sent again */
        TRANSACTION_ENDED,   /* its result waits to be fetched */
};

struct mad_transaction_list {
        uint32_t first, last;
        unsigned n;
};

struct mad_transaction {
        struct mad_request request; /* its data becomes that of the answer */
        enum mad_transaction_state state;
        uint32_t previous, next;    /* in the list of its state */
        struct mad_transaction_list chain; /* of a holder: the transactions behind it */
        uint32_t tid;
        bool has_tid;
        bool suspect;               /* the request before it to the same destination was not answered */
        uint8_t failures;           /* how often this host could not send it */
        uint16_t tries;             /* how often it was sent */
        bool repeated;              /* it was sent again, or had no answer within the time of its first try */
        uint8_t timeouts;           /* tries without an answer in time */
        uint8_t level;              /* of the list of `flying`, `quiet` or `resting` */
        usec_t deadline;
        uint64_t send_number;       /* of its first try */
        unsigned window_then;       /* the window size when its first try was sent */
        enum mad_outcome outcome;
        uint16_t mad_status;
};

struct mad_transactions {
        struct mad_transaction *slots;
        struct hash_index by_destination; /* of holders */
        struct hash_index by_tid;         /* of those that have one */
        uint32_t n_slots, n_used;
        struct mad_transaction_list free;
};

/* Returns 0 or -ENOMEM. */
int mad_transactions_init(struct mad_transactions *t, uint32_t n_slots);
void mad_transactions_done(struct mad_transactions *t);

void mad_transaction_list_init(struct mad_transaction_list *l);
void mad_transaction_list_append(struct mad_transactions *t, struct mad_transaction_list *l, uint32_t slot);
void mad_transaction_list_remove(struct mad_transactions *t, struct mad_transaction_list *l, uint32_t slot);

/* Copies the request to a slot of its own, as the holder of its destination (READY, in no list yet) or CHAINED. Returns 0 or
 * -ENOMEM. Pointers into slots are invalid afterwards. */
int mad_transactions_add(struct mad_transactions *t, const struct mad_request *request, uint32_t *ret);

/* Makes the first in the chain of the holder the new holder: READY, in no list yet. SLOT_NONE: the chain is empty. */
uint32_t mad_transactions_pass_on(struct mad_transactions *t, uint32_t holder);

/* Removes a CHAINED transaction from its chain; it is in no list then. */
void mad_transactions_unchain(struct mad_transactions *t, uint32_t slot);

/* Returns a slot to the free ones. The transaction must be in no list and hold no destination. */
void mad_transactions_release(struct mad_transactions *t, uint32_t slot);

/* Finds by transaction ID; SLOT_NONE: none. */
uint32_t mad_transactions_find(const struct mad_transactions *t, uint32_t tid);
void mad_transactions_set_tid(struct mad_transactions *t, uint32_t slot, uint32_t tid);
void mad_transactions_clear_tid(struct mad_transactions *t, uint32_t slot);
