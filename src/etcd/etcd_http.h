/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Requests to etcd's HTTP gateway: a POST with a JSON object, answered by a JSON object. libcurl's multi interface runs them on an
 * sd_event loop.
 *
 * A request goes first to the member that answered last. If a member does not answer or has no leader, the request goes to the
 * next one, until its time is over. So a request may arrive more than once, and an error does not mean that it had no effect.
 *
 * With a user, a token is fetched first, and again when etcd does not accept it any more, with the password that the file has
 * then; if it cannot be read, with the one of the configuration. Neither the password nor a token is in any message.
 */

#include <systemd/sd-event.h>

#include "etcd/etcd.h"
#include "shell/secret.h"
#include "util/json.h"

struct etcd_http;
struct etcd_request;

/* Called once, not from within etcd_http_post(). r: 0, or
 *
 *     -EHOSTUNREACH  no member answered in time, or none has a leader: there may be no majority
 *     -EACCES        etcd does not accept the user, the password or the certificate, or the user may not use these keys
 *     -EKEYREJECTED  the certificate of a member was refused, or this host's own cannot be used, and no other member carried out
 *                    the request in time
 *     -EPROTO        the answer is not from etcd
 *     -ENOENT        there is no such lease
 *     -ESTALE        the requested revision does not exist any more
 *     -ENOSPC        etcd has no space left (its alarm)
 *     -EMSGSIZE      the request is larger than etcd accepts
 *     -EINVAL        etcd refused the request
 *     -ENOMEM
 *
 * answer: borrowed; NULL unless r is 0. */
typedef void (*etcd_answer_handler)(int r, json_t *answer, void *userdata);

/* Returns a clause that says what such an error means, static; NULL: strerror() says it. */
const char *etcd_http_explain(int r);

/* Reads the password from the credential "etcd_password" or the first line of the file. As secret_read(). */
int etcd_read_password(const char *file, struct findings *findings, struct secret *ret);

/* Borrows the configuration and the loop. Returns 0, -ENOMEM or a negative errno. */
int etcd_http_new(sd_event *event, const struct etcd_config *config, struct etcd_http **ret);
/* Drops all requests without calling their handlers. Accepts NULL, returns NULL. */
struct etcd_http *etcd_http_free(struct etcd_http *h);
DEFINE_CLEANUP(struct etcd_http *, etcd_http_free)

/* Starts a request. path: as in "/v3/kv/range". Takes the reference to the body, also if it fails (NULL: -ENOMEM). handler NULL: the
 * result is ignored. *ret, if ret is not NULL, is valid until the request ends. Returns 0; or a negative errno, and the handler is
 * not called. */
int etcd_http_post(struct etcd_http *h, const char *path, json_t *body, usec_t timeout, etcd_answer_handler handler, void *userdata,
                   struct etcd_request **ret);
/* Drops a request without calling its handler. Accepts NULL. */
void etcd_http_drop(struct etcd_request *q);

/* The same, and runs the loop until the request has ended. *ret is owned, NULL with an error. Must not be called by a handler of
 * this loop. Returns as the handler's r. */
int etcd_http_call(struct etcd_http *h, const char *path, json_t *body, usec_t timeout, json_t **ret);

/* Ends a sd_event_prepare() of the loop, so that it can run. */
void etcd_http_settle(struct etcd_http *h);

/* Why the last request failed, for people: "https://head1:2379: Connection refused"; "": none failed. Valid until the next one. */
const char *etcd_http_problem(const struct etcd_http *h);
