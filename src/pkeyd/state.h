/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <sys/stat.h>

#include "pkeyd/generation.h"
#include "pkeyd/journal.h"
#include "shell/state_dir.h"

/*
 * What the daemon keeps beyond one run: the index memory, the last policy in force, and the lock that keeps pkeyctl and
 * pkeyd from writing at the same time. Trouble with the directory is logged once until it is over, and never stops
 * anything: losing the state loses no correctness.
 */
struct state {
        const struct journal *journal; /* borrows */
        char *indexes_path;
        struct state_dir *dir;         /* NULL: could not be opened */
        struct index_memory *memory;   /* never NULL */
        struct known known;            /* endports that were seen once */
        uint64_t saved;                /* digest of the memory as it is on disk */
        struct stat on_disk;           /* the file as we left it */
        bool locked, trouble;
};

/* Returns 0 or -ENOMEM. */
int state_open(struct state *s, const char *path, const struct journal *journal);
void state_close(struct state *s);

/* Takes the lock and, if pkeyctl wrote it meanwhile, reads the index memory again. Returns 0 or -EWOULDBLOCK:
 * pkeyctl (or another pkeyd) has it; its pid in *ret_pid, 0 if it is not known. */
int state_lock(struct state *s, int *ret_pid);
void state_unlock(struct state *s);

/* The endports of a picture were seen. */
void state_learn_ports(struct state *s, const struct subnet *subnet);

/* Writes the index memory if it changed. */
void state_save_memory(struct state *s);
void state_save_policy(struct state *s, const struct generation *g);
/* Returns 0, -ENOENT: none (or unreadable: logged), -ENOMEM. */
int state_load_policy(struct state *s, struct arena *a, const char **ret_bytes, size_t *ret_n, uint64_t *ret_number);
