/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The files of a state directory that processes lock. Each has the ID of the process that locked it last, for messages only. */

#include "store/store.h"

#define DIRECTORY_LOCK_WRITES "lock"       /* while a process writes tables, or moves the store */
#define DIRECTORY_LOCK_RUNS   "pkeyd.lock" /* shared: while a pkeyd runs; exclusive: while a process moves the store */

/* Takes a lock without waiting; operation: LOCK_EX or LOCK_SH. *ret_fd holds it. Returns 0, -EWOULDBLOCK: another process holds it,
 * ret_holder says which; or a negative errno. */
int directory_lock_take(const char *dir, const char *name, int operation, int *ret_fd, char ret_holder[LOCK_HOLDER_SIZE]);
void directory_lock_release(int fd);
