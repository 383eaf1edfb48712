/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Deterministic simulation: pkeyd's control core (src/control) against the virtual fabric, in virtual time, single-threaded.
 *
 *     world.c     a random fabric, and what happens to it: rivals, reboots, cables, names, edits of the policy
 *     scenes.c    what happens together, in some histories: cables that are moved while a host does not answer
 *     intent.c    random policies and settings as data, their text, and what they mean (an oracle of its own)
 *     keys.c      M_Keys of the ports, and what pkeyd's file says of them
 *     head.c      a head node: its files, its store, its lock, and what its kernel shows of its ports
 *     opensm.c    the OpenSM of a head node: a process that reads a file when it likes, and writes tables
 *     process.c   the third shell of control: a pkeyd or a pkeyctl, whose actions take time and may be its last
 *     wire.c      frames on their way: latency, loss, and every other fault
 *     observer.c  what a pkeyd can know at best: what it read, and what it discovered
 *     promises.c  what must be true, checked after each event that changed a table
 *
 * One 64-bit seed makes one history, byte for byte. Nothing here reads a clock or an address.
 */

#include "control/control.h"
#include "events.h"
#include "fabric.h"
#include "mad_engine/dispatcher.h"
#include "prng.h"

#define SIM_MAX_PARTITIONS 8
#define SIM_MAX_RULES      8
#define SIM_MAX_INTENTS    64
#define SIM_MAX_ENDPORTS   40
#define SIM_MAX_HOLD       (50 * USEC_PER_SEC) /* absent_hold */
#define SIM_BASES          14 /* that any table or policy of a simulation ever holds */
#define SIM_MAX_TABLES     80 /* of endports, and of switch ports that can enforce */
#define SIM_BLOCKS         (FABSIM_MAX_ENTRIES / P_KEY_BLOCK_ENTRIES)

/* --- intent ---------------------------------------------------------------------------------------------------------- */

enum rule_kind {
        RULE_ALL,
        RULE_CAS,
        RULE_SWITCHES,
        RULE_GROUP,       /* x: hosts whose number is even (0) or odd (1) */
        RULE_HOST,        /* x: host number */
        RULE_LEAF,        /* x: switch */
        RULE_DEVICE,      /* x: host number, y: device */
        RULE_SWITCH_PORT, /* x: switch, y: port */
        RULE_GUID,        /* x: node, y: port */
        RULE_SELF,
};

struct rule {
        enum rule_kind kind;
        unsigned x, y;
        struct guid guid; /* RULE_GUID: of the port that was there when the policy was written */
        enum membership membership;
};

struct intent_partition {
        uint16_t base;
        bool index0;
        struct rule rules[SIM_MAX_RULES];
        unsigned n_rules;
};

/* The contents of both files. */
struct intent {
        struct intent_partition partitions[SIM_MAX_PARTITIONS]; /* [0]: the default partition */
        unsigned n_partitions;
        bool has_owns;          /* only 0x7fff and 0x0001-0x00ff */
        bool is_strict;         /* a line that matches nothing is an error */
        bool is_broken;         /* its text is no policy */
        struct settings settings;
};

/* Who is where and how it is called, as it was when a process discovered the fabric. */
struct census_entry {
        bool is_there;          /* it can be reached */
        bool was_gone;          /* it could not, at a moment of the discovery */
        bool is_seen;           /* it is in the snapshot */
        bool is_unknown;        /* it was never in one */
        bool is_ambiguous;      /* its name, its cable or the SM changed during the discovery */
        bool is_self, is_sm;
        struct guid guid;
        struct lid lid;
        enum node_type type;
        unsigned host, device;  /* what it calls itself */
        bool is_plugged;
        struct fabsim_place plugged_into; /* a switch's port */
        bool is_cabled;
        struct fabsim_place cable; /* where its cable leads to, whether that is up or not */
};

struct census {
        usec_t began;           /* of the discovery */
        struct census_entry entries[SIM_MAX_ENDPORTS]; /* by endport */
};

struct sim;

void intent_make(struct sim *s, struct intent *ret);
/* The text of partitions.yaml and of pkeyd.yaml; each begins with the number of the intent. */
void intent_print_policy(const struct sim *s, unsigned intent, char *ret, size_t size);
void intent_print_settings(const struct sim *s, unsigned intent, char *ret, size_t size);
/* The number that a text begins with. */
unsigned intent_of_text(const char *text);
/* What the policy makes of an endport: the oracle. */
enum membership intent_membership(const struct intent *it, const struct census *c, unsigned endport, unsigned partition);
/* Has another adapter its name? Maybe: it has one that pkeyd did not see completely, or that changed meanwhile. */
bool intent_has_twin(const struct sim *s, const struct census *c, unsigned endport, bool maybe);
/* Does a line of the policy mean it by its name? */
bool intent_is_meant_by_name(const struct intent *it, const struct census *c, unsigned endport);
/* ... and has another adapter that name? */
bool intent_is_contested(const struct sim *s, const struct intent *it, const struct census *c, unsigned endport);
/* What the policy makes of it at least, whoever the names mean. */
enum membership intent_certain(const struct intent *it, const struct census *c, unsigned endport, unsigned partition);
/* May pkeyd touch entries of this base? */
bool intent_may_touch(const struct intent *it, uint16_t base);
/* P_Keys that the table of an endport (or, enforcing, of the switch port beside it) should hold. */
unsigned intent_wants(const struct intent *it, const struct census *c, unsigned endport, bool enforcing,
                      struct p_key ret[2 * SIM_MAX_PARTITIONS]);

/* --- head nodes ------------------------------------------------------------------------------------------------------ */

/* The policy and the settings in force, and the fabric as it was discovered. */
struct judgement {
        struct judgement *next;
        struct intent intent;
        struct census census;
        uint64_t frozen, contested; /* a bit for each endport: pkeyd calls it frozen (policy/freeze.h); because of its name */
        uint8_t level[SIM_MAX_ENDPORTS][SIM_BASES]; /* what the policy gives it: 0 nothing, 1 limited, 2 full */
        uint8_t most[SIM_MAX_ENDPORTS][SIM_BASES];  /* the same, but of a frozen port at most, where `level` is at least */
        uint64_t open;              /* a bit for each endport: ... and that may be what its table holds */
};

/* By what a write is judged: the policy that was in force when it was sent, and what pkeyd could not know then. */
struct basis {
        struct basis *next;         /* of those of partition files */
        const struct judgement *by; /* NULL: pkeyd did not write this */
        unsigned process;
        uint64_t life;              /* of the process */
        usec_t since;               /* when it was sent */
        struct lid lid;             /* where to; 0: by a directed route */
        usec_t asked_at;            /* when who is there was answered last; 0: it was not asked */
        uint16_t changes[SIM_MAX_ENDPORTS]; /* a bit for each base: somebody else changed the port's level unseen */
        uint16_t surprises[SIM_MAX_ENDPORTS]; /* ... and nobody here can know of it */
        uint64_t elsewhere;         /* a bit for each endport: it is not where, or what, it was when it was discovered */
        uint64_t missing, expired;  /* ... it was absent at the last discovery; and for longer than absent_hold */
        uint64_t unknown;           /* ... it was never discovered completely */
        uint64_t unread;            /* ... its table, or that of the switch port before it, was never read */
        uint64_t vouched;           /* ... a person vouched for it, and was wrong */
        uint64_t strayed, lost;     /* ... it was moved, and has not answered since; and counts no more */
        uint64_t strayed_long;      /* ... it was moved, and was seen last longer than absent_hold ago */
};

/* --- what a pkeyd can know ---------------------------------------------------------------------------------------------- */

#define SIM_NO_INDEX   UINT8_MAX
#define SIM_MAYBE_READ 1 /* p takes it for read: another one answered in its place */

struct seen_table {
        usec_t block_at[SIM_BLOCKS];  /* when the agent answered the last read of each block; 0: never; or SIM_MAYBE_READ */
        usec_t filter_at;             /* ... of PortInfo of a switch port */
        struct p_key entries[FABSIM_MAX_ENTRIES]; /* as read last */
        uint16_t used[FABSIM_MAX_ENTRIES]; /* the base that each index had last; 0: none was ever seen there */
        uint8_t home[SIM_BASES];      /* the index of a base with one entry; SIM_NO_INDEX: none, or pkeyd revoked it */
        uint8_t suspects[SIM_BASES];  /* the highest level that a policy in force here gave it since all of it was read */
};

struct seen_port {
        usec_t at, began;             /* when it was discovered last, and when that discovery began; 0: never */
        bool is_missing;              /* it was not there at the last discovery */
        usec_t silent_at;             /* the discovery that found something silent where it was last; 0: the last one did not */
        usec_t counted_at;            /* the last discovery that found it silent where it was, or where nobody was known; 0: none */
        bool is_vouched;              /* a person said that it holds nothing, which is not so, and it was not found since */
        bool is_ambiguous;            /* it was, incomplete, and moved meanwhile; or it came since then */
        bool is_nowhere;              /* it was moved during the last discovery, and did not answer: which of its places that found
                                       * silent is by chance */
        struct census_entry entry;    /* as it was then */
};

/* What a process knows at best. */
struct observer {
        struct seen_table tables[SIM_MAX_TABLES];
        struct seen_port ports[SIM_MAX_ENDPORTS];
};

#define SIM_FILES        4
#define SIM_CONF         "/etc/opensm/partitions.conf"
#define SIM_OPENSM_CONF  "/etc/opensm/opensm.conf"

/* What a partition file gives an endport. */
struct opensm_port {
        uint8_t level[SIM_BASES];   /* 0 none, 1 limited, 2 full, 3 both */
        const struct basis *basis[SIM_BASES]; /* of the first one of the files that said the same */
};

struct sim_file {
        char path[64];
        char *bytes;
        size_t n;
        struct basis basis;
        struct opensm_port ports[SIM_MAX_ENDPORTS]; /* of a partition file that pkeyd wrote */
        usec_t written_at;
        uint64_t version;           /* counts up */
};

/* What outlives pkeyd. */
struct stored_record {
        char *key;
        void *value;
        size_t n;
};

struct store {
        struct stored_record *records; /* ascending by key */
        size_t n, allocated;
        uint64_t version, life;     /* count up: with each commit; with each store that was lost */
        bool fails;
        struct observer observer;   /* what the records say of what was seen */
};

struct opensm {
        bool runs, hangs;
        uint64_t life;              /* of the process; what an earlier one began does not happen */
        struct basis basis;         /* of the file that it read last */
        uint64_t version;
        struct opensm_port ports[SIM_MAX_ENDPORTS];
        struct opensm_port overtaken[SIM_MAX_ENDPORTS]; /* of the file before, where that was not carried out yet; else zero */
        uint64_t unwritten;         /* a bit for each endport: what was read last is not carried out yet */
};

struct head {
        struct fabsim_place place;
        unsigned intent_on_file;
        struct store store;
        struct sim_file files[SIM_FILES];
        uint64_t lock;              /* life of the process that has it; 0: nobody */
        usec_t started_at;          /* a process, last */
        usec_t replaced_at;         /* by another store, as a process noticed last */
        struct opensm opensm;
};

/* --- processes ------------------------------------------------------------------------------------------------------- */

#define SIM_MAX_HEADS     2
#define SIM_MAX_PROCESSES 3 /* a pkeyd on each head node, and a pkeyctl on the first */
#define SIM_MAX_REQUESTS  32
#define SIM_MAX_LIDS      256
#define SIM_ELSE          SIM_MAX_PROCESSES /* a writer that is none of our processes */

/* An action that was carried out, or will be when its answer is due. */
struct sim_answer {
        unsigned process;
        uint64_t life;
        struct control_action action; /* what it points at is copied, or is valid until the answer */
        char paths[CONTROL_MAX_FILES][64];
        bool done;
        struct control_event event;   /* if it was done; and what it points at */
        struct guid guid;
        struct local_table table;
};

/* What a stage has read so far. */
struct pending_reads {
        usec_t block_at[SIM_BLOCKS], filter_at;
        struct p_key entries[FABSIM_MAX_ENTRIES];
};

struct process {
        struct head *head;
        unsigned number;
        enum control_goal goal;
        uint64_t life;                 /* another one for each start */
        usec_t stood_by_at;            /* last; 0: never */
        struct control *control;       /* NULL: it does not run */
        struct mad_dispatcher *port;   /* NULL: it is closed */
        uint64_t store_version, store_life; /* that it read or wrote last */
        bool is_replaced;              /* another store, with records, was put in place of it, and was not loaded yet */
        unsigned waits_for[CONTROL_N_ACTIONS]; /* answers that are due, of each kind of action */
        bool killed;
        usec_t stage_began;
        enum control_state stage; /* the state whose stage runs */
        bool met_stranger;        /* in this stage: another port than the snapshot has answered at an address */
        bool met_other;           /* likewise, or perhaps not */
        bool is_unnamed[SIM_MAX_ENDPORTS]; /* a request was sent there twice, or NodeInfo is asked: what was read waits */
        usec_t lid_asked_at[SIM_MAX_LIDS], route_asked_at; /* when NodeInfo was answered from there, or by any directed route */

        struct census census, adopted; /* of the last discovery; of the snapshot */
        const struct subnet *subnet;   /* of the snapshot; not dereferenced later */
        const struct judgement *judgement; /* NULL: none yet */
        uint64_t judged_generation;
        const struct generation *judged;
        uint64_t is_given;             /* a bit for each endport: this process carried out a policy that gave it something or
                                        * nothing */
        uint8_t given[SIM_MAX_ENDPORTS][SIM_BASES]; /* ... before it was frozen */
        struct observer observer;
        struct pending_reads pending[SIM_MAX_TABLES];

        uint64_t requests[SIM_MAX_REQUESTS]; /* of reloads that were not answered yet */
        unsigned n_requests;
        uint64_t n_sweeps[SWEEP_N_RESULTS]; /* that ended */
        unsigned n_quiet;              /* of the full ones so many began since all is calm */
        usec_t sweep_began;            /* of the one that runs; 0: none does */
        bool full;                     /* it discovered the fabric */
        enum sweep_result last_result; /* of the last one that ended */

        struct arena *arena;           /* of a pkeyctl: its findings */
        struct findings findings;
};

/* --- the simulation -------------------------------------------------------------------------------------------------- */

/* How often things go wrong, of a thousand. */
struct faults {
        unsigned lose_request, lose_answer, late, twice, busy, status_undone, status_done, cut_short, stranger, wrong_modifier;
        unsigned send_fails;    /* this host cannot send a frame */
        unsigned kill;          /* a process, at a MAD that it sends, or at an action */
        unsigned trigger;       /* something external within the next moments, at a Set */
        unsigned slow;          /* an action takes seconds */
};

/* A table from the fabric's side. */
struct table_record {
        struct fabsim_place at;
        struct p_key is[FABSIM_MAX_ENTRIES];   /* as it was judged last */
        bool filters[2];
        usec_t changed_at[SIM_MAX_PROCESSES + 1][SIM_BLOCKS][SIM_BASES]; /* by each writer; 0: never */
        usec_t filter_changed_at[SIM_MAX_PROCESSES + 1];
        bool was_used[FABSIM_MAX_ENTRIES];     /* an index: by anybody */
        bool passed_on;          /* an index passed from one base to another since the last check */
};

/* Levels as sender and receiver in a base, in both models of a switch (lenient, strict), and by the endport's own table. */
struct reach {
        uint8_t sends[2], receives[2], own;
};

struct sim_counters {
        uint64_t events, frames, sets, opensm_writes, pairs_checked, pairs_changed, pairs_excused, sweeps;
        uint64_t verified, passed_on_checked, converged, refused, kills, reloads, hand_overs, unconverged;
};

/* The M_Key of an endport, and what m_key_file says that it is. */
struct sim_key {
        uint64_t key, in_file;
        uint8_t level;
        uint16_t lease;
};

struct sim {
        uint64_t seed;
        struct prng rng;
        bool trace;
        unsigned fail_in_reload;      /* which allocation of the first reload is to fail; 0: none */
        uint64_t digest;         /* of the history so far */
        usec_t now;
        struct fabsim f;
        struct events events;
        struct faults faults;
        bool quiet;              /* faults are over */
        usec_t quiet_at, calm_at, end_at; /* calm: all that follows from what happened has happened, and no absent port counts */
        bool use_directed_routes, has_rival, moves_cables, has_pkeyctl;
        enum settings_writer writer;
        enum settings_role role;
        bool mirrors;
        usec_t handed_over_at;
        uint16_t next_lid;
        unsigned next_host;      /* a name that nobody has yet */
        unsigned host_of[FABSIM_MAX_NODES], device_of[FABSIM_MAX_NODES]; /* what a CA is called now */

        struct fabsim_place endports[SIM_MAX_ENDPORTS];
        unsigned n_endports;
        struct sim_key keys[SIM_MAX_ENDPORTS];
        struct m_keys *m_keys;   /* as read from the file; NULL: there is none */
        unsigned n_wrong_keys;
        bool has_own_keys;       /* each port has another */
        char *neighbors;         /* what OpenSM's file of links has; NULL: there is none */
        bool has_moved_cables;   /* since then */
        struct prng scene_rng;
        struct fabsim_place was_at[SIM_MAX_ENDPORTS]; /* where the cable was that a scene pulled last */
        struct intent intents[SIM_MAX_INTENTS];
        unsigned n_intents;

        struct head heads[SIM_MAX_HEADS];
        unsigned n_heads;
        struct process processes[SIM_MAX_PROCESSES];
        unsigned n_processes;
        uint64_t last_life, last_request;
        struct judgement *judgements;
        struct basis *bases;

        struct { bool is_out; unsigned process; uint32_t tid; usec_t until; } outstanding[FABSIM_MAX_NODES][FABSIM_MAX_PORTS + 1];
        struct { unsigned process; uint32_t tid; bool is_there; } last_set[FABSIM_MAX_NODES][FABSIM_MAX_PORTS + 1];
        struct table_record tables[SIM_MAX_TABLES];
        unsigned n_tables;
        uint8_t table_at[FABSIM_MAX_NODES][FABSIM_MAX_PORTS + 1]; /* + 1; 0: none is there */
        usec_t moved_at[SIM_MAX_ENDPORTS];     /* when its cable, its name or what it is told of the SM changed */
        usec_t lid_moved_at[SIM_MAX_ENDPORTS];
        usec_t cables_moved_at;
        usec_t uplink_moved_at[FABSIM_MAX_NODES]; /* of a switch */
        bool is_lost[FABSIM_MAX_NODES];        /* it does not come back */
        bool is_replaced[FABSIM_MAX_NODES];    /* the device that was there does not come back */
        bool is_gone[SIM_MAX_HEADS][SIM_MAX_ENDPORTS]; /* it cannot be reached from this head node */
        usec_t gone_at[SIM_MAX_HEADS][SIM_MAX_ENDPORTS]; /* ... and could not until then */
        struct reach reach[SIM_MAX_ENDPORTS][SIM_BASES]; /* as the hardware is now */
        struct sim_counters counters;
        bool failed;
        char failure[256];
};

/* The first failure counts; everything comes to an end soon after. */
void sim_fail(struct sim *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sim_trace(struct sim *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Text that is part of the history. */
void sim_digest(struct sim *s, const char *text);
static const uint16_t sim_bases[SIM_BASES] = {
        0x7fff, 0x0010, 0x0011, 0x0012, 0x0013, 0x0014, 0x0015, 0x0016, 0x0017, 0x0018, 0x0f01, 0x0f02, 0x0f03, 0x0f04,
};

/* The number of a base among them; SIM_BASES: it is none. */
static inline unsigned sim_base_number(uint16_t base)
{
        if (base == 0x7fff)
                return 0;
        if (base >= 0x0010 && base <= 0x0018)
                return base - 0x0010u + 1;
        return base >= 0x0f01 && base <= 0x0f04 ? base - 0x0f01u + 10 : SIM_BASES;
}

/* world.c */
void world_make(struct sim *s);
void world_external(struct sim *s, const struct event *e);
/* Something at random, at this time. */
void world_schedule(struct sim *s, usec_t at);
unsigned world_endport_at(const struct sim *s, struct fabsim_place p); /* UINT32_MAX: none */
void world_restart(struct sim *s, unsigned head, usec_t at);
/* Who is where now, seen from this head node, by a discovery that began then. */
void world_take_census(struct sim *s, const struct head *h, usec_t began, struct census *ret);
/* Everything that stood in the way is gone; what was changed on the way there is pkeyd's to repair. */
void world_be_quiet(struct sim *s);
/* A node or a cable went or came. */
void world_note_gone(struct sim *s);
/* An admin edits the policy: a new one. */
void world_edit(struct sim *s);
/* The master SM moves to the other head node. */
void world_hand_over(struct sim *s);
/* p is about to write: may its head node? */
void world_check_writer(struct sim *s, const struct process *p);

/* scenes.c */
void scenes_make(struct sim *s);
void scenes_event(struct sim *s, const struct event *e);

/* keys.c */
void keys_make(struct sim *s);
/* What was done to them on the way is undone. */
void keys_restore(struct sim *s);
/* Is what m_key_file says of the SMA there not its M_Key? */
bool keys_are_wrong(const struct sim *s, struct fabsim_place at);
/* Can it not be discovered? */
bool keys_hide(const struct sim *s, unsigned endport);
void keys_check_frame(struct sim *s, const struct process *p, const struct mad_frame *frame, struct fabsim_place at);

/* head.c */
void head_make(struct sim *s, struct head *h, struct fabsim_place place);
void head_done(struct head *h);
struct sim_file *head_file(struct head *h, const char *path); /* NULL: there is none */
void head_write_file(struct sim *s, struct head *h, const char *path, const char *bytes, size_t n, const struct process *by);
/* Reads both files. Returns owned; NULL: findings say why. */
struct generation *head_load(struct sim *s, struct head *h, struct findings *findings);
/* What p's store remembers; members of ret are owned by the caller. */
void head_recall(struct sim *s, struct process *p, struct control_start *ret);
/* -ENOSPC: it fails; -EIO: likewise, but it was stored; -EUCLEAN: an empty store was in place of the one before. */
int head_store(struct sim *s, struct process *p, const struct store_transaction *t);
/* Somebody deletes what p's head node remembers. */
void head_forget(struct head *h);
/* pkeyctl forget: a person vouches that an endport that is not there, or silent, holds nothing; true or not. False: it is there. */
bool head_vouch(struct sim *s, struct head *h, unsigned endport);
void head_lock(struct sim *s, struct process *p, struct control_lock *ret);
void head_unlock(struct process *p);

/* opensm.c */
/* pkeyd wrote this partition file. */
void opensm_file_written(struct sim *s, struct sim_file *f);
void opensm_start(struct sim *s, struct head *h);
void opensm_event(struct sim *s, const struct event *e);
/* As kill(2) on its process; signal 0: only a look. Returns 0 or -ESRCH. */
int opensm_signal(struct sim *s, struct head *h, int signal);
/* It crashes, hangs, or reads its file. */
void opensm_disturb(struct sim *s, struct head *h);

/* process.c */
void process_start(struct sim *s, struct process *p, struct head *h, enum control_goal goal);
void process_kill(struct sim *s, struct process *p);
/* Control of this process waits until then, and so does its port. */
usec_t process_due(const struct process *p);
void process_tick(struct sim *s, struct process *p);
void process_receive(struct sim *s, struct process *p, const struct event *e);
void process_answer(struct sim *s, struct sim_answer *a);
/* An answer that will not come. */
void process_drop(struct sim_answer *a);
void process_hangup(struct sim *s, struct process *p);
void process_stop(struct sim *s, struct process *p);
void process_verbs(struct sim *s, struct process *p, enum verbs_event_kind kind);

/* wire.c */
void wire_send(struct sim *s, struct process *p, const struct mad_frame *frame);
void wire_arrive(struct sim *s, struct event *e);
void wire_deliver(struct sim *s, struct event *e);
/* The engine of p took an answer. */
void wire_answered(struct sim *s, struct process *p, const struct event *e);
void wire_forget(struct sim *s, const struct process *p);
/* p waits for no answer any more; what it sent goes its way. */
void wire_abandoned(struct sim *s, const struct process *p);

/* observer.c */
/* The table at a place; NULL: none, or nobody has to do with it. */
struct table_record *observer_table(struct sim *s, struct fabsim_place at);
/* The switch port beside an endport, and the endport beside a switch port, or itself; false, UINT32_MAX: none. Whether they are up
 * or not: what is unplugged and comes back is where it was, or it was moved. */
bool observer_leaf(const struct sim *s, unsigned endport, struct fabsim_place *ret);
unsigned observer_endport(const struct sim *s, struct fabsim_place at);
/* Somebody else changed this base in a table in this sweep, or since the snapshot was made from which it was planned: what was
 * planned there is of no use. */
bool observer_changed_in_sweep(const struct process *p, const struct table_record *r, uint16_t base);
/* What p saw was stored: the tables, and which ports there are. */
void observer_store(const struct process *p, struct observer *to);
/* p takes what is stored for what it knows. */
void observer_load(struct process *p);
/* Nothing was seen yet. */
void observer_init(struct observer *o);
/* The engine of p took this answer. */
void observer_sent(const struct sim *s, struct process *p, const struct mad_frame *frame, struct fabsim_place at, bool again);
/* To a LID that leads nowhere any more. */
void observer_sent_nowhere(const struct sim *s, struct process *p, const struct mad_frame *frame);
void observer_answered(struct sim *s, struct process *p, const struct event *e);
/* A stage of p ended: what it read is known from now on, but for the filters that a discovery read. Where somebody else answered at
 * an address, nothing of it is. */
void observer_stage_ended(struct sim *s, struct process *p);
/* What the stage that runs has read so far does not count. */
void observer_forget_stage(struct sim *s, struct process *p);
/* A sweep of p ended: filters that its discovery read in vain are not known. */
void observer_swept(struct process *p);
/* p works with another snapshot of the fabric: its census is completed by what it saw before. */
void observer_discovered(struct sim *s, struct process *p, const struct subnet *subnet);
/* A Set of p changed an entry. */
void observer_wrote(struct sim *s, struct process *p, const struct table_record *r, unsigned index);
/* At this endport is another device now. */
void observer_forget(struct sim *s, unsigned endport);
/* The pkeyds of both head nodes. */
bool observer_is_pair(const struct sim *s, unsigned x, unsigned y);
/* This policy is in force: the pkeyd of the other head node may carry it out, too. */
void observer_suspect(struct sim *s, struct process *p);
/* Another policy is in force: where it does not want a base, there is no index that the base must come back to. */
void observer_judged(struct sim *s, struct process *p);
/* What p cannot know now. */
void observer_basis(const struct sim *s, const struct process *p, struct basis *ret);

/* promises.c */
/* Everything is as it was before pkeyd came. */
void promises_begin(struct sim *s);
/* p goes by this judgement from now on: what the policy gives each endport. */
void promises_judged(struct sim *s, struct process *p, struct judgement *j);
/* What p carries out is given, but to frozen ports; these are frozen for a reason. */
void promises_given(struct sim *s, struct process *p);
/* The Set of this event, by this basis, changed what is at a place. */
void promises_changed(struct sim *s, const struct basis *basis, const struct event *e, struct fabsim_place at);
/* An OpenSM changed an endport, and the switch port beside it, at once, by a file of pkeyd's. */
void promises_rewritten(struct sim *s, const struct opensm *o, unsigned endport);
/* Something else changed the table at a place. */
void promises_disturbed(struct sim *s, struct fabsim_place at);
/* Its cable was pulled or put; its name, or where the SM is, is another. */
void promises_moved(struct sim *s, struct fabsim_place at);
/* p is about to send a SubnSet. */
void promises_check_set(struct sim *s, const struct process *p, const struct mad_frame *frame, struct fabsim_place at);
/* A sweep of p ended. */
void promises_swept(struct sim *s, const struct process *p);
/* Faults have been over for a while. */
void promises_converged(struct sim *s, const struct process *p);
