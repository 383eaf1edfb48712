/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The state directory as control's shells use it: the store (sqlite_store.h, records in control/stored_records.h), and the fabric
 * lock, a file `lock` that is held while tables are written.
 *
 *     state_open -> state_load -> ( state_lock -> state_commit, MADs, ... -> state_unlock )* -> state_close
 *
 * Without a store nothing is remembered and nothing can be committed, so nothing may be written to the fabric. Each
 * state_lock() tries to open it again.
 *
 * Two processes may have the store open. What one has in memory of a table is overwritten by nothing that the other committed,
 * if it commits records of tables only under the lock, and takes over what state_lock() brings.
 */

#include "control/control.h"
#include "control/stored_records.h"
#include "shell/sqlite_store.h"

#define STATE_DIR_DEFAULT "/var/lib/pkeyd"

enum state_report_kind {
        STATE_DAMAGED,  /* the database was moved aside, or some records or files of version 0.1.0 cannot be understood */
        STATE_UNUSABLE, /* the store cannot be opened or read */
};

/* What a person should read. */
struct state_report {
        enum state_report_kind kind;
        char *text;         /* what happened, where */
        const char *effect; /* what that means now; static */
        const char *hint;   /* what to do; static */
};

#define STATE_MAX_REPORTS 8

struct state {
        char *path;                 /* NULL: it was not opened */
        bool make;
        char boot[64];
        struct sqlite_store *store; /* NULL: there is none */
        int error;                  /* why there is none */
        bool stale;                 /* it has what this process did not load */
        bool replaced;              /* and is another file than the one that was loaded */
        bool locked;
        int lock_fd;
        struct state_report reports[STATE_MAX_REPORTS];
        unsigned n_reports;
        bool shown;                 /* the first of them */
};

/* make: the directory (mode 0700) and the store, if they are absent, and files of version 0.1.0 are taken over; else -ENOENT,
 * which is not reported. Returns 0, -ENOMEM, or why there is no store: the state can be used all the same. */
int state_open(struct state *s, const char *path, bool make);
/* Of one that was never opened, too, if it is zeroed. */
void state_close(struct state *s);

/* The next one that was not shown yet, until the next call; false: no more. There may be new ones after each call of open,
 * load, lock and commit. */
bool state_next_report(struct state *s, struct state_report *ret);

/* Everything that is in the store; without a store nothing. *ret is owned. Returns 0 or -ENOMEM. */
int state_load(struct state *s, struct remembered **ret);

/* Takes the fabric lock, without waiting. If another process committed since this one loaded last, everything is loaded again:
 * *ret_changed, owned, takes the place of what is in memory. Else it is not set. If another file is in place of the store, every
 * table of it counts as never read (knowledge_stop_following). Returns 0, or
 *
 *     -EWOULDBLOCK  another process has the lock: its pid in *ret_pid, 0 if it is not known
 *     -EUCLEAN      the store was lost, and an empty one is open: mark everything in memory as not stored
 *                   (index_memory_unstore, known_unstore, ...), lock again, and commit all of it
 *     -ENOMEM, or why there is no lock
 *
 * A store that does not work is no error here, but of the commit that follows. */
int state_lock(struct state *s, int *ret_pid, struct remembered **ret_changed);
void state_unlock(struct state *s);

/* Commits. Returns 0 when it is on the disk; the error of the transaction; without a store why there is none (-ENOENT: it was
 * not opened); or as sqlite_store_commit(). Other than 0: nothing that the records are about may be sent.
 *
 * After -EUCLEAN the store was lost, and was opened again. The caller marks everything in memory as not stored, and commits
 * all of it under the lock, which it takes anew: if another database was put in its place, state_lock() brings its records. */
int state_commit(struct state *s, const struct store_transaction *t);
