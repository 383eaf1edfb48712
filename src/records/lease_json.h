/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Leases as JSON: in records (lease_records.h), and in the messages between two head nodes that share a store. The standby passes
 * on a request with its caller, and gets the reply.
 *
 * Functions that make JSON return a new reference; NULL: out of memory. Functions that read JSON return false if they do not accept
 * it, or if out of memory; they copy what they read, to the arena that is given or to that of the lease.
 */

#include "leases/leases.h"
#include "subnet/known.h"
#include "util/json.h"

/* The object of a record. The lease is one of lease_new(), and has its ID. known: names members. */
json_t *lease_to_json(const struct lease *lease);
bool lease_from_json(const json_t *o, const struct known *known, struct lease *lease);
bool lease_rest_from_json(const json_t *o, struct lease_rest *ret);

/* Without the number of the request. */
json_t *lease_request_to_json(const struct lease_request *q);
bool lease_request_from_json(struct arena *a, const json_t *o, struct lease_request *ret);
json_t *lease_reply_to_json(const struct lease_reply *reply);
/* lease: of lease_new(); ret->lease is this one, or NULL. */
bool lease_reply_from_json(const json_t *o, const struct known *known, struct lease *lease, struct findings *findings,
                           struct lease_answer *ret);
