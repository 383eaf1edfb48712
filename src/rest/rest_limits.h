/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What clients may use: requests a second, logins, connections. Pure: the caller has the clock. */

#include "rest/rest.h"

/* --- addresses ------------------------------------------------------------------------------------------------------- */

/* What counts as one sender: an IPv4 address, or the /64 network of an IPv6 address, because one host can use all of it. */
struct rest_address {
        unsigned char bytes[16];
};

/* n: 4 or 16 bytes in network order, as in sin_addr and sin6_addr. An IPv4 address gives the same in both. */
struct rest_address rest_address_of(const unsigned char *bytes, size_t n);

/* --- rates ----------------------------------------------------------------------------------------------------------- */

/* A token bucket: `per_second` on average, and `burst` at once. Zeroed: full. */
struct rest_rate {
        uint64_t per_second, burst;
};

struct rest_bucket {
        usec_t full; /* when it is full again */
};

/* Takes one out. Returns 0, or how long to wait until there is one. */
usec_t rest_bucket_take(struct rest_bucket *b, const struct rest_rate *rate, usec_t now);

/* --- logins that failed ---------------------------------------------------------------------------------------------- */

/* The answer to a failed login is delayed by 250 ms, and twice as long after each further failure of the same address or name, up
 * to 8 s. Failures are forgotten a quarter of an hour after the last one. A name counts whether there is such a client or not, so
 * that the delay does not show which names exist. The table is bounded; the entry that was not used for the longest time makes
 * room. */
#define REST_DELAY_FIRST  (250 * USEC_PER_MSEC)
#define REST_DELAY_MAX    (8 * USEC_PER_SEC)
#define REST_FORGET_AFTER (900 * USEC_PER_SEC)
#define REST_MAX_FAILURES 512 /* addresses and names */

/* Zeroed: none. */
struct rest_failures {
        struct rest_failure_entry {
                uint64_t hash; /* of an address or a name */
                uint64_t n;    /* 0: not used */
                usec_t last;
        } items[REST_MAX_FAILURES];
};

struct rest_failure {
        usec_t delay;   /* of the answer */
        uint64_t n;     /* failures of the address so far, this one included */
};
/* name: n_name bytes, as the client sent it. */
struct rest_failure rest_failures_add(struct rest_failures *f, const struct rest_address *from, const char *name, size_t n_name,
                                      usec_t now);
/* Returns whether a failure of this address is still remembered. */
bool rest_failures_has(const struct rest_failures *f, const struct rest_address *from, usec_t now);

/* --- credentials that were checked ----------------------------------------------------------------------------------- */

/* A check costs milliseconds, so the result is kept for some minutes: not the credential, but a keyed hash of it, which the caller
 * makes. Only credentials that were right are kept. Bounded, as above. */
struct rest_digest {
        unsigned char bytes[32];
};

#define REST_MAX_LOGINS  256
#define REST_LOGIN_LASTS (300 * USEC_PER_SEC) /* since the last use */

struct rest_logins {
        struct {
                struct rest_digest digest;
                size_t client; /* index into the clients of rest.yaml */
                usec_t used;
        } items[REST_MAX_LOGINS];
        size_t n;
};

/* Returns false if there is none. */
bool rest_logins_find(struct rest_logins *l, const struct rest_digest *digest, usec_t now, size_t *ret_client);
void rest_logins_add(struct rest_logins *l, const struct rest_digest *digest, size_t client, usec_t now);

/* --- connections ------------------------------------------------------------------------------------------------------ */

struct rest_connection {
        struct rest_connection *next; /* NULL: the last one */
        struct rest_address from;
        usec_t since;  /* since when it has waited for a request, or for the rest of one */
        bool is_busy;  /* it has sent a request, and is not answered yet */
};

enum rest_admission {
        REST_ADMIT,
        REST_ADMIT_INSTEAD, /* of another one, which the caller closes */
        REST_TURN_AWAY,
};

/* Decides whether to accept another connection from an address. All addresses together get `max` connections, one address half of
 * them (and at least one). The connection that has waited longest without sending a request makes room; if the address has its
 * share, it is one of its own. Busy ones stay. */
enum rest_admission rest_admit(struct rest_connection *connections, const struct rest_address *from, size_t max,
                               struct rest_connection **ret_instead);
