/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A store (store/store.h) in an etcd cluster. Each function that sends a request to etcd waits for the answer, a few seconds at
 * most. A load sends one request for each page of records, and notifies the watchdog of systemd after each page. The lease is
 * renewed while a function waits, and whenever the loop to which the store was attached runs.
 *
 * Only the process that holds the lock can commit, and only if nothing was committed since it loaded all records, asked whether the
 * store has changed, or committed itself. So while this process holds the lock, what it has loaded is what the store has.
 *
 * Errors, in addition to those of store/store.h. A commit that returns one may have taken effect, or take effect later, until the
 * next one or the end of the lock; so after an error, load all records again, or close the store.
 *
 *     -ENOLCK           this process does not hold the lock any more
 *     -EBUSY            something was committed that this process does not know; or, not by a commit: other processes change
 *                       what is read
 *     -EHOSTUNREACH     no member of the cluster answers, or it has no majority
 *     -EUCLEAN          it is another cluster than before, or older
 *     -EPROTONOSUPPORT  a newer version of pkeyd wrote it
 *     and those of etcd_http.h
 */

#include <systemd/sd-event.h>

#include "etcd/etcd.h"
#include "store/store.h"

/* How far a process has seen the commits of which cluster; zeroed: it has seen none. */
struct etcd_seen {
        uint64_t cluster, commit;
};

/* Borrows the configuration until the store is closed. seen: by an earlier store of this process, in place of which this one is
 * opened; NULL: there was none. Returns 0 or an error. *ret is owned. *ret_problem, owned, is set with an error: the problem of the
 * last request to etcd, for people, if there is one. */
int etcd_store_open(const struct etcd_config *config, const struct etcd_seen *seen, struct store **ret, char **ret_problem);
struct etcd_seen etcd_store_seen(const struct store *s);
/* Serves the store on this loop, until it is closed. Returns 0 or a negative errno. */
int etcd_store_attach(struct store *s, sd_event *event);

/* Takes the lock, without waiting for another process; does nothing if this one holds it. Returns 0, -EWOULDBLOCK: another process
 * holds it, ret_holder says which ("pkeyd on head1 (process 4711)"); or an error. */
int etcd_store_lock(struct store *s, char ret_holder[LOCK_HOLDER_SIZE]);
/* Gives the lock back. If etcd does not answer, the lock ends with its lease. */
void etcd_store_unlock(struct store *s);
/* Shows other processes that this one uses the store, until it is closed. If etcd did not answer for longer than a lease, that
 * ends until this process next asks whether the store has changed. Returns 0 or an error. */
int etcd_store_announce(struct store *s);
/* Returns 0, -EWOULDBLOCK: a process has announced itself, ret_holder says which; or an error. */
int etcd_store_find_running(struct store *s, char ret_holder[LOCK_HOLDER_SIZE]);
/* CLOCK_BOOTTIME until which no other process can have the lock; 0: this one does not hold it. */
usec_t etcd_store_deadline(const struct store *s);
/* Whether another process made the last commit of those that announce themselves, or another host the last commit of all, as far
 * as this process has read. */
bool etcd_store_is_of_other_pkeyd(const struct store *s);

/* Returns whether a record other than this one was put or deleted since this process loaded all records, also by itself; or an
 * error. */
int etcd_store_changed_besides(struct store *s, const char *key);

/* The problem of the last request to etcd, for people; "": it succeeded. */
const char *etcd_store_problem(const struct store *s);
