/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Knowledge in the store: a record `table/KIND/0xNODE/NUMBER` for each table, its value a JSON object. Written before the MADs that
 * it is about are sent, so that after a crash at any instruction every write that may have happened is known. A record changes only
 * with what it is about; that all of them are as they are was seen at the last discovery, of which the record `table/discovery` has
 * the time.
 */

#include "knowledge/knowledge.h"
#include "store/store.h"

#define KNOWLEDGE_PREFIX "table/"

/* Puts what changed since the last call that was followed by knowledge_stored(). `boot` names this boot of the host: times of
 * `seen` count from it. Errors stay in the transaction. */
void knowledge_store(const struct knowledge *k, const char *boot, struct store_transaction *t);
/* The transaction was committed. */
void knowledge_stored(struct knowledge *k);

/* The store was lost. */
void knowledge_unstore(struct knowledge *k);

/* A record as it was stored; what was announced counts as sent. Of another boot, `seen` is the beginning of this one. Returns 0,
 * -EBADMSG (it is not one of this version), -ENOMEM. */
int knowledge_restore(struct knowledge *k, const char *boot, const char *key, const void *value, size_t n);
/* All of them were restored. */
void knowledge_restored(struct knowledge *k);
