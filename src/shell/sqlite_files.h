/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The files of a sqlite_store in its directory: their names, who may replace them, and the way aside for damaged ones. Which
 * of them is damaged, the store knows. `dir_fd` is an open directory. */

#include <stdbool.h>
#include <stdint.h>

#define SQLITE_FILES_NAME     "state.db"
#define SQLITE_FILES_NAME_NEW "state.db.new"

/* Whether state.db can be opened, for reading and writing: 0, -ENOENT, -EUCLEAN (it is empty), -ELOOP (a symbolic link),
 * -EISDIR, -EINVAL (no regular file), or why it or its directory cannot be written. */
int sqlite_files_check(int dir_fd);

/* Whether state.db has whole pages only, or a -wal that has what it lacks. */
bool sqlite_files_is_whole(int dir_fd, int64_t page_size);

/* Locks the directory: LOCK_SH as a user of state.db, LOCK_EX to replace it. A lock that was held is exchanged, and lost on
 * error. -EBUSY: others hold theirs for msec. */
int sqlite_files_lock(int dir_fd, int operation, unsigned msec);

/* Makes an empty file state.db.new, mode 0600. What an earlier try left is removed. */
int sqlite_files_make_new(int dir_fd);
void sqlite_files_remove_new(int dir_fd);
/* Gives state.db.new the name state.db. What has that name, and its -wal, -shm and -journal, is moved aside. Needs LOCK_EX.
 * After an error or a crash, state.db is as it was, or there is none. */
int sqlite_files_replace(int dir_fd);

/* The name of the newest of the databases that were moved aside, without -wal and the like; owned. *ret is NULL if there is
 * none. */
int sqlite_files_newest_damaged(int dir_fd, char **ret);
