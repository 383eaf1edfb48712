/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A mailbox in the cluster: one process leaves a request, another one carries it out and leaves the answer. No process is
 * addressed: whoever serves the mailbox takes what it finds, and what one leaves undone the next one does. So a request may be
 * carried out more than once.
 *
 *     ask/ID       a request; ID is its lease of etcd, with which it and its answer are gone when nobody waits any more
 *     answer/ID    replaces it
 *
 * Nothing here waits, and no order is kept. Requests and answers are texts whose meaning is not known here. A mailbox that is
 * served, or has requests without an answer, is looked at twice a second.
 */

#include "etcd/etcd_http.h"

struct etcd_mailbox;

struct etcd_mailbox_handlers {
        /* Of a mailbox that is served: somebody asks. text: borrowed. */
        void (*asked)(uint64_t id, const char *text, void *userdata);
        /* Of etcd_mailbox_ask(), once. r: 0; -ETIMEDOUT: nobody answered in time, and it may be carried out still; or an error of
         * etcd_http.h. text: borrowed; NULL unless r is 0. */
        void (*answered)(uint64_t request, int r, const char *text, void *userdata);
        void *userdata;
};

/* Borrows the loop and the configuration. Returns 0, -ENOMEM or a negative errno. */
int etcd_mailbox_new(sd_event *event, const struct etcd_config *config, const struct etcd_mailbox_handlers *handlers,
                     struct etcd_mailbox **ret);
/* Must not be called by a handler. Accepts NULL, returns NULL. */
struct etcd_mailbox *etcd_mailbox_free(struct etcd_mailbox *m);
DEFINE_CLEANUP(struct etcd_mailbox *, etcd_mailbox_free)

/* Leaves a request, for so many seconds. answered() gets its number, and is not called before this returns. Returns 0 or
 * -ENOMEM. */
int etcd_mailbox_ask(struct etcd_mailbox *m, uint64_t request, const char *text, unsigned seconds);

/* Whether this process answers requests, also its own. If it does not any more, others answer what it has not. */
void etcd_mailbox_serve(struct etcd_mailbox *m, bool serves);
/* Leaves the answer to a request. It is dropped if nobody waits for it, or if the mailbox was not served in between. */
void etcd_mailbox_reply(struct etcd_mailbox *m, uint64_t id, const char *text);
