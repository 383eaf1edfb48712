/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * control/: the daemon as a state machine, without its shell.
 *
 *     control_event(now, event) --> control_next_action(): the next action; control_due(): when to call again
 *
 * Control decides what runs next and which policy comes into force. It does no I/O, reads no clock and starts no thread; it calls
 * its shell only for the state of the lock (struct control_config). Three shells carry out its actions, and answer with events:
 * pkeyd on an sd_event loop (pkeyd/daemon.c), pkeyctl for one sweep (session/session.c), and the simulation in virtual time
 * (tests/fabsim/process.c). None of them has an order of stages of its own.
 *
 * A *sweep* is one run over the fabric, or over a part of it (enum sweep_kind in schedule.h). Its steps are the states:
 *
 *     idle --due--> [following] --> opening port --> [querying port] --> discovering --> [choosing] --> surveying --.
 *      ^                                 |                                                 ^                        |
 *      |                                 |`- known fabric, some ports to read again, ------'                        |
 *      |                                 |   or OpenSM writes                                                       v
 *      |                                 `-- known fabric, another policy or leases, and pkeyd writes ---------> locking
 *      |                                                                                                            |
 *      |                      .---------------------- [reading conf] <-- [finding SM <--> taking over] <------------'
 *      |                      v
 *      |                   decide --> [storing --> applying] --.           once for each phase
 *      |                      |-----> writing through OpenSM --+--> verify --> [mirroring] --> [storing end] --.
 *      |                      `-----> (nothing to write) ------'                                               |
 *      '-- a sweep ends here, or in any state with a problem: later again <------------------------------------'
 *
 *     surveying --> decide --> confirming --> locking --> discovering: in pkeyctl, if a person must confirm the plan: the fabric is
 *                              read and planned again under the lock; the same happens if another process wrote
 *     idle --> locking facts --> storing facts --> idle: between two sweeps
 *     idle --> following --> idle: the other head node stored something
 *     any state --stop--> ended; from applying only after the write in flight was answered
 *
 * States in brackets are for some settings, or pkeyctl, only. *Decide* and *verify* take no time. Each state but idle waits for
 * one answer (see the table in control.c), or for a time. Other events may come in any state:
 *
 *     a candidate   takes effect at the next decision. It ends an apply between two writes, and a sweep while that reads; a sweep
 *                   that is overdue only three seconds after its begin
 *     leases        the same, but they end no apply
 *     confirm, undo of the generation in force, by a person
 *     verbs events  a local port changed: the verbs check reads its table again between two sweeps, or a sweep is due soon
 *     the store     of a guest: another process changed it; it is read between two sweeps
 *     time          of sweeps, retries, the lock, OpenSM, the verbs check, leases, and changes that wait to be confirmed
 *
 * Control owns the generations, the snapshot of the fabric, the knowledge of its tables, the memory of used indexes, the known
 * endports, the pins, the leases, the watch, and all data of the current sweep. Shells borrow from it between two calls, or hold a
 * reference (generation_ref, snapshot_ref).
 *
 * Invariants: one sweep at a time, one answer outstanding in a sweep. Tables are written only in the states applying and writing
 * through OpenSM, under the lock, by the generation in force (in pkeyctl by the one that it brings into force), and only after each
 * possible write was stored. Running out of memory ends a sweep, which is tried again later.
 *
 * Where each behavior is:
 *
 *     control.c           which function handles which event in which state; when a sweep begins; what follows its end; when a
 *                         reload interrupts a sweep that reads
 *     sweep.c             the port, discovery, the survey: what was read becomes the snapshot, and a reason to sweep again (stale)
 *     sweep_lock.c        may this host write now: the lock, SM tracking, take-over; did another process write meanwhile
 *     sweep_decide.c      the daemon's decision: opensm.conf, then by the candidate, or by the generation in force
 *     sweep_once.c        the decision in pkeyctl, and whether a person agrees
 *     sweep_plan.c        the plan by one generation: which errors refuse a candidate, names that are bound, audit mode beside a
 *                         master SM, what the knowledge takes for the policy
 *     sweep_write.c       drift and differences; apply, phase by phase; OpenSM's file; how a sweep ends; the status line
 *     sweep_steps.c       what several of these steps do: begin a stage, store, fail, end; which bases are held
 *     reload.c            a candidate: another policy, other settings, or an older generation, to undo one. If the planner accepts
 *                         it for the fabric, it comes into force; else it is dropped. Callers that wait for a reload
 *     leasing.c           requests for leases, and when they end; a guest passes them on to the other head node
 *     lease_sweep.c       sweeps for leases, on a part of the fabric
 *     store_sync.c        the store: what must be stored, what another process has stored since, the facts and leases that are
 *                         stored between two sweeps
 *     confirm.c           changes that wait to be confirmed, and undo
 *     backoff.h           how long to wait before the next try
 *     schedule.c          when the next sweep is due, of which kind, and how long after a failure
 *     control_internal.c  actions; what this host may do: as a guest, on standby, as the writer
 *
 * Control knows nothing about sockets, files, signals, D-Bus, systemd and the bytes of a MAD, nor whether time is real.
 */

#include "actions/actions.h"
#include "conditions/freezer.h"
#include "conditions/identity.h"
#include "mad_engine/dispatcher.h"
#include "reconcile.h"
#include "records/stored_records.h"

struct control;

/* --- goals ---------------------------------------------------------------------------------------------------------- */

enum control_goal {
        CONTROL_SERVE, /* sweep again and again, until it is stopped */
        CONTROL_READ,  /* discover, read tables, end */
        CONTROL_PLAN,  /* the same, and plan */
        CONTROL_APPLY, /* the same, and carry out the plan */
};

struct control_config {
        enum control_goal goal;
        bool choose_tables; /* not for CONTROL_SERVE: the shell chooses the tables to read; else all are read */
        bool confirm;       /* CONTROL_APPLY: a person confirms the plan, which may take long */
        const char *fabric;  /* of several fabrics of this host; NULL: it has one; borrowed */
        const char *program; /* CONTROL_SERVE: "pkeyd 0.2.0", for the log; static */
        bool shares_store;   /* with another head node, which writes while the master SM is there */
        bool (*holds_lock)(void *userdata); /* whether the fabric lock is held at this moment: called directly before each Set */
        bool (*is_outdated)(void *userdata); /* whether another process may have stored leases since the last load: called before
                                              * a request is answered by what is in memory. NULL: none does */
        void *store_userdata; /* of these two */
        struct findings *findings; /* all other goals: gets the findings of the planner; borrowed */
};

/* --- the machine ---------------------------------------------------------------------------------------------------- */

/* Returns owned, or NULL when out of memory. */
struct control *control_new(const struct control_config *config);
struct control *control_free(struct control *c);
DEFINE_CLEANUP(struct control *, control_free)

/* An event at `now` (CLOCK_MONOTONIC). Returns 0, or -EPROTO: control does not wait for this answer; then nothing changed. */
int control_event(struct control *c, usec_t now, const struct control_event *event);
/* Takes the next action; false: there is none now. */
bool control_next_action(struct control *c, struct control_action *ret);
/* When to give CONTROL_EVENT_DUE at the latest; USEC_INFINITY: not before another event. */
usec_t control_due(const struct control *c);

/* The gate that every MAD of a port opened for control must pass. */
struct mad_gate control_gate(struct control *c);

/* --- state and status ----------------------------------------------------------------------------------------------- */

enum control_state {
        CONTROL_IDLE,
        CONTROL_FOLLOWING,      /* as a guest: what the other head node has stored */
        CONTROL_OPENING_PORT,
        CONTROL_QUERYING_PORT,  /* PortInfo of the local port: its state, its LID, the master SM */
        CONTROL_DISCOVERING,
        CONTROL_CHOOSING,
        CONTROL_SURVEYING,
        CONTROL_CONFIRMING,
        CONTROL_LOCKING,
        CONTROL_FINDING_SM,     /* follow-sm: PortInfo once more, after everything that the plan depends on was read */
        CONTROL_TAKING_OVER,    /* the other head node may still write */
        CONTROL_READING_CONF,   /* opensm.conf */
        CONTROL_STORING,        /* the writes that the next phase of an apply may send */
        CONTROL_APPLYING,
        CONTROL_WRITING_OPENSM, /* see opensm_writer/opensm_writer.h */
        CONTROL_MIRRORING,
        CONTROL_STORING_END,    /* what the sweep found out */
        CONTROL_LOCKING_FACTS,  /* between two sweeps: see store_sync.h */
        CONTROL_STORING_FACTS,
        CONTROL_ENDED,
        CONTROL_N_STATES,
};

/* How a sweep ended. */
enum sweep_result {
        SWEEP_DONE,    /* all tables match the policy, or the differences were reported (audit, standby) */
        SWEEP_PARTIAL, /* some ports did not answer or refused, a base is held, or the mirror for OpenSM could not be written */
        SWEEP_REFUSED, /* no policy can be carried out on this fabric; nothing was written */
        SWEEP_WAITS,   /* the local port does not work yet */
        SWEEP_STALE,   /* the snapshot is out of date: another sweep follows at once */
        SWEEP_STOPPED, /* ended early, for a new policy or the end of the daemon */
        SWEEP_FAILED,  /* a problem of this host, which was logged */
        SWEEP_N_RESULTS,
};

/* Ports by their tables as they were read last. */
struct port_counts {
        uint32_t managed, right, differ, unreachable; /* `right` and `differ` are without frozen ports */
        uint32_t silent; /* links that are up, and whose other end did not answer discovery */
};

/* Numbers since the start, for metrics. Times are CLOCK_REALTIME; 0: never. */
struct control_numbers {
        uint64_t sweeps[SWEEP_N_RESULTS];
        usec_t last_sweep;       /* of the last SWEEP_DONE or SWEEP_PARTIAL */
        usec_t last_success;     /* of the last SWEEP_DONE after which every table was read and matched the policy */
        usec_t last_apply;       /* all writes were confirmed */
        usec_t apply_duration, sweep_duration; /* of the last one, and of the last full one; 0: there was none */
        uint64_t n_plans;
        uint64_t n_writes, n_writes_failed;
        uint64_t n_refused_by_gate; /* a table changed at that moment, or a bug of pkeyd */
        uint64_t n_drifts;       /* tables that were right and then were not */
        bool compared;           /* tables were compared with the policy at least once */
};

struct control_status {
        enum control_state state;
        const char *text;                    /* one line for people */
        bool ready;                          /* a first sweep has ended */
        bool stopping, waiting;              /* waiting: for the port, or for an SM */
        bool reload_pending;                 /* a reload has not ended yet */
        bool writing;                        /* this host writes now, by the settings in force */
        bool standby;                        /* the other head node writes */
        bool guest;                          /* the same, and it shares the store: it makes leases, too */
        bool not_loaded;                     /* nothing is written, because the generation in force by the shared store could not be
                                              * loaded: the next answer about the lock or the store has it again */
        size_t n_file_errors;                /* of the files, or of the last candidate against the fabric */
        enum sweep_result last_result;
        struct generation *in_force;         /* NULL: none yet; referenced by control */
        struct generation *wanted;           /* the candidate, else what is in force */
        struct snapshot *snapshot;           /* NULL: none yet */
        const struct port_info *port_info;   /* of the local port, as it last answered; NULL: not yet */
        struct port_counts ports;
        const struct frozen_port *frozen;    /* endports */
        uint32_t n_frozen;
        const struct identity_claim *claims; /* nodes that claim a name */
        uint32_t n_claims;
        size_t n_errors;                     /* of the policy in force on this fabric: each freezes the ports that it is about */
        struct control_numbers numbers;
        const struct knowledge *knowledge;   /* what is known of each table */
        const struct known *known;           /* endports that were seen once */
        const struct pins *pins;             /* the names that count for the policy in force, in pkeyctl for that of the files;
                                              * NULL: those that nodes give themselves */
        const struct leases *leases;
        uint64_t lease_changes;              /* how often a plan was made with other leases, or others were taken from the store */
        const struct held_list *held;        /* of the last sweep with a plan; NULL: there was none */
        uint64_t sm_changes;                 /* events: the SM changed, or asked all clients to register again */
};

/* Valid until the next control_event. */
const struct control_status *control_get_status(const struct control *c);

/* The current activity: "discovering the fabric", "reading P_Key tables, 40 % done". */
void control_describe(const struct control *c, char *ret, size_t size);

/* The results of a goal other than CONTROL_SERVE; valid until control_free. Members are NULL if it ended before. */
struct control_results {
        int r;                               /* 0; -EBADMSG: refused, findings say why; or negative errno of `failed` */
        enum control_state failed;           /* the state in which it ended with r */
        struct subnet *subnet;
        struct observed *observed;
        const struct plan_options *options;
        const struct reconciled *decision;
        const struct apply *apply;
        const struct held_list *held;        /* of a plan: bases that would be held if all ports that were read answer; of an
                                              * apply: bases that are held */
        const struct verification *verification;
        bool stopped;                        /* the apply was ended early */
        uint64_t generation;                 /* in force now; 0: the policy was not carried out completely */
        char lock_holder[LOCK_HOLDER_SIZE];  /* who holds the lock, if that was the reason; else "" */
};
const struct control_results *control_get_results(const struct control *c);
