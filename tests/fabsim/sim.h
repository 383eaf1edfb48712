/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Deterministic simulation: the real core of pkeyd against the virtual fabric, in virtual time, single-threaded.
 *
 *     world.c     a random fabric, and what happens to it unasked: rivals, reboots, cables, names, edits of the policy
 *     intent.c    a random policy as data, its text for policy_parse, and what it means (an oracle of its own)
 *     keys.c      M_Keys of the ports, and what pkeyd's file says of them
 *     wire.c      frames on their way: latency, loss, and every other fault; looks at each frame that pkeyd sends
 *     daemon.c    the passes of src/pkeyd/pass.c over the core's stages, without the shell
 *     promises.c  what must be true, looked at after every event that changed a table
 *
 * One 64-bit seed makes one history, byte for byte. Nothing here reads a clock or an address.
 */

#include "apply/apply.h"
#include "events.h"
#include "fabric.h"
#include "mad_engine/mad_engine.h"
#include "pkeyd/picture.h"
#include "plan/plan.h"
#include "prng.h"
#include "reconcile.h"
#include "watch/watch.h"

#define SIM_MAX_PARTITIONS 8
#define SIM_MAX_RULES      8
#define SIM_MAX_INTENTS    64
#define SIM_MAX_ENDPORTS   40
#define SIM_BASES          14 /* that any table or policy of a simulation ever holds */

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
        enum membership membership;
};

struct intent_partition {
        uint16_t base;
        bool index0;
        struct rule rules[SIM_MAX_RULES];
        unsigned n_rules;
};

/* What an admin wants: the policy and the settings. */
struct intent {
        struct intent_partition partitions[SIM_MAX_PARTITIONS]; /* [0]: the default partition */
        unsigned n_partitions;
        bool has_owns;          /* only 0x7fff and 0x0001-0x00ff */
        bool is_broken;         /* its text is no policy */
        struct settings settings;
};

/* Who is where and how it is called, as it was when the daemon discovered the fabric. */
struct census_entry {
        bool is_there;
        bool is_self, is_sm;
        enum node_type type;
        unsigned host, device;  /* what it calls itself */
        bool is_plugged;
        struct fabsim_place plugged_into; /* a switch's port */
        bool can_enforce;       /* that switch */
};

struct census {
        struct census_entry entries[SIM_MAX_ENDPORTS]; /* by endport */
};

struct sim;

void intent_make(struct sim *s, struct intent *ret);
/* The text of partitions.yaml; static buffer of the caller. */
void intent_print(const struct sim *s, const struct intent *it, char *ret, size_t size);
/* What the policy makes of an endport: the oracle. */
enum membership intent_membership(const struct sim *s, const struct intent *it, const struct census *c, unsigned endport,
                                  unsigned partition);
/* May pkeyd touch entries of this base? */
bool intent_may_touch(const struct intent *it, uint16_t base);
/* P_Keys that the table of an endport (or, enforcing, of the switch port beside it) should hold. */
unsigned intent_wants(const struct sim *s, const struct intent *it, const struct census *c, unsigned endport,
                      bool enforcing, struct p_key ret[2 * SIM_MAX_PARTITIONS]);

/* --- the simulation -------------------------------------------------------------------------------------------------- */

/* How often things go wrong, of a thousand. */
struct faults {
        unsigned lose_request, lose_answer, late, twice, busy, status_undone, status_done, cut_short, stranger, wrong_modifier;
        unsigned kill;          /* pkeyd, at a MAD that it sends */
        unsigned trigger;       /* something external within the next moments, at a Set */
};

/* A policy that was accepted or is about to be, with what pkeyd's core made of its text. */
struct sim_generation {
        struct arena *arena;
        struct policy *policy;
        struct plan_options options;
        const struct intent *intent;
        unsigned number;
};

enum sim_pass { SIM_FULL, SIM_KNOWN, SIM_RETRY };
enum sim_result { SIM_DONE, SIM_PARTIAL, SIM_REFUSED, SIM_ENDED, SIM_ERROR, SIM_KILLED };

/* What src/pkeyd/daemon.h keeps. */
struct sim_daemon {
        struct mad_engine *engine;
        uint8_t retries;                           /* of its stages */
        struct picture *picture;
        struct census census;                      /* of the picture */
        struct sim_generation *generation, *candidate;
        unsigned last_number, watched;
        struct index_memory *memory, *disk;        /* in memory; as it was last written down */
        const struct intent *disk_intent;          /* the last policy in force, as it was written down */
        struct watch *watch;
        usec_t sweep_at, retry_at, retry_delay;
        bool reload_due, sweep_soon;
        struct apply *applying;                    /* while a plan is carried out */
        struct reconciled decision;                /* of the pass; its plan is what Sets are checked against */
        bool may_set;                              /* an apply runs */
        bool killed, ended;
        unsigned n_full;                           /* sweeps that were carried through since faults stopped */
        unsigned n_quiet;                          /* sweeps that began since then, whatever came of them */
        bool held[P_KEY_BASE_MASK + 1];            /* bases that the last apply held back */
        unsigned n_held;
        enum sim_result last_result;
};

/* What is remembered of each table, from the fabric's side. */
struct table_record {
        usec_t changed_at;       /* when somebody else than pkeyd last changed it, or its surroundings */
        bool is_known;           /* pkeyd read it whole since then */
        struct p_key at_start[FABSIM_MAX_ENTRIES];  /* when the transition began: A */
        uint16_t freed[FABSIM_MAX_ENTRIES];         /* the base that pkeyd freed an index from; 0: none, or forgotten */
        bool freed_unsaved[FABSIM_MAX_ENTRIES];     /* ... and has not written down */
        bool passed_on;          /* in this transition an index passed from one base to another */
        bool was_disturbed;      /* by somebody else, ever */
};

/* Levels as sender and receiver in each base, in both models of a switch (strict, lenient). */
struct reach {
        uint8_t sends[2], receives[2];
};

struct transition {
        bool is_on;
        bool armed[SIM_MAX_ENDPORTS];
        struct reach from[SIM_MAX_ENDPORTS][SIM_BASES], to[SIM_MAX_ENDPORTS][SIM_BASES], now[SIM_MAX_ENDPORTS][SIM_BASES];
        bool skip[SIM_MAX_ENDPORTS][SIM_BASES];
        usec_t began;
        const struct intent *intent;
        struct census census;
};

struct sim_counters {
        uint64_t events, frames, sets, pairs_checked, transitions, verified, passed_on_checked, converged, refused;
        uint64_t key_failures, converged_without_keys;
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
        uint64_t digest;         /* of the history so far */
        usec_t now;
        struct fabsim f;
        struct events events;
        struct faults faults;
        bool quiet;              /* faults are over */
        usec_t quiet_at, end_at;
        bool use_directed_routes, has_rival, moves_cables;
        uint16_t next_lid;
        unsigned next_host;      /* a name that nobody has yet */
        unsigned host_of[FABSIM_MAX_NODES], device_of[FABSIM_MAX_NODES]; /* what a CA is called now */
        struct fabsim_place home[FABSIM_MAX_NODES][FABSIM_MAX_PORTS + 1]; /* where a CA's cables go in the end */
        bool has_home[FABSIM_MAX_NODES][FABSIM_MAX_PORTS + 1];

        struct fabsim_place endports[SIM_MAX_ENDPORTS];
        unsigned n_endports;
        struct sim_key keys[SIM_MAX_ENDPORTS];
        struct m_keys *m_keys;   /* as read from the file; NULL: there is none */
        unsigned n_wrong_keys;
        struct intent intents[SIM_MAX_INTENTS];
        unsigned n_intents, intent_on_file;

        struct { bool is_out; uint32_t tid; usec_t until; } outstanding[FABSIM_MAX_NODES][FABSIM_MAX_PORTS + 1];
        uint32_t last_set[FABSIM_MAX_NODES][FABSIM_MAX_PORTS + 1]; /* transaction of the last Set */
        bool has_set;
        struct table_record tables[FABSIM_MAX_NODES][FABSIM_MAX_PORTS + 1];
        struct transition transition;
        struct sim_daemon daemon;
        struct sim_counters counters;
        bool failed;
        char failure[256];
};

/* The first failure counts; everything comes to an end soon after. */
void sim_fail(struct sim *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sim_trace(struct sim *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
static const uint16_t sim_bases[SIM_BASES] = {
        0x7fff, 0x0010, 0x0011, 0x0012, 0x0013, 0x0014, 0x0015, 0x0016, 0x0017, 0x0018, 0x0f01, 0x0f02, 0x0f03, 0x0f04,
};

/* world.c */
void world_make(struct sim *s);
void world_external(struct sim *s, const struct event *e);
/* Something at random, at this time. */
void world_schedule(struct sim *s, usec_t at);
unsigned world_endport_at(const struct sim *s, struct fabsim_place p); /* UINT32_MAX: none */

/* keys.c */
void keys_make(struct sim *s);
/* What was done to them on the way is undone. */
void keys_restore(struct sim *s);
/* Is what m_key_file says of the SMA there not its M_Key? */
bool keys_are_wrong(const struct sim *s, struct fabsim_place at);
void keys_check_frame(struct sim *s, const struct mad_frame *frame, struct fabsim_place at);
void keys_check_failure(struct sim *s, struct fabsim_place at, const struct apply_outcome *o);

/* wire.c */
void wire_send(struct sim *s, const struct mad_frame *frame);
void wire_arrive(struct sim *s, struct event *e);
void wire_deliver(struct sim *s, struct event *e);
void wire_forget(struct sim *s);

/* daemon.c */
void daemon_start(struct sim *s);
void daemon_stop(struct sim *s);
/* Waits until something is due and does it. */
void daemon_step(struct sim *s);
void daemon_hup(struct sim *s);
/* The next event, or the engine's deadline, whatever comes first but not behind `until`. False: there is none. */
bool sim_step(struct sim *s, usec_t until);

/* promises.c */
void promises_read(struct sim *s, const struct observed *o, usec_t began, bool whole);
void promises_begin(struct sim *s);
void promises_end(struct sim *s, bool clean);
/* pkeyd's own Set changed a table (before: as it was); somebody else changed what is at a place. */
void promises_set(struct sim *s, struct fabsim_place at, const struct p_key *before, uint16_t block);
void promises_enforcement(struct sim *s, struct fabsim_place at);
void promises_disturbed(struct sim *s, struct fabsim_place at);
/* A SubnSet is about to go out. */
void promises_check_set(struct sim *s, const struct mad_frame *frame, struct fabsim_place at);
struct fabsim_place promises_place_of(const struct sim *s, const struct subnet *subnet, uint32_t port);
void promises_verified(struct sim *s, const struct verification *v);
void promises_converged(struct sim *s);
void promises_saved(struct sim *s);
void promises_lost(struct sim *s);
