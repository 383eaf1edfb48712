/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A store (store/store.h) in a directory of this host: the SQLite database `state.db`, mode 0600.
 *
 * Processes of this host may have it open at the same time. What commit() returned 0 for is on the disk, and survives the end
 * of the process and of the host.
 *
 * Damage. A database that SQLite or its quick_check finds damaged, and one that is not pkeyd's, is never repaired or believed:
 * it is moved aside as `state.db.damaged-YYYYMMDDTHHMMSSZ`, with its `-wal` and `-shm`, and an empty one takes its place. No
 * file is deleted. An empty file is damage, too: a new database is complete before it has its name.
 *
 * quick_check does not notice a wrong byte within a value. Who reads a value takes nothing in it for granted.
 *
 * Every open store holds a shared flock() of the directory; who replaces the database holds it exclusively. So no process goes
 * on with a database that another one has moved away.
 *
 * A store is for one thread.
 */

#include "shell/shell.h"
#include "store/store.h"

struct sqlite_store;

/* Opens the store in a directory that exists; creates it if there is none. Each wait for another process is of busy_msec at
 * most. *ret is owned. *ret_damaged is the newest damaged database of the directory (its path, owned) if an empty one took
 * its place and no call before has returned it; else NULL. Returns 0, or
 *
 *     -ENOMEM
 *     -EPROTONOSUPPORT  it is of a newer schema version
 *     -EUCLEAN          it is damaged, and another process still has it open
 *     -EBUSY            another process is replacing it, or holds a lock of it
 *     -ELOOP, -EISDIR, -EINVAL   state.db is a symbolic link, a directory, something else that is no file
 *     -EACCES, -EROFS, -ENOSPC, -EIO, ...   what the system said of the directory or the database
 */
int sqlite_store_open(const char *dir, unsigned busy_msec, struct sqlite_store **ret, char **ret_damaged);
/* Accepts NULL; returns NULL. */
struct sqlite_store *sqlite_store_close(struct sqlite_store *s);
DEFINE_CLEANUP(struct sqlite_store *, sqlite_store_close)
#define _cleanup_sqlite_store_ _cleanup_(sqlite_store_close_p)

/* Calls `each` for all records, ordered by key, as they are at one moment. `each` must not use the store. Returns 0, what `each`
 * returned if that is not 0, or an error as commit(). */
int sqlite_store_load(struct sqlite_store *s, store_record_handler each, void *userdata);

/* Carries a transaction out, whole or not at all. Returns 0 when it is on the disk, the error of the transaction if it has
 * one, -ENOMEM, -ENOSPC, -EIO, -EROFS, or
 *
 *     -EBUSY    another process wrote all the time
 *     -EUCLEAN  the database is damaged, or state.db was removed or replaced: close the store and open it again
 *
 * After an error of the disk (-EIO) nothing of the transaction is in force, but a crash of the host may bring all of
 * it back. */
int sqlite_store_commit(struct sqlite_store *s, const struct store_transaction *t);

/* 1 if another process, or another store of this one, has committed since the last call, or since the store was opened; 0 if
 * not. Costs no I/O. Errors as commit(). */
int sqlite_store_changed(struct sqlite_store *s);
