/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * pkeyd/: the daemon.
 *
 *     main         options, life cycle
 *     daemon       event sources: signals and one timer -> which pass runs next
 *     pass         one pass over the fabric: discover -> survey -> reconcile -> apply -> verify
 *     generation   policy and settings as both files were at one moment
 *     picture      the fabric as it is known
 *     head         one of a pair of head nodes: who writes
 *     kernel       this host's own ports through libibverbs: second witness, and events
 *     monitor      violations: counters and notices -> book -> journal
 *     opensm_writer OpenSM's partition file: phase by phase, or a mirror of the policy
 *     state        what outlives a run
 *     metrics_file numbers for Prometheus
 *     bus          the same daemon on D-Bus: its state, its reload, the violations it saw
 *     say          results of stages -> journal entries
 *     journal      the only place that logs; notify: the only place that talks to the service manager
 *
 * Everything happens on one sd_event loop. At most one pass runs; when none does, a timer waits for the next one.
 * Signals never act on the fabric themselves: SIGHUP puts a candidate generation in place, ends an apply that is
 * running, and makes a pass due; the pass takes the candidate when it decides. A candidate becomes the generation in
 * force when the planner accepts it against the fabric, else it is dropped and what was in force stays.
 *
 * Only main.c ends the process. Running out of memory ends a pass, which is tried again later.
 */

#include <systemd/sd-event.h>

#include "pkeyd/generation.h"
#include "pkeyd/head.h"
#include "pkeyd/journal.h"
#include "pkeyd/picture.h"
#include "pkeyd/state.h"
#include "pkeyd/violation_list.h"
#include "shell/fabric.h"
#include "watch/watch.h"

struct bus;
struct kernel;
struct monitor;
struct metrics_file;
struct opensm_writer;
struct pass;

enum pass_kind {
        PASS_FULL,  /* discover, and read every table */
        PASS_KNOWN, /* the fabric as it is known: a new policy is carried out at once; apply reads first */
        PASS_RETRY, /* only ports that failed are read again */
};

enum pass_result {
        PASS_DONE,    /* everything is as the policy says, or was said to differ (audit) */
        PASS_PARTIAL, /* some ports did not answer or refused */
        PASS_REFUSED, /* no policy can be carried out on this fabric; nothing was written */
        PASS_WAIT,    /* the port cannot be worked through yet */
        PASS_STALE,   /* another process wrote meanwhile; what was read is old */
        PASS_ENDED,   /* the apply was ended for a new policy or the end of the daemon */
        PASS_ERROR,   /* of mechanism; was logged */
};

/* How a reload ended. */
enum reload_outcome {
        RELOAD_CARRIED_OUT, /* in force; every table was written and read as the policy says (audit: only compared) */
        RELOAD_UNCHANGED,   /* both files are as they were; the fabric was looked at */
        RELOAD_PARTIAL,     /* in force, but some ports did not answer or refused; they are tried again */
        RELOAD_WAITS,       /* the files are good, but the fabric cannot be reached yet */
        RELOAD_REFUSED,     /* what was in force stays in force */
};

struct reload_end {
        enum reload_outcome outcome;
        uint64_t generation;             /* in force; 0: none */
        char text[256];                  /* one line */
        const struct findings *findings; /* why it was refused, borrowed; NULL: it was not, or not by them */
};

/* As the last look at the tables found them. */
struct port_counts {
        uint32_t managed, right, differ, unreachable;
};

/* What the port was opened with; a change of one of them makes another fabric object necessary. */
struct fabric_key {
        char ca[CA_NAME_SIZE];
        unsigned port, window;
        usec_t timeout;
};

struct daemon {
        const struct options *options;
        struct journal journal;
        sd_event *event;
        struct state state;

        struct generation *generation; /* in force; NULL: none yet */
        struct generation *candidate;  /* loaded, not accepted yet; NULL: none */

        uint64_t last_number;          /* of the generations that were ever in force */
        size_t n_file_errors;          /* of the files, or of the last candidate against the fabric */

        struct fabric *fabric;         /* NULL: no port */
        struct fabric_key fabric_key;
        struct picture *picture;       /* NULL: none yet */
        struct watch *watch;
        struct head head;              /* role: follow-sm */
        struct kernel *kernel;         /* what it says of the ports of this host */
        struct monitor *monitor;       /* violations */
        struct metrics_file *metrics;
        struct opensm_writer *opensm_writer;
        uint64_t watched_generation;   /* by which tables were judged last; 0: not yet */
        uint64_t failures;             /* digest of what the last apply could not do */

        struct pass *pass;             /* running; NULL: none */
        sd_event_source *due;          /* timer of the next pass */
        sd_event_source *patience;     /* asks the service manager for more time */
        usec_t sweep_at, retry_at;
        usec_t event_sweep_at;         /* the last one that was due to an event */
        usec_t retry_delay, trouble_delay;
        bool sweep_soon;               /* after a reload */
        bool reload_due;               /* a candidate waits for a pass on the known fabric */
        bool ready, stopping;
        bool reloading;                /* the service manager waits for the end of a reload */
        bool reload_pending;           /* a reload has not ended yet */
        bool reload_unchanged;         /* and both files were as before */
        bool waiting;                  /* for the port or the SM */
        bool discovery_failed;         /* was said */
        char status[256];

        struct bus *bus;
        struct violation_list violations; /* what the bus shows of them */
        struct port_counts ports;
        enum pass_result last_result;
        usec_t last_success;           /* CLOCK_REALTIME; 0: none yet */
};

/* Loads the files. Returns 0, or a negative errno that was logged. SIGHUP, SIGTERM and SIGINT must be blocked. */
int daemon_init(struct daemon *d, const struct options *options);
/* Runs until it is told to stop. Returns 0 or negative errno; no port to work through was logged. */
int daemon_run(struct daemon *d);
/* Accepts what daemon_init left behind, whatever it returned. */
void daemon_done(struct daemon *d);

/* What shall be: the candidate, else what is in force. */
struct generation *daemon_wanted(struct daemon *d);

/* For pass.c: the generation to decide by on the port that the pass works through (NULL: none), and what became of the
 * candidate. */
struct generation *daemon_to_decide(struct daemon *d);
void daemon_accept(struct daemon *d);
void daemon_refuse(struct daemon *d, const struct findings *findings);

/* For pass.c: nothing can be in force on this fabric, for these reasons. */
void daemon_cannot(struct daemon *d, const struct findings *findings);

/* Loads both files again and puts them in place as the next generation, as SIGHUP does. Returns 0: under way, the bus is told
 * when it has ended; -EBADMSG: refused at once, then *ret_end says how, borrowing findings, and has been told. */
int daemon_reload(struct daemon *d, struct findings *findings, struct reload_end *ret_end);

/* For pass.c: what the port is good for. */
void daemon_port_waits(struct daemon *d, const char *why);
void daemon_port_works(struct daemon *d, struct lid lid);

/* For kernel.c: a port of the picture is to be read at `at`, by a short pass / the fabric is to be looked at soon. */
void daemon_look_at_port(struct daemon *d, struct guid port_guid, usec_t at);
void daemon_look_soon(struct daemon *d);
/* For kernel.c: the master SM may be another one. An apply that follows it ends, to ask where it is. */
void daemon_sm_changed(struct daemon *d);

/* For pass.c: the pass is over; it is freed. Never starts another one from in here. */
void daemon_pass_ended(struct daemon *d, enum pass_result result);

/* The status line for the service manager. */
void daemon_set_status(struct daemon *d, const char *format, ...) __attribute__((format(printf, 2, 3)));
