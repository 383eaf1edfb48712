/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Finds the client that sends a request. Checks credentials at a bounded rate, remembers those that were right, and delays the
 * answers to those that were wrong. */

#include "rest/rest_conf.h"
#include "rest/rest_limits.h"

struct login {
        const struct rest_conf *conf;
        unsigned char key[32];       /* of the digests */
        struct rest_logins logins;
        struct rest_failures failures;
        struct rest_bucket hashes, hashes_after_failures;
        struct rest_bucket *clients; /* owned; by index of the client */
};

/* Returns 0 or -EIO (no random key). */
int login_init(struct login *l);
/* Zeroed: nothing to do. */
void login_done(struct login *l);

/* Takes the clients from another configuration, and forgets which credentials were right. Borrows conf. Returns 0, or -ENOMEM
 * without a change. */
int login_use(struct login *l, const struct rest_conf *conf);

struct login_attempt {
        enum rest_prefix prefix;
        const char *authorization, *certificate; /* each may be NULL */
        struct rest_address from;
};

enum login_outcome {
        LOGIN_OK,
        LOGIN_WRONG,             /* or there are no credentials */
        LOGIN_TOO_MANY_LOGINS,   /* of all clients: try again later */
        LOGIN_TOO_MANY_REQUESTS, /* of this client in a second */
};

struct login_result {
        enum login_outcome outcome;
        const struct rest_client *client; /* of LOGIN_OK */
        usec_t delay;                     /* of LOGIN_WRONG: how long the answer has to wait */
        uint64_t n_failures;              /* of LOGIN_WRONG: failed logins from this address; 0: no credentials were sent */
};

/* Returns 0, -ENOMEM, or -EIO (GnuTLS cannot make a digest). */
int login_check(struct login *l, const struct login_attempt *attempt, usec_t now, struct login_result *ret);
