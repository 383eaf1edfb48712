/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Leases as records of a store:
 *
 *     lease/ID        a lease that did not end, {"pool", "asked": {"members", "pkey", "membership", "seconds", "partial"}, "state",
 *                     "pkey", "membership", "members": [...], "via", "uid", "user", "created", "ends", "seconds", "confirm_by",
 *                     "timeout", "rest", "why"}, and if they differ from the default: "open": true, "drops": true (it is not kept),
 *                     "ip_over_ib": true, "qos": {"mtu", "service_level", "rate"}, "updated" (default: "created")
 *     rest/0xBASE     a P_Key that is not handed out yet, {"seconds", "until"}
 *
 * A member is a text, "NODE PORT NUMBER": both GUIDs and the number in hex; node 0: it is unseen. What applies follows: "full" or
 * "limited", if that is not the membership of the lease; "index0"; '-' if it is left out. "created", "updated", "ends", "confirm_by"
 * and "until" are seconds since 1970, the other times seconds. 0: not known, or no end.
 */

#include "leases/leases.h"
#include "store/store.h"
#include "subnet/known.h"

#define RECORDS_LEASE "lease/"
#define RECORDS_REST  "rest/"

/* Puts the leases and rests that are not stored as they are, and deletes those that ended. Errors stay in the transaction. */
void records_put_leases(struct store_transaction *t, const struct leases *l);

/* Adds the lease or rest of a record. known: names members. Returns 0, -EBADMSG or -ENOMEM. */
int lease_record_restore(struct leases *l, const struct known *known, const char *key, const void *value, size_t n);
