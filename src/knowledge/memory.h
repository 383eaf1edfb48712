/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Knowledge in the store: a record `table/KIND/0xNODE/NUMBER` for each table, its value a JSON object. Written before the MADs that
 * it is about are sent, so that after a crash at any instruction every write that may have happened is known. A record changes only
 * with what it is about; that all of them are as they are was seen at the last discovery, of which the record `table/discovery` has
 * the time.
 *
 * KIND is `endport`, `leaf` (a switch port with an endport at the other end) or `place` (a switch port whose link is up, and behind
 * which nothing was ever discovered); NUMBER is that of the port within its node. P_Keys and GUIDs are in hex, times in seconds
 * since 1970. The keys of the object:
 *
 *     capacity        entries of the table
 *     entries         four digits each; with `read`, as they were read at `read_at`
 *     writes          blocks of 32 entries that were sent, or are about to be, and were not read since
 *     seen_at, seen   when the port was there last; `seen` in microseconds of the boot `boot` of this host
 *     there_at        when it answered discovery last
 *     clock           the seconds that the clock of the host was ahead of that of the boot when it gave these times
 *     place           the switch port where it was; of a switch itself, all ports of switches that it was plugged into, with blanks
 *     unfollowed      on a head node of a pair: it was not read since the other one may have written anything
 *     may_be_silent   it is gone, and may be a device elsewhere that does not answer
 *     vouched         a person vouches that it holds nothing: `vouched_by`, since `vouched_at`
 *
 * `table/discovery` has `at`, and `now` in `boot`: ports whose records did not change were as these say until then.
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
