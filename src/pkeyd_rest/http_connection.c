/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Connections, and how long they may take. */
#include <arpa/inet.h>
#include <string.h>

#include "pkeyd_rest/http_internal.h"
#include "shell/shell.h"

struct rest_address http_address_of(const struct sockaddr *address)
{
        if (address->sa_family == AF_INET)
                return rest_address_of((const unsigned char *) &((const struct sockaddr_in *) address)->sin_addr, 4);
        if (address->sa_family == AF_INET6)
                return rest_address_of((const unsigned char *) &((const struct sockaddr_in6 *) address)->sin6_addr, 16);
        return (struct rest_address) {};
}

static void print_address(const struct sockaddr *address, char *ret, socklen_t size)
{
        const void *bytes = address->sa_family == AF_INET ? (const void *) &((const struct sockaddr_in *) address)->sin_addr
                                                          : (const void *) &((const struct sockaddr_in6 *) address)->sin6_addr;
        const char *text = address->sa_family == AF_INET || address->sa_family == AF_INET6
                                   ? inet_ntop(address->sa_family, bytes, ret, size)
                                   : NULL;

        if (!text)
                (void) snprintf(ret, size, "?");
        else if (strncmp(ret, "::ffff:", 7) == 0 && strchr(ret, '.'))
                memmove(ret, ret + 7, strlen(ret + 7) + 1);
}

void http_cut(struct http_connection *c)
{
        c->deadline = USEC_INFINITY;
        (void) shutdown(c->fd, SHUT_RDWR);
        http_run_soon(c->server);
}

void http_begin_wait(struct http_connection *c)
{
        usec_t now = clock_now();

        c->request = NULL;
        c->admission.is_busy = false;
        c->admission.since = now;
        c->deadline = now + c->server->conf->max_time;
        http_wake_at(c->server, c->deadline);
}

struct http_connection *http_connection_of(struct MHD_Connection *mhd)
{
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

        return info ? info->socket_context : NULL;
}

/* Two calls of MHD_get_connection_info() may return the same address: since libmicrohttpd 1.0 the second one overwrites what the
 * first returned. */
static int fd_of(struct MHD_Connection *mhd)
{
        return MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

static const struct sockaddr *address_of(struct MHD_Connection *mhd)
{
        return MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
}

/* Cuts the connection off if out of memory. */
static void add_connection(struct http_server *s, struct MHD_Connection *mhd, void **socket_context)
{
        struct http_connection *c = calloc(1, sizeof(*c));

        *socket_context = c;
        if (!c) {
                (void) shutdown(fd_of(mhd), SHUT_RDWR);
                return;
        }
        c->server = s;
        c->mhd = mhd;
        c->fd = fd_of(mhd);
        c->admission.from = http_address_of(address_of(mhd));
        print_address(address_of(mhd), c->address, sizeof(c->address));
        c->admission.next = s->connections;
        s->connections = &c->admission;
        http_begin_wait(c);
}

static void remove_connection(struct http_connection *c)
{
        struct http_server *s = c->server;

        for (struct rest_connection **i = &s->connections; *i; i = &(*i)->next)
                if (*i == &c->admission) {
                        *i = c->admission.next;
                        break;
                }
        free(c->certificate);
        free(c);
        http_check_end(s);
}

void http_on_connection(void *server, struct MHD_Connection *mhd, void **socket_context, enum MHD_ConnectionNotificationCode code)
{
        if (code == MHD_CONNECTION_NOTIFY_STARTED)
                add_connection(server, mhd, socket_context);
        else if (*socket_context)
                remove_connection(*socket_context);
}
