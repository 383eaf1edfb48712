/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A store (store/store.h) in a directory of this host: the SQLite database `state.db`, mode 0600.
 *
 * Several processes of this host may have it open. A transaction is on the disk when commit() returns 0, and survives the crash of
 * the process and of the host.
 *
 * Damage. A database that SQLite or its quick_check finds damaged, or that is not pkeyd's, is neither repaired nor used: it is
 * moved aside as `state.db.damaged-YYYYMMDDTHHMMSSZ`, with its `-wal` and `-shm`, and an empty one takes its place. No
 * file is deleted. An empty file counts as damaged, because a new database is complete before it is renamed to state.db.
 *
 * quick_check does not notice a wrong byte within a value, so readers must validate each value.
 *
 * Every open store holds a shared flock() of the directory, and a process that replaces the database holds it exclusively. So no
 * process continues with a database that another one has moved away.
 *
 * A store is for one thread.
 */

#include "shell/shell.h"
#include "store/store.h"

struct sqlite_store;

/* Opens the store in an existing directory, or creates it. Waits at most busy_msec each time another process is in the way. *ret is
 * owned. *ret_damaged is the path (owned) of the newest damaged database in the directory, if an empty one took its place and no
 * earlier call has returned it; else NULL. Returns 0, or
 *
 *     -ENOMEM
 *     -EPROTONOSUPPORT  it has a newer schema version
 *     -EUCLEAN          it is damaged, and another process still has it open
 *     -EBUSY            another process is replacing it, or holds a lock of it
 *     -ELOOP, -EISDIR, -EINVAL   state.db is a symbolic link, a directory, another file that is not regular
 *     -EACCES, -EROFS, -ENOSPC, -EIO, ...   the system's error for the directory or the database
 */
int sqlite_store_open(const char *dir, unsigned busy_msec, struct sqlite_store **ret, char **ret_damaged);
/* Accepts NULL; returns NULL. */
struct sqlite_store *sqlite_store_close(struct sqlite_store *s);
DEFINE_CLEANUP(struct sqlite_store *, sqlite_store_close)
#define _cleanup_sqlite_store_ _cleanup_(sqlite_store_close_p)

/* Calls `each` for all records, ordered by key, as they are at one moment. `each` must not use the store. Returns 0, what `each`
 * returned if that is not 0, or an error as commit(). */
int sqlite_store_load(struct sqlite_store *s, store_record_handler each, void *userdata);
/* The same for the records whose keys are at least `first` and less than `end`. */
int sqlite_store_load_range(struct sqlite_store *s, const char *first, const char *end, store_record_handler each, void *userdata);

/* Commits all or nothing of a transaction. Returns 0 when it is on the disk, the error of the transaction if it has
 * one, -ENOMEM, -ENOSPC, -EIO, -EROFS, or
 *
 *     -EBUSY    another process held the write lock for too long
 *     -EUCLEAN  the database is damaged, or state.db was removed or replaced: close the store and open it again
 *
 * After a disk error (-EIO) nothing of the transaction is in the store, but after a crash of the host all of it may be. */
int sqlite_store_commit(struct sqlite_store *s, const struct store_transaction *t);

/* Returns 1 if another process, or another store of this process, has committed since the last call, or since the store was
 * opened; else 0. Costs no I/O. Errors as commit(). */
int sqlite_store_changed(struct sqlite_store *s);
