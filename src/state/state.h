/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * state/: what pkeyd remembers between two runs, for control's shells.
 *
 *     state           the state directory: loading at the start, the fabric lock, transactions
 *     state_import    imports the files of version 0.1.0, once
 *     sqlite_store    a store of records in the state directory, in an SQLite database; sqlite_files: its files
 *     state_copy      moves what is remembered to another kind of store
 *     directory_lock  the locks of a state directory
 *     etcd_place      the cluster that the settings name, as a configuration of etcd/
 *
 * The state directory has the store (records in records/stored_records.h), a file `lock`, the fabric lock, which a process
 * holds while it writes tables, and a file `pkeyd.lock`, which each pkeyd holds while it runs. With `store: etcd` the store is a
 * cluster that other hosts share; then the fabric lock consists of that file and of the lock in the cluster, and the directory has
 * a file `etcd`: no process continues with a state.db that is older than the cluster. Nor does one continue with a cluster while
 * there is a state.db.
 *
 *     state_open -> state_load -> ( state_lock -> state_commit, MADs, ... -> state_unlock )* -> state_close
 *
 * Without a store nothing can be loaded or committed, so pkeyd must not write to the fabric. Each state_lock() tries to open the
 * store again.
 *
 * Two processes may have the store open. Neither overwrites the other's records of tables if both commit these only under the
 * lock, and replace what they have in memory by what state_lock() returns.
 */

#include "etcd/etcd_store.h"
#include "records/stored_records.h"
#include "state/sqlite_store.h"

enum state_report_kind {
        STATE_DAMAGED,  /* the database was moved aside, or some records or files of version 0.1.0 are damaged */
        STATE_UNUSABLE, /* the store cannot be opened or read */
        STATE_USABLE,   /* it can be again */
};

/* For the admin. */
struct state_report {
        enum state_report_kind kind;
        char *text;         /* what happened, where */
        const char *effect; /* what pkeyd does now; static */
        const char *hint;   /* what to do; static; NULL: nothing */
};

#define STATE_MAX_REPORTS 8

struct state {
        char *path;                 /* owned; NULL: not open */
        enum state_access access;
        const struct etcd_config *etcd; /* borrowed; NULL: the store is in the directory */
        char *name;                 /* owned; of the store, for messages */
        char *problem;              /* owned; why the last request to etcd failed, for messages; NULL: not known */
        sd_event *event;            /* on which a store in etcd is served; NULL: none */
        char boot[64];
        struct store *store;       /* NULL: there is none */
        int error;                  /* why there is none */
        bool stale;                 /* it may have records that this process did not load */
        bool followed;              /* what was loaded was not loaded under the lock */
        bool replaced;              /* it is another store than the one that was open before, and was not loaded yet */
        struct etcd_seen seen;      /* by the stores in etcd that were open before */
        dev_t device;               /* of state.db when it was last opened */
        ino_t inode;                /* 0: it never was */
        int runs_fd;                /* holds `pkeyd.lock`; -1: not held */
        bool locked;
        int lock_fd;
        char holder[LOCK_HOLDER_SIZE]; /* the other process that held the lock when this one last tried */
        struct state_report reports[STATE_MAX_REPORTS];
        unsigned n_reports;
        bool shown;                 /* the first report was returned already */
};

/* STATE_READ: the directory and the store must exist; -ENOENT is not reported, and -ENOTRECOVERABLE means that the database is
 * damaged, and was left as it is. Else it creates the directory (mode 0700) and the store if they do not exist, and imports files
 * of version 0.1.0. STATE_SERVE: until state_close() the store is not moved (state_copy.h). etcd: NULL: the store is in the
 * directory; borrowed until state_close(). Returns 0, -ENOMEM, or why there is no store; the state can be used without one. */
int state_open(struct state *s, const char *path, enum state_access access, const struct etcd_config *etcd);
/* A store in etcd is served on this loop from now on: its lease is renewed. Borrows the loop. */
int state_attach(struct state *s, sd_event *event);
/* Also accepts a zeroed state. */
void state_close(struct state *s);

/* Whether another pkeyd made the last commit of a pkeyd to a store in etcd, as it was read last, or another host the last of all.
 * pkeyctl on this host may have committed since. */
bool state_is_of_other_pkeyd(const struct state *s);

/* What an error of the functions below means, and what to do (NULL: not known), for people; static. */
const char *state_explain(const struct state *s, int error);
const char *state_hint(const struct state *s, int error);

/* Returns the next report, borrowed until the next call; false: there are no more. state_open, state_load, state_lock and
 * state_commit may add reports. */
bool state_next_report(struct state *s, struct state_report *ret);

/* Loads all records; none without a store. *ret is owned. Returns 0 or -ENOMEM. */
int state_load(struct state *s, struct remembered **ret);

/* Reads which generations above `after` are stored now. *ret is owned, freed by generation_history_done(). Returns 0, -ENOMEM, or
 * why the store cannot be read. */
int state_read_history(struct state *s, uint64_t after, struct generation_history *ret);
/* Reads one generation, as it is stored now. *ret: its bytes are owned, freed by stored_files_done(); what it changed is in the
 * arena. Returns 0, -ENOENT (there is none), -EBADMSG (it is damaged), -ENOMEM, or why the store cannot be read. */
int state_read_generation(struct state *s, struct arena *a, uint64_t number, struct stored_files *ret);
/* Adds why that generation, or its layout, cannot be read: r is the error. Returns -EBADMSG or -ENOMEM. */
int state_complain_generation(const struct state *s, struct findings *findings, uint64_t number, int r);
/* Reads the layout of the tables as they were before the generations above `after`; damaged records are left out. *ret lives in the
 * arena. Returns 0, -ENOMEM, or why the store cannot be read. */
int state_read_layout(struct state *s, struct arena *a, uint64_t after, struct layout **ret);

/* Reads what other hosts have committed since the last load, without the lock: good enough to show it, but not to write tables by
 * it; nothing if only the time of the last discovery has changed. The next state_lock() loads everything. *ret_changed as of
 * state_lock(). Does nothing for a store in the directory. Returns 0, -ENOMEM, or why the store cannot be read. */
int state_follow(struct state *s, struct remembered **ret_changed);

/* Takes the fabric lock, without waiting. If another process committed since the last load, all records are loaded again:
 * *ret_changed, owned, replaces what is in memory. Else it is not set. If the store is another file than this process had
 * open before, or another cluster, or older, each table in it counts as never read (knowledge_stop_following). Returns 0, or
 *
 *     -EWOULDBLOCK  another process has the lock: *ret_holder says which, for people; borrowed until the next call
 *     -EUCLEAN      the store was lost, and an empty one is open: mark everything in memory as not stored
 *                   (index_memory_unstore, known_unstore, ...), lock again, and commit all of it
 *     -ENOMEM, or why the lock cannot be taken
 *
 * If the store does not work, the commit that follows fails, not this. */
int state_lock(struct state *s, const char **ret_holder, struct remembered **ret_changed);
void state_unlock(struct state *s);
/* The next state_lock() or state_follow() loads all records again, changed or not. */
void state_load_again(struct state *s);
/* Whether another process may have committed to a store in etcd since the last load; the next state_lock() loads everything then.
 * False for a store in the directory. */
bool state_is_outdated(struct state *s);
/* Whether this process certainly holds the fabric lock at this moment. */
bool state_holds_lock(const struct state *s);

/* Returns 0 when the transaction is on the disk; its own error; without a store why there is none (-ENOENT: not opened); or an
 * error of store_commit(). After an error no MAD that depends on the records may be sent.
 *
 * -EUCLEAN: the store was lost, and was opened again. The caller marks everything in memory as not stored, takes the lock again and
 * commits all of it. If another database has taken its place, state_lock() returns its records. */
int state_commit(struct state *s, const struct store_transaction *t);
