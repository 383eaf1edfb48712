/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The file `lock` of a state directory, which is locked while tables, or the place of the store, change. Its content, the ID of the
 * process that has it, is for messages only. */

#include "control/control.h"

/* Takes the lock, without waiting. *ret_fd holds it. Returns 0, -EWOULDBLOCK: another process has it, ret_holder says which; or a
 * negative errno. */
int directory_lock_take(const char *dir, int *ret_fd, char ret_holder[LOCK_HOLDER_SIZE]);
void directory_lock_release(int fd);
