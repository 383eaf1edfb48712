/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * control/: the daemon as a state machine, without its shell.
 *
 *     control_event(now, what happened) --> control_next_action(): what is to be done; control_due(): when to call again
 *
 * It decides what runs next and what becomes in force; it does no I/O, reads no clock, starts no thread and calls nobody.
 * Three shells carry its actions out and bring the answers: pkeyd on an sd_event loop, pkeyctl (one sweep, then the end), and
 * the simulation in virtual time. None of them has an order of stages of its own.
 *
 * A *sweep* is one run over the fabric. Its steps are the states:
 *
 *     idle --due--> opening port --> querying port --> discovering --> [choosing] --> surveying --> [confirming] --.
 *      ^                 |                                               ^                                         |
 *      |                 |`- known fabric, some ports to read again -----'                                         v
 *      |                 `-- known fabric, another policy ----------------------------------------------------> locking
 *      |                                                                                                           |
 *      |                      .---------------------- [reading conf] <-- [finding SM <--> taking over] <-----------'
 *      |                      v
 *      |                   decide --> [storing --> applying] --.           once for each phase
 *      |                      |-----> writing through OpenSM --+--> verify --> [mirroring] --.
 *      |                      `-----> (nothing to write) ------'                             |
 *      '-- a sweep ends here, or in any state with a problem: later again <------------------'
 *
 *     locking --> discovering: in pkeyctl, when a person was asked, or another process wrote
 *     any state --stop--> ended; from applying only when the write in flight was answered
 *
 * In brackets: what only some settings, or pkeyctl, need. *Decide* and *verify* take no time. Each state but idle waits for
 * one answer (see the table in control.c); whatever else happens is noted, and heard at the next decision:
 *
 *     a candidate   another policy or other settings were loaded. It becomes the generation in force when the planner accepts
 *                   it against the fabric, else it is dropped and what was in force stays. A reload ends an apply that runs,
 *                   between two writes, and a sweep that reads; one that is overdue three seconds after its begin.
 *     verbs events  a local port changed: its table is read again, or a sweep is due soon
 *     the time      of sweeps, retries, the lock, OpenSM, and of the verbs check beside all that
 *
 * What it owns: the generations, the snapshot of the fabric with what is known of its tables, the memory of used indexes, the
 * known endports, the watch, and everything of the sweep that runs. Shells borrow from it between two calls, or hold a
 * reference (generation_ref, snapshot_ref).
 *
 * Invariants: one sweep at a time, one answer outstanding in a sweep. Nothing is written but in the states applying and
 * writing through OpenSM, both under the lock, by the generation in force, and only what was stored as a possible write before.
 * Running out of memory ends a sweep, which is
 * tried again later.
 *
 * It refuses to know sockets, files, signals, D-Bus and systemd; what a MAD looks like; and whether time is real.
 */

#include "control/action.h"
#include "control/freezer.h"
#include "control/snapshot.h"
#include "control/stored_records.h"
#include "host/verbs_check.h"
#include "mad_engine/dispatcher.h"
#include "reconcile.h"

struct control;

/* --- what it is for ------------------------------------------------------------------------------------------------- */

enum control_goal {
        CONTROL_SERVE, /* sweep again and again, until it is stopped */
        CONTROL_READ,  /* discover, read tables, end */
        CONTROL_PLAN,  /* likewise, and plan */
        CONTROL_APPLY, /* likewise, and carry the plan out */
};

struct control_config {
        enum control_goal goal;
        bool choose_tables; /* but for CONTROL_SERVE: ask which tables to read; else all */
        bool confirm;       /* CONTROL_APPLY: a person is asked, and may take long */
        const char *program; /* CONTROL_SERVE: "pkeyd 0.1.0", for the log; static */
        struct findings *findings; /* all others: where those of the planner go; borrowed */
};

/* --- events --------------------------------------------------------------------------------------------------------- */

enum control_event_kind {
        /* notices: at any time */
        CONTROL_EVENT_START,         /* the first one */
        CONTROL_EVENT_DUE,           /* control_due has come, or may have */
        CONTROL_EVENT_CANDIDATE,     /* both files were loaded again, with or without success */
        CONTROL_EVENT_VERBS,
        CONTROL_EVENT_LOCAL_TABLES,
        CONTROL_EVENT_STOP,
        /* answers: each to one action */
        CONTROL_EVENT_PORT,
        CONTROL_EVENT_STAGE_ENDED,
        CONTROL_EVENT_TABLES_CHOSEN,
        CONTROL_EVENT_CONFIRMED,
        CONTROL_EVENT_LOCK,
        CONTROL_EVENT_STORED,
        CONTROL_EVENT_FILES_READ,
        CONTROL_EVENT_FILE_WRITTEN,
        CONTROL_EVENT_OPENSM_SIGNALLED,
        CONTROL_N_EVENTS,
};

/* What was remembered, and what the files say. Owned by control from then on, whatever becomes of it. */
struct control_start {
        struct remembered *remembered; /* taken by control, likewise */
        struct generation *in_force;   /* when pkeyd last ran; NULL: not known */
        struct generation *candidate;  /* NULL: the files were refused */
        const struct findings *findings;
};

struct control_candidate {
        struct generation *generation; /* owned by control from then on; NULL: refused */
        const struct findings *findings;
        uint64_t request;              /* who asked, to be answered; 0: nobody waits for it */
};

/* r: 0, -ENODEV: there is no such port; -ENETDOWN: its link is down; or what the system said. */
struct control_port {
        int r;
        char name[80];                 /* "mlx5_0 port 1" */
        struct guid guid;
        const struct guid *host_guids; /* of all InfiniBand ports of this host */
        size_t n_host_guids;
};

struct control_lock {
        int r;                         /* 0, -EWOULDBLOCK: another process has it; -EUCLEAN: it was not taken, and an empty store is
                                        * in place of one that was lost; or why there is no lock */
        int pid;                       /* whose it is; 0: not known */
        struct remembered *changed;    /* taken by control: another process stored something since; NULL: none did */
};

enum verbs_event_kind {
        VERBS_P_KEY_CHANGE,
        VERBS_LID_CHANGE,
        VERBS_SM_CHANGE,
        VERBS_CLIENT_REREGISTER,
        VERBS_PORT_ACTIVE,
        VERBS_PORT_ERROR,
        VERBS_DEVICE_FATAL, /* number is 0; the device is gone, or as good as gone */
};

struct verbs_event {
        enum verbs_event_kind kind;
        const char *device;
        struct guid port_guid; /* 0 if it is not known, or of a device */
        unsigned number;
};

struct control_event {
        enum control_event_kind kind;
        usec_t wall;                               /* CLOCK_REALTIME of this moment */
        union {
                struct control_start start;
                struct control_candidate candidate;
                struct verbs_event verbs;
                struct { const struct local_table *tables; size_t n; } local; /* LOCAL_TABLES */
                struct control_port port;
                struct { const uint32_t *ports; uint32_t n; } chosen; /* TABLES_CHOSEN; ports NULL: all. Copied */
                struct control_lock lock;
                struct control_file files[CONTROL_MAX_FILES]; /* FILES_READ: as asked for, with r, bytes and n */
                bool yes;                          /* CONFIRMED */
                int r;                             /* STAGE_ENDED, FILE_WRITTEN, STORED (-EUCLEAN: the store was lost) */
                struct { int r; const char *why; } opensm; /* OPENSM_SIGNALLED */
        };
};

/* --- the machine ---------------------------------------------------------------------------------------------------- */

/* Returns owned, or NULL when memory is out. */
struct control *control_new(const struct control_config *config);
struct control *control_free(struct control *c);
DEFINE_CLEANUP(struct control *, control_free)

/* Something happened at `now` (CLOCK_MONOTONIC). Returns 0, or -EPROTO: this is no answer that was waited for; nothing
 * changed then. */
int control_event(struct control *c, usec_t now, const struct control_event *event);
/* What is to be done; false: nothing now. */
bool control_next_action(struct control *c, struct control_action *ret);
/* When CONTROL_EVENT_DUE is due at the latest; USEC_INFINITY: not before something else happens. */
usec_t control_due(const struct control *c);

/* What every MAD of a port that was opened for control has to pass. */
struct mad_gate control_gate(struct control *c);

/* --- what it knows -------------------------------------------------------------------------------------------------- */

enum control_state {
        CONTROL_IDLE,
        CONTROL_OPENING_PORT,
        CONTROL_QUERYING_PORT,  /* PortInfo of the local port: its state, its LID, the master SM */
        CONTROL_DISCOVERING,
        CONTROL_CHOOSING,
        CONTROL_SURVEYING,
        CONTROL_CONFIRMING,
        CONTROL_LOCKING,
        CONTROL_FINDING_SM,     /* follow-sm: PortInfo once more, after all that the plan rests on was read */
        CONTROL_TAKING_OVER,    /* the other head node may still write */
        CONTROL_READING_CONF,   /* opensm.conf */
        CONTROL_STORING,        /* what the next phase of an apply may send */
        CONTROL_APPLYING,
        CONTROL_WRITING_OPENSM, /* see opensm_writer.h */
        CONTROL_MIRRORING,
        CONTROL_STORING_END,    /* what a sweep learned */
        CONTROL_ENDED,
        CONTROL_N_STATES,
};

/* How a sweep ended. */
enum sweep_result {
        SWEEP_DONE,    /* everything is as the policy says, or was reported to differ (audit, standby) */
        SWEEP_PARTIAL, /* some ports did not answer or refused, a base is held, or the mirror for OpenSM could not be written */
        SWEEP_REFUSED, /* no policy can be carried out on this fabric; nothing was written */
        SWEEP_WAITS,   /* the port does not work yet */
        SWEEP_STALE,   /* what was read is old by now: begin anew */
        SWEEP_STOPPED, /* the apply was ended, for a new policy or the end of the daemon */
        SWEEP_FAILED,  /* a problem of this host; was logged */
        SWEEP_N_RESULTS,
};

/* As the tables were read last. */
struct port_counts {
        uint32_t managed, right, differ, unreachable; /* frozen ports are neither right nor different */
        uint32_t silent; /* links that are up, and whose other end did not answer discovery */
};

/* Numbers since the start, for metrics. Times are CLOCK_REALTIME; 0: never. */
struct control_numbers {
        uint64_t sweeps[SWEEP_N_RESULTS];
        usec_t last_sweep;       /* that came to its end: the fabric was read, and what could be repaired was */
        usec_t last_success;     /* likewise, and every table was read, and as the policy says */
        usec_t last_apply;       /* all writes were confirmed */
        usec_t apply_duration, sweep_duration; /* of the last one, and of the last full one; 0: there was none */
        uint64_t n_plans;
        uint64_t n_writes, n_writes_failed;
        uint64_t n_refused_by_gate; /* a bug of pkeyd */
        uint64_t n_drifts;       /* tables that were right and then were not */
        bool looked;             /* ports were compared with the policy */
};

struct control_status {
        enum control_state state;
        const char *text;                    /* one line for people */
        bool ready;                          /* the first sweep has ended */
        bool stopping, waiting;              /* waiting: for the port, or for an SM */
        bool reload_pending;                 /* a reload has not ended yet */
        bool writing;                        /* the settings in force let this host write now */
        bool standby;                        /* the other head node writes */
        size_t n_file_errors;                /* of the files, or of the last candidate against the fabric */
        enum sweep_result last_result;
        struct generation *in_force;         /* NULL: none yet; referenced by control */
        struct generation *wanted;           /* the candidate, else what is in force */
        struct snapshot *snapshot;           /* NULL: none yet */
        const struct port_info *port_info;   /* of the local port, as it last answered; NULL: not yet */
        struct port_counts ports;
        const struct frozen_port *frozen;    /* endports */
        uint32_t n_frozen;
        size_t n_errors;                     /* of the policy in force on this fabric: they stop nothing but the ports they are
                                              * about */
        struct control_numbers numbers;
        const struct knowledge *knowledge;   /* what is known of each table */
        const struct known *known;           /* endports that were seen once */
        const struct held_list *held;        /* bases in which writes wait, as the last sweep that planned found; NULL: none
                                              * planned */
        uint64_t sm_changes;                 /* times that the SM changed or asked all clients to register again */
};

/* Valid until the next control_event. */
const struct control_status *control_get_status(const struct control *c);

/* What it is doing now: "discovering the fabric", "reading P_Key tables, 40 % done". */
void control_describe(const struct control *c, char *ret, size_t size);

/* What a goal other than CONTROL_SERVE came to; valid until control_free. Members are NULL where it did not come so far. */
struct control_results {
        int r;                               /* 0; -EBADMSG: refused, findings say why; or negative errno of `failed` */
        enum control_state failed;           /* the state in which r came up */
        struct subnet *subnet;
        struct observed *observed;
        const struct plan_options *options;
        const struct reconciled *decision;
        const struct apply *apply;
        const struct held_list *held;        /* of a plan: what would wait if all ports that were read answer; of an apply: what
                                              * waits */
        const struct verification *verification;
        bool stopped;                        /* the apply was ended early */
        uint64_t generation;                 /* that is in force now; 0: none is wholly */
        int lock_pid;                        /* of who has the lock; 0: not known */
};
const struct control_results *control_get_results(const struct control *c);
