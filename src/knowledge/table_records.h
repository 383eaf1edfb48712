/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Knowledge in the store: a record `table/KIND/0xNODE/NUMBER` for each table; its value is a JSON object. It is stored before the
 * MADs of its writes are sent, so that after a crash at any instruction every write that may have happened is known. A record is
 * stored again only when its table, or the presence of its port, changed; `table/discovery` has the time of the last discovery,
 * which confirmed all others.
 *
 * KIND is `endport`, `leaf` (a switch port with an endport at the other end) or `place` (a switch port whose link is up and behind
 * which no device was ever identified); NUMBER is the number of the port. P_Keys and GUIDs are in hex, times in seconds since 1970.
 * The keys of the object:
 *
 *     capacity        entries of the table
 *     entries         four digits each; with `read`, as they were read at `read_at`
 *     writes          blocks of 32 entries that were sent, or are about to be, and were not read since; `suspected`: as in struct
 *                     knowledge_write
 *     presence        `there`, `silent` or `absent`, since `since`
 *     seen_at, seen   when the port was last present; `seen` in microseconds of the boot `boot` of a host; "": not known
 *     there_at        when it last answered discovery
 *     clock           seconds that the clock of the host was ahead of that of the boot when these times were recorded
 *     place           the switch port where it was; of a switch itself all ports of other switches that it was connected to, with
 *                     blanks between them
 *     unfollowed      on a head node of a pair: not read since the other head node may have written anything
 *     may_be_silent   it is absent, and may be a silent device elsewhere in the fabric
 *     found           of a place: the device that was silent there has been identified
 *     vouched         a person stated that it holds nothing: `vouched_by`, since `vouched_at`
 *
 * `table/discovery` has `at`, and `now` in `boot`: until then the port of each record was as the record states.
 */

#include "knowledge/knowledge.h"
#include "store/store.h"

#define KNOWLEDGE_PREFIX    "table/"
#define KNOWLEDGE_DISCOVERY KNOWLEDGE_PREFIX "discovery"

/* Puts the records that changed since knowledge_stored() into the transaction. `boot` names this boot of the host, from which times
 * of `seen` count. Errors stay in the transaction. */
void knowledge_store(const struct knowledge *k, const char *boot, struct store_transaction *t);
/* Puts one record only, changed or not. */
void knowledge_store_record(const struct knowledge *k, uint32_t record, const char *boot, struct store_transaction *t);
/* Marks all records as stored: the transaction was committed. */
void knowledge_stored(struct knowledge *k);

/* Marks all records as not stored, because the store was lost. */
void knowledge_unstore(struct knowledge *k);

/* Adds a record as it was stored; an announced block counts as sent. If it is of another boot, `seen` is not known. Returns 0,
 * -EBADMSG (not a record of this version), or -ENOMEM. */
int knowledge_restore(struct knowledge *k, const char *boot, const char *key, const void *value, size_t n);
/* Ends the restoring: ports of records that did not change were as the records state until the last discovery. */
void knowledge_restored(struct knowledge *k);
