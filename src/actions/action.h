/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The actions that a shell carries out for control. Where an arrow points to an event (event.h), the shell answers with it, and
 * control gives no further action of that kind until then.
 *
 * Pointers are valid until the shell calls control again, with these exceptions: a stage, a transaction and the bytes of a file
 * are valid until the answer.
 */

#include "events/log.h"
#include "generation/generation.h"
#include "leases/leases.h"
#include "mad_engine/stage.h"
#include "store/store.h"

enum control_action_kind {
        CONTROL_OPEN_PORT,         /* find it and open it, or check it again          -> CONTROL_EVENT_PORT */
        CONTROL_RUN_STAGE,         /*                                                 -> CONTROL_EVENT_STAGE_ENDED */
        CONTROL_FOLLOW_STORE,      /* read what another head node committed, to show  -> CONTROL_EVENT_FOLLOWED */
        CONTROL_LOCK,              /* the fabric lock, without waiting                -> CONTROL_EVENT_LOCK */
        CONTROL_STORE,             /* commit a transaction                            -> CONTROL_EVENT_STORED */
        CONTROL_READ_LOCAL_TABLES, /* of this host's ports, through libibverbs        -> CONTROL_EVENT_LOCAL_TABLES */
        CONTROL_READ_FILES,        /*                                                 -> CONTROL_EVENT_FILES_READ */
        CONTROL_WRITE_FILE,        /* replace it at once, for others to read          -> CONTROL_EVENT_FILE_WRITTEN */
        CONTROL_SIGNAL_OPENSM,     /* or only check whether it runs                   -> CONTROL_EVENT_OPENSM_SIGNALLED */
        CONTROL_CHOOSE_TABLES,     /* pkeyctl: which tables of the snapshot to read   -> CONTROL_EVENT_TABLES_CHOSEN */
        CONTROL_ASK_PERSON,        /* pkeyctl: ask a person whether to apply the plan -> CONTROL_EVENT_PERSON_ANSWERED */
        CONTROL_LOAD_UNDO,         /* make a generation of an older one's files and layout; answered by a CONTROL_EVENT_CANDIDATE,
                                    * which may come later */
        CONTROL_ABANDON_STAGE,     /* CONTROL_EVENT_STAGE_ENDED then has -ECANCELED */
        CONTROL_CLOSE_PORT,
        CONTROL_UNLOCK,
        CONTROL_LOG,
        CONTROL_ANSWER,            /* a reload ended: answer its requests, and signal it on the bus */
        CONTROL_ANSWER_LEASE,      /* a request about a lease has ended */
        CONTROL_EXIT,              /* the last action */
};
#define CONTROL_N_ACTIONS (CONTROL_EXIT + 1)

/* How a reload ended. */
enum reload_outcome {
        RELOAD_CARRIED_OUT, /* in force; every table was read and matches the policy (audit: was compared) */
        RELOAD_UNCHANGED,   /* both files are unchanged; the fabric was swept */
        RELOAD_PARTIAL,     /* in force, but some ports or devices did not answer, or refused; they are tried again */
        RELOAD_WAITS,       /* the files are valid, but the fabric cannot be reached yet */
        RELOAD_REFUSED,     /* the generation that was in force stays in force */
};

/* Size of a status line or an answer, with its NUL: the longest one has the path of OpenSM's file, up to 4095 bytes, four times. */
#define CONTROL_TEXT_MAX (18u << 10)

/* "carried-out", "unchanged", "partial", "waits", "refused": static, also on the bus and in records. */
const char *reload_outcome_to_string(enum reload_outcome o);

struct reload_end {
        enum reload_outcome outcome;
        uint64_t generation;             /* in force; 0: none */
        const char *text;                /* one line */
        const struct findings *findings; /* why it was refused, and warnings */
        const uint64_t *requests;        /* that this answers */
        size_t n_requests;
        bool is_quiet;                   /* only for the callers; not signalled on the bus */
};

/* The generation to make: the files of `number`, to undo `undoes`. */
struct control_undo {
        uint64_t number, undoes;
        struct origin by;
        uint64_t request;                /* to be named in the event; 0: none */
};

struct control_file {
        const char *path;
        const char *bytes;               /* once they are read, with a NUL after the last one */
        size_t n;
        int r;                           /* of reading: 0 or negative errno (-ENOENT: there is no such file) */
        const char *beside;              /* WRITE_FILE: if this is a link, write to the directory of its target; or NULL */
};

#define CONTROL_MAX_FILES 3

struct control_action {
        enum control_action_kind kind;
        union {
                const struct settings *settings;            /* OPEN_PORT, SIGNAL_OPENSM */
                const struct mad_stage *stage;              /* RUN_STAGE */
                const struct store_transaction *transaction; /* STORE */
                struct control_file files[CONTROL_MAX_FILES]; /* READ_FILES, up to the first without a path; WRITE_FILE [0] */
                const struct log_entry *entry;              /* LOG */
                const struct reload_end *end;               /* ANSWER */
                const struct control_undo *undo;            /* LOAD_UNDO */
                const struct lease_reply *lease;            /* ANSWER_LEASE */
                int r;                                      /* EXIT: 0 or negative errno */
        };
        int signal;                                         /* SIGNAL_OPENSM; 0: none is sent */
};
