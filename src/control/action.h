/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What control asks its shell to do. Each action but the last six is answered by one event (control/control.h); the next
 * action of its kind comes only after that.
 *
 * Pointers are valid until the shell calls control again, with these exceptions: a stage, a transaction and the bytes of a file
 * are valid until the answer was given.
 */

#include "events/log.h"
#include "generation/generation.h"
#include "mad_engine/stage.h"
#include "store/store.h"

enum control_action_kind {
        CONTROL_OPEN_PORT,         /* find it and open it, or check it again          -> CONTROL_EVENT_PORT */
        CONTROL_RUN_STAGE,         /*                                                 -> CONTROL_EVENT_STAGE_ENDED */
        CONTROL_LOCK,              /* the fabric lock, without waiting                -> CONTROL_EVENT_LOCK */
        CONTROL_STORE,             /* commit a transaction                            -> CONTROL_EVENT_STORED */
        CONTROL_READ_LOCAL_TABLES, /* of this host's ports, through libibverbs        -> CONTROL_EVENT_LOCAL_TABLES */
        CONTROL_READ_FILES,        /*                                                 -> CONTROL_EVENT_FILES_READ */
        CONTROL_WRITE_FILE,        /* replace it at once, for others to read          -> CONTROL_EVENT_FILE_WRITTEN */
        CONTROL_SIGNAL_OPENSM,     /* or only check whether it runs                   -> CONTROL_EVENT_OPENSM_SIGNALLED */
        CONTROL_CHOOSE_TABLES,     /* pkeyctl: which tables of the snapshot to read   -> CONTROL_EVENT_TABLES_CHOSEN */
        CONTROL_CONFIRM,           /* pkeyctl: ask a person whether to apply the plan -> CONTROL_EVENT_CONFIRMED */
        CONTROL_ABANDON_STAGE,     /* it is not waited for: CONTROL_EVENT_STAGE_ENDED comes with -ECANCELED */
        CONTROL_CLOSE_PORT,
        CONTROL_UNLOCK,
        CONTROL_LOG,
        CONTROL_ANSWER,            /* to those who asked for a reload, and to everybody */
        CONTROL_EXIT,              /* the last one */
};
#define CONTROL_N_ACTIONS (CONTROL_EXIT + 1)

/* How a reload ended. */
enum reload_outcome {
        RELOAD_CARRIED_OUT, /* in force; every table was written and read as the policy says (audit: only compared) */
        RELOAD_UNCHANGED,   /* both files are as they were; the fabric was swept */
        RELOAD_PARTIAL,     /* in force, but some ports or devices did not answer, or refused; they are tried again */
        RELOAD_WAITS,       /* the files are good, but the fabric cannot be reached yet */
        RELOAD_REFUSED,     /* what was in force stays in force */
};

/* With its NUL, a line of the status or of an answer: the longest names OpenSM's file, a path of 4095 bytes, four times. */
#define CONTROL_TEXT_MAX (18u << 10)

struct reload_end {
        enum reload_outcome outcome;
        uint64_t generation;             /* in force; 0: none */
        const char *text;                /* one line */
        const struct findings *findings; /* why it was refused, or what else is worth knowing */
        const uint64_t *requests;        /* those that this answers */
        size_t n_requests;
};

struct control_file {
        const char *path;
        const char *bytes;
        size_t n;
        int r;                           /* of one that was read: 0 or negative errno (-ENOENT: there is none) */
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
                int r;                                      /* EXIT: 0 or negative errno */
        };
        int signal;                                         /* SIGNAL_OPENSM; 0: none is sent */
};
