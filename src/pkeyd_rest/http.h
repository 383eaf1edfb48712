/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * HTTP by libmicrohttpd ("the library"), on an event loop, in one thread. A server has one configuration. When rest.yaml is read
 * again, another server takes new connections, and the old server ends with its last connection.
 *
 * The server announces a request when it has the headers (`begun`), and again when it has the body (`complete`). The user answers
 * in one of these calls, or later; until then the connection is suspended. If `begun` answers, the server drops the body.
 *
 * Each connection has a deadline: `limits.time` after it was opened, after its last request ended, and again after the first line
 * of a request. Then the server cuts off a client that is idle or slow, whatever it has sent so far; one that waits for its answer
 * gets 503, and little more time to take it.
 */

#include <systemd/sd-event.h>
#include <sys/socket.h>

#include "rest/rest_conf.h"
#include "rest/rest_limits.h"

/* The end of a reason for 503. */
#define HTTP_MAY_BE_STORED "; whether the change is stored is not known"

struct http_server;
struct http_connection;

struct http_request {
        /* what it is */
        struct http_server *server;
        const char *method, *target;
        const char *authorization;           /* NULL: none; only until `begun` has returned */
        const char *certificate;             /* subject of a verified one; NULL: none; only until `begun` has returned */
        struct rest_address from;
        const char *address;                 /* of the client, as text */
        struct arena *arena;                 /* owns the texts of the request and its answer */
        char *body;                          /* owned; NULL: none */
        size_t n_body;

        /* of the user */
        const struct rest_client *client;
        bool is_sent;                        /* it is a change, and pkeyd may have it */

        /* private to http*.c */
        size_t n_allocated, n_dropped;       /* bytes of the body */
        unsigned n_refs;
        struct http_connection *connection;  /* NULL: it has ended */
        bool has_begun, is_complete, is_suspended, is_delayed;
        struct rest_response response;       /* status 0: none yet */
        usec_t answer_at;                    /* not before; 0: at once */
};

struct http_tls {
        const char *certificate, *key, *client_ca; /* PEM; NULL: none */
};

struct http_handlers {
        void (*begun)(struct http_request *q, void *userdata);
        void (*complete)(struct http_request *q, void *userdata);
        /* A server that was told to end has no connections and requests left. The user frees it here, or later. */
        void (*ended)(struct http_server *s, void *userdata);
        void *userdata;
};

/* Borrows conf and tls. Returns 0 or negative errno; *ret owned. */
int http_server_new(sd_event *event, const struct rest_conf *conf, const struct http_tls *tls, const struct http_handlers *handlers,
                    struct http_server **ret);
/* Only after `ended`, or if the server had no connection. */
struct http_server *http_server_free(struct http_server *s);
DEFINE_CLEANUP(struct http_server *, http_server_free)

/* Takes an accepted socket over. With `max` connections it cuts off another one for it, or closes the socket (rest_admit()). */
void http_server_take(struct http_server *s, int fd, const struct sockaddr *address, socklen_t n_address, size_t max);
/* Connections without a request end now, others when their request is answered. A request begins when its headers are there. */
void http_server_end(struct http_server *s);

/* Answers a request; what the response refers to must live in its arena. A second answer is ignored. */
void http_answer(struct http_request *q, const struct rest_response *response);
/* The same with {"error": text}. */
void http_refuse(struct http_request *q, unsigned status, const char *text);
/* Answers 401 after this time. If too many requests wait for such an answer, the connection is cut off instead. */
void http_refuse_login(struct http_request *q, usec_t delay);

/* Returns whether the connection has not ended, as far as is known (a suspended one is not watched), and the request has no answer
 * yet. */
bool http_request_is_awaited(const struct http_request *q);
struct http_request *http_request_ref(struct http_request *q);
struct http_request *http_request_unref(struct http_request *q);
