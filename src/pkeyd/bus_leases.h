/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The interface org.pkeyd1.Leases of the object of bus.h.
 *
 *     Create, Renew, Release, ReleaseWith    they answer when that has ended, which may take as long as the caller's timeout
 *     Edit, EditWith                         when it is stored
 *     the others                             at once
 *
 * All users may call all of it: who may use a pool is written in the policy (`allow`), and leases/ compares that with the names of
 * the caller, which are looked up here. pkeyd-rest may name one of its clients with a call: then `allow` may have that client, too,
 * and the client owns the lease. The names come from nsswitch, which may block, so groups are looked up only where `allow` has none
 * of the other names; everything else does not block.
 *
 * Bounds: at most BUS_MAX_LEASE_CALLS callers wait, and of one user but root at most half of these. A text that is longer than a
 * record may be is refused before it is kept; List has neither members nor selectors, and ListWhole and Ports are refused if they
 * would have more than BUS_MAX_ANSWER. The answer to a caller that has left the bus goes nowhere.
 */

#include <systemd/sd-bus.h>

#include "actions/event.h"
#include "control/control.h"

/* More than callers of a reload: a scheduler begins many jobs at once, and each waits for its lease. */
#define BUS_MAX_LEASE_CALLS 64
/* of one user; root may have all */
#define BUS_MAX_LEASE_CALLS_OF_USER 32

/* Gets each request of a caller; by.request is for bus_leases_answer(). */
typedef void bus_leases_asked_t(const struct lease_request *request, void *userdata);

struct bus_caller; /* one that has no answer yet */

struct bus_leases {
        const struct control_status *status;
        bus_leases_asked_t *asked;
        void *userdata;
        struct bus_caller *callers[BUS_MAX_LEASE_CALLS]; /* owned */
        size_t n_callers;
        uint64_t last_request;
};

/* Borrows status and userdata. Ends with bus_leases_drop(). */
void bus_leases_init(struct bus_leases *l, const struct control_status *status, bus_leases_asked_t *asked, void *userdata);

/* Adds the interface to the object at `path` of a new connection. Returns 0 or negative errno. */
int bus_leases_connect(struct bus_leases *l, sd_bus *bus, const char *path);
/* Forgets the callers, after the connection was lost. */
void bus_leases_drop(struct bus_leases *l);

/* Answers the caller. */
void bus_leases_answer(struct bus_leases *l, const struct lease_reply *reply);

/* A request that has no answer yet, with its caller; valid until it is answered. NULL: no caller waits for it. */
const struct lease_request *bus_leases_find(const struct bus_leases *l, uint64_t number);
/* Its caller gets an error, which says why neither head node has carried it out. */
void bus_leases_refuse(struct bus_leases *l, uint64_t number, const char *why);
