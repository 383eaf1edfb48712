/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The inside of control: of no interest outside of this folder.
 *
 *     control.c           events: what is noted, which answer goes where, how a sweep that ended is followed by the next
 *     sweep.c             the first steps of a sweep: the port, discovery, the tables; and what is learned from them
 *     sweep_decide.c      lock, who writes, plan: by which generation, and whether a person agrees
 *     sweep_write.c       apply, or through OpenSM; compare and report; the end
 *     sweep_steps.c       what the steps share
 *     reload.c            candidates, and those who wait for the end of a reload
 *     freezer.c           frozen ports from one sweep to the next
 *     schedule.c          when the next sweep is due
 *     control_internal.c  what all of these need
 *
 * Each of them may call those below it, never those above.
 */

#include "apply/apply.h"
#include "control/control.h"
#include "control/freezer.h"
#include "control/opensm_writer.h"
#include "control/schedule.h"
#include "discovery/discovery.h"
#include "gate/gate.h"
#include "host/sm_follow.h"
#include "watch/watch.h"

#define MAX_ACTIONS  32 /* that one event can cause; log entries stand in the log */
#define MAX_REQUESTS 32 /* of reloads that are waited for */
#define MAX_CA_NAME  64

/* Which port the settings want; ca "" and number 0: any. */
struct port_key {
        char ca[MAX_CA_NAME];
        unsigned number;
};

/* Who waits for the end of a reload. */
struct reload_request {
        uint64_t id;        /* 0: nobody is to be answered, but the service manager waits */
        bool unchanged;     /* the files were as before: only a full sweep that began later ends it */
        uint64_t serial;    /* they count up */
};

struct reloads {
        struct reload_request pending[MAX_REQUESTS];
        size_t n_pending;
        uint64_t last_serial;
        struct findings findings; /* of the files, and of the planner, for those who wait; in an arena of their own */
};

/* What is being answered; the action points at it. */
struct reload_answer {
        struct reload_end end;
        char text[CONTROL_TEXT_MAX];
        uint64_t requests[MAX_REQUESTS];
        struct findings findings; /* in an arena of their own */
};

/* Of the last sweep of the whole fabric, if a reload interrupted it: whom it asked in vain. Nothing else of it counts. */
struct interrupted {
        struct discovery *discovery;
        struct arena *arena;          /* of the survey; NULL: it did not come to that */
        struct snapshot *snapshot;    /* that it read */
        struct survey *survey;
};

/* One sweep. */
struct sweep {
        enum sweep_kind kind;
        usec_t began;
        uint64_t first_serial;        /* of requests that came after it began */
        uint64_t decided_serial;      /* ... and after it decided */
        struct arena *arena;          /* of all that lives no longer than the sweep */
        struct m_keys *m_keys;        /* of what was wanted when it began; a reload may put others in force meanwhile */
        struct port_key port;         /* that it works through */

        struct mad_stage stage;       /* the one that runs */
        struct port_query query;
        struct discovery *discovery;
        struct snapshot *new_snapshot; /* until it takes the place of c->snapshot */
        struct snapshot *shown;       /* in whose place it came, in pkeyctl */
        struct observed *seen;        /* what a survey of a known fabric reads */
        struct survey *survey;
        uint32_t *chosen;             /* tables to read; NULL: all */
        uint32_t n_chosen;
        bool surveyed;                /* tables were read in this sweep */
        usec_t lock_at;               /* when the lock is tried again; USEC_INFINITY: it is being tried */
        bool locked, waited_for_lock, store_was_lost;
        int lock_r;                   /* why it is not locked; 0: it was not tried */
        const struct plan *confirmed; /* by a person; NULL: none was */

        struct generation *generation; /* referenced: what it decided by */
        struct plan_options options;
        struct reconciled decision;
        struct opensm_conf conf;
        struct findings conf_findings; /* what is wrong with it */
        struct apply *apply;
        struct sm_guard guard;
        usec_t apply_began, sm_seen_at;
        bool apply_stopped;
        struct arena *storing;        /* of the transaction that is committed */
        struct store_transaction transaction;

        bool ended;
        bool abandoned;               /* its stage ends with -ECANCELED */
        enum sweep_result result;
        bool only_waits;              /* of SWEEP_PARTIAL: nothing failed that could be tried again sooner than at the next sweep */
};

struct control {
        struct control_config config;
        usec_t now, wall;
        enum control_state state;
        struct control_status status;    /* some of it is kept here only, the rest is filled in after each event */
        char text[CONTROL_TEXT_MAX - 100], status_text[CONTROL_TEXT_MAX]; /* which has room for what files were refused */
        struct control_results results;

        struct log *log;
        struct control_action actions[MAX_ACTIONS]; /* a ring */
        unsigned first_action, n_actions;
        struct reload_answer answer;     /* of the action in the ring */

        struct generation *in_force, *candidate;
        uint64_t last_number;
        struct reloads reloads;

        struct index_memory *indexes;
        struct known known;
        struct generation_history history;
        struct generation *unstored;     /* it came into force, and is not in the store yet; referenced */
        bool unannounced;                /* it came into force, and the journal does not say so yet */
        char boot[64];
        bool store_failed;               /* was logged */

        struct port_key port;            /* that was opened last */
        struct guid port_guid;
        char port_name[80];
        struct guid host_guids[SM_MAX_PORTS];
        size_t n_host_guids;
        struct port_info port_info;

        struct snapshot *snapshot;
        struct knowledge *knowledge;
        struct freezer *freezer;
        struct gate *gate;
        struct arena *held_arena;        /* of status.held */
        struct discovery_links *links;
        struct watch *watch;
        uint64_t watched_generation;     /* by which tables were judged last; 0: not yet */
        uint64_t apply_failures;         /* digest of what the last apply could not do */
        struct sm_follow sm;
        char sm_name[96];
        uint64_t standby_reported;       /* digest of the difference that was logged on standby */
        uint64_t held_reported;          /* digest of the held bases that were logged */
        struct verbs_check *verbs;
        bool reading_local;              /* local tables were asked for */
        struct opensm_writer *writer;
        struct schedule schedule;
        struct sweep sweep;              /* while state is not IDLE or ENDED */
        struct interrupted interrupted;
        bool started;
        bool discovery_failed;           /* the last one; it was logged */
        usec_t discovered;               /* when the whole fabric was, the last time that this was not in vain; 0: never */
        usec_t discovered_hold;          /* absent_hold, by which that judged who is absent */
        bool passed_over;                /* a candidate, which no sweep took, by the next one */
        usec_t swept;                    /* when the last sweep of the whole fabric ended that ran to its end */
};

/* Appends an action. */
void control_do(struct control *c, const struct control_action *action);
/* The status line. */
void control_set_status(struct control *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* What was remembered takes the place of what is known. */
void control_take_remembered(struct control *c, struct remembered *m);
/* The store was lost: all of it is to be stored anew. */
void control_unstore(struct control *c);
/* The store is to have it as the generation in force. */
void control_will_store(struct control *c, struct generation *g);
/* The candidate, else what is in force. */
struct generation *control_wanted(const struct control *c);
/* True if this host may write by this generation, as far as SM tracking matters. */
bool control_may_write(const struct control *c, const struct generation *g);
/* ... and this generation is to be carried out, not only audited. */
bool control_writes(const struct control *c, const struct generation *g);
/* One of two head nodes, by the settings. */
bool control_is_of_pair(const struct control *c);
/* ... and it serves. */
bool control_follows_sm(const struct control *c);
/* False: one sweep, for a person. */
bool control_serves(const struct control *c);
#define CONTROL_PORT_NAME (MAX_CA_NAME + 16)
/* "mlx5_0/1", or "an InfiniBand port"; gives ret. */
const char *control_port_name(const struct settings *s, char ret[CONTROL_PORT_NAME]);
void port_key_make(const struct settings *s, struct port_key *ret);
bool port_key_is_of(const struct port_key *k, const struct settings *s);
