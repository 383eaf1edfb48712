/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * etcd/: a store (store/store.h) that several hosts share: an etcd cluster, v3, through its HTTP gateway.
 *
 *     store/store.h  -->  etcd_store  -->  etcd_message  -->  etcd_http  -->  the members of the cluster
 *                         records,         requests and        one POST to the
 *                         the lock         answers as JSON     first member that answers
 *
 * etcd_lease renews a lease, that of the lock or of a process; etcd_mailbox has requests from one head node to the other.
 *
 * etcd alone decides which of several processes may write, and what they agree on. This folder has no election, vote or quorum of
 * its own.
 *
 * Keys. All begin with a prefix, `/pkeyd/`, or `/pkeyd@NAME/` for one of several fabrics:
 *
 *     record/KEY   a record of the store
 *     commit       the process that committed last, and its transaction: the revision tells whether a reader has seen everything
 *     served       the pkeyd that committed last; pkeyctl commits, too, but leaves it
 *     lock         the process that may commit; the key belongs to a lease of etcd, and is gone when that ends
 *     redo         of a transaction that is too large for one of etcd's, the number of its parts, and its name; see etcd_store.c
 *     redo/NAME/N  a part
 *     ask/ID       a request to the process that writes; see etcd_mailbox.h
 *     answer/ID    its answer
 *     running/ID   a pkeyd that uses the store; ID is its lease of etcd
 *     version      STORE_SCHEMA_VERSION of the process that put the first record
 *
 * The lock. Every commit is one etcd transaction with the condition that the lock still has the revision with which this process
 * took it. So a process that was paused, or cut off, for longer than its lease cannot commit.
 *
 * Late requests. A member that hangs may carry out a request long after the process gave up, and sent it to another one. So every
 * commit has a second condition: `commit` still has the revision up to which the process knows the records. Each commit changes it,
 * so a copy that arrives after a later commit has no effect; see etcd_store.c.
 *
 * MADs. etcd sees no MAD, so it cannot stop a process that has lost the lock from sending one. Therefore the process computes when
 * its lease ends: CLOCK_BOOTTIME when it sent the last renewal, plus the length of the lease, less a margin. Before each Set the
 * gate (gate_set_lock) asks whether the lock is held, which compares this deadline with the clock.
 *
 * This folder does not know what records mean, or when they may be written.
 */

#include <stddef.h>
#include <stdint.h>

#include "ib/types.h"

/* Members that are not set are NULL. Users of a configuration borrow it. */
struct etcd_config {
        const char *const *endpoints; /* URLs: "https://head1:2379" */
        size_t n_endpoints;
        const char *ca_file, *cert_file, *key_file; /* PEM */
        const char *user, *password;
        const char *password_file;    /* the password may have changed since it was read; see etcd_read_password() */
        const char *fabric;           /* of several fabrics; NULL: there is one */
        unsigned lease;               /* seconds; at least 5 (settings.c) */
};

/* The greatest length of a lease, in seconds. The margin covers clocks that run at different speeds, and MADs that the kernel sends
 * after the gate has passed them. */
#define ETCD_LEASE_MAX 120
#define ETCD_MARGIN    (2 * USEC_PER_SEC)

/* Of one transaction. By default etcd accepts 128 operations (--max-txn-ops) and 1.5 MiB (--max-request-bytes). */
#define ETCD_MAX_OPS   100
#define ETCD_MAX_BYTES 1000000
