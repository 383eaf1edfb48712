/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Finds the client that sends a request. Checks credentials at a bounded rate, remembers those that were right, and delays the
 * answers to those that were wrong. */

#include "rest/rest_conf.h"
#include "rest/rest_limits.h"

struct login;

/* Returns 0, -ENOMEM, or -EIO (no random key); *ret owned. */
int login_new(struct login **ret);
struct login *login_free(struct login *l);
DEFINE_CLEANUP(struct login *, login_free)

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
