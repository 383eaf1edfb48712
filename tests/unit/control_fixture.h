/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A shell of control for unit tests: it records the actions of control, and answers them when the test says so.
 *
 *     start(settings, policy)      starts a pkeyd
 *     take(kind)                   the next pending action, which must be of this kind
 *     give_*(...)                  gives an answer chosen by the test
 *     answer()                     carries out the next action, and answers as a healthy host would
 *     until(state), sweep()        repeats answer()
 *
 * The fabric is a virtual one (tests/fabsim): head1, a leaf switch that can enforce, and three hosts. Stages run against it in no
 * virtual time. Log entries, records, answers to reloads and the end are recorded separately from the actions that need an answer.
 */

#include <check.h>
#include <errno.h>
#include <string.h>

#include "control/control.h"
#include "../fabsim/fabric.h"

#define N_HOSTS 3

/* Policies: default with head1 full, and p (0x0010) with the first n hosts. */
#define POLICY_0 "version: 1\npartitions:\n  p:\n    pkey: 0x0010\n    members: {}\n"
#define POLICY_1 "version: 1\npartitions:\n  p:\n    pkey: 0x0010\n    members:\n      node1: full\n"
#define POLICY_2 POLICY_1 "      node2: full\n"
#define POLICY_3 POLICY_2 "      node3: full\n"
/* The planner refuses it: no host has this name. */
#define POLICY_REFUSED                                                                                                 \
        "version: 1\nstrict: true\npartitions:\n  p:\n    pkey: 0x0010\n    members:\n      nobody: full\n"
#define AUDIT "mode: audit\nbeside_opensm: true\n"
#define ENFORCE "mode: enforce\nbeside_opensm: true\n"
#define FOLLOW_SM "mode: enforce\nrole: follow-sm\n"
#define FILE_CONF "/etc/opensm/partitions.conf"
#define FILE_OPENSM_CONF "/etc/opensm/opensm.conf"
#define OPENSM "mode: enforce\nwriter: opensm\nopensm: {partitions_conf: " FILE_CONF ", reload: \"pid:2\"}\n"
#define OPENSM_WITH_CONF                                                                                               \
        "mode: enforce\nwriter: opensm\nopensm: {partitions_conf: " FILE_CONF                                          \
        ", reload: \"pid:2\", config: " FILE_OPENSM_CONF "}\n"
#define MIRROR "mode: enforce\nopensm: {mirror: " FILE_CONF "}\n"

/* --- the fabric --- */

extern struct fabsim f;
extern unsigned head, leaf, hosts[N_HOSTS];
extern struct guid local_guid; /* of the port that pkeyd works through: that of head1 */
extern unsigned n_sets, n_gets; /* requests of stages */
/* True: no answer. NULL: all are answered. */
extern bool (*lose)(const struct mad_request *request, struct fabsim_place at);
/* Called before each request is carried out. NULL: not called. */
extern void (*before_request)(const struct mad_request *request);

struct fabsim_port *port_of(unsigned node);
/* The port that pkeyd works through is another one, which leads to another fabric: all GUIDs are `by` higher. */
void move_to_other_fabric(uint64_t by);
/* Does the table of this node's port 1 hold the P_Key? */
bool holds(unsigned node, uint16_t key);
void put_key(unsigned node, unsigned index, uint16_t key);
/* During an apply: the present first block of port 1 of this node. */
void hear_table(unsigned node);
/* The reason why the gate refuses any Set now. */
const char *refusal_of_a_set(void);

/* --- files --- */

#define MAX_FILES 8

struct fixture_file {
        char path[64];
        char *bytes; /* NULL: no file */
        size_t n;
        int r; /* of reading it */
};
struct fixture_file *file_at(const char *path);
void put_file(const char *path, const char *text);
/* Sets all tables to the partition file, except those of the node out_of_reach. */
void opensm_reads_file(void);
extern unsigned out_of_reach; /* UINT32_MAX: none */

/* --- control --- */

extern struct control *c;
extern struct arena *arena;      /* of the test */
extern struct findings findings; /* of a goal other than CONTROL_SERVE */
extern usec_t now, wall_offset;  /* of the wall clock from `now` */

/* Actions of control that need no answer. */
struct noted {
        unsigned n_closed, n_unlocked, n_stored, n_abandoned;
        size_t n_ops; /* of the last transaction */
        unsigned n_undos;                           /* CONTROL_LOAD_UNDO, and the last one */
        struct control_undo undo;
        bool exited;
        int exit_r;
        uint64_t stored_generation;                 /* number of the last stored one */
        char stored_facts[1024];                    /* the record with the facts of a generation that was stored last */
        unsigned n_indexes, n_known, n_pins, n_generations, n_facts, n_tables; /* transactions with records of each kind */
        unsigned n_withdrawn;                       /* answers that a reload was withdrawn */
        unsigned n_answers;                         /* to reloads */
        enum reload_outcome outcome;                /* of the last of them */
        uint64_t answered_generation;
        char answer[CONTROL_TEXT_MAX];
        uint64_t requests[8];
        size_t n_requests, n_findings;
        enum finding_code code;                     /* of its last finding */
        unsigned n_of_outcome[LEASE_UNSTORED + 1];  /* answers to requests for leases */
        unsigned n_lease_answers;                   /* and of the last of them: */
        uint64_t lease_request;
        enum lease_outcome lease_outcome;
        uint16_t leased_base;
        char lease_text[512];                       /* the last finding, or the sentence */
        unsigned n_leases;                          /* transactions with records of leases */
};
extern struct noted noted;
/* Transactions are committed at once with this result, or wait like other actions. */
extern int store_r;
extern bool store_waits;
extern bool shares_store; /* with another head node; for control that is started later */
extern bool lock_is_held; /* as the gate is told; true */
extern bool store_is_outdated; /* as control is told; false */
extern bool is_inside; /* in the code under test, not in the fixture */

void setup(void);
void teardown(void);
/* Records of leases and rests that were stored; every start restores them. */
size_t n_kept_records(void);

/* Returns owned. */
struct generation *make_generation(const char *settings, const char *policy);
/* settings NULL: both files are refused with one error. in_force NULL: no policy was in force before. */
void start_with(enum control_goal goal, const char *settings, const char *policy, struct generation *in_force);
void start(const char *settings, const char *policy);
/* NULL: the files were refused. Control takes the generation. */
void start_generation(enum control_goal goal, struct generation *candidate, struct generation *in_force);

/* Gives an event at `now`. Returns the result of control_event. */
int give(struct control_event *event);
/* The process has ended: nothing answers its actions. */
void drop_actions(void);
int give_kind(enum control_event_kind kind);
int give_port(int r);
int give_stage_end(int r);
int give_lock(int r, int pid);
int give_stored(int r);
/* Does the transaction put an unconfirmed write of block 0 of this node's table? */
bool writes_are_stored(const struct store_transaction *t, unsigned node);
int give_verbs(enum verbs_event_kind kind);
int give_file_written(int r);
int give_signalled(int r);
/* policy NULL: the files were refused, with one error. */
int give_candidate(const char *settings, const char *policy, uint64_t request);
int give_generation(struct generation *candidate, uint64_t request);
/* What a shell does with the last CONTROL_LOAD_UNDO. policy NULL: it could not be loaded. */
int give_undo(const char *settings, const char *policy);
/* Advances to the due time of control, which must be finite. */
void wait_until_due(void);

/* The next pending action; valid until the next event. Fails if there is none, or another one. */
/* The stage of the next action, which is not taken. NULL: another action is pending, or none, or it was abandoned. */
const struct mad_stage *stage_to_run(void);
const struct control_action *take(enum control_action_kind kind);
/* Is no action pending? */
void take_nothing(void);
bool waits(void);
/* Is an action of this kind the next one? */
bool is_next(enum control_action_kind kind);
/* Runs the stage against the fabric without an event to control. */
void run_stage(const struct mad_stage *stage);
/* Carries out the next action, and gives the answer. */
void answer(void);
void until(enum control_state state);
/* Answers until control is idle or has ended. */
void sweep(void);
/* Carries out what is due until `when`. */
void live_until(usec_t when);
enum control_state state(void);
const struct control_status *status(void);

/* --- the log --- */

#define MAX_LOGGED 256

struct logged {
        enum log_event event;
        char text[1024];
        uint64_t generation;
        char node[64];
        struct guid port_guid;
        bool is_finding;
};
extern struct logged logged[MAX_LOGGED];
extern size_t n_logged;

unsigned count_logged(enum log_event event);
/* The last entry of this kind; fails if there is none. */
const struct logged *last_logged(enum log_event event);
void expect_logged(enum log_event event, const char *part);
void forget_log(void);

/* Runs the suite of these tests. */
int run_suite(const char *name, const TTest *const *tests, size_t n);
