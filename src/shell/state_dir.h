/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The state directory: what a P_Key table cannot tell. Losing it loses no correctness.
 *
 *     indexes.json   the index memory
 *     policy.yaml    the last policy in force, as its bytes were; generation.json its number and time
 *     known.json     endports that were seen once (subnet/known.h)
 *     lock           held while a transaction runs, so that pkeyd and pkeyctl do not write at the same time
 */

#include "plan/index_memory.h"
#include "shell/shell.h"
#include "subnet/known.h"
#include "util/arena.h"

#define STATE_DIR_DEFAULT "/var/lib/pkeyd"

struct state_dir;

/* Opens the directory; makes it with mode 0700 if it is absent (its parent must exist). Returns 0, -ENOMEM or what the
 * system said; *ret owned. */
int state_dir_open(const char *path, struct state_dir **ret);
struct state_dir *state_dir_close(struct state_dir *s);
DEFINE_CLEANUP(struct state_dir *, state_dir_close)

/* Takes the lock, without waiting. -EWOULDBLOCK: another process has it (its pid in *ret_pid, 0 if it is not known). */
int state_dir_lock(struct state_dir *s, int *ret_pid);
void state_dir_unlock(struct state_dir *s);

/* A missing file gives an empty memory; a damaged one too, with *ret_damaged set. Returns 0 or -ENOMEM; *ret owned. */
int state_dir_load_indexes(struct state_dir *s, struct index_memory **ret, bool *ret_damaged);
int state_dir_save_indexes(struct state_dir *s, const struct index_memory *m);

/* Into an empty list. A missing file gives an empty one; a damaged one too, with -EBADMSG. */
int state_dir_load_known(struct state_dir *s, struct known *ret);
int state_dir_save_known(struct state_dir *s, const struct known *k);

/* The last policy in force. -ENOENT: none. */
int state_dir_load_policy(struct state_dir *s, struct arena *a, const char **ret_bytes, size_t *ret_n,
                          uint64_t *ret_generation);
int state_dir_save_policy(struct state_dir *s, const char *bytes, size_t n, uint64_t generation);
