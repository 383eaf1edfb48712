/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * knowledge/: what pkeyd knows of each P_Key table, and what it does not know.
 *
 * pkeyd makes its promises about the hardware. It knows the hardware only by reads, each of one moment, and by its writes, some of
 * which were never confirmed. A record keeps both, for one table:
 *
 *     entries    the table as it was last read
 *     writes     blocks that were sent and not read since: the table may hold each of them, or not
 *     presence   present; silent (its link is up, but the device does not answer discovery); or absent, and since when
 *
 * A record gives the bounds of a table's level in a base (rule.h): `may` is the highest level in what was read and in every
 * unconfirmed write; `has` is the lowest, and counts only if the table was read since the last discovery. A table that was never
 * read may hold anything. A port is an endport together with its leaf port, if that filters: its level is the lower of the two.
 *
 * Only reads change what is known; time, a restart, another mode, policy or writer do not. There are two exceptions: an absent port
 * counts for the setting `absent_hold` only, and a person can vouch (`pkeyctl forget`) that a port holds nothing. An absent port
 * communicates with no other port, unless it may be a silent device that could not be identified: its cable may have been moved.
 *
 * For each base the ports are counted by class, so that the rule takes the same time on every fabric. Every function that changes
 * a record updates the counts.
 *
 *     sweep:  see_subnet -> see_tables -> set_policy -> for each phase: announce, store; judge, send, see_block, ...
 *
 * Invariants: a port is counted at a base in exactly one class, that of its bounds; has <= may; a block that is sent is in
 * `writes`, and in the store, before its MAD leaves, and only a read of that block removes it.
 *
 * This folder knows nothing about plans, nor how MADs are sent or where records are stored.
 */

#include "desired/desired.h"
#include "knowledge/rule.h"
#include "subnet/observed.h"

#define KNOWLEDGE_NONE UINT32_MAX

/* In seconds. If a switch that is found silent was last seen longer ago than this, the devices behind it are not known. */
#define KNOWLEDGE_UNSEEN (15 * 60)

struct knowledge;

enum knowledge_kind {
        KNOWLEDGE_ENDPORT,  /* of a CA or router, or port 0 of a switch */
        KNOWLEDGE_LEAF,     /* external port of a switch with an endport at the other end */
        KNOWLEDGE_PLACE,    /* the device at the other end of this switch port: its link is up, but discovery never identified it */
};

struct knowledge_name {
        struct guid node;
        uint8_t number;
        enum knowledge_kind kind;
};

static inline bool knowledge_same_name(struct knowledge_name x, struct knowledge_name y)
{
        return x.node.v == y.node.v && x.number == y.number && x.kind == y.kind;
}

enum knowledge_presence {
        /* ordered from the most to the least that discovery found of the port */
        KNOWLEDGE_THERE,  /* found by the last discovery */
        KNOWLEDGE_SILENT, /* not found, but the link of a place where it was last is up, or it is behind a silent switch */
        KNOWLEDGE_ABSENT,
};

/* A block of 32 entries that was sent to a table and not read since, or that may be sent in this phase. */
struct knowledge_write {
        uint16_t block;
        bool is_announced, is_sent, is_stored;
        bool is_foreign;                 /* of another writer: the index of each new entry is a guess */
        bool is_expected;                /* of another writer, which did not get the request yet */
        bool is_suspected;               /* of another writer, without a request of this pkeyd: see knowledge_suspect_block() */
        struct p_key entries[P_KEY_BLOCK_ENTRIES];
};

struct knowledge_record {
        struct knowledge_name name;
        struct p_key *entries;           /* as last read; NULL: never read */
        uint16_t capacity;
        bool fresh;                      /* read since the last discovery, and every later read was answered */
        bool is_unfollowed;              /* read before, but another pkeyd may have written to it since: it may hold anything, and
                                          * is not fresh */
        struct knowledge_write *writes;  /* sent and not confirmed, and those that were announced */
        size_t n_writes, n_allocated;
        uint64_t read_at;                /* seconds since 1970; 0: never */

        enum knowledge_presence presence;
        usec_t seen;                     /* when it was last present, by the clock of `now`; USEC_INFINITY: in another boot, which
                                          * may be that of another host. Of an absent port: how long it counts begins here */
        uint64_t seen_at;                /* the same in seconds since 1970 */
        uint64_t there_at;               /* seconds since 1970: when it last answered discovery; it may have been moved since */
        struct subnet_place *places;     /* of an endport: the switch ports where it was last found; of port 0 of a switch: those
                                          * of other switches that it was connected to */
        size_t n_places;
        uint64_t since;                  /* seconds since 1970: when its current presence began */
        enum knowledge_presence presence_before; /* as it was before the last discovery */
        uint64_t there_at_before;        /* likewise */
        int64_t clock;                   /* seconds that the wall clock was ahead of `now` when these times were recorded */
        bool has_clock;                  /* false: these times were recorded in another boot, or by an earlier version */
        bool expired;                    /* absent for longer than absent_hold, or `found` */
        bool found;                      /* of a place: discovery has identified the device that is there */
        bool may_be_silent;              /* absent, or at a place where another known device became silent since */
        bool may_be_back;                /* absent in the last discovery, and may be back by now */
        bool vouched;                    /* a person stated that it holds nothing */
        char *vouched_by;                /* the person who vouched last; NULL: none did */
        uint64_t vouched_at;             /* seconds since 1970 */

        bool filters[N_DIRECTIONS];      /* of a leaf port, as last read: whether it filters what its host sends (inbound) and
                                          * receives (outbound) */
        bool filters_unsure;             /* a write of these bits was not confirmed, or they were not read since the last
                                          * discovery */

        bool is_stored;                  /* the store has it as it is here, except for: */
        bool stored_fresh, stored_unfollowed, stored_may_be_silent, stored_found;
        enum knowledge_presence stored_presence;
        bool is_restored;                /* read from the store, and there was no discovery since */

        uint32_t other_end;              /* of a present endport its leaf port, and of that the endport; KNOWLEDGE_NONE: no port
                                          * filters */
        const struct desired_port *policy; /* borrowed from desired; NULL: what the policy gives it is not known */
};

/* The port communicates with no other port now: its link is down or it was not found, and no silent device can be it. */
static inline bool knowledge_is_gone(const struct knowledge_record *r)
{
        return r->presence == KNOWLEDGE_ABSENT && !r->may_be_silent && !r->may_be_back;
}

/* Returns owned, or NULL: out of memory. */
struct knowledge *knowledge_new(void);
struct knowledge *knowledge_free(struct knowledge *k);
DEFINE_CLEANUP(struct knowledge *, knowledge_free)
/* Borrows the policy that `from` borrows. Returns owned, or NULL: out of memory. */
struct knowledge *knowledge_copy(const struct knowledge *from);

/* --- records ------------------------------------------------------------------------------------------------------------ */

/* Valid until a record is added. NULL for KNOWLEDGE_NONE. */
const struct knowledge_record *knowledge_get(const struct knowledge *k, uint32_t record);
uint32_t knowledge_n_records(const struct knowledge *k);
/* KNOWLEDGE_NONE: there is none. */
uint32_t knowledge_find(const struct knowledge *k, struct knowledge_name name);
/* The record of a port of this subnet. */
uint32_t knowledge_find_port(const struct knowledge *k, const struct subnet *s, uint32_t port);

/* --- what was seen ------------------------------------------------------------------------------------------------------- */

/* Completes a snapshot that was just discovered: if a switch did not report whether its ports can filter and how large their tables
 * are, it gets what is known of its leaf ports. The switch stays incomplete, so nothing is written there, but its filters count. */
void knowledge_complete_subnet(const struct knowledge *k, struct subnet *s);

/* Takes a finished discovery: which ports are present, silent or absent, and which leaf port is in front of which endport. No table
 * is fresh any more. `now` is a monotonic clock (as `seen`), `wall` seconds since 1970. If the wall clock was set since the last
 * call, all recorded times move with it; they may then be before 1970, which is negative in an int64_t. Ports that are absent for
 * longer than absent_hold (USEC_INFINITY: never) by the clock of `now` do not count. Returns 0, or -ENOMEM, and then nothing
 * changed. */
int knowledge_see_subnet(struct knowledge *k, const struct subnet *s, usec_t now, uint64_t wall, usec_t absent_hold);

/* Until the next discovery every absent port may be back and communicate. Call knowledge_set_policy() after it. */
void knowledge_doubt_absence(struct knowledge *k);
/* The same, but only after the time `when`, which may be in the past. */
void knowledge_doubt_absence_after(struct knowledge *k, usec_t now, usec_t when);
/* If that time has come, counts absent ports as possibly back, by the policy that is set. To be called before more is judged by
 * that policy. Returns 0, or -ENOMEM: then nothing can be judged. */
int knowledge_apply_doubt(struct knowledge *k, usec_t now);

/* Sets another absent_hold: ports that are absent for longer do not count. Call knowledge_set_policy() after it. */
void knowledge_hold_absent(struct knowledge *k, usec_t now, usec_t absent_hold);

/* Takes the tables in `seen` that were read (TABLE_READ). Returns 0 or -ENOMEM. */
int knowledge_see_tables(struct knowledge *k, const struct observed *seen, uint64_t wall);

/* Takes a block as it was read, or as the answer to a Set has it: no earlier write of this block is open any more. If a leaf port
 * holds what was neither read there nor sent to it, its filter bits are not certain any more, either. */
void knowledge_see_block(struct knowledge *k, uint32_t record, uint16_t block, const struct p_key entries[P_KEY_BLOCK_ENTRIES]);
/* True if the block had these entries when it was last read. The table must have been read. Entries past its end are ignored. */
bool knowledge_block_is(const struct knowledge *k, uint32_t record, uint16_t block,
                        const struct p_key entries[P_KEY_BLOCK_ENTRIES]);
/* True if so, or if a write that was sent since has these entries (but no suspected one). False: the block is news, and it matters
 * which device sent it. */
bool knowledge_block_may_be(const struct knowledge *k, uint32_t record, uint16_t block,
                            const struct p_key entries[P_KEY_BLOCK_ENTRIES]);

/* How sure it is that an answer came from the port. */
enum knowledge_trust {
        KNOWLEDGE_DOUBTED,  /* a device at the address of the port */
        KNOWLEDGE_EXPECTED, /* a device that identified itself as the port before. If its answer is news, another device may have
                             * the address by now */
        KNOWLEDGE_NAMED,    /* the port: it identified itself before and after the answer */
};

/* Takes an answer about a block of a table that was read, or about the filter bits of a leaf port. An answer that cannot be trusted
 * yet only widens the bounds. Returns false if it is news. */
bool knowledge_weigh_block(struct knowledge *k, uint32_t record, uint16_t block, const struct p_key entries[P_KEY_BLOCK_ENTRIES],
                           enum knowledge_trust trust);
bool knowledge_weigh_filter(struct knowledge *k, uint32_t record, bool inbound, bool outbound, enum knowledge_trust trust);
/* Announces a block that may be sent, also more than once: it is stored with the record, and the bounds do not change. Returns 0 or
 * -ENOMEM. */
int knowledge_announce_block(struct knowledge *k, uint32_t record, uint16_t block, const struct p_key entries[P_KEY_BLOCK_ENTRIES]);
/* Ends all announcements: no announced block is sent any more. */
void knowledge_withdraw(struct knowledge *k);
/* Records that a block is about to be sent. Returns false if it must not be, because it was not announced and stored before. */
bool knowledge_send_block(struct knowledge *k, uint32_t record, uint16_t block, const struct p_key entries[P_KEY_BLOCK_ENTRIES]);

/* Records a block that another writer (OpenSM, by its partition file) is asked to write: until the next read the table may hold it
 * or not. Returns 0, or -ENOMEM: then do not ask the writer. A table that was never read may hold it anyway; do not call this for
 * such a table. */
int knowledge_expect_block(struct knowledge *k, uint32_t record, uint16_t block, const struct p_key entries[P_KEY_BLOCK_ENTRIES]);
/* Records that an unidentified device at the port's address reported this block: the table may hold it, besides what is known.
 * Returns 0 or -ENOMEM. */
int knowledge_suspect_block(struct knowledge *k, uint32_t record, uint16_t block, const struct p_key entries[P_KEY_BLOCK_ENTRIES]);
/* Records that another pkeyd may carry out the policy (knowledge_set_policy()): from now on each table may hold what it lacks of
 * it. Returns 0 or -ENOMEM. */
int knowledge_suspect_policy(struct knowledge *k);
/* asked: the other writer got the file with the writes expected since the last call; false: it did not. */
void knowledge_settle_expected(struct knowledge *k, bool asked);
/* Removes the last expected block with these entries: the other writer did not get it. */
void knowledge_retract_block(struct knowledge *k, uint32_t record, uint16_t block, const struct p_key entries[P_KEY_BLOCK_ENTRIES]);
/* True if there are records, and none of their ports is in this fabric. */
bool knowledge_is_of_other_fabric(const struct knowledge *k, const struct subnet *s);
/* Another pkeyd may have written by policies that this one does not know: each table may hold anything until it is read. */
void knowledge_stop_following(struct knowledge *k);
/* `k` was read from a store that another pkeyd writes, and replaces `before`. What other writers may have done to a table, as far
 * as only `before` has it, is taken along: it stays until this pkeyd reads the table. */
void knowledge_take_foreign(struct knowledge *k, const struct knowledge *before);
/* The port did not answer a read of this table: what it holds is not certain any more. */
void knowledge_doubt(struct knowledge *k, uint32_t record);

/* Takes the filter bits of a leaf port as they were read. */
void knowledge_see_filter(struct knowledge *k, uint32_t record, bool inbound, bool outbound);
/* The filter bits are not certain until they are read: a write of them is about to be sent, or a read contradicts what is known. */
void knowledge_doubt_filter(struct knowledge *k, uint32_t record);

/* A person (`who`, copied) states at `wall` that this table holds nothing. The vouch ends when the table or a block of it is read,
 * when it turns out to have another size, and when the port, absent or silent so far, is found again. Returns 0 or -ENOMEM. */
int knowledge_vouch(struct knowledge *k, uint32_t record, const char *who, uint64_t wall);

/* Fills the tables of `to` that were not read with what was last read of them: they become TABLE_ASSUMED. */
void knowledge_recall(const struct knowledge *k, struct observed *to);
/* The same with those that were read since the last discovery and have no open write: they become TABLE_READ. Call it before the
 * next discovery. */
void knowledge_recall_certain(const struct knowledge *k, struct observed *to);
/* As knowledge_recall(), and open writes fill free indexes, so that each index that may have been used is in use. */
void knowledge_recall_used(const struct knowledge *k, struct observed *to);
/* True if a write is announced, or sent and not confirmed. */
bool knowledge_has_open_writes(const struct knowledge *k);

/* Whether a port may hold this base, by the counts: they must be valid (knowledge_is_counted). */
bool knowledge_may_hold(const struct knowledge *k, uint16_t base);
/* Whether this port may. record: not that of a leaf port; KNOWLEDGE_NONE: false. */
bool knowledge_port_may_hold(const struct knowledge *k, uint32_t record, uint16_t base);
/* For each base from 0 to P_KEY_BASE_MASK: a record of a port that may hold it, or KNOWLEDGE_NONE. A port that may hold anything
 * may hold each base. */
void knowledge_list_holders(const struct knowledge *k, uint32_t *ret);

/* --- the policy ---------------------------------------------------------------------------------------------------------- */

/* Sets what the policy gives each port. `desired` may be of a subnet that contains absent ports, too; it is borrowed until the next
 * call (NULL: no policy is known). The policy of a port whose node is incomplete is not known, either. Returns 0 or -ENOMEM. */
int knowledge_set_policy(struct knowledge *k, const struct desired *desired);

/* Ends the borrowing of the policy: nothing can be judged until the next knowledge_set_policy(). */
void knowledge_drop_policy(struct knowledge *k);

/* Copies what the policy gives each port into the arena, from which it is borrowed from now on, so that the policy stays set when
 * the memory of knowledge_set_policy() ends; every absent port may be back (knowledge_doubt_absence). Returns 0, or -ENOMEM, and
 * then the policy is dropped. */
int knowledge_keep_policy(struct knowledge *k, struct arena *a);
/* True as long as a policy is set, and every change since was counted. */
bool knowledge_is_counted(const struct knowledge *k);
/* Sets what the policy gives one port now. Borrowed as by knowledge_set_policy(). knowledge_is_counted() must be true. */
void knowledge_change_policy(struct knowledge *k, uint32_t record, const struct desired_port *policy);

/* --- the rule -------------------------------------------------------------------------------------------------------------- */

/* True if every table that counts was read since the last discovery, and no write is open. */
bool knowledge_is_certain(const struct knowledge *k);
/* The bounds of one table in a base. */
struct bounds knowledge_table_bounds(const struct knowledge *k, uint32_t record, uint16_t base);

/* Judges whether this block may be sent to this table, as far as this base is concerned. */
enum rule_verdict knowledge_judge_block(const struct knowledge *k, uint32_t record, uint16_t block,
                                        const struct p_key entries[P_KEY_BLOCK_ENTRIES], uint16_t base);
/* True if the block could raise the level of this table in this base above what the policy gives its port. */
bool knowledge_exceeds_policy(const struct knowledge *k, uint32_t record, uint16_t block,
                              const struct p_key entries[P_KEY_BLOCK_ENTRIES], uint16_t base);
/* Judges whether an absent port may be given this level for the day when it returns. `policy` is what the policy gives it; record
 * KNOWLEDGE_NONE: nothing is known of it. */
enum rule_verdict knowledge_judge_arrival(const struct knowledge *k, uint32_t record, uint16_t base, enum level policy,
                                          enum level level);
/* Judges whether the filter bits of this leaf port may be set to these values. *ret_base: if not, a base for which they may not. */
enum rule_verdict knowledge_judge_filter(const struct knowledge *k, uint32_t record, bool inbound, bool outbound,
                                         uint16_t *ret_base);
