/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Deterministic simulation: pkeyd's control core (src/control) against the virtual fabric, in virtual time, single-threaded.
 *
 *     world.c     a random fabric, and random events: other writers, reboots, cables, names, edits of the policy
 *     scenes.c    combined events, in some histories: cables that are moved while a host does not answer
 *     intent.c    random policies and settings as data, their text, and their meaning (an independent oracle)
 *     clocks.c    the clocks of the head nodes
 *     keys.c      M_Keys of the ports, and those in pkeyd's file
 *     head.c      a head node: its files, its store, its lock, and its ports as its kernel shows them
 *     opensm.c    the OpenSM of a head node, which reads its file at random times and writes tables
 *     process.c   the third shell of control: a pkeyd or a pkeyctl, whose actions take time and during which it may be killed
 *     wire.c      frames in flight: latency, loss, and all other faults
 *     observer.c  the most that a pkeyd can know: what it has read and discovered
 *     promises.c  the promises, checked after each event that changes a table
 *     clients.c   clients that ask for leases, in some histories, and what they may rely on
 *     mailbox.c   requests for leases that two head nodes pass on to each other
 *     ledger.c    what two head nodes store in common, checked at each commit
 *
 * A 64-bit seed determines a history, byte for byte. No code here reads a clock or depends on addresses.
 */

#include "control/control.h"
#include "events.h"
#include "fabric.h"
#include "mad_engine/dispatcher.h"
#include "prng.h"

#define SIM_MAX_PARTITIONS 8
#define SIM_MAX_RULES      8
#define SIM_MAX_INTENTS    64
#define SIM_MAX_GENERATIONS 64
#define SIM_UNDO_SEEDS     (UINT64_C(1) << 40) /* from here on histories have changes that wait to be confirmed, and undos */
#define SIM_SHARE_SEEDS    (UINT64_C(1) << 42) /* here two head nodes share a store, and there are neither undos nor leases; ... */
#define SIM_PASS_SEEDS     (UINT64_C(1) << 43) /* ... here there are: either head node is asked, and they pass requests on */
#define SIM_LEASE          (15 * USEC_PER_SEC)
#define SIM_LEASE_MARGIN   (2 * USEC_PER_SEC)
#define SIM_LEASE_SEEDS    (UINT64_C(1) << 41) /* ... and pools, and clients that ask for leases */
#define SIM_LEASE_CALM     (100 * USEC_PER_SEC) /* after the last request for a lease its time is over, or it has none */
#define SIM_MAX_ENDPORTS   40
#define SIM_MAX_CONFIRM    (60 * USEC_PER_SEC)
#define SIM_MAX_HOLD       (50 * USEC_PER_SEC) /* absent_hold */
#define SIM_BASES          14 /* in all tables and policies of a simulation */
#define SIM_MAX_POOLS      2
#define SIM_MAX_LEASES     4  /* in force at a time: as many as there are P_Keys of pools */
#define SIM_MAX_WANTS      (2 * SIM_MAX_PARTITIONS + SIM_MAX_LEASES) /* entries that a port should have */
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
        struct guid guid; /* RULE_GUID: of the port that was there when the policy was made */
        enum membership membership;
};

struct intent_partition {
        uint16_t base;
        bool index0;
        struct rule rules[SIM_MAX_RULES];
        unsigned n_rules;
};

struct intent_pool {
        uint16_t first, last;   /* P_Keys */
        struct rule ports;      /* ALL_CAS, a group, or a host */
        bool is_limited;        /* its members by default */
        unsigned longest;       /* seconds; 0: unlimited */
        unsigned rest;          /* seconds */
        bool index0;            /* its leases may have index 0 */
};

/* The contents of both files. */
struct intent {
        struct intent_partition partitions[SIM_MAX_PARTITIONS]; /* [0]: the default partition */
        unsigned n_partitions;
        struct intent_pool pools[SIM_MAX_POOLS];
        unsigned n_pools;
        bool has_owns;          /* only 0x7fff, 0x0001-0x00ff, and the P_Keys of pools */
        bool is_strict;         /* a line that matches nothing is an error */
        bool is_broken;         /* its text is not a valid policy */
        struct settings settings;
};

/* The endports, their places and names, when a process discovered the fabric. */
struct census_entry {
        bool is_there;          /* it can be reached */
        bool was_gone;          /* it could not be reached at some time during the discovery */
        bool is_seen;           /* it is in the snapshot */
        bool is_unknown;        /* it was never in one */
        bool is_ambiguous;      /* its name, its cable or the SM changed during the discovery */
        bool is_self, is_sm;
        struct guid guid;
        struct lid lid;
        enum node_type type;
        unsigned host, device;  /* its name */
        bool is_plugged;
        struct fabsim_place plugged_into; /* a switch's port */
        bool is_cabled;
        struct fabsim_place cable; /* the other end of its cable, up or down */
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
/* The membership of an endport by the policy: the oracle. */
enum membership intent_membership(const struct intent *it, const struct census *c, unsigned endport, unsigned partition);
/* Does another adapter have its name? maybe: count adapters that pkeyd did not see completely, or that changed meanwhile. */
bool intent_has_twin(const struct sim *s, const struct census *c, unsigned endport, bool maybe);
/* Does a line of the policy select it by its name? */
bool intent_is_meant_by_name(const struct intent *it, const struct census *c, unsigned endport);
/* ... and does another adapter have that name? */
bool intent_is_contested(const struct sim *s, const struct intent *it, const struct census *c, unsigned endport);
/* Its least membership by the policy, for all meanings of names. */
enum membership intent_certain(const struct intent *it, const struct census *c, unsigned endport, unsigned partition);
/* The pool that has this P_Key; NULL: none. */
const struct intent_pool *intent_pool_of(const struct intent *it, uint16_t base);
/* Can a lease of any pool have index 0? */
bool intent_has_index0_pool(const struct intent *it);
/* Does a name mean this endport? */
bool intent_names(const struct rule *r, const struct census_entry *e);
/* Is it one of `owns`? */
bool intent_owns(const struct intent *it, uint16_t base);
/* May pkeyd change entries of this base, where no lease has or had it? */
bool intent_may_touch(const struct intent *it, uint16_t base);
/* The expected P_Keys of an endport (or, if enforcing, of its leaf port). */
unsigned intent_wants(const struct intent *it, const struct census *c, unsigned endport, bool enforcing,
                      struct p_key ret[SIM_MAX_WANTS]);

/* --- head nodes ------------------------------------------------------------------------------------------------------ */

/* A lease as it is in a plan. */
struct leased {
        uint16_t base;
        uint8_t level;
        uint64_t members;           /* a bit for each endport */
        uint64_t index0;            /* of these, it belongs at index 0 */
};

struct leased_all {
        struct leased leases[SIM_MAX_LEASES];
        unsigned n;
};

/* The policy and the settings in force with the leases of the last plan, and the fabric as it was discovered. */
struct judgement {
        struct judgement *next;
        struct intent intent;
        struct leased_all leased;
        struct census census;
        uint64_t frozen, contested; /* a bit for each endport: frozen by pkeyd (policy/freeze.h); frozen because of its name */
        uint8_t level[SIM_MAX_ENDPORTS][SIM_BASES]; /* by the policy: 0 none, 1 limited, 2 full */
        uint8_t most[SIM_MAX_ENDPORTS][SIM_BASES];  /* for a frozen port the highest, where `level` is the lowest */
        uint64_t open;              /* a bit for each endport: the highest is what its table may hold */
        bool is_undo;               /* entries go back to where they were, and not where they were freed last */
};

/* The basis for judging a write: the policy in force when it was sent, and what pkeyd could not know then. */
struct basis {
        struct basis *next;         /* list of the bases of partition files */
        const struct judgement *by; /* NULL: pkeyd did not write this */
        unsigned process;
        uint64_t life;              /* of the process */
        usec_t since;               /* when it was sent */
        struct lid lid;             /* destination; 0: by a directed route */
        usec_t asked_at;            /* when the port last answered which node it is; 0: not queried */
        uint16_t changes[SIM_MAX_ENDPORTS]; /* a bit for each base: another writer changed the level of the port unseen */
        uint16_t surprises[SIM_MAX_ENDPORTS]; /* ... and no process here can know it */
        uint64_t elsewhere;         /* a bit for each endport: it was moved or replaced since it was discovered */
        uint64_t missing, expired;  /* ... it was absent in the last discovery; and for longer than absent_hold */
        uint64_t unknown;           /* ... it was never discovered completely */
        uint64_t unread;            /* ... its table, or that of its leaf port, was never read */
        uint64_t vouched;           /* ... a person vouched for it wrongly */
        uint64_t strayed, lost;     /* ... it was moved and has not answered since; and no longer counts */
        uint64_t strayed_long;      /* ... it was moved, and was seen last longer than absent_hold ago */
};

/* --- what a pkeyd can know ---------------------------------------------------------------------------------------------- */

#define SIM_NO_INDEX   UINT8_MAX
#define SIM_MAYBE_READ 1 /* p believes that it was read: another port answered in its place */

struct seen_table {
        usec_t block_at[SIM_BLOCKS];  /* when the agent answered the last read of each block; 0: never; SIM_MAYBE_READ */
        usec_t filter_at;             /* ... of PortInfo of a switch port */
        struct p_key entries[FABSIM_MAX_ENTRIES]; /* as last read */
        uint16_t used[FABSIM_MAX_ENTRIES]; /* the last base of each index; 0: none was ever seen there */
        uint8_t home[SIM_BASES];      /* the index of a base with one entry; SIM_NO_INDEX: none, or pkeyd revoked it */
        uint8_t suspects[SIM_BASES];  /* the highest level that a policy in force here gave it since all of it was read */
};

struct seen_port {
        usec_t at, began;             /* when it was discovered last, and when that discovery began; 0: never */
        bool is_missing;              /* absent in the last discovery */
        usec_t silent_at;             /* the discovery that found a silent device at its last place; 0: not the last one */
        usec_t counted_at;            /* the last discovery that found it silent, or at a place without a known port; 0: none */
        bool is_vouched;              /* a person vouched wrongly that it holds nothing, and it was not found since */
        bool is_ambiguous;            /* it was incomplete and was moved meanwhile; or it appeared since */
        bool is_nowhere;              /* it was moved during the last discovery, and did not answer: the place that was found
                                       * silent is random */
        struct census_entry entry;    /* as it was then */
};

/* The most that a process can know. */
struct observer {
        struct seen_table tables[SIM_MAX_TABLES];
        struct seen_port ports[SIM_MAX_ENDPORTS];
};

#define SIM_FILES        4
#define SIM_CONF         "/etc/opensm/partitions.conf"
#define SIM_OPENSM_CONF  "/etc/opensm/opensm.conf"

/* The entries of an endport in a partition file. */
struct opensm_port {
        uint8_t level[SIM_BASES];   /* 0 none, 1 limited, 2 full, 3 both */
        const struct basis *basis[SIM_BASES]; /* of the first file with the same level */
        bool by_admin[SIM_BASES];             /* an admin wrote that level, or put it back */
};

struct sim_file {
        char path[64];
        char *bytes;
        size_t n;
        struct basis basis;
        struct opensm_port ports[SIM_MAX_ENDPORTS]; /* of a partition file that pkeyd wrote */
        usec_t written_at;
        uint64_t version;           /* counts up */
        bool is_edited;             /* by an admin, since pkeyd wrote it */
        usec_t kept_since;          /* ... in such a way that pkeyd must not replace it; 0: it may */
        char *before;               /* of a partition file: what pkeyd had written before; NULL: nothing */
};

/* The state that outlives pkeyd. */
struct stored_record {
        char *key;
        void *value;
        size_t n;
};

struct sim_store {
        struct stored_record *records; /* ascending by key */
        size_t n, allocated;
        uint64_t version, life;     /* counters: of commits; of lost stores */
        bool fails, is_unreadable;
        struct observer observer;   /* what the records contain of it */
        uint64_t lock;              /* that head nodes share: the life of who holds it; 0: nobody */
        usec_t lease_until;         /* then it is free, whatever its holder believes */
        const struct head *last_pkeyd; /* whose pkeyd stored last */
        const struct head *last_writer;
        uint64_t confirmed;         /* the last generation of which a pkeyctl has stored that it is confirmed; 0: none */
};

struct opensm {
        bool runs, hangs;
        uint64_t life;              /* of the process; events of earlier ones are dropped */
        struct basis basis;         /* of the file that it last read */
        uint64_t version;
        bool is_edited;             /* likewise: what it says is not what pkeyd wrote */
        struct opensm_port ports[SIM_MAX_ENDPORTS];
        struct opensm_port overtaken[SIM_MAX_ENDPORTS]; /* of the previous file, where it was not carried out yet; else zero */
        uint64_t unwritten;         /* a bit for each endport: the last file is not carried out yet */
};

#define SIM_LEASE_IDS     5
#define SIM_WISHED_HOSTS  3

/* What a client asks for. */
struct sim_wish {
        unsigned pool;              /* pool0, pool1, ... */
        struct rule members[SIM_WISHED_HOSTS];
        unsigned n_members;
        uint16_t base;              /* 0: any */
        enum membership membership; /* NONE: that of the pool */
        uint64_t seconds;           /* 0: as long as the pool allows */
        bool partial;
        bool index0;                /* of open leases */
};

/* What the clients of a head node know of a lease, and may rely on. */
struct sim_lease {
        enum sim_lease_state {
                SIM_LEASE_ABSENT,
                SIM_LEASE_ASKED,    /* the request was not refused */
                SIM_LEASE_GIVEN,    /* ... and was answered: granted */
                SIM_LEASE_LEAVING,  /* it was released, has failed, or its time is over */
        } state;
        bool is_uncertain;          /* pkeyd or its store was lost meanwhile: the store may have it as it was, or not at all */
        bool was_another;           /* the store may still have an earlier lease with this ID */
        struct sim_wish wish;
        struct leased is;
        usec_t ends_first, ends_last; /* its time is over between these; USEC_INFINITY: never */
        usec_t asked_at, given_at;
        uint64_t store_life;        /* when it was given */
        bool was_planned;           /* a decision gave it to its members */
        bool was_given;
        bool was_active;            /* it was in force when pkeyd started, and perhaps its answer was lost */
        uint64_t active_plan;       /* number of plans when it came into force, not given yet; 0: it has not */
        bool was_edited;            /* by a request that has no answer yet */
        bool is_left;               /* an answer said that it was released, or not granted */
        bool is_over;               /* its time is over, and it was still in force after the last event */
        bool is_ended;              /* no port holds it, but perhaps that is not stored */
        unsigned rest;              /* seconds */
};

struct sim_lease_request {
        uint64_t number;            /* 0: none */
        enum lease_request_kind kind;
        unsigned id;
        bool is_allowed;            /* its caller may use the pools */
        struct sim_wish wish;       /* of LEASE_CREATE and LEASE_EDIT */
        enum lease_edit_kind edit;  /* of LEASE_EDIT */
        bool was_applied;           /* the members became those that it means */
        uint64_t seconds;           /* of LEASE_RENEW */
        uint64_t timeout;           /* of LEASE_CREATE and LEASE_EDIT */
        bool is_of_guest;           /* the process stood by when it was asked */
        usec_t at;
        usec_t ends_first, ends_last; /* of a renewal */
};

/* What clients know of all leases. */
struct sim_books {
        struct sim_lease leases[SIM_LEASE_IDS];
        usec_t rests_until[SIM_BASES]; /* a P_Key whose lease ended */
};

struct head {
        struct fabsim_place place;
        struct sim_books books;     /* as far as the process of this head node has changed them */
        uint64_t lease_store_life;  /* of the store, when pkeyd last started */
        unsigned intent_on_file;
        struct sim_store own_store, *store; /* the latter: its own, or that of the first head node */
        bool is_cut_off;            /* from the store that both share, for a while */
        struct sim_file files[SIM_FILES];
        uint64_t lock;              /* life of the process that holds it; 0: free */
        usec_t started_at;          /* a process, last */
        usec_t replaced_at;         /* when a process last noticed another store in its place */
        struct opensm opensm;
        struct sim_generation {
                uint64_t number, undoes;
                unsigned policy, settings, first_settings;
                uint64_t applied_number;        /* the same of what a pkeyctl apply had in force: its own files, or those of pkeyd
                                                 * with the settings that it read itself; 0: none */
                unsigned applied_policy, applied_settings;
        } in_force[SIM_MAX_GENERATIONS]; /* each at its number % size */
        uint64_t waits;             /* the generation that waits to be confirmed; 0: none */
        usec_t waits_until;
        int64_t monotonic, wall;    /* its clocks, less virtual time */
        unsigned n_boots;
        char boot[32];
};

/* --- processes ------------------------------------------------------------------------------------------------------- */

#define SIM_MAX_HEADS     2
#define SIM_MAX_PROCESSES 3 /* a pkeyd on each head node, and a pkeyctl on the first */
#define SIM_MAX_REQUESTS  32
#define SIM_MAX_LIDS      256
#define SIM_ELSE          SIM_MAX_PROCESSES /* a writer that is not one of our processes */

/* An action that was carried out, or will be when its answer is due. */
struct sim_answer {
        unsigned process;
        uint64_t life;
        struct control_action action; /* its pointers are copies, or valid until the answer */
        char paths[CONTROL_MAX_FILES][64];
        bool done;
        struct control_event event;   /* if done; with what it points at */
        struct guid guid;
        struct local_table table;
        struct control_undo undo;
};

/* The reads of the running stage. */
struct pending_reads {
        usec_t block_at[SIM_BLOCKS], filter_at;
        struct p_key entries[FABSIM_MAX_ENTRIES];
};

struct process {
        const struct sim *sim;
        struct head *head;
        unsigned number;
        enum control_goal goal;
        uint64_t life;                 /* new for each start */
        usec_t stood_by_at;            /* last; 0: never */
        struct control *control;       /* NULL: not running */
        struct mad_dispatcher *port;   /* NULL: closed */
        uint64_t store_version, store_life; /* last read or written */
        uint64_t followed_version;     /* of a store that head nodes share */
        usec_t lock_until;             /* as this process believes: etcd/etcd_lease.h */
        usec_t paused_until;           /* it gets no processor; 0: it runs */
        bool is_without_store;         /* it could not be loaded the last time */
        usec_t conf_read_at;           /* OpenSM's partition file */
        uint64_t number_taken;         /* the store has another generation by the number of that in force: its last one; 0: no */
        bool is_replaced;              /* another store with records replaced it, and was not loaded yet */
        unsigned waits_for[CONTROL_N_ACTIONS]; /* pending answers for each kind of action */
        bool killed;
        usec_t stage_began;
        enum control_state stage; /* the state whose stage runs */
        bool met_stranger;        /* in this stage: a port that differs from the snapshot answered at an address */
        bool met_other;           /* likewise, perhaps */
        bool is_unnamed[SIM_MAX_ENDPORTS]; /* a request was sent there twice, or NodeInfo is queried: reads are pending */
        usec_t lid_asked_at[SIM_MAX_LIDS], route_asked_at; /* when NodeInfo was last answered at this LID; by a directed route */

        struct census census, adopted; /* of the last discovery; of the snapshot */
        const struct subnet *subnet;   /* of the snapshot; not dereferenced later */
        const struct judgement *judgement; /* NULL: none yet */
        uint64_t judged_generation;
        const struct generation *judged;
        uint64_t is_given;             /* a bit for each endport: this process carried out a policy with or without entries
                                        * for it */
        uint8_t given[SIM_MAX_ENDPORTS][SIM_BASES]; /* ... before it was frozen */
        struct observer observer;
        struct pending_reads pending[SIM_MAX_TABLES];

        uint64_t requests[SIM_MAX_REQUESTS]; /* of reloads without an answer yet */
        unsigned n_requests;
        struct sim_lease_request lease_requests[SIM_MAX_REQUESTS]; /* without an answer yet */
        unsigned n_lease_requests;
        struct sim_lease_request asking; /* the one that is being given; number 0: none */
        bool is_new;                   /* it has loaded its leases, and nothing else has happened */
        bool has_loaded;               /* ... from a store that head nodes share, when the books were these */
        struct sim_books loaded;
        bool loads;                    /* what was loaded from the store is on its way to control */
        bool dies_applying;            /* it is killed when it writes next */
        uint64_t asked_of_guest;       /* the request to confirm or to undo that is being given to a guest; 0: none */
        uint64_t n_plans;              /* when `leased` was taken */
        struct leased_all leased;      /* in the last plan */
        struct leased_all leased_now;  /* after the last event: in the next plan */
        uint64_t n_sweeps[SWEEP_N_RESULTS]; /* that ended */
        uint64_t n_plans_before;            /* when the last sweep ended */
        unsigned n_quiet;              /* number of full ones that began since everything is calm */
        usec_t sweep_began;            /* of the running one; 0: none */
        bool full;                     /* it discovered the fabric */
        enum sweep_result last_result; /* of the last one that ended */

        struct arena *arena;           /* of a pkeyctl: its findings */
        struct findings findings;
};

/* --- requests that are passed on -------------------------------------------------------------------------------------- */

#define SIM_MAX_LETTERS 128
#define SIM_FOREIGN     (UINT64_C(1) << 63) /* in the number of a request of the other head node: see src/pkeyd/forward.c */

/* A request in the mailbox, and its answer. */
struct sim_letter {
        uint64_t id;                /* its lease of etcd; 0: this place is free, or it has none yet */
        bool is_awaited;            /* its process waits for the answer */
        unsigned process;           /* ... this one, in this life */
        uint64_t life;
        struct sim_lease_request asked;
        unsigned seconds;           /* how long the caller waits */
        usec_t late_at, gone_at;    /* the caller does not wait any more; the lease of etcd ends */
        char *text;
        bool is_left;               /* as its process knows */
        bool is_leaving;            /* it is on its way to the mailbox */
        uint64_t created;           /* the request is in the mailbox, since this revision; 0: it is not */
        char *answer;               /* NULL: there is none */
        unsigned n_carried_out;
};

/* A request that a process carries out. */
struct sim_taken {
        uint64_t id, created;       /* 0: this place is free */
        bool is_asked, is_replied, calls;
        char *reply;
};

struct sim_mailbox {
        uint64_t last_id, last_revision;
        struct sim_letter letters[SIM_MAX_LETTERS];
        struct {
                struct sim_taken taken[SIM_MAX_LETTERS];
                bool serves, is_armed, looks;
        } of[SIM_MAX_PROCESSES];
};

/* --- what two head nodes store ---------------------------------------------------------------------------------------- */

struct sim_stored_lease {
        bool is_in_force;
        uint16_t base, base_before;
        uint64_t members;           /* a bit for each endport */
        usec_t began_at, ended_at;  /* when it came into force; when it, or the one before with another P_Key, ended */
};

struct sim_stored_generation {
        uint64_t number;            /* 0: there is none */
        uint64_t undoes, restores;
        uint64_t below;             /* the generation to which its undo goes back; 0: none */
        unsigned policy, settings, first_settings;
        bool waits;
        usec_t waits_until;
};

struct sim_ledger {
        struct sim_stored_lease leases[SIM_LEASE_IDS];
        struct sim_stored_generation generations[SIM_MAX_GENERATIONS]; /* each at its number % size */
        uint64_t asked[SIM_MAX_GENERATIONS]; /* generations that a head node that writes was asked to confirm */
        uint64_t last;              /* the generation in force */
        usec_t member_until[SIM_BASES][SIM_MAX_ENDPORTS]; /* of a lease with this P_Key, until a commit at this time */
        const struct head *by;      /* whose pkeyd committed last; NULL: none has */
        uint64_t unanswered;        /* requests in a calm time that nobody answered in time; the last one */
};

/* --- the simulation -------------------------------------------------------------------------------------------------- */

/* The rates of faults, per thousand. */
struct faults {
        unsigned lose_request, lose_answer, late, twice, busy, status_undone, status_done, cut_short, stranger, wrong_modifier;
        unsigned send_fails;    /* this host cannot send a frame */
        unsigned kill;          /* a process, at a MAD that it sends, or at an action */
        unsigned trigger;       /* an external event soon after a Set */
        unsigned slow;          /* an action takes seconds */
};

/* A table in the fabric. */
struct table_record {
        struct fabsim_place at;
        struct p_key is[FABSIM_MAX_ENTRIES];   /* as last judged */
        bool filters[2];
        usec_t changed_at[SIM_MAX_PROCESSES + 1][SIM_BLOCKS][SIM_BASES]; /* by each writer; 0: never */
        usec_t filter_changed_at[SIM_MAX_PROCESSES + 1];
        bool was_used[FABSIM_MAX_ENTRIES];     /* by any writer */
        bool passed_on;          /* an index passed from one base to another since the last check */
};

/* Levels as sender and receiver in a base, in both models of a switch (lenient, strict), and by the endport's own table. */
struct reach {
        uint8_t sends[2], receives[2], own;
};

struct sim_counters {
        uint64_t events, frames, sets, opensm_writes, pairs_checked, pairs_changed, pairs_excused, sweeps;
        uint64_t verified, passed_on_checked, leases_at_index0, converged, refused, kills, reloads, hand_overs, unconverged;
        uint64_t waited, confirmed, undone;
        uint64_t lease_requests, leases_granted, leases_partial, leases_edited, leases_renewed, leases_released;
        uint64_t leases_failed, leases_refused;
        uint64_t leases_restored, leases_expired;
        uint64_t passed_on, passed_back, unanswered, carried_out_again, leases_unstored, taken_over;
        uint64_t lies;
        uint64_t clocks_set, boots;
        uint64_t loads_failed;
        uint64_t conf_edits;
        uint64_t late;
};

/* The M_Key of an endport, and that in m_key_file. */
struct sim_key {
        uint64_t key, in_file;
        uint8_t level;
        uint16_t lease;
};

struct sim {
        uint64_t seed;
        struct prng rng;
        bool trace;
        unsigned fail_in_reload;      /* the allocation of the first reload that fails; 0: none */
        uint64_t digest;         /* of the history so far */
        usec_t now;
        struct fabsim f;
        struct events events;
        struct faults faults;
        bool quiet;              /* faults are over */
        usec_t quiet_at, calm_at, end_at; /* calm: all consequences are over, and no absent port counts */
        bool use_directed_routes, has_rival, moves_cables, has_pkeyctl;
        enum settings_writer writer;
        enum settings_role role;
        bool mirrors;
        usec_t handed_over_at;
        unsigned n_nodes;        /* without those that are forged */
        uint16_t next_lid;
        unsigned next_host;      /* an unused name */
        unsigned host_of[FABSIM_MAX_NODES], device_of[FABSIM_MAX_NODES]; /* the present names of CAs */

        struct fabsim_place endports[SIM_MAX_ENDPORTS];
        unsigned n_endports;
        struct sim_key keys[SIM_MAX_ENDPORTS];
        struct m_keys *m_keys;   /* as read from the file; NULL: there is none */
        unsigned n_wrong_keys;
        bool has_own_keys;       /* each port has its own */
        char *neighbors;         /* OpenSM's file of links; NULL: none */
        bool has_moved_cables;   /* since then */
        struct prng scene_rng;
        struct prng clock_rng;
        struct prng load_rng;
        struct prng admin_rng;
        bool boots_again;        /* a head node, before its pkeyd starts */
        int64_t first_wall, last_wall; /* the least and the most that a wall clock ever had */
        struct prng undo_rng, lease_rng, share_rng, mail_rng;
        bool shares_store;
        struct sim_mailbox mailbox;
        struct sim_ledger ledger;
        struct prng lie_rng;
        bool copies_switches;    /* switches always answer */
        unsigned n_liars;        /* that lie now */
        unsigned liar;           /* the endport whose cable the liar has */
        struct fabsim_place was_at[SIM_MAX_ENDPORTS]; /* the place of the cable that a scene last pulled */
        struct intent intents[SIM_MAX_INTENTS];
        unsigned n_intents;

        struct head heads[SIM_MAX_HEADS];
        unsigned n_heads;
        struct process processes[SIM_MAX_PROCESSES];
        unsigned n_processes;
        uint64_t last_life, last_request, last_lease_request;
        struct sim_lease_request last_asked[SIM_LEASE_IDS];
        struct judgement *judgements;
        struct basis *bases;

        struct { bool is_out; unsigned process; uint32_t tid; usec_t until; } outstanding[FABSIM_MAX_NODES][FABSIM_MAX_PORTS + 1];
        struct { unsigned process; uint32_t tid; bool is_there; } last_set[FABSIM_MAX_NODES][FABSIM_MAX_PORTS + 1];
        struct table_record tables[SIM_MAX_TABLES];
        unsigned n_tables;
        uint8_t table_at[FABSIM_MAX_NODES][FABSIM_MAX_PORTS + 1]; /* + 1; 0: none is there */
        usec_t moved_at[SIM_MAX_ENDPORTS];     /* when its cable, its name or its SM LID changed */
        usec_t lid_moved_at[SIM_MAX_ENDPORTS];
        usec_t cables_moved_at;
        usec_t uplink_moved_at[FABSIM_MAX_NODES]; /* of a switch */
        bool is_lost[FABSIM_MAX_NODES];        /* it does not return */
        bool is_replaced[FABSIM_MAX_NODES];    /* the device that was there does not return */
        bool is_gone[SIM_MAX_HEADS][SIM_MAX_ENDPORTS]; /* it cannot be reached from this head node */
        usec_t gone_at[SIM_MAX_HEADS][SIM_MAX_ENDPORTS]; /* ... and could not until this time */
        struct reach reach[SIM_MAX_ENDPORTS][SIM_BASES]; /* by the present tables */
        struct sim_counters counters;
        bool failed;
        char failure[256];
};

/* Two head nodes that share a store, and all that can be asked of them. */
static inline bool sim_passes_on(const struct sim *s)
{
        return s->seed >= SIM_PASS_SEEDS;
}

static inline bool sim_has_undos(const struct sim *s)
{
        return (s->seed >= SIM_UNDO_SEEDS && s->seed < SIM_SHARE_SEEDS) || sim_passes_on(s);
}

static inline bool sim_has_leases(const struct sim *s)
{
        return (s->seed >= SIM_LEASE_SEEDS && s->seed < SIM_SHARE_SEEDS) || sim_passes_on(s);
}

/* Records the first failure; the simulation ends soon after. */
void sim_fail(struct sim *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sim_trace(struct sim *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Adds text to the digest of the history. */
void sim_digest(struct sim *s, const char *text);
static const uint16_t sim_bases[SIM_BASES] = {
        0x7fff, 0x0010, 0x0011, 0x0012, 0x0013, 0x0014, 0x0015, 0x0016, 0x0017, 0x0018, 0x0f01, 0x0f02, 0x0f03, 0x0f04,
};

/* The index of a base in sim_bases; SIM_BASES: not found. */
static inline unsigned sim_base_number(uint16_t base)
{
        if (base == 0x7fff)
                return 0;
        if (base >= 0x0010 && base <= 0x0018)
                return base - 0x0010u + 1;
        return base >= 0x0f01 && base <= 0x0f04 ? base - 0x0f01u + 10 : SIM_BASES;
}

/* P_Keys of pools, which no partition has. */
static inline bool sim_is_of_pool(uint16_t base)
{
        return base >= 0x0f01 && base <= 0x0f04;
}

/* world.c */
void world_make(struct sim *s);
void world_external(struct sim *s, const struct event *e);
/* Schedules a random event for this time. */
void world_schedule(struct sim *s, usec_t at);
/* Schedules edits, confirmations and undos, by random numbers of their own, so that all other histories are as they were. */
void world_schedule_undos(struct sim *s);
/* Schedules requests for leases, by random numbers of their own. */
void world_schedule_shared(struct sim *s);
void world_schedule_passing(struct sim *s);
void world_schedule_clients(struct sim *s);
/* A client of this head node asks for the same lease again, if faults are not over by then. */
void world_ask_again(struct sim *s, unsigned head, unsigned id, usec_t at);
/* An impatient client asks the same once more, soon. */
void world_ask_same(struct sim *s, unsigned head, unsigned id);
unsigned world_endport_at(const struct sim *s, struct fabsim_place p); /* UINT32_MAX: none */
void world_restart(struct sim *s, unsigned head, usec_t at);
/* The present places of all endports, seen from this head node, for a discovery that began at `began`. */
void world_take_census(struct sim *s, const struct head *h, usec_t began, struct census *ret);
/* Ends all faults; pkeyd has to repair what they changed. */
void world_be_quiet(struct sim *s);
/* A node or a cable was removed or added. */
void world_note_gone(struct sim *s);
/* An admin installs a new policy. */
void world_edit(struct sim *s);
/* The master SM moves to the other head node. */
void world_hand_over(struct sim *s);
/* p is about to write: checks that its head node may. */
void world_check_writer(struct sim *s, const struct process *p);

/* mailbox.c */
/* Passes on the request of a caller that waits at p. */
void mailbox_ask(struct sim *s, struct process *p, const struct sim_lease_request *q);
/* p answers a request of the mailbox. */
void mailbox_reply(struct sim *s, struct process *p, const struct lease_reply *reply);
/* After each event of p: whether it carries out requests. */
void mailbox_update(struct sim *s, struct process *p);
void mailbox_event(struct sim *s, const struct event *e);
/* p is gone; what it left stays until its leases of etcd end. */
void mailbox_forget(struct sim *s, const struct process *p);
void mailbox_done(struct sim *s);

/* ledger.c */
/* A commit of p has taken effect. */
void ledger_stored(struct sim *s, const struct process *p);
/* p answers a client. */
void ledger_answered(struct sim *s, const struct process *p, const struct sim_lease_request *q, const struct lease_reply *reply);
/* p is about to write entries: those of pools belong to members of stored leases. */
void ledger_check_set(struct sim *s, const struct process *p, const struct mad_frame *frame, struct fabsim_place at);
/* Somebody asks p to confirm the generation in force, or to undo it. */
void ledger_asked(struct sim *s, const struct process *p, enum control_event_kind kind);
/* A pkeyctl has stored that this generation is confirmed. */
void ledger_confirmed(struct sim *s, uint64_t number);
/* Everything is calm, and p has converged. */
void ledger_settled(struct sim *s, const struct process *p);

/* clients.c */
#define CLIENTS_AGAIN 1000 /* what an event has more than the number of an ID: the same lease, again */
#define CLIENTS_SAME  2000 /* ... the last request about this ID, once more */
/* A client of the pkeyd on this head node asks for something. */
void clients_ask(struct sim *s, const struct event *e);
/* A pkeyd starts. */
void clients_start(struct sim *s, struct process *p);
/* The leases of p after an event: how they changed, and which ones its last plan has. True: other ones. */
bool clients_watch(struct sim *s, struct process *p);
void clients_answered(struct sim *s, struct process *p, const struct lease_reply *reply);
/* p takes a request out of the mailbox. */
void clients_take(struct sim *s, struct process *p, const struct sim_lease_request *q, const struct lease_request *request);
/* A caller at p is answered by the other head node. */
void clients_told(struct sim *s, struct process *p, const struct sim_lease_request *q, const struct lease_reply *reply);
/* p loads the leases of a store that head nodes share. */
void clients_load(struct sim *s, struct process *p);
/* The request as control gets it; members and pool are for its texts. */
#define CLIENTS_MEMBERS (SIM_WISHED_HOSTS * 32)
struct lease_request clients_request(const struct sim_lease_request *q, char members[CLIENTS_MEMBERS], char pool[8]);
const char *clients_id(unsigned id);
/* UINT32_MAX: another device is there now. */
unsigned clients_endport(const struct sim *s, struct guid port);
/* Everything is calm, and p has converged. */
void clients_settled(struct sim *s, const struct process *p);

/* scenes.c */
void scenes_make(struct sim *s);
void scenes_event(struct sim *s, const struct event *e);

/* clocks.c */
void clocks_make(struct sim *s);
void clocks_event(struct sim *s, const struct event *e);
/* A process starts on this head node. */
void clocks_start(struct sim *s, struct head *h);
/* The monotonic clock of a head node; and such a time in virtual time. */
usec_t clocks_now(const struct sim *s, const struct head *h);
usec_t clocks_virtual(const struct head *h, usec_t monotonic);
usec_t clocks_wall(const struct sim *s, const struct head *h);
/* How much longer or shorter a time may be that is counted by several wall clocks, or by one that is set meanwhile. */
usec_t clocks_slack(const struct sim *s);

/* keys.c */
void keys_make(struct sim *s);
/* Restores the original keys. */
void keys_restore(struct sim *s);
/* Does m_key_file have a wrong M_Key for the SMA there? */
bool keys_are_wrong(const struct sim *s, struct fabsim_place at);
/* Do the keys keep it from being discovered? */
bool keys_hide(const struct sim *s, unsigned endport);
void keys_check_frame(struct sim *s, const struct process *p, const struct mad_frame *frame, struct fabsim_place at);

/* head.c */
void head_make(struct sim *s, struct head *h, struct fabsim_place place);
void head_done(struct head *h);
struct sim_file *head_file(struct head *h, const char *path); /* NULL: there is none */
void head_write_file(struct sim *s, struct head *h, const char *path, const char *bytes, size_t n, const struct process *by);
/* Reads both files. Returns owned; NULL: findings say why. */
struct generation *head_load(struct sim *s, struct head *h, struct findings *findings);
/* The same when a pkeyd starts: files that an undo put out of force are not loaded. */
struct generation *head_load_at_start(struct sim *s, struct head *h, const struct control_start *start, struct findings *findings);
/* What control asks for with CONTROL_LOAD_UNDO; NULL: it cannot be loaded. */
struct generation *head_load_undo(struct sim *s, struct head *h, const struct control_undo *undo, struct findings *findings);
/* In some histories stores cannot be read for a while. */
void head_schedule(struct sim *s);
void head_event(struct sim *s, const struct event *e);
/* Tries to read the store of a head node; false: that fails. */
bool head_can_load(struct sim *s, const struct head *h);
/* All records of a store, as read in this boot. */
struct remembered *head_read_store(const struct sim_store *store, const char *boot);
/* A generation as it is stored; false: the store has none. */
bool head_read_files(const struct sim_store *store, struct arena *a, uint64_t number, struct stored_files *ret);
/* Whether others may have stored something since p loaded everything. */
bool head_is_outdated(const struct process *p);
/* The stored state of p; members of ret are owned by the caller. */
void head_recall(struct sim *s, struct process *p, struct control_start *ret);
/* -ENOSPC: it failed; -EIO: it failed, but was stored; -EUCLEAN: an empty store has replaced the previous one. */
int head_store(struct sim *s, struct process *p, const struct store_transaction *t);
/* A pkeyctl stores that the generation in force by the store is confirmed, if that waits; and whether it did so, and no later one
 * is stored. */
void head_confirm(struct sim *s, struct head *h);
bool head_is_confirmed(const struct head *h, uint64_t number);
/* Deletes the state of the head node. */
void head_forget(struct head *h);
/* pkeyctl forget: a person vouches, rightly or wrongly, that an absent or silent endport holds nothing. False: it is present. */
bool head_vouch(struct sim *s, struct head *h, unsigned endport);
void head_lock(struct sim *s, struct process *p, struct control_lock *ret);
void head_unlock(struct process *p);
/* What a head node that shares the store reads of it without the lock. */
void head_follow(struct sim *s, struct process *p, struct control_lock *ret);
/* Of a store that head nodes share: what this process believes of its lock, and whether that is so. */
bool head_believes_in_lock(const struct sim *s, const struct process *p);
bool head_has_lock(const struct sim *s, const struct process *p);
/* The process runs: it renews its lease. */
void head_renew(struct sim *s, struct process *p);

/* opensm.c */
/* pkeyd wrote this partition file. */
void opensm_file_written(struct sim *s, struct sim_file *f);
void opensm_start(struct sim *s, struct head *h);
/* In some histories an admin edits partition files of pkeyd, and hands them over to it again after a while. */
void opensm_schedule_edits(struct sim *s);
void opensm_edit(struct sim *s, const struct event *e);
void opensm_event(struct sim *s, const struct event *e);
/* As kill(2) on its process; signal 0 only checks. Returns 0 or -ESRCH. */
int opensm_signal(struct sim *s, struct head *h, int signal);
/* Makes it crash, hang, or read its file. */
void opensm_disturb(struct sim *s, struct head *h);

/* process.c */
void process_start(struct sim *s, struct process *p, struct head *h, enum control_goal goal);
void process_kill(struct sim *s, struct process *p);
/* It is killed, and started again after a while. */
void process_die(struct sim *s, struct process *p);
/* Another head node has stored something. */
void process_store_changed(struct sim *s, struct process *p);
/* When control or the port of this process is next due. */
usec_t process_due(const struct process *p);
void process_tick(struct sim *s, struct process *p);
void process_receive(struct sim *s, struct process *p, const struct event *e);
void process_answer(struct sim *s, struct sim_answer *a);
/* Frees an answer that will not be delivered. */
void process_drop(struct sim_answer *a);
void process_hangup(struct sim *s, struct process *p);
/* Somebody confirms or undoes. */
void process_ask(struct sim *s, struct process *p, enum control_event_kind kind);
/* A client asks for p->asking. */
void process_lease(struct sim *s, struct process *p, const struct lease_request *q);
void process_stop(struct sim *s, struct process *p);
void process_verbs(struct sim *s, struct process *p, enum verbs_event_kind kind);

/* wire.c */
void wire_send(struct sim *s, struct process *p, const struct mad_frame *frame);
void wire_arrive(struct sim *s, struct event *e);
void wire_deliver(struct sim *s, struct event *e);
/* The engine of p took an answer. */
void wire_answered(struct sim *s, struct process *p, const struct event *e);
void wire_forget(struct sim *s, const struct process *p);
/* p no longer waits for answers; its frames in flight still arrive. */
void wire_abandoned(struct sim *s, const struct process *p);

/* observer.c */
/* The table at a place; NULL: none, or one that is not observed. */
struct table_record *observer_table(struct sim *s, struct fabsim_place at);
/* The leaf port of an endport; and the endport at a leaf port, or itself; false, UINT32_MAX: none. Also if they are down:
 * an unplugged port that returns is at its old place, or was moved. */
bool observer_leaf(const struct sim *s, unsigned endport, struct fabsim_place *ret);
unsigned observer_endport(const struct sim *s, struct fabsim_place at);
/* Another writer changed this base in a table in this sweep, or since the snapshot of the plan, so that the plan is
 * outdated there. */
bool observer_changed_in_sweep(const struct process *p, const struct table_record *r, uint16_t base);
/* The observations of p were stored: tables and ports. */
void observer_store(const struct process *p, struct observer *to);
/* p loads the stored observations. */
void observer_load(struct process *p);
/* Initializes an observer without observations. */
void observer_init(struct observer *o);
/* The engine of p sent this frame. */
void observer_sent(const struct sim *s, struct process *p, const struct mad_frame *frame, struct fabsim_place at, bool again);
/* ... to a LID that leads to no port. */
void observer_sent_nowhere(const struct sim *s, struct process *p, const struct mad_frame *frame);
void observer_answered(struct sim *s, struct process *p, const struct event *e);
/* A stage of p ended: its reads are known from now on, except filters that a discovery read. Where another port answered at
 * an address, none of them is. */
void observer_stage_ended(struct sim *s, struct process *p);
/* Discards the reads of the running stage. */
void observer_forget_stage(struct sim *s, struct process *p);
/* A sweep of p ended: filters that its discovery could not read are not known. */
void observer_swept(struct process *p);
/* p has a new snapshot of the fabric: its census is completed by earlier observations. */
void observer_discovered(struct sim *s, struct process *p, const struct subnet *subnet);
/* A Set of p changed an entry. */
void observer_wrote(struct sim *s, struct process *p, const struct table_record *r, unsigned index);
/* Another device is at this endport now. */
void observer_forget(struct sim *s, unsigned endport);
/* The pkeyds of both head nodes. */
bool observer_is_pair(const struct sim *s, unsigned x, unsigned y);
/* A policy is in force that the pkeyd of the other head node may carry out, too. */
void observer_suspect(struct sim *s, struct process *p);
/* Another policy is in force: bases that it does not give have no index to return to. */
void observer_judged(struct sim *s, struct process *p);
/* What p cannot know at this time. */
void observer_basis(const struct sim *s, const struct process *p, struct basis *ret);

/* promises.c */
/* Records the state before pkeyd starts. */
void promises_begin(struct sim *s);
/* p follows this judgement from now on: the levels of each endport by the policy. */
void promises_judged(struct sim *s, struct process *p, struct judgement *j);
/* p has carried out its policy: records the levels that it gave to ports that are not frozen; frozen ones must have a reason. */
void promises_given(struct sim *s, struct process *p);
/* Why an endport may hold this base without p knowing of it: p was not told, or could not see it. */
bool promises_excuse_holder(const struct sim *s, const struct basis *basis, unsigned endport, unsigned b);
/* Can two endports communicate in a base, in either model of a switch? */
bool promises_can_talk(const struct sim *s, unsigned x, unsigned y, unsigned b);
/* The Set of this event, with this basis, changed the table at a place. */
void promises_changed(struct sim *s, const struct basis *basis, const struct event *e, struct fabsim_place at);
/* An OpenSM changed an endport and its leaf port at once, from a file of pkeyd. */
void promises_rewritten(struct sim *s, const struct opensm *o, unsigned endport);
/* Another writer changed the table at a place. */
void promises_disturbed(struct sim *s, struct fabsim_place at);
/* Its cable, its name, or the place of the SM changed. */
void promises_moved(struct sim *s, struct fabsim_place at);
/* p is about to send a SubnSet. */
void promises_check_set(struct sim *s, const struct process *p, const struct mad_frame *frame, struct fabsim_place at);
/* A sweep of p ended. */
void promises_swept(struct sim *s, const struct process *p);
/* Checks that p has converged after the end of faults. */
void promises_converged(struct sim *s, const struct process *p);
