/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The data of control, and functions that all of its files use. Private to control/. In the list of files in control.h, each file
 * may call those below it, not those above. */

#include "apply/apply.h"
#include "conditions/freezer.h"
#include "conditions/identity.h"
#include "control/control.h"
#include "control/schedule.h"
#include "discovery/discovery.h"
#include "gate/gate.h"
#include "host/port_key.h"
#include "host/sm_follow.h"
#include "host/verbs_check.h"
#include "opensm_writer/opensm_writer.h"
#include "watch/watch.h"

#define MAX_ACTIONS  32 /* caused by one event; log entries wait in the log */
#define MAX_REQUESTS 32 /* for the end of a reload */

/* A caller that waits for the end of a reload. */
struct reload_request {
        uint64_t id;        /* 0: it gets no answer, but the service manager waits */
        bool unchanged;     /* the files were the same as before: it ends with a full sweep that began later */
        uint64_t serial;    /* ascending */
};

struct reloads {
        struct reload_request pending[MAX_REQUESTS];
        size_t n_pending;
        uint64_t last_serial;
        struct findings findings; /* of the files and of the planner, for the answers; in an arena of their own */
};

/* The data of CONTROL_ANSWER. */
struct reload_answer {
        struct reload_end end;
        char text[CONTROL_TEXT_MAX];
        uint64_t requests[MAX_REQUESTS];
        struct findings findings; /* in an arena of their own */
};

/* See confirm.h. */
struct confirm {
        usec_t due, warn_at;          /* when the generation in force is undone, and announced to be; USEC_INFINITY: never */
        bool undoing;                 /* an undo is being loaded, or is the candidate */
        struct control_undo load;     /* of CONTROL_LOAD_UNDO */
        uint64_t request;             /* of the caller whose confirmation is not stored yet (c->sync.facts); 0: none */
        struct reload_answer answer;  /* of the CONTROL_ANSWER in the ring */
};

/* The facts of the generation in force:
 *
 *     stored --changed--> changed --put into a transaction--> storing --committed--> stored
 *                            ^                                   |
 *                            '---- changed again, or it failed --'
 */
enum facts_state {
        FACTS_STORED,
        FACTS_CHANGED,
        FACTS_STORING,
};

/* See store_sync.h. */
struct sync {
        enum facts_state facts;
        usec_t at;                    /* not earlier: between two sweeps */
        struct arena *arena;          /* of the transaction that is being committed; NULL: none */
        struct store_transaction transaction;
};

/* The data of CONTROL_ANSWER_LEASE. */
struct lease_refusal {
        struct lease_reply reply;
        struct arena *arena;
        struct findings findings;
};

/* What is kept of a full sweep that a reload interrupted, to know which ports did not answer it. */
struct interrupted {
        struct discovery *discovery;
        struct arena *arena;          /* of the survey; NULL: the survey had not begun */
        struct snapshot *snapshot;    /* that the survey read */
        struct survey *survey;
};

/* Of SWEEP_LEASE: the ports that it is about, as a fabric of their own. */
struct lease_part {
        uint32_t *ports, n;           /* indexes into the snapshot, ascending; of port i of the part */
        struct subnet *subnet;        /* NULL: this is no such sweep */
        struct observed *observed;
};

/* What the policy gives each port, kept from the last sweep for sweeps for leases (lease_sweep.h). */
struct kept_policy {
        struct arena *arena;          /* from which the knowledge borrows it; NULL: nothing is kept */
        struct policy_selection *selection; /* owned; for requests; NULL: not made yet */
        const struct snapshot *snapshot;
        uint64_t generation;
};

#define KEPT_POLICY_MAX ((size_t) 64 << 20) /* bytes; if what is kept grows larger, it is made anew */

/* The lock of a sweep. */
struct sweep_lock {
        bool held, has_waited, store_was_lost;
        usec_t retry_at;              /* in CONTROL_LOCKING; USEC_INFINITY: it is being tried */
        int r;                        /* why it is not held; 0: it is, or was not tried yet */
        char why[128];                /* "": strerror(r) says it */
};

/* One sweep. */
struct sweep {
        enum sweep_kind kind;
        usec_t began;
        uint64_t first_serial;        /* of the first request after the sweep began */
        struct arena *arena;          /* for data that lives as long as the sweep */
        struct m_keys *m_keys;        /* of the settings when the sweep began, which a reload may have replaced since */
        struct port_key port;         /* the port that the sweep works through */
        struct mad_stage stage;       /* the current one */
        struct sweep_lock lock;

        /* what is read */
        struct port_query query;
        struct discovery *discovery;
        struct snapshot *new_snapshot; /* until it takes the place of c->snapshot */
        struct snapshot *shown;       /* in pkeyctl: the snapshot that it replaced, for which a person confirmed the plan */
        struct observed *seen;        /* result of a survey of the known fabric */
        struct survey *survey;
        uint32_t *chosen;             /* tables to read; NULL: all */
        uint32_t n_chosen;
        bool surveyed;                /* tables were read in this sweep */
        bool is_outdated;             /* before another process changed them */
        const char *conf_path;        /* of opensm.conf, which was read; NULL: none was */
        struct opensm_conf conf;
        struct findings conf_findings; /* about `conf` */

        /* the decision */
        uint64_t decided_serial;      /* of the first request after it */
        struct generation *generation; /* by which the sweep decided; holds a reference */
        const struct policy *policy;  /* of it, with the leases */
        struct plan_options options;
        struct reconciled decision;
        const struct plan *confirmed; /* by a person; NULL: none */
        struct lease_part part;

        /* what is written */
        struct apply *apply;
        struct layout before;         /* tables that the apply is the first of its generation to write, not stored yet */
        struct sm_guard guard;
        usec_t apply_began;
        uint64_t n_late_before;       /* gate_n_late() when the apply began */
        bool apply_stopped;

        /* the end */
        bool ended;
        bool abandoned;               /* its stage will end with -ECANCELED */
        enum sweep_result result;
        bool only_waits;              /* of SWEEP_PARTIAL: writes are held, but nothing failed that a retry could repair */
};

struct control {
        struct control_config config;
        usec_t now, wall;
        enum control_state state;
        struct schedule schedule;
        struct sweep sweep;              /* while state is not IDLE or ENDED */
        bool started;                    /* the local port was opened, or is waited for */

        /* for the shell */
        struct control_status status;    /* control keeps some members only here; it sets the others after each event */
        char text[CONTROL_TEXT_MAX - 100], status_text[CONTROL_TEXT_MAX]; /* status_text adds that files were refused */
        struct control_results results;
        struct log *log;
        struct control_action actions[MAX_ACTIONS]; /* a ring */
        unsigned first_action, n_actions;
        struct reload_answer answer;     /* of the CONTROL_ANSWER in the ring */

        /* generations */
        struct generation *in_force, *candidate;
        uint64_t last_number;
        struct reloads reloads;
        struct confirm confirm;
        bool unannounced;                /* the generation in force is not in the journal yet */
        bool passed_over;                /* a candidate was replaced by the next one before a sweep tried it */

        /* leases */
        struct leases *leases;
        bool leases_taken;               /* from the store; pkeyd takes them once, because only it changes them */
        bool may_lack_leases;            /* no lock since a sweep that could not take it: the other head node may have made some */
        bool lease_sweep_asked;          /* for what leases need now */
        struct lease_reply lease_reply;  /* of the CONTROL_ANSWER_LEASE that was taken last */
        struct lease_refusal lease_refusal;
        usec_t next_stranger;            /* when the request of a stranger may be passed on again */
        struct kept_policy kept_policy;

        /* the store */
        struct index_memory *indexes;
        struct known known;
        struct pins pins;
        struct generation_history history;
        struct before_records before;
        struct sync sync;
        struct generation *unstored;     /* in force, but not in the store yet; referenced */
        struct generation *unstored_before; /* the same for the one before it */
        char boot[64];
        uint64_t not_loaded;             /* the generation in force by the shared store, if it could not be loaded; 0: it was */
        bool store_failed;               /* storing at the end of a sweep, which was logged */
        bool was_outdated;               /* so was the last sweep that took the lock */
        char follow_problem[128];        /* of a guest: why it could not read the store last; "": it could */

        /* this host */
        struct port_key port;            /* opened last */
        struct guid port_guid;
        char port_name[80];
        struct guid host_guids[SM_MAX_PORTS];
        size_t n_host_guids;
        struct port_info port_info;
        struct sm_follow sm;
        char sm_name[96];
        struct verbs_check *verbs;
        bool reading_local;              /* CONTROL_READ_LOCAL_TABLES is not answered yet */

        /* the fabric */
        struct snapshot *snapshot;
        struct knowledge *knowledge;
        bool knowledge_is_new;           /* it was loaded since the last discovery, so the tables of the snapshot are not in it */
        struct discovery_links *links;
        struct interrupted interrupted;
        bool discovery_failed;           /* the last discovery; it was logged */
        struct guid other_fabric;        /* the port through which the last discovery that did not fail found another fabric, which
                                          * was logged; 0: it found its own */
        usec_t discovered;               /* when the last successful discovery ended; 0: there was none */
        usec_t discovered_hold;          /* the absent_hold by which it judged which ports are absent */
        usec_t swept;                    /* when the last full sweep that was not stopped ended */

        /* writing and reporting */
        struct gate *gate;
        struct opensm_writer *writer;
        struct freezer *freezer;
        struct identity *identity;
        struct arena *held_arena;        /* of status.held */
        struct watch *watch;
        uint64_t watched_generation;     /* the generation with which tables were compared last; 0: none */
        uint64_t apply_failures;         /* see event_text_apply() */
        uint64_t standby_reported;       /* see event_text_standby() */
        uint64_t held_reported;          /* see event_text_held() */
};

/* --- actions and status ----------------------------------------------------------------------------------------------- */

/* Appends an action. */
void control_request(struct control *c, const struct control_action *action);
/* Enters a state that waits for the answer to this action. */
void control_await(struct control *c, enum control_state state, const struct control_action *action);
/* Answers the first n of a->requests; those of c->confirm.answer are quiet. The shell takes the answer before it calls again. */
void control_answer(struct control *c, struct reload_answer *a, enum reload_outcome outcome, const char *text, size_t n);
/* Sets the status line. */
void control_set_status(struct control *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* --- what is kept ----------------------------------------------------------------------------------------------------- */

/* The facts of the generation in force changed, and must be stored. */
void control_facts_changed(struct control *c);
/* The next sweep is none for leases only: what the policy gives each port must be computed again. */
void control_drop_kept_policy(struct control *c);

/* --- generations ------------------------------------------------------------------------------------------------------ */

/* The candidate, or without one the generation in force. */
struct generation *control_wanted(const struct control *c);
/* The pins by which this generation names nodes; NULL: it takes the names that they give themselves. */
const struct pins *control_pins(const struct control *c, const struct generation *g);

/* --- what this host may do ------------------------------------------------------------------------------------------- */

/* False: this is one sweep of pkeyctl. */
bool control_serves(const struct control *c);
/* This host is one of two head nodes, by the settings. */
bool control_is_in_pair(const struct control *c);
/* The same, and control serves: SM tracking decides whether it writes. */
bool control_follows_sm(const struct control *c);
/* By this generation this host may write, as far as SM tracking decides that. */
bool control_may_write(const struct control *c, const struct generation *g);
/* The same, and the generation is not in audit mode. */
bool control_writes(const struct control *c, const struct generation *g);
/* The rest of a sentence about a master SM beside which nothing is written, although the settings have mode: enforce. */
#define CONTROL_SM_UNEXPECTED "and pkeyd.yaml has neither writer: opensm, opensm.mirror nor beside_opensm"
/* Of two head nodes that share a store, the other one may be writing: what it stored counts. This one stores only under the lock,
 * when it is about to write, or does not know yet where the master SM is. */
bool control_is_guest(const struct control *c);
/* A guest that is not about to write: it leaves the lock to the other head node, and reads what that one stored. */
bool control_stands_by(const struct control *c);
