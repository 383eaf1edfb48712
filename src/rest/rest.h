/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * rest/: the partition subset of NVIDIA UFM's REST API, for clients that exist: ib-kubernetes, NICo (infra-controller),
 * nv-config-manager, UFM's Slurm integration.
 *
 * rest_handle() takes a request and a view of what pkeyd has now. Its reply is a response, or a change that pkeyd is to store;
 * then rest_answer() makes the response from the outcome:
 *
 *     request, view --> rest_handle --> response
 *                                  '--> change --> (pkeyd stores it) --> outcome --> rest_answer --> response
 *
 * A request belongs to a route: a pattern of words, in which "*" is a value, and a method (the table in rest.c). Each route that
 * changes something names the keys that its body may have (rest_change.c, rest_values.c, hosts of Slurm: rest_hosts.c);
 * rest_answer.c makes the responses. Before rest_handle() the caller checks the credentials (rest_conf.h, within the limits of
 * rest_limits.h), and reads from pkeyd what rest_needs() names, to make the view (rest_view.h). For pkeyd, a change becomes an edit
 * of a lease (rest_edit.h).
 *
 * Invariants:
 * - A request is understood as a whole or refused as a whole, with a reason that says where and what is accepted: an unknown key, a
 *   wrong type, a GUID or P_Key that is none. No default grants more than UFM's own: full, not index 0, IPoIB.
 * - A change has a base other than that of the default partition, and its members ascend by GUID, each once. Whether the base is in
 *   the pool of the client is for pkeyd to decide.
 * - Requests are hostile: the body, the path, the number of GUIDs and the depth of JSON are bounded, and reasons quote only a short
 *   and printable part of a request. A response is bounded by the view.
 * - No response has a key of the subnet manager.
 *
 * Everything that a reply refers to lives in the arena, or is borrowed from the view.
 *
 * This folder does not know sockets, D-Bus, clocks and files; nor whether a GUID is in the fabric.
 */

#include "ib/types.h"
#include "util/arena.h"

#define REST_MAX_BODY      ((size_t) 1 << 20)
#define REST_MAX_TARGET    ((size_t) 64 << 10)
#define REST_MAX_GUIDS     32768 /* of one request */
#define REST_MAX_NODE_LIST 8192  /* bytes */
#define REST_MAX_HOSTS     32768 /* of a node list */

/* --- the request ----------------------------------------------------------------------------------------------------- */

struct rest_request {
        const char *method;
        const char *target; /* the path with the query, as received */
        const char *body;   /* NULL: none */
        size_t n_body;
};

/* How a client authenticates is in the path. */
enum rest_prefix {
        REST_PREFIX_NONE,     /* not a path of this API */
        REST_PREFIX_PASSWORD, /* /ufmRest: a user name and a password, or a client certificate */
        REST_PREFIX_TOKEN,    /* /ufmRestV3 */
        REST_PREFIX_KERBEROS, /* /ufmRestKrb: not served */
};
enum rest_prefix rest_prefix_of(const char *target);

/* What the reply to a request depends on. */
enum rest_needs {
        REST_NEEDS_NOTHING = 0,
        REST_NEEDS_PARTITIONS = 1, /* of the view */
        REST_NEEDS_PORTS = 2,
        REST_NEEDS_DEFAULT = 8,    /* the membership in the default partition */
        REST_CHANGES = 4,          /* the reply may be a change, so the view must have all earlier changes */
};
/* Sets *ret to flags of enum rest_needs; none for a request that is refused whatever the view has. Returns 0 or -ENOMEM. */
int rest_needs(struct arena *a, const struct rest_request *request, unsigned *ret);

/* --- what pkeyd has now ---------------------------------------------------------------------------------------------- */

/* UFM's defaults. */
#define REST_DEFAULT_MTU_LIMIT  2
#define REST_DEFAULT_RATE_LIMIT 25

/* mtu_limit 0: not set, and UFM's defaults are answered. */
struct rest_qos {
        uint8_t mtu_limit;     /* KiB: 2 or 4 */
        uint8_t service_level; /* 0 to 15 */
        uint16_t rate_limit;   /* in 0.1 Gb/s: 25 is 2.5 Gb/s */
};

struct rest_member {
        struct guid guid;
        enum membership membership; /* LIMITED or FULL */
        bool index0;
        const char *host;           /* its name when it became a member; NULL: not known. Only in a view */
};

struct rest_partition {
        uint16_t base;
        const char *lease;          /* its ID in pkeyd */
        bool is_hidden;             /* clients do not see it: it has no members, and was not created empty */
        const char *name;           /* NULL: UFM's, as in api_pkey_0x5 */
        bool ip_over_ib;
        struct rest_qos qos;
        const struct rest_member *members;
        uint32_t n_members;
};

struct rest_port {
        struct guid guid, node;
        uint8_t number;
        struct lid lid;
        const char *node_name;
        bool is_computer;           /* of a host */
        enum port_state state;
};

struct rest_view {
        const char *last_updated;   /* of the partitions; NULL: not known */
        const struct rest_partition *partitions; /* ascending base; without the default partition */
        uint32_t n_partitions;
        const struct rest_port *ports; /* ascending GUID */
        uint32_t n_ports;
        enum membership default_membership; /* of hosts in the default partition, LIMITED or FULL; NONE: not known */
};

/* --- the reply ------------------------------------------------------------------------------------------------------- */

struct rest_response {
        unsigned status;
        const char *content_type;
        const char *allow;          /* for the header Allow of 405; else NULL */
        const char *body;
        size_t n_body;
};

enum rest_kind {
        REST_ADD,     /* members; makes the partition if there is none */
        REST_REMOVE,  /* members; GUIDs that are no members are ignored */
        REST_REPLACE, /* the members become exactly these */
        REST_CREATE,  /* an empty partition */
        REST_DELETE,
        REST_SET_QOS,
};

struct rest_change {
        enum rest_kind kind;
        uint16_t base;
        const struct rest_member *members; /* ascending GUID; of REMOVE only the GUIDs count */
        uint32_t n_members;
        bool ip_over_ib;            /* of ADD, REPLACE and CREATE */
        bool has_ip_over_ib;        /* the request has it; else it is for a new partition only */
        struct rest_qos qos;        /* of SET_QOS; of CREATE, if the request has it */
};

struct rest_reply {
        bool is_change;
        struct rest_response response; /* unless it is a change */
        struct rest_change change;
};

/* The outcome of a change. */
enum rest_outcome {
        REST_STORED,
        REST_REFUSED,     /* 400 */
        REST_NOT_FOUND,   /* 404 */
        REST_CONFLICT,    /* 409 */
        REST_UNAVAILABLE, /* 503 */
};

/* Returns 0 or -ENOMEM. */
int rest_handle(struct arena *a, const struct rest_request *request, const struct rest_view *view, struct rest_reply *ret);
/* text: the reason, a sentence; may be NULL with REST_STORED. Returns 0 or -ENOMEM. */
int rest_answer(struct arena *a, const struct rest_change *change, enum rest_outcome outcome, const char *text,
                struct rest_response *ret);
/* {"error": text}, for the caller's own refusals, as 401 and 429. Returns 0 or -ENOMEM. */
int rest_refuse(struct arena *a, unsigned status, const char *text, struct rest_response *ret);
