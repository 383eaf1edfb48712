/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A mailbox in the cluster: one process puts a request there, another one carries it out and puts the answer. A request has no
 * address: the process that serves the mailbox carries out all that it finds, also those that its predecessor did not finish. So a
 * request may be carried out more than once.
 *
 *     ask/ID       a request; ID is its lease of etcd: when that ends, because the sender waits no longer, both keys are gone
 *     answer/ID    replaces the request
 *
 * No function waits for etcd, and requests are carried out in any order. Requests and answers are texts whose meaning is not known
 * here. A process polls the mailbox twice a second while it serves it or waits for an answer.
 */

#include "etcd/etcd_http.h"

struct etcd_mailbox;

struct etcd_mailbox_handlers {
        /* A request to carry out, while this process serves the mailbox. text: borrowed. */
        void (*asked)(uint64_t id, const char *text, void *userdata);
        /* Called once after etcd_mailbox_ask(). r: 0; -ETIMEDOUT: there was no answer in time, but the request may still be carried
         * out; or an error of etcd_http.h. text: borrowed; NULL unless r is 0. */
        void (*answered)(uint64_t request, int r, const char *text, void *userdata);
        void *userdata;
};

/* Borrows the loop and the configuration. Returns 0, -ENOMEM or a negative errno. */
int etcd_mailbox_new(sd_event *event, const struct etcd_config *config, const struct etcd_mailbox_handlers *handlers,
                     struct etcd_mailbox **ret);
/* Must not be called by a handler. Accepts NULL, returns NULL. */
struct etcd_mailbox *etcd_mailbox_free(struct etcd_mailbox *m);
DEFINE_CLEANUP(struct etcd_mailbox *, etcd_mailbox_free)

/* Puts a request, and waits so many seconds for the answer. answered() gets its number, and is not called before this returns.
 * Returns 0 or -ENOMEM. */
int etcd_mailbox_ask(struct etcd_mailbox *m, uint64_t request, const char *text, unsigned seconds);

/* Whether this process carries out requests from now on, also its own. Requests that it has not answered are left to others. */
void etcd_mailbox_serve(struct etcd_mailbox *m, bool serves);
/* Puts the answer to a request. It is dropped if the sender does not wait any more, or if the mailbox was not served meanwhile. */
void etcd_mailbox_reply(struct etcd_mailbox *m, uint64_t id, const char *text);
