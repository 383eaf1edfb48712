/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The files of a sqlite_store in its directory: their names, the lock for replacing them, and how damaged ones are moved aside. The
 * store decides which are damaged. `dir_fd` is an open directory. Functions return 0 or negative errno. */

#include <stdbool.h>
#include <stdint.h>

#define SQLITE_FILES_NAME     "state.db"
#define SQLITE_FILES_NAME_NEW "state.db.new"

/* Checks that state.db can be opened for reading and writing: 0, -ENOENT, -EUCLEAN (it is empty), -ELOOP (a symbolic link),
 * -EISDIR, -EINVAL (not a regular file), or why it or its directory cannot be written. */
int sqlite_files_check(int dir_fd);

/* Whether state.db has whole pages only, or a -wal that completes it. */
bool sqlite_files_is_whole(int dir_fd, int64_t page_size);

/* Locks the directory: LOCK_SH to use state.db, LOCK_EX to replace it. Replaces the lock that the caller holds, if any, and loses
 * it on error. -EBUSY: another process did not release its lock within msec. */
int sqlite_files_lock(int dir_fd, int operation, unsigned msec);

/* Creates an empty file state.db.new, mode 0600, after removing one that an earlier attempt left. */
int sqlite_files_make_new(int dir_fd);
void sqlite_files_remove_new(int dir_fd);
/* Renames state.db.new to state.db. Moves aside the file that has that name, and its -wal, -shm and -journal. Needs LOCK_EX.
 * After an error or a crash, state.db is as it was, or does not exist. */
int sqlite_files_replace(int dir_fd);

/* The present time for the name of a file that is kept, as in 20260131T235959Z. */
#define SQLITE_FILES_TIME_SIZE 32
int sqlite_files_time(char ret[static SQLITE_FILES_TIME_SIZE]);

/* The name of the newest database that was moved aside, without -wal and the like; owned. *ret is NULL if there is none. */
int sqlite_files_newest_damaged(int dir_fd, char **ret);
