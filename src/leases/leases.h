/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * leases/: membership at run time.
 *
 * The policy says what may be handed out (its pools); a lease gives one P_Key of a pool to some ports, for an owner, until an end.
 * A lease in force is one more partition of the policy, and so it is for the memberships, the plan, the rule and the gate.
 *
 *     request --> granting --all tables read back--> active --released, or its time is over--> releasing --no holder--> ended
 *                    '----- not in time ------------------------------------------------------------^
 *
 *     granting    the policy has the lease, and the caller waits. If a table cannot be confirmed in time, all of it is taken back
 *     active      the entry was read back at every member, and the caller has the answer
 *     releasing   the policy does not have the lease any more, but a port may still hold the P_Key (knowledge/knowledge.h)
 *     ended       no port may hold the P_Key. It rests for a while (`rest` of the pool), and is then free again
 *
 * The members of an *open* lease change while it is active (leases_edit), and it may have none. It is active as soon as it is
 * stored: its callers do not wait until tables are read back. A member may be a GUID that no port in the fabric has yet (a virtual
 * function, a host that is down): it is unseen, and not in the policy before its port appears among those of the pool. An open
 * lease that is not kept is released when it had no members for as long as its `rest`; then its P_Key rests for the same time.
 * Where OpenSM's file is written, unseen members that the pool certainly has are in the policy, and so in that file, before their
 * port appears: OpenSM can serve ports that discovery does not find.
 *
 * A lease is an answer to a caller, so each change is in the store before the answer is given, and before the writes that it
 * causes: the caller of these functions puts all leases in a transaction, and reports that it was committed.
 *
 *     leases_create, _renew, _release, _tick --> leases_extend: a policy --> plan, apply --> leases_see
 *               `--> store --> leases_stored --> leases_next_answer
 *
 * Invariants: two leases never have the same P_Key; a P_Key that a port may hold, or that rests, is not handed out; the ID of a
 * lease is unique among those that did not end; a lease that is not open has at least one member; a port has index 0 by at most
 * one lease in force.
 *
 * Times are wall-clock seconds in records, because a lease survives a restart. While pkeyd runs they are counted by the monotonic
 * clock: setting the wall clock makes no lease longer or shorter.
 *
 * This folder knows nothing about D-Bus, users and groups of the system, sweeps, nor how tables are written.
 */

#include "events/log.h"
#include "generation/generation.h"
#include "knowledge/knowledge.h"
#include "policy/policy.h"

#define LEASE_ID_MAX       128
#define LEASE_MAX_MEMBERS  18000 /* so that every lease fits in a record of a store; lease_json.c checks it. While some are
                                * leaving, there are up to twice as many */
#define LEASE_MAX_TEXT     200000 /* bytes of `members` */
#define LEASE_MAX_GROUPS   16    /* of one edit */
#define LEASE_MAX_EDIT_TEXT (20 * LEASE_MAX_MEMBERS) /* bytes of the members of all groups: as many GUIDs as there can be members */
#define LEASE_MAX          16384 /* leases that did not end; a pool cannot have more P_Keys than there are */
#define LEASE_MAX_WAITERS  16    /* callers that wait for the same lease */
#define LEASE_TIMEOUT      60    /* seconds; how long a caller waits by default */
#define LEASE_TIMEOUT_MAX  3600
#define LEASE_LONGEST      (UINT64_C(100) * 365 * 86400) /* seconds; what is longer counts as this, so that no time overflows */

struct leases;
struct policy_selection; /* policy/policy_select.h */

enum lease_state {
        LEASE_GRANTING,
        LEASE_ACTIVE,
        LEASE_RELEASING,
        LEASE_ENDED,
        LEASE_N_STATES,
};

/* "granting", "active", "releasing", "ended": static, also on the bus, in records and JSON; and back, false: no such word. */
const char *lease_state_to_string(enum lease_state s);
bool lease_state_from_string(const char *word, enum lease_state *ret);

/* What a caller wants. A request to create a lease that exists gets that lease if its wish is equal. */
struct lease_wish {
        const char *pool;
        const char *members;        /* selectors, as in a line of the policy */
        uint16_t base;              /* 0: any of the pool */
        enum membership membership; /* MEMBERSHIP_NONE: that of the pool */
        uint64_t seconds;           /* how long; 0: as long as the pool allows; POLICY_UNLIMITED: until it is released */
        bool partial;               /* members that cannot be confirmed are left out */
};

/* What a member has of its lease.
 *
 *     to           from              by
 *     waits                          leases_create; leases_edit, if its port is in the fabric
 *                  confirmed         leases_see, leases_confirm: its table was read; leases_edit: its entry changes
 *                  unseen, expected  leases_admit: its port has appeared
 *                  left out          leases_edit: it is added again; leases_admit: its port is one of the pool now
 *     confirmed    waits             leases_see, leases_confirm: its table was read
 *     unseen                         leases_edit, if no port has its GUID (also from left out)
 *                  expected          leases_expect; and back
 *     left out     waits, confirmed  leases_tick, leases_see: not in time; leases_give_up_frozen (all with `partial`)
 *                  unseen, expected  leases_admit: its port has appeared, and is not one of the pool
 */
enum lease_member_state {
        LEASE_MEMBER_WAITS,         /* the policy gives it the entry, and its table was not read with it */
        LEASE_MEMBER_CONFIRMED,     /* its table was read back with the entry, at index 0 if it belongs there */
        LEASE_MEMBER_EXPECTED,      /* it is unseen, and in the policy of the next plan nevertheless */
        LEASE_MEMBER_UNSEEN,        /* no port had this GUID so far; `node` and `number` are 0 */
        LEASE_MEMBER_LEFT_OUT,      /* it gets no entry */
};

struct lease_member {
        struct guid node, port;     /* GUIDs: a member is a port, whatever its name becomes */
        uint8_t number;
        const char *name;           /* label of the port when the lease was made */
        enum lease_member_state state;
        uint16_t index;             /* of the entry; only if it is confirmed */
        enum membership membership; /* LIMITED or FULL */

        /* only of open leases */
        bool index0;                /* its entry belongs at index 0 of the table */
        bool is_changed;            /* by leases_edit() or leases_admit(), since the last plan */
        bool is_leaving;            /* leases_edit() took it out, so that it is changed, too; leases_planned() drops it */
};

/* Whether the policy gives the member the entry, as long as the lease is in force. */
static inline bool lease_member_is_in_force(const struct lease_member *m)
{
        return m->state <= LEASE_MEMBER_CONFIRMED && !m->is_leaving;
}

static inline bool lease_member_is_unseen(const struct lease_member *m)
{
        return m->state == LEASE_MEMBER_UNSEEN || m->state == LEASE_MEMBER_EXPECTED;
}

/* What the multicast groups of IPoIB in the partition get. */
struct lease_qos {
        uint8_t mtu;                /* KiB: 2 or 4; 0: nothing is set, and the others are 0 */
        uint8_t service_level;      /* 0 to 15 */
        uint16_t rate;              /* in 0.1 Gb/s: a rate of IBA */
};

/* Returns a clause that says what is wrong; NULL: it can be set. */
const char *lease_qos_problem(const struct lease_qos *qos);

/* How far a lease is carried out as it is now. leases_create() and _edit() make it new, leases_restore() changed.
 *
 *     new ------leases_planned()-----> planned --leases_see()--> tried (a lease that is granting or releasing)
 *     changed --leases_planned()----------^ |                      |
 *       ^---- its state or its members change (lease_changed()) ---'
 */
enum lease_progress {
        LEASE_NEW,                  /* no decision has ever had it, so that no port can hold its P_Key by it */
        LEASE_CHANGED,              /* earlier decisions had it, but not as it is now */
        LEASE_PLANNED,              /* a decision has it as it is now */
        LEASE_TRIED,                /* and the sweep that carries it out has ended */
};

/* Whether the store has a lease or a rest as it is here.
 *
 *     to store --leases_storing()--> storing --leases_stored()--> in store
 *        ^------- each change (lease_unstored(), leases_unstore()) ---'
 */
enum lease_store { LEASE_TO_STORE, LEASE_STORING, LEASE_IN_STORE };

enum lease_request_kind { LEASE_CREATE, LEASE_RENEW, LEASE_RELEASE, LEASE_EDIT };

/* A caller that has no answer yet. */
struct lease_waiter {
        uint64_t request;
        enum lease_request_kind kind;
        usec_t until;               /* how long it waits for the store at least; after that the answer is LEASE_UNSTORED */
};

struct lease {
        struct arena *arena;        /* owns the lease */
        const char *id;
        struct lease_wish wish;     /* of an open lease `members` is empty */
        bool is_open;
        bool is_kept;               /* it stays when it has no members */
        bool ip_over_ib;            /* the partition has IPoIB */
        struct lease_qos qos;       /* of that */
        enum lease_state state;
        uint16_t base;
        enum membership membership; /* LIMITED or FULL; of an open lease that of members of which nothing else was said */
        struct lease_member *members; /* ascending port GUID */
        uint32_t n_members;
        struct origin owner;
        uint64_t created, ends;     /* wall; ends 0: it has no end */
        uint64_t updated;           /* wall; when an edit last changed it, or it was created */
        uint64_t seconds;           /* of `ends`, since it was created or renewed last */
        uint64_t confirm_by;        /* wall; of LEASE_GRANTING */
        uint64_t timeout;           /* seconds; of LEASE_GRANTING */
        uint64_t rest;              /* seconds; as its pool had it when the lease was made */
        const char *why;            /* why it is released; NULL: it is not */
        struct lease_waiter waiters[LEASE_MAX_WAITERS];
        size_t n_waiters;

        usec_t ends_due;            /* monotonic; of `ends`: its time goes on when the wall clock is set */
        usec_t due;                 /* monotonic; of `ends`, of `confirm_by`, or when callers do not wait for the end any more */
        usec_t empty_due;           /* monotonic; when it was without members for long enough; USEC_INFINITY: it does not wait */
        enum lease_progress progress;
        bool is_late;               /* its callers have waited long enough, and the sweep that carries it out has not ended */
        enum lease_store store;
        usec_t unstored_at;         /* when leases_tick() saw first that it is not stored; 0: it has not yet */
        bool is_unread;             /* it was restored; neither leases_see() nor leases_confirm() has compared its tables since */
        bool is_stranded;           /* leases_check(): the candidate that is being decided about has no place for it */
};

/* The present state, by which requests are checked. */
struct lease_view {
        const struct policy *policy;      /* in force; NULL: none */
        const char *obstacle;             /* why no lease can be made now, a clause; NULL: it can */
        const struct subnet *subnet;      /* the snapshot; NULL: none */
        struct policy_selection *selection; /* of policy and subnet; NULL without a subnet, or if out of memory */
        const struct knowledge *knowledge;
        usec_t now;
        uint64_t wall;                    /* seconds since 1970 */
        bool (*is_old)(const void *userdata); /* whether the other head node may have ended leases, or made some, that are not known
                                               * here: may ask the store, so it is called only before a refusal. NULL: never */
        const void *userdata;
};

struct lease_caller {
        struct origin origin;
        const char *const *names;         /* its user name, and the names of its groups */
        size_t n_names;
        uint64_t request;                 /* number, which the answer has, too */
};

/* --- requests -------------------------------------------------------------------------------------------------------- */

/* Each returns 0: the answer comes later; -EBADMSG: refused, the findings say why, nothing changed; -ENOMEM: nothing changed. */

/* Refuses a request that could be answered only by what is known here, if that may be old. */
int leases_refuse_old(struct findings *findings);

/* Whether `allow` of this pool has one of the names of the caller. */
bool leases_allow(const struct policy_pool *pool, const struct lease_caller *by);

/* Makes a lease, or waits for the one that exists with the same ID and wish. timeout: seconds, 0: LEASE_TIMEOUT. */
int leases_create(struct leases *l, const struct lease_view *view, const struct lease_caller *by, const char *id,
                  const struct lease_wish *wish, uint64_t timeout, struct log *log, struct findings *findings);
/* The lease ends `seconds` from now; 0: as late as its pool allows. */
int leases_renew(struct leases *l, const struct lease_view *view, const struct lease_caller *by, const char *id, uint64_t seconds,
                 struct log *log, struct findings *findings);
int leases_release(struct leases *l, const struct lease_view *view, const struct lease_caller *by, const char *id,
                   struct log *log, struct findings *findings);

enum lease_edit_kind {
        LEASE_ADD_MEMBERS,
        LEASE_REMOVE_MEMBERS, /* a port that is not a member is no error */
        LEASE_SET_MEMBERS,    /* these, and no others */
};

/* "add", "remove", "set": static, also on the bus; and back, false: no such word. */
const char *lease_edit_kind_to_string(enum lease_edit_kind kind);
bool lease_edit_kind_from_string(const char *word, enum lease_edit_kind *ret);

/* Ports that get the same membership and index. A port can be in several groups, if they agree. */
struct lease_group {
        const char *members;        /* selectors; "": none. A GUID that no port has is a member, too */
        enum membership membership; /* of those that are added; NONE: that of the lease */
        bool index0;                /* the entry of those that are added belongs at index 0 of their tables */
};

/* What else an edit sets. What it does not name stays as it is; for a new lease the defaults are in parentheses. */
struct lease_options {
        bool sets_ip_over_ib, ip_over_ib; /* (no) */
        struct lease_qos qos;       /* with mtu 0 it is not named (not set) */
        bool keeps;                 /* the lease is kept from now on (yes) */
        bool drops;                 /* a new lease is not kept */
        bool must_exist;            /* no lease is made */
};

/* A change of an open lease: all of it is done, or nothing. */
struct lease_edit {
        enum lease_edit_kind kind;
        const char *pool;
        uint16_t base;              /* 0: that of the lease, or any if it is new */
        struct lease_group groups[LEASE_MAX_GROUPS];
        size_t n_groups;
        struct lease_options options;
};

/* Makes an open lease with this ID if there is none, but for LEASE_REMOVE_MEMBERS and `must_exist`. The answer comes when it is
 * stored. */
int leases_edit(struct leases *l, const struct lease_view *view, const struct lease_caller *by, const char *id,
                const struct lease_edit *edit, struct log *log, struct findings *findings);

/* One of these requests, as data. */
struct lease_request {
        enum lease_request_kind kind;
        struct lease_caller by;
        const char *id;
        struct lease_wish wish;        /* of LEASE_CREATE */
        uint64_t timeout;              /* of LEASE_CREATE; seconds; 0: LEASE_TIMEOUT */
        uint64_t seconds;              /* of LEASE_RENEW; 0: as long as its pool allows */
        struct lease_edit edit;        /* of LEASE_EDIT */
};

/* --- answers --------------------------------------------------------------------------------------------------------- */

enum lease_outcome {
        LEASE_GRANTED,
        LEASE_GRANTED_PARTLY, /* some members were left out */
        LEASE_RENEWED,
        LEASE_EDITED,         /* its members are stored */
        LEASE_RELEASED,
        LEASE_IS_RELEASING,   /* a port may still hold the P_Key */
        LEASE_FAILED,         /* it could not be granted in time, and was taken back */
        LEASE_REFUSED,        /* for the shell: of a request that was refused */
        LEASE_ELSEWHERE,      /* for the shell, which asks the other head node: that one makes leases */
        LEASE_UNSTORED,       /* for the shell: it could not be stored in time, and may be carried out later */
};

/* "granted", "partial", "renewed", "edited", "released", "releasing", "failed", "refused", "elsewhere", "unstored": static, also on
 * the bus and in JSON. */
const char *lease_outcome_to_string(enum lease_outcome o);
bool lease_outcome_from_string(const char *word, enum lease_outcome *ret);

struct lease_answer {
        uint64_t request;
        enum lease_outcome outcome;
        const struct lease *lease;        /* NULL: it has ended; valid until leases are changed */
        char text[512];                   /* one sentence */
};

struct lease_reply {
        struct lease_answer answer;
        const struct findings *findings; /* why it was refused; NULL: it was not */
};

/* Takes the next answer. */
bool leases_next_answer(struct leases *l, struct lease_answer *ret);
/* Another host makes leases from now on: `to`, which may be the same as `from`, answers the callers that wait at `from`. A caller
 * whose release is stored gets LEASE_IS_RELEASING, all others LEASE_ELSEWHERE. If out of memory for another `to`, some get no
 * answer. */
void leases_pass_on(struct leases *from, struct leases *to);

/* --- time ------------------------------------------------------------------------------------------------------------ */

/* After all leases were restored, before anything else: their times count from now on. */
void leases_start(struct leases *l, usec_t now, uint64_t wall);
/* Ends leases and rests whose time is over, and answers callers that wait too long for the store. */
void leases_tick(struct leases *l, usec_t now, struct log *log);
/* When to call leases_tick(); USEC_INFINITY: there is nothing to wait for. */
usec_t leases_due(const struct leases *l);

/* --- the policy ------------------------------------------------------------------------------------------------------ */

/* Whether a member of an open lease that is unseen, or left out, has a port in the fabric now. */
bool leases_have_appeared(const struct leases *l, const struct subnet *s);
/* They are in force from now on, or left out as long as the pool does not have that port. view: the policy of the next plan.
 * Returns 0 or -ENOMEM. */
int leases_admit(struct leases *l, const struct lease_view *view, struct log *log);

/* The GUIDs of unseen members, in any order. Returns 0 or -ENOMEM; *ret in the arena. */
int leases_list_unseen(struct arena *a, const struct leases *l, const struct guid **ret, uint32_t *ret_n);
/* Decides which unseen members are expected: those that are among the ports of their pool; none if the view has no selection. view:
 * the policy of the next plan, and a snapshot with a port for each unseen member (known_extend_named()). Returns 0 or -ENOMEM. */
int leases_expect(struct leases *l, const struct lease_view *view);

/* Whether the policy that leases_extend() returns has changed since leases_planned(). */
bool leases_need_plan(const struct leases *l);
/* A plan is being made from that policy. Returns whether it has changed since the last one. */
bool leases_planned(struct leases *l);

/* The policy with a partition for each lease that is granting or active, but for stranded ones; and with an empty one for each that
 * is releasing and whose P_Key is of no pool any more, so that it is revoked with `unmanaged: keep`, too. Returns 0 or -ENOMEM.
 * *ret lives in the arena, and borrows policy; without such leases it is `policy`. */
int leases_extend(struct arena *a, const struct leases *l, const struct policy *policy, const struct policy **ret);

/* What changes at one port, from the last plan to the next. */
struct lease_change {
        struct guid port;
        uint16_t base;
        enum membership membership;       /* MEMBERSHIP_NONE: the entry is revoked */
        bool index0;                      /* the entry belongs at index 0 */
};

/* The difference between the policy of the last plan and that of the next. Returns 0 or -ENOMEM; *ret in the arena. */
int leases_list_changes(struct arena *a, const struct leases *l, struct lease_change **ret, size_t *ret_n);

/* Marks the leases for which a candidate, the policy of the view, has no place: it lacks their pool or P_Key, or its pool lacks a
 * port that the pool of the policy in force has (both with contested ports). A port that is in neither strands nothing: a host may
 * lose its name, or another one claim it, at any time. in_force: of the same subnet; without a policy, no port strands a lease.
 * With `release` each of them is a warning, else an error. Returns 0, -EBADMSG, -ENOMEM. */
int leases_check(struct leases *l, const struct lease_view *view, const struct lease_view *in_force, bool release,
                 struct findings *findings);
/* The candidate is in force: releases stranded leases. */
void leases_release_stranded(struct leases *l, usec_t now, struct log *log);
/* The candidate was refused. */
void leases_keep_stranded(struct leases *l);

/* --- what was read --------------------------------------------------------------------------------------------------- */

/* Members whose table is frozen (frozen: of each port of the subnet) get no entry by a plan: they are left out, or the lease is
 * released. Skips stranded leases, which the plan does not have. Returns whether there was such a member. */
bool leases_give_up_frozen(struct leases *l, const struct subnet *s, const enum freeze *frozen, usec_t now, struct log *log);
/* A sweep has ended: changes the state of leases by it. observed: tables as they were read or confirmed. only_changed: skips active
 * leases that are not open. Returns 0 or -ENOMEM. */
int leases_see(struct leases *l, const struct observed *observed, const struct knowledge *k, bool only_changed, usec_t now,
               uint64_t wall, struct log *log);

/* Another host makes the leases: only sets which members of active ones are confirmed. */
void leases_confirm(struct leases *l, const struct observed *observed);

/* --- the store ------------------------------------------------------------------------------------------------------- */

/* A P_Key that is not handed out yet. */
struct lease_rest {
        uint16_t base;
        uint64_t seconds, until;          /* wall */
        usec_t due;
        enum lease_store store;
        bool is_over;                     /* its record is to be deleted */
};

/* Whether everything is in the store as it is here. */
bool leases_are_stored(const struct leases *l);
/* Everything that is not stored was put in a transaction; that transaction was committed. */
void leases_storing(struct leases *l);
void leases_stored(struct leases *l);
/* Makes the answers that are due, of leases that are stored. */
void leases_answer(struct leases *l);
/* The store was lost: everything must be stored again. */
void leases_unstore(struct leases *l);
/* Adds a lease or a rest that the store has. Takes the lease's arena. Returns 0, -EBADMSG (another one has the ID or the P_Key),
 * -ENOMEM: then nothing was taken. */
int leases_restore(struct leases *l, struct lease *lease);
int leases_restore_rest(struct leases *l, const struct lease_rest *rest);

/* --- all leases ------------------------------------------------------------------------------------------------------ */

/* Returns owned, or NULL when out of memory. */
struct leases *leases_new(void);
struct leases *leases_free(struct leases *l);
DEFINE_CLEANUP(struct leases *, leases_free)

/* All leases, ascending ID; ended ones as long as their end is not stored. Valid until leases are changed. */
const struct lease *const *leases_list(const struct leases *l, size_t *ret_n);
/* How many of them are in each state. */
void leases_count(const struct leases *l, uint32_t ret[static LEASE_N_STATES]);
const struct lease_rest *leases_rests(const struct leases *l, size_t *ret_n);
/* NULL: there is none that did not end. */
const struct lease *leases_find(const struct leases *l, const char *id);
/* Whether there is none, but the end of the last one is not stored yet. */
bool leases_is_ending(const struct leases *l, const char *id);

/* An empty lease with an arena of its own; NULL: out of memory. */
struct lease *lease_new(void);
struct lease *lease_free(struct lease *lease);
DEFINE_CLEANUP(struct lease *, lease_free)
/* Returns a clause that says what is wrong; NULL: it is a valid ID. */
const char *lease_id_problem(const char *id);
/* How many members are in force. */
uint32_t lease_n_in_force(const struct lease *lease);
/* How many were not taken out; unseen members, and those that are left out, count, too. */
uint32_t lease_n_wanted(const struct lease *lease);
/* How many are in force and confirmed; 0 if the lease is not in force. */
uint32_t lease_n_confirmed(const struct lease *lease);
