/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The file `lock` of a state directory: locked while a process writes tables, or moves the store. The file has the ID of that
 * process, for messages only. */

#include "store/store.h"

/* Takes the lock, without waiting. *ret_fd holds it. Returns 0, -EWOULDBLOCK: another process holds it, ret_holder says which; or a
 * negative errno. */
int directory_lock_take(const char *dir, int *ret_fd, char ret_holder[LOCK_HOLDER_SIZE]);
void directory_lock_release(int fd);
