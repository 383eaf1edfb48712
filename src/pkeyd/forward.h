/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Requests about leases between two head nodes that share a store in etcd. The one that stands by leaves them in the mailbox of the
 * cluster (etcd/etcd_mailbox.h), with the names of the caller, which it has looked up; the writer carries them out as if they
 * were its own. A caller that waits on a writer which stops writing is passed on in the same way; and where neither writes,
 * requests stay in the mailbox until one does, or until the caller does not wait any more.
 *
 * A request can be carried out twice, if a writer ends before it answers. This does no harm: a caller that asks again for a lease
 * gets the same one, and the answer to a second release is that there is no such lease.
 */

#include <systemd/sd-event.h>

#include "control/control.h"
#include "etcd/etcd.h"

struct forward_handlers {
        /* Of the other head node; forward_reply() answers it. */
        void (*asked)(const struct lease_request *q, void *userdata);
        /* Of forward_ask(): either of these, once. */
        void (*answered)(const struct lease_reply *reply, void *userdata);
        void (*unanswered)(uint64_t request, const char *why, void *userdata);
        void *userdata;
};

/* Zeroed: no other head node shares the store. Then there are no requests to pass on. */
struct forward {
        const struct control_status *status;
        struct forward_handlers handlers;
        struct etcd_mailbox *mailbox;
};

/* Borrows all but the handlers. Returns 0, -ENOMEM or a negative errno. */
int forward_init(struct forward *f, sd_event *event, const struct etcd_config *etcd, const struct control_status *status,
                 const struct forward_handlers *handlers);
void forward_done(struct forward *f);

/* After each event: whether this host writes, and so carries out requests, may have changed. */
void forward_update(struct forward *f);
/* Returns 0 or -ENOMEM. */
int forward_ask(struct forward *f, const struct lease_request *q);
/* False: it does not answer a request of the other head node. */
bool forward_reply(struct forward *f, const struct lease_reply *reply);
