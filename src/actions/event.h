/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What happened. Some events may come at any time; the others each answer one action (action.h). */

#include "actions/action.h"
#include "host/verbs_check.h"
#include "records/stored_records.h"

enum control_event_kind {
        /* at any time */
        CONTROL_EVENT_START,         /* the first one */
        CONTROL_EVENT_DUE,           /* the time of control_due() has come, or may have come */
        CONTROL_EVENT_CANDIDATE,     /* both files were loaded again, with or without success */
        CONTROL_EVENT_CONFIRM,       /* a caller confirms the change that waits */
        CONTROL_EVENT_UNDO,          /* a caller undoes the generation in force */
        CONTROL_EVENT_LEASE,         /* a caller creates, renews, edits or releases a lease */
        CONTROL_EVENT_STORE_CHANGED, /* another head node has stored something */
        CONTROL_EVENT_VERBS,         /* the kernel reported a change of a local port or device */
        CONTROL_EVENT_LOCAL_TABLES,  /* answers CONTROL_READ_LOCAL_TABLES, for which no state waits */
        CONTROL_EVENT_STOP,
        /* answers, which states wait for */
        CONTROL_EVENT_PORT,
        CONTROL_EVENT_STAGE_ENDED,
        CONTROL_EVENT_TABLES_CHOSEN,
        CONTROL_EVENT_PERSON_ANSWERED,
        CONTROL_EVENT_FOLLOWED,
        CONTROL_EVENT_LOCK,
        CONTROL_EVENT_STORED,
        CONTROL_EVENT_FILES_READ,
        CONTROL_EVENT_FILE_WRITTEN,
        CONTROL_EVENT_OPENSM_SIGNALLED,
        CONTROL_N_EVENTS,
};

/* What the store has, and what the files have. Control takes ownership of all of it, also after an error. */
struct control_start {
        struct remembered *remembered;
        struct generation *in_force;   /* when pkeyd last ran; NULL: not known */
        struct generation *candidate;  /* NULL: the files were refused */
        const struct findings *findings;
};

/* Of an undo (CONTROL_LOAD_UNDO), facts.undoes and facts.restores of the generation are set. */
struct control_candidate {
        struct generation *generation; /* taken by control; NULL: the files were refused, or an undo could not be loaded */
        const struct findings *findings;
        bool is_undo;
        uint64_t request;              /* named in the answer; 0: no caller waits for one */
};

/* r: 0, -ENODEV: there is no such port; -ENETDOWN: its link is down; or the error of the system. */
struct control_port {
        int r;
        char name[80];                 /* "mlx5_0 port 1" */
        struct guid guid;
        const struct guid *host_guids; /* of all InfiniBand ports of this host */
        size_t n_host_guids;
};

struct control_lock {
        int r;                         /* 0, -EWOULDBLOCK: another process holds the lock; -EUCLEAN: it was not taken, and an empty
                                        * store is in place of one that was lost; or the error of locking */
        const char *why;               /* with another error: what it means here; NULL: strerror() says it */
        const char *holder;            /* with -EWOULDBLOCK: "process 4711", "pkeyd on head1 (process 4711)" */
        struct remembered *changed;    /* taken by control: another process stored something since; NULL: none did */
        bool by_other_head;            /* it was the other head node, perhaps before a pkeyctl of this one */
        struct generation *in_force;   /* taken by control: if head nodes share the store, the generation in force of `changed`;
                                        * NULL: it has none, or it cannot be loaded */
};

enum verbs_event_kind {
        VERBS_P_KEY_CHANGE,
        VERBS_LID_CHANGE,
        VERBS_SM_CHANGE,
        VERBS_CLIENT_REREGISTER,
        VERBS_PORT_ACTIVE,
        VERBS_PORT_ERROR,
        VERBS_DEVICE_FATAL, /* number is 0; the device failed or was removed */
};

struct verbs_event {
        enum verbs_event_kind kind;
        const char *device;
        struct guid port_guid; /* 0: not known, or the event is about the device */
        unsigned number;
};

struct control_event {
        enum control_event_kind kind;
        usec_t wall;                               /* CLOCK_REALTIME of this moment */
        union {
                struct control_start start;
                struct control_candidate candidate;
                struct {
                        struct origin by;
                        uint64_t request;    /* as of a candidate */
                        uint64_t generation; /* to undo, refused unless it is in force; 0: the one in force */
                } asked;                                   /* CONFIRM, UNDO */
                struct lease_request lease;
                struct verbs_event verbs;
                struct { const struct local_table *tables; size_t n; } local; /* LOCAL_TABLES */
                struct control_port port;
                struct { const uint32_t *ports; uint32_t n; } chosen; /* TABLES_CHOSEN; ports NULL: all. Copied */
                struct control_lock lock;                  /* LOCK, FOLLOWED */
                struct control_file files[CONTROL_MAX_FILES]; /* FILES_READ: those of the action, with r, bytes and n */
                bool yes;                          /* PERSON_ANSWERED */
                int r;                             /* STAGE_ENDED, FILE_WRITTEN, STORED (-EUCLEAN: the store was lost) */
                struct { int r; const char *why; } opensm; /* OPENSM_SIGNALLED */
        };
};
