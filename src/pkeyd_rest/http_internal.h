/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Private to http*.c. Each file uses only those above it:
 *
 *     http_loop.c        what the event loop does next
 *     http_connection.c  connections, and how long they may take
 *     http_request.c     requests, from their first line to the answer
 *     http.c             the server: the library on the loop
 */

#include <microhttpd.h>
#include <netinet/in.h>

#include "pkeyd_rest/http.h"

#define HTTP_GRACE (2 * USEC_PER_SEC) /* to take an answer that comes at the deadline */

struct http_connection {
        struct rest_connection admission; /* the first member: a pointer to it is a pointer to the connection */
        struct http_server *server;
        struct MHD_Connection *mhd;
        int fd;                           /* borrowed */
        usec_t deadline;                  /* USEC_INFINITY: it was cut off */
        struct http_request *request;     /* borrowed; NULL: none now */
        char address[INET6_ADDRSTRLEN];
        char *certificate;                /* owned; the subject; NULL: none */
        bool was_verified;                /* `certificate` is final */
};

struct http_server {
        sd_event *event;
        const struct rest_conf *conf;
        struct http_handlers handlers;
        struct MHD_Daemon *daemon;
        sd_event_source *io, *run, *timer, *end;
        struct rest_connection *connections;
        size_t n_requests, n_delayed;
        usec_t timer_due;                 /* when the timer elapses */
        bool is_ending, has_tls;
};

/* http_loop.c */
/* Runs the library when the loop runs again: it has work that no descriptor reports. */
void http_run_soon(struct http_server *s);
/* Arms the timer for this time, unless it elapses earlier. */
void http_wake_at(struct http_server *s, usec_t due);
/* Returns whether the server was told to end, and has no connections and requests left. */
bool http_has_ended(const struct http_server *s);
/* Calls `ended` when the loop runs again, if the server has ended. */
void http_check_end(struct http_server *s);

/* http_connection.c */
/* Shuts the socket down; the library then ends the connection. */
void http_cut(struct http_connection *c);
/* The time for the next request begins. */
void http_begin_wait(struct http_connection *c);
struct http_connection *http_connection_of(struct MHD_Connection *mhd);
void http_on_connection(void *server, struct MHD_Connection *mhd, void **socket_context, enum MHD_ConnectionNotificationCode code);
struct rest_address http_address_of(const struct sockaddr *address);

/* http_request.c */
/* Lets the library send the answer. */
void http_resume(struct http_request *q);
void *http_on_target(void *server, const char *target, struct MHD_Connection *mhd);
enum MHD_Result http_on_request(void *server, struct MHD_Connection *mhd, const char *url, const char *method, const char *version,
                                const char *bytes, size_t *n_bytes, void **request);
void http_on_completed(void *server, struct MHD_Connection *mhd, void **request, enum MHD_RequestTerminationCode code);
