/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A store (store/store.h) in an etcd cluster. Each function that asks etcd waits for the answer, a few seconds at most; meanwhile,
 * and whenever the loop to which the store was attached runs, its lease is renewed.
 *
 * Only who holds the lock can commit, and every commit of another process needs the lock, too: what the store had when the lock
 * was taken is what it has.
 *
 * Errors, in addition to those of store/store.h:
 *
 *     -ENOLCK           this process does not hold the lock any more; nothing was committed
 *     -EHOSTUNREACH     no member of the cluster answers, or it has no majority. A commit may have taken effect
 *     -EUCLEAN          it is another cluster than before, or older
 *     -EPROTONOSUPPORT  a newer version of pkeyd wrote it
 *     and those of etcd_http.h
 */

#include <systemd/sd-event.h>

#include "etcd/etcd.h"
#include "store/store.h"

/* Borrows the configuration until the store is closed. Returns 0 or an error; *ret is owned, and so is *ret_problem: why etcd could
 * not be asked, for people; NULL: not known, or it could. */
int etcd_store_open(const struct etcd_config *config, struct store **ret, char **ret_problem);
/* Serves the store on this loop, until it is closed. Returns 0 or a negative errno. */
int etcd_store_attach(struct store *s, sd_event *event);

/* Takes the lock, without waiting for another process; nothing if this one holds it. Returns 0, -EWOULDBLOCK: another process holds
 * it, ret_holder says which ("pkeyd on head1 (process 4711)"); or an error. */
int etcd_store_lock(struct store *s, char ret_holder[LOCK_HOLDER_SIZE]);
/* Gives the lock back. If etcd does not answer, the lock ends with its lease. */
void etcd_store_unlock(struct store *s);
/* CLOCK_BOOTTIME until which no other process can have the lock; 0: this one does not hold it. */
usec_t etcd_store_deadline(const struct store *s);
/* Whether that was a process of another host. */
bool etcd_store_is_of_other_host(const struct store *s);

/* Why etcd could not be asked, for people; "": it could. */
const char *etcd_store_problem(const struct store *s);
