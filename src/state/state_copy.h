/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Moves what pkeyd remembers from state.db to etcd, or back, while no pkeyd runs.
 *
 * state_copy() holds the locks of both stores, and is refused while a pkeyd runs that uses one of them. One transaction puts all
 * records into the target, which must be empty. After that state.db gets another name, or STATE_MARK is removed. If this fails, or
 * the process ends before, the target has a copy that no process uses. The next state_copy() then finds the same records there, and
 * does what is left. Until then state.db stays in use if the copy is in etcd; if it is in state.db, state_open() refuses both.
 */

#include "etcd/etcd.h"
#include "etcd/etcd_message.h"
#include "store/store.h"

#define STATE_MARK "etcd" /* a file in the state directory: what pkeyd remembers is in etcd */

struct state_copy {
        size_t n;                      /* records */
        char holder[LOCK_HOLDER_SIZE]; /* with -EWOULDBLOCK: which process */
        struct etcd_key prefix;        /* of the records in etcd: "/pkeyd/record/" */
        char *kept;                    /* owned; the new path of state.db; NULL: it was not renamed */
        char *problem;                 /* owned; why the last request to etcd failed; NULL: not known */
};

/* to_etcd: from state.db; else to it. Returns 0, or
 *
 *     -ENOENT       the source has no records
 *     -ENOTEMPTY    the target has other records
 *     -EWOULDBLOCK  another process has a lock, or a pkeyd runs
 *     -EBADMSG      a record is damaged
 *     -ENOMEM, or why a store cannot be used
 *
 * The caller passes *ret to state_copy_done() in any case. */
int state_copy(const char *dir, const struct etcd_config *etcd, bool to_etcd, struct state_copy *ret);
void state_copy_done(struct state_copy *c);
