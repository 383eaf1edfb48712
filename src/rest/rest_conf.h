/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * conf/rest.yaml: where the door listens, its clients and limits; and the check of a client's credentials.
 *
 * Passwords and tokens are stored as yescrypt hashes. A token is NAME.SECRET, with the name of its client, so that each request
 * costs one hash, however many clients there are. The hash is of the whole token.
 *
 * Findings about this file have no source line and quote no value: it may be a secret.
 */

#include "rest/rest.h"
#include "util/findings.h"

struct sockaddr_storage;

#define REST_CONF_MAX_CLIENTS 1000
#define REST_CONF_MAX_LISTEN  16

struct rest_client {
        const char *name;
        const char *password;    /* hash; NULL: none */
        const char *token;       /* hash; NULL: none */
        const char *certificate; /* subject of its certificate; NULL: none */
        const char *pool;
};

struct rest_conf {
        const char **listen;     /* addresses with ports; none: the sockets come from systemd */
        size_t n_listen;
        const char *tls_certificate, *tls_key, *tls_client_ca; /* absolute paths; NULL: none */
        struct rest_client *clients;
        size_t n_clients;
        uint64_t max_requests;   /* of a client in a second */
        uint64_t max_body;       /* bytes */
        uint64_t max_connections;
        usec_t max_time;         /* for one request */
};

/* Reads the file. Returns 0, -EBADMSG (refused: findings say why), -ENOMEM. *ret lives in the arena and is set only on 0. */
int rest_conf_parse(struct arena *a, const char *file_name, const char *bytes, size_t n, struct findings *findings,
                    struct rest_conf **ret);

/* Parses an address of `listen`. Returns the size of *ret; 0: it is not well-formed. */
size_t rest_conf_parse_address(const char *text, struct sockaddr_storage *ret);

/* Finds the client of a request. authorization: the header; certificate: the subject of a verified client certificate; each may be
 * NULL. The header takes precedence over the certificate; an empty one counts as none. Checking a password or token costs some
 * milliseconds of CPU time, whether its name exists or not: callers limit the rate. Returns 0, -EACCES (answered with 401) or
 * -ENOMEM. *ret is borrowed from the configuration. */
int rest_authenticate(const struct rest_conf *conf, enum rest_prefix prefix, const char *authorization, const char *certificate,
                      const struct rest_client **ret);

/* Copies the client's name from a header with a password or token; *ret_n: its length. Returns false if the header has none: then
 * rest_authenticate() needs no hash. */
#define REST_CREDENTIAL_SIZE 513
bool rest_credential_name(enum rest_prefix prefix, const char *authorization, char ret[static REST_CREDENTIAL_SIZE], size_t *ret_n);
