/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd_rest/login.h"

#include <errno.h>
#include <gnutls/crypto.h>
#include <string.h>

/* Password hashes a second, each about 10 ms of CPU time; and those of them for addresses from which a login failed. */
static const struct rest_rate all_hashes = { .per_second = 10, .burst = 20 };
static const struct rest_rate hashes_after_failures = { .per_second = 5, .burst = 10 };

int login_init(struct login *l)
{
        *l = (struct login) {};
        return gnutls_rnd(GNUTLS_RND_KEY, l->key, sizeof(l->key)) < 0 ? -EIO : 0;
}

void login_done(struct login *l)
{
        free(l->clients);
        explicit_bzero(l, sizeof(*l));
}

int login_use(struct login *l, const struct rest_conf *conf)
{
        struct rest_bucket *clients = calloc(MAX(conf->n_clients, (size_t) 1), sizeof(*clients));

        if (!clients)
                return -ENOMEM;
        free(l->clients);
        l->clients = clients;
        l->logins.n = 0;
        l->conf = conf;
        return 0;
}

/* The digest of a credential: of its kind and its header. Returns 0, -ENOMEM, -EIO. */
static int make_digest(const struct login *l, const struct login_attempt *a, struct rest_digest *ret)
{
        unsigned char kind = (unsigned char) a->prefix;
        gnutls_hmac_hd_t h;
        int r = 0;

        if (gnutls_hmac_init(&h, GNUTLS_MAC_SHA256, l->key, sizeof(l->key)) < 0)
                return -ENOMEM;
        if (gnutls_hmac(h, &kind, 1) < 0 || gnutls_hmac(h, a->authorization, strlen(a->authorization)) < 0)
                r = -EIO;
        gnutls_hmac_deinit(h, ret->bytes);
        return r;
}

static bool may_hash(struct login *l, const struct rest_address *from, usec_t now)
{
        if (rest_failures_has(&l->failures, from, now) &&
            rest_bucket_take(&l->hashes_after_failures, &hashes_after_failures, now) > 0)
                return false;
        return rest_bucket_take(&l->hashes, &all_hashes, now) == 0;
}

/* Returns 0, -EACCES, -ENOMEM. */
static int authenticate(struct login *l, const struct login_attempt *a, struct login_result *ret)
{
        int r = rest_authenticate(l->conf, a->prefix, a->authorization, a->certificate, &ret->client);

        if (r == 0)
                ret->outcome = LOGIN_OK;
        return r;
}

/* Checks a password or token, unless the same one was right a short time ago. name: n_name bytes, of the credential. */
static int check_credential(struct login *l, const struct login_attempt *a, const char *name, size_t n_name, usec_t now,
                            struct login_result *ret)
{
        struct rest_failure failure;
        struct rest_digest digest;
        size_t i;
        int r = make_digest(l, a, &digest);

        if (r < 0)
                return r;
        if (rest_logins_find(&l->logins, &digest, now, &i)) {
                *ret = (struct login_result) { .outcome = LOGIN_OK, .client = &l->conf->clients[i] };
                return 0;
        }
        if (!may_hash(l, &a->from, now)) {
                ret->outcome = LOGIN_TOO_MANY_LOGINS;
                return 0;
        }
        r = authenticate(l, a, ret);
        if (r == 0) {
                rest_logins_add(&l->logins, &digest, (size_t) (ret->client - l->conf->clients), now);
        } else if (r == -EACCES) {
                failure = rest_failures_add(&l->failures, &a->from, name, n_name, now);
                ret->delay = failure.delay;
                ret->n_failures = failure.n;
        }
        return r;
}

static int find_client(struct login *l, const struct login_attempt *a, usec_t now, struct login_result *ret)
{
        char name[REST_CREDENTIAL_SIZE];
        size_t n;

        return rest_credential_name(a->prefix, a->authorization, name, &n) ? check_credential(l, a, name, n, now, ret)
                                                                           : authenticate(l, a, ret);
}

int login_check(struct login *l, const struct login_attempt *attempt, usec_t now, struct login_result *ret)
{
        const struct rest_rate rate = { .per_second = l->conf->max_requests, .burst = l->conf->max_requests };
        int r;

        *ret = (struct login_result) { .outcome = LOGIN_WRONG };
        r = find_client(l, attempt, now, ret);
        if (r == 0 && ret->outcome == LOGIN_OK && rest_bucket_take(&l->clients[ret->client - l->conf->clients], &rate, now) > 0)
                ret->outcome = LOGIN_TOO_MANY_REQUESTS;
        return r == -EACCES ? 0 : r;
}
