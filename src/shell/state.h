/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The state directory as control's shells use it: what was remembered at the start, the fabric lock, and records to write.
 * Without a directory (it could not be opened) nothing is remembered, and the lock is everybody's.
 */

#include <sys/stat.h>

#include "control/control.h"
#include "shell/state_dir.h"

struct state {
        struct state_dir *dir;  /* NULL: there is none */
        char *path, *indexes_path;
        struct stat on_disk;    /* the file of indexes as this process left or read it */
};

/* make: if the directory is absent. Returns 0, -ENOENT, -ENOMEM or what the system said; without an error of memory the
 * state can be used. */
int state_open(struct state *s, const char *path, bool make);
void state_close(struct state *s);

/* What was remembered. */
struct remembered {
        struct index_memory *indexes;      /* owned, never NULL on success */
        struct known known;                /* owned */
        const char *policy;                /* in the arena; NULL: none */
        size_t n_policy;
        uint64_t generation;
        bool indexes_damaged;
        int r_indexes, r_known, r_policy;  /* 0, or why they could not be read: then they are empty */
};
/* Returns 0 or -ENOMEM. */
int state_load(struct state *s, struct arena *a, struct remembered *ret);

/* As CONTROL_LOCK has it: takes the fabric lock without waiting, and reads the indexes again if another process wrote them. */
void state_lock(struct state *s, struct control_lock *ret);
void state_unlock(struct state *s);

/* As CONTROL_STORE has it. Returns 0 or negative errno; *ret_what is what could not be written. */
int state_write(struct state *s, const struct control_record *record, const char **ret_what);
