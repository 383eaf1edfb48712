/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Reads a store (sqlite_store.h) that may be in use: for completion, which must neither wait nor change anything. */

#include "store/store.h"

/* Calls `each` for the records whose keys begin with `prefix`, ordered by key. Moves and repairs no file, creates none (but a
 * -shm, if a crash left a -wal without it), and checks nothing but the version: what it reads may be damaged or incomplete. Does
 * not wait: -EBUSY if another process is replacing the database. Returns 0, what `each` returned if that is not 0, or a negative
 * errno. */
int sqlite_peek(const char *dir, const char *prefix, store_record_handler each, void *userdata);
