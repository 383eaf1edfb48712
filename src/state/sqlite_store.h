/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A store (store/store.h) in a directory of this host: the SQLite database `state.db`, mode 0600.
 *
 * Several processes of this host may have it open. A transaction is on the disk when commit() returns 0, and survives the crash of
 * the process and of the host.
 *
 * Damage. A database that SQLite or its quick_check finds damaged, or that is not pkeyd's, is neither repaired nor used: unless
 * the process only reads, it is moved aside as `state.db.damaged-YYYYMMDDTHHMMSSZ`, with its `-wal` and `-shm`, and an empty one
 * takes its place. No file is deleted. An empty file counts as damaged, because a new database is complete before it is renamed to
 * state.db.
 *
 * quick_check does not notice a wrong byte within a value, so readers must validate each value.
 *
 * Every open store holds a shared flock() of the directory, and a process that replaces the database holds it exclusively. So no
 * process continues with a database that another one has moved away.
 *
 * A store is for one thread. To learn whether it changed costs no I/O. A commit and the others return the errors of store/store.h,
 * and
 *
 *     -EBUSY    another process held the write lock for too long
 *     -EUCLEAN  the database is damaged, or state.db was removed or replaced
 *     -EIO, -EROFS
 *
 * After a disk error (-EIO) nothing of the transaction is in the store, but after a crash of the host all of it may be.
 */

#include "shell/shell.h"
#include "store/store.h"

#define SQLITE_STORE_BUSY_MSEC 2000 /* that programs wait */

enum state_access {
        STATE_READ,
        STATE_WRITE, /* a command */
        STATE_SERVE, /* pkeyd */
};

/* Opens the store in an existing directory, or, unless it is for STATE_READ, creates it. Waits at most busy_msec each time another
 * process is in the way. *ret is owned. *ret_damaged is the path (owned) of the newest damaged database in the directory, if an
 * empty one took its place and no call for STATE_SERVE has returned it, so that pkeyd reports it, too; else NULL, as for
 * STATE_READ. Returns 0, or
 *
 *     -ENOENT           it does not exist, for STATE_READ
 *     -ENOMEM
 *     -EPROTONOSUPPORT  it has a newer schema version
 *     -EUCLEAN          it is damaged, and another process still has it open, or it is for STATE_READ
 *     -EBUSY            another process is replacing it, or holds a lock of it
 *     -ELOOP, -EISDIR, -EINVAL   state.db is a symbolic link, a directory, another file that is not regular
 *     -EACCES, -EROFS, -ENOSPC, -EIO, ...   the system's error for the directory or the database
 */
int sqlite_store_open(const char *dir, unsigned busy_msec, enum state_access access, struct store **ret, char **ret_damaged);

/* Reads a store that may be in use: for completion, which must neither wait nor change anything. Calls `each` for the records whose
 * keys begin with `prefix`, ordered by key. Moves and repairs no file, creates none (but a -shm, if a crash left a -wal without
 * it), and checks nothing but the version: what it reads may be damaged or incomplete. Returns 0, what `each` returned if that is
 * not 0, -EBUSY if another process is replacing the database, or another negative errno. */
int sqlite_store_peek(const char *dir, const char *prefix, store_record_handler each, void *userdata);
