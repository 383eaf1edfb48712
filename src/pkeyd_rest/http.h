/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * HTTP by libmicrohttpd, on an event loop, in one thread. A server has one configuration; when rest.yaml is read again, another
 * server takes new connections, and this one ends when its own have ended.
 *
 * A request is announced when its headers are there (`begun`) and when its body is there, too (`complete`). It can be answered at
 * both times, or later: its connection is suspended meanwhile. The body of a request that is answered at once is not kept.
 *
 * Each connection has a deadline, from when it was opened or its last request ended: an idle or slow client is cut off, whatever
 * it sends until then; one that waits for its answer gets 503 and little more time to take it.
 */

#include <systemd/sd-event.h>
#include <sys/socket.h>

#include "rest/rest_conf.h"
#include "rest/rest_limits.h"

struct http_server;
struct http_connection;

struct http_request {
        /* what it is */
        struct http_server *server;
        const char *method, *target;
        const char *authorization;           /* NULL: none; only until `begun` has returned */
        const char *certificate;             /* subject of a verified one; NULL: none; only until `begun` has returned */
        struct rest_address from;
        const char *address;                 /* the same as text, for people */
        struct arena *arena;                 /* owns the texts of it */
        char *body;                          /* owned; NULL: none */
        size_t n_body;

        /* of the user */
        const struct rest_client *client;

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
        /* Of a server that was told to end: it has no connections and no requests. It is freed in here, or later. */
        void (*ended)(struct http_server *s, void *userdata);
        void *userdata;
};

/* Borrows conf and tls. Returns 0 or negative errno; *ret owned. */
int http_server_new(sd_event *event, const struct rest_conf *conf, const struct http_tls *tls, const struct http_handlers *handlers,
                    struct http_server **ret);
/* Only after `ended`, or if there was no connection. */
struct http_server *http_server_free(struct http_server *s);
DEFINE_CLEANUP(struct http_server *, http_server_free)

/* Takes an accepted socket over. max: connections. Another connection may be closed for it. */
void http_server_take(struct http_server *s, int fd, const struct sockaddr *address, socklen_t n_address, size_t max);
/* Idle connections end now, others when their request is answered. */
void http_server_end(struct http_server *s);

/* Answers a request; what the response refers to must live in its arena. A second answer is ignored. */
void http_answer(struct http_request *q, const struct rest_response *response);
/* The same with {"error": text}. */
void http_refuse(struct http_request *q, unsigned status, const char *text);
/* Answers 401 after this time. If too many requests wait for such an answer, the connection is cut off instead. */
void http_refuse_login(struct http_request *q, usec_t delay, const char *text);

/* True: somebody still waits for the answer. */
bool http_request_is_awaited(const struct http_request *q);
struct http_request *http_request_ref(struct http_request *q);
struct http_request *http_request_unref(struct http_request *q);
