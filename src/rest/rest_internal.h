/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Private to rest/. */

#include "rest/rest.h"
#include "util/json.h"
#include "util/text.h"

#define REST_MAX_VALUES 2 /* of a pattern */

/* A request on its way to its reply. */
struct rest_exchange {
        struct arena *arena;
        const struct rest_request *request;
        const struct rest_view *view;
        struct rest_reply *reply;
        const char *query;                   /* after the "?"; "": none */
        const char *values[REST_MAX_VALUES]; /* decoded words of the path in place of "*" */
        bool out_of_memory;                  /* a part of a reason is missing */
        enum membership membership;          /* of the members, unless `memberships` has another one */
        bool index0;                         /* of the members */
        bool has_qos;                        /* the request has a part of the QoS, or all of it */
        const char *hosts;                   /* the node list; NULL: none */
};

/* Makes the reply a refusal with this reason. Returns -EBADMSG, or -ENOMEM. */
int rest_fail(struct rest_exchange *x, unsigned status, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Parts of a reason, for rest_fail(); in the arena, never NULL. A short, printable part of a text of the request, in ''. */
const char *rest_quote(struct rest_exchange *x, const char *text);
const char *rest_text(struct rest_exchange *x, const struct text *t);
/* The response 200 with this body. Takes the value; NULL: out of memory. Returns 0 or -ENOMEM. */
int rest_ok(struct arena *a, json_t *body, struct rest_response *ret);

/* Values of a request; `where` is its key. They return 0, -EBADMSG (the reply is a refusal), -ENOMEM. */

int rest_read_p_key(struct rest_exchange *x, const char *text, uint16_t *ret);
/* The P_Key of a partition that clients may change. */
int rest_read_changed_p_key(struct rest_exchange *x, const char *text, uint16_t *ret);
/* A GUID, which is element `number` of guids, from 0. */
int rest_read_guid(struct rest_exchange *x, const char *text, size_t number, struct guid *ret);
int rest_read_membership(struct rest_exchange *x, const json_t *j, const char *where, enum membership *ret);
int rest_read_bool(struct rest_exchange *x, const json_t *j, const char *where, bool *ret);

/* Make the ports of the hosts in x->hosts the members of the change: those in the view; to remove them, also those that are
 * members of the partition. They return 0, -EBADMSG (the reply is a refusal), -ENOMEM. */
int rest_add_ports_of_hosts(struct rest_exchange *x);
int rest_remove_ports_of_hosts(struct rest_exchange *x);
/* Makes these the members of the change: sorted, each GUID once. Takes the array over. */
int rest_set_members(struct rest_exchange *x, struct rest_member *members, size_t n);
/* Whether the query asks for members; for their ports. */
bool rest_wants_members(const struct rest_exchange *x);
bool rest_wants_ports(const struct rest_exchange *x);
/* NULL: there is none; the default partition always is. */
const struct rest_partition *rest_find_partition(const struct rest_view *v, uint16_t base);

/* The handlers of routes: each makes the reply. They return 0, -EBADMSG (the reply is a refusal), -ENOMEM. */
typedef int rest_handler(struct rest_exchange *x);
rest_handler rest_get_version, rest_get_sm_conf, rest_get_ports, rest_get_partitions, rest_get_partition, rest_get_last_updated;
rest_handler rest_add, rest_replace, rest_create, rest_add_hosts, rest_set_qos, rest_remove, rest_remove_guids, rest_remove_hosts,
        rest_delete;
