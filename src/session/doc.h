/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Builds the JSON object that a command prints with --json. Errors stick: doc_print() reports running out of memory. */

#include <jansson.h>

#include "session/context.h"
#include "util/json.h"

struct doc {
        struct context *ctx;
        json_t *root;      /* owned */
        json_t **p_keys;   /* one string for each P_Key: a large plan repeats the same few */
        bool failed;
};

/* An object with schema, ok, command and findings, and how the wait for a confirmation ended. */
void doc_begin(struct doc *d, struct context *ctx, bool ok);
void doc_done(struct doc *d);
#define _cleanup_doc_ _cleanup_(doc_done)

/* Writes the object and a newline to stdout. Passes an error to output_fail(). */
void doc_print(struct doc *d);

/* Add the members of an object to another one; add an item to an array. Both take the value. If it is NULL, as json_pack() returns
 * when out of memory or when a value in it is NULL, the document has failed. */
void doc_merge(struct doc *d, json_t *object, json_t *value);
void doc_append(struct doc *d, json_t *array, json_t *value);
/* Adds members to an object, by a format of json_pack(). */
#define doc_add(d, object, ...) doc_merge((d), (object), json_pack(__VA_ARGS__))

/* New values. Bytes that are no UTF-8 are escaped as \xNN; NULL text is null. */
json_t *doc_text(const char *text);
json_t *doc_guid(struct guid guid);
json_t *doc_number(uint64_t number); /* null for 0 */
/* UTC, of CLOCK_REALTIME; null for 0. */
json_t *doc_time(usec_t when);
json_t *doc_p_key(struct doc *d, struct p_key key);
json_t *doc_p_keys(struct doc *d, const struct p_key *keys, uint32_t n);
json_t *doc_used_p_keys(struct doc *d, const struct p_key *keys, uint32_t n); /* without the empty entries */
json_t *doc_base(uint16_t base);
/* An object with node, device, port_guid, lid, port, followed by the members of another one, which is taken. */
json_t *doc_port_with(struct doc *d, uint32_t port, json_t *members);
#define doc_port(d, port, ...) doc_port_with((d), (port), json_pack(__VA_ARGS__))
/* The same with partition (its name, or "") and p_key, of a base. */
json_t *doc_partition_with(struct doc *d, uint16_t base, json_t *members);
#define doc_partition(d, base, ...) doc_partition_with((d), (base), json_pack(__VA_ARGS__))
