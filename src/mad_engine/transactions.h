/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Where the engine's transactions live: an array of slots that grows and never moves in meaning (slots are named by
 * index), lists through it, and two hashes over it: by transaction ID, and by destination. Every operation takes the same
 * time however many there are; memory is asked for only when more requests wait than ever before.
 *
 * Of all transactions to one destination, the *holder* is the one that may be sent; the others wait in a chain behind it,
 * in the order in which they came. So "at most one outstanding to a destination" and "in order" need no further check.
 *
 * This file refuses to know time and what a MAD is.
 */

#include "ib/mad.h"
#include "util/hash_index.h"

#define SLOT_NONE UINT32_MAX

enum mad_transaction_state {
        TRANSACTION_FREE,
        TRANSACTION_CHAINED, /* behind the holder of its destination */
        TRANSACTION_READY,   /* holder; to be sent as soon as the window allows */
        TRANSACTION_FLYING,  /* holder; sent, no answer yet */
        TRANSACTION_RESTING, /* holder; told busy or could not be sent, waits before it is sent again */
        TRANSACTION_ENDED,   /* its result waits to be fetched */
};

struct mad_transaction_list {
        uint32_t first, last;
        unsigned n;
};

struct mad_transaction {
        struct mad_request request; /* its data becomes the answer's */
        enum mad_transaction_state state;
        uint32_t previous, next;    /* in the list that its state puts it in */
        struct mad_transaction_list chain; /* of a holder: who waits behind it */
        uint32_t tid;
        bool has_tid;
        bool suspect;               /* the request before it to the same destination had no answer */
        uint8_t failures;           /* times that this host could not send it */
        uint16_t tries;             /* times that it was sent */
        bool repeated;              /* it was to be sent again */
        uint8_t timeouts;           /* of them had no answer in time */
        uint8_t level;              /* of the list that it flies or rests in */
        usec_t deadline;
        uint64_t send_number;       /* of its last try */
        unsigned window_then;       /* when it was sent */
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

/* A copy of the request in a slot of its own. It is the holder of its destination (READY, in no list yet) or CHAINED.
 * Returns 0 or -ENOMEM. Pointers into slots are void after it. */
int mad_transactions_add(struct mad_transactions *t, const struct mad_request *request, uint32_t *ret);

/* The holder gives its place to the first in its chain, which becomes READY, in no list yet. SLOT_NONE: nobody waited. */
uint32_t mad_transactions_pass_on(struct mad_transactions *t, uint32_t holder);

/* A CHAINED one waits no longer; it is in no list then. */
void mad_transactions_unchain(struct mad_transactions *t, uint32_t slot);

/* Back to the free slots. It must be in no list and have passed on what it held. */
void mad_transactions_release(struct mad_transactions *t, uint32_t slot);

/* By transaction ID; SLOT_NONE: no such. */
uint32_t mad_transactions_find(const struct mad_transactions *t, uint32_t tid);
void mad_transactions_set_tid(struct mad_transactions *t, uint32_t slot, uint32_t tid);
void mad_transactions_clear_tid(struct mad_transactions *t, uint32_t slot);
