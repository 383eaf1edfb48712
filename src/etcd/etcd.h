/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * etcd/: a store (store/store.h) that several hosts share: an etcd cluster, v3, through its HTTP gateway.
 *
 *     store/store.h  -->  etcd_store  -->  etcd_message  -->  etcd_http  -->  the members of the cluster
 *                         records,         requests and        one POST to the
 *                         the lock         answers as JSON     first member that answers
 *
 * Which of several processes may write, and what they agree on, is decided by etcd alone. This folder only asks, and has nothing
 * like an election, a vote or a quorum of its own.
 *
 * Keys. All begin with a prefix, `/pkeyd/`, or `/pkeyd@NAME/` for one of several fabrics:
 *
 *     record/KEY   a record of the store
 *     commit       who committed last: its revision tells whether a reader has seen everything
 *     lock         who may commit; it belongs to a lease of etcd, and is gone when that ends
 *     redo         a transaction that is too large for one of etcd's: the number of its parts; see etcd_store.c
 *     redo/N       a part
 *     ask/ID       a request of a process to the one that writes; see etcd_mailbox.h
 *     answer/ID    its answer
 *     version      of the records, as in SQLite
 *
 * The lock. Every commit is one etcd transaction with the condition that the lock still has the revision with which this process
 * took it. So a process that was paused, or cut off, for longer than its lease cannot commit, whatever it believes.
 *
 * That does not stop it from sending MADs, which etcd does not see. The lease has a deadline here: CLOCK_BOOTTIME when its last
 * renewal was sent, and its length, less a margin. The gate (gate/gate.h) looks at the clock before each Set.
 *
 * This folder does not know what records mean, or when they may be written.
 */

#include <stddef.h>
#include <stdint.h>

#include "ib/types.h"

/* Members are NULL if they are not set. All is borrowed for as long as it is used. */
struct etcd_config {
        const char *const *endpoints; /* URLs: "https://head1:2379" */
        size_t n_endpoints;
        const char *ca_file, *cert_file, *key_file; /* PEM */
        const char *user, *password;
        const char *fabric;           /* of several fabrics; NULL: there is one */
        unsigned lease;               /* seconds; see ETCD_LEASE_MIN */
};

/* Of a lease, in seconds. The margin covers clocks that run at different speeds, and MADs that were given to the kernel before the
 * deadline. */
#define ETCD_LEASE_MIN      5
#define ETCD_LEASE_MAX      120
#define ETCD_LEASE_STANDARD 15
#define ETCD_MARGIN         (2 * USEC_PER_SEC)

/* What etcd accepts by default in one transaction is 128 operations (--max-txn-ops) and 1.5 MiB (--max-request-bytes). */
#define ETCD_MAX_OPS   100
#define ETCD_MAX_BYTES 1000000
