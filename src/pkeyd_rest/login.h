/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Who a request comes from. Checks credentials at a bounded rate, remembers those that were right, and delays the answers to
 * those that were wrong. */

#include "rest/rest_conf.h"
#include "rest/rest_limits.h"

struct login;

/* Returns 0, -ENOMEM, or -EIO (no random key); *ret owned. */
int login_new(struct login **ret);
struct login *login_free(struct login *l);
DEFINE_CLEANUP(struct login *, login_free)

/* Another configuration is in force: credentials are checked again. Borrows conf. Returns 0, or -ENOMEM without a change. */
int login_use(struct login *l, const struct rest_conf *conf);

struct login_attempt {
        enum rest_prefix prefix;
        const char *authorization, *certificate; /* each may be NULL */
        struct rest_address from;
};

enum login_outcome {
        LOGIN_OK,
        LOGIN_WRONG,    /* or there are no credentials */
        LOGIN_TOO_MANY, /* of others: try again later */
        LOGIN_LIMIT,    /* more requests than one client may send */
};

struct login_result {
        enum login_outcome outcome;
        const struct rest_client *client; /* of LOGIN_OK */
        usec_t delay;                     /* of LOGIN_WRONG: of the answer */
        uint64_t n_failures;              /* of LOGIN_WRONG: of this address so far; 0: there were no credentials */
};

/* Returns 0 or -ENOMEM. */
int login_check(struct login *l, const struct login_attempt *attempt, usec_t now, struct login_result *ret);
