/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * knowledge/: what pkeyd knows of each P_Key table, and what it does not know.
 *
 * The promises of pkeyd are about the hardware. What pkeyd has of it are reads, each of one moment, and writes of which some
 * were never confirmed. A record keeps both, for one table:
 *
 *     entries    the table as it was read last
 *     writes     blocks that were sent since, and not read since: each may stand there, or not
 *     presence   there; silent (its link is up, and the device does not answer discovery); or absent, and since when
 *
 * From a record follow the bounds of a table's level in a base (rule.h): `may` is the highest over what was read and every write
 * that is not confirmed, `has` the lowest, and only if the table was read since the last discovery. A table that was never read
 * may hold anything. A port is an endport, behind its leaf port where that filters: then its level is the lower of both.
 *
 * Knowledge changes by reading, never by time, restart, mode, policy, writer, or by who runs. The two exceptions are stated by a
 * person: an absent port counts for `absent_hold`, and a vouch (`pkeyctl forget`) ends what a port holds up. An absent port talks
 * with nobody, unless it may be a silent device whose name nobody can read: its cable may have been moved there.
 *
 * For each base the ports are counted by class, so that the rule takes the same time on every fabric. Counts are kept true by
 * every function that changes a record.
 *
 *     sweep:  see_subnet -> see_tables -> set_policy -> for each phase: announce, store; judge, send, see_block, ...
 *
 * Invariants: a port is counted at a base in exactly one class, that of its bounds; has <= may; a block that was sent is in
 * `writes`, and in the store, before its MAD is on the wire, and leaves it only by a read of that block.
 *
 * This folder refuses to know plans, how MADs are sent, and where records are stored.
 */

#include "desired/desired.h"
#include "knowledge/rule.h"
#include "subnet/observed.h"

#define KNOWLEDGE_NONE UINT32_MAX

/* A switch that was seen last longer ago than this, in seconds, when it is found silent: what is behind it is not known. */
#define KNOWLEDGE_UNSEEN (15 * 60)

struct knowledge;

enum knowledge_kind {
        KNOWLEDGE_ENDPORT,  /* of a CA or router, or port 0 of a switch */
        KNOWLEDGE_LEAF,     /* external port of a switch, with an endport at the other end */
        KNOWLEDGE_PLACE,    /* whatever is at the other end of this switch port: never discovered, and its link is up */
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
        /* in this order: the first is the one of which most is seen */
        KNOWLEDGE_THERE,  /* in the last discovery */
        KNOWLEDGE_SILENT, /* not in it, but the link of a place where it was last is up, or a switch that it is behind is silent */
        KNOWLEDGE_ABSENT,
};

/* A block of 32 entries that was sent to a table and not read since, or may be sent in this phase. */
struct knowledge_write {
        uint16_t block;
        bool is_announced, is_sent, is_stored;
        bool is_foreign;                 /* of another writer: at which index it puts a new entry is a guess */
        bool is_expected;                /* of another writer, who is not asked yet */
        bool is_suspected;               /* of another writer, whom nobody here asked: see knowledge_suspect_block() */
        struct p_key entries[P_KEY_BLOCK_ENTRIES];
};

struct knowledge_record {
        struct knowledge_name name;
        struct p_key *entries;           /* as read last; NULL: never read */
        uint16_t capacity;
        bool fresh;                      /* read since the last discovery, and every read since was answered */
        bool is_unfollowed;              /* read before, but another may have written anything since: it may hold anything */
        struct knowledge_write *writes;  /* sent and not confirmed; and those that were announced */
        size_t n_writes, n_allocated;
        uint64_t read_at;                /* seconds since 1970; 0: never */

        enum knowledge_presence presence;
        usec_t seen;                     /* when it was there last, by the clock of `now` */
        uint64_t seen_at;                /* the same in seconds since 1970 */
        uint64_t there_at;               /* likewise: when it answered discovery last; since then it may have been moved */
        struct subnet_place *places;     /* of an endport: the switch ports where it was last; of port 0 of a switch: those
                                          * of the switches that it was plugged into */
        size_t n_places;
        uint64_t since;                  /* seconds since 1970: when it was first found there, or silent, this time */
        enum knowledge_presence was;     /* before the last discovery */
        uint64_t was_there_at;           /* there_at, before the last discovery */
        int64_t clock;                   /* seconds that the wall clock was ahead of `now` when it gave these times */
        bool has_clock;                  /* else it gave them in another boot, or to an earlier version */
        bool expired;                    /* absent for longer than absent_hold; or found */
        bool found;                      /* of a place: what is there was discovered */
        bool may_be_silent;              /* absent, or plugged in where another device is known that fell silent since */
        bool may_be_back;                /* absent, or back since the last discovery */
        bool vouched;                    /* by a person: it holds nothing */
        char *vouched_by;                /* who that was, the last time; NULL: nobody ever */
        uint64_t vouched_at;             /* seconds since 1970 */

        bool filters[N_DIRECTIONS];      /* of a leaf port: what its host sends (inbound), receives (outbound); as read last */
        bool filters_unsure;             /* a write of these bits was not confirmed, or they were not read since the last
                                          * discovery */

        bool is_stored;                  /* it is in the store as it is here, but for these: */
        bool stored_fresh, stored_unfollowed, stored_may_be_silent;
        enum knowledge_presence stored_presence;
        bool is_restored;                /* and there was no discovery since */

        uint32_t other_end;              /* endport and leaf port that are there; KNOWLEDGE_NONE: nothing can filter */
        const struct desired_port *policy; /* borrowed from desired; NULL: nobody knows what the policy gives it */
};

/* Its link is down, or nobody sees it, and it is nothing that is silent: it talks with nobody now. */
static inline bool knowledge_is_gone(const struct knowledge_record *r)
{
        return r->presence == KNOWLEDGE_ABSENT && !r->may_be_silent && !r->may_be_back;
}

/* Returns owned, or NULL when memory is out. */
struct knowledge *knowledge_new(void);
struct knowledge *knowledge_free(struct knowledge *k);
DEFINE_CLEANUP(struct knowledge *, knowledge_free)
/* Borrows the same policy. Returns owned, or NULL when memory is out. */
struct knowledge *knowledge_copy(const struct knowledge *from);

/* --- records ------------------------------------------------------------------------------------------------------------ */

/* Valid until a record is added. */
const struct knowledge_record *knowledge_get(const struct knowledge *k, uint32_t record);
uint32_t knowledge_n_records(const struct knowledge *k);
/* KNOWLEDGE_NONE: there is none. */
uint32_t knowledge_find(const struct knowledge *k, struct knowledge_name name);
/* The record of a port of this subnet. */
uint32_t knowledge_find_port(const struct knowledge *k, const struct subnet *s, uint32_t port);

/* --- what was seen ------------------------------------------------------------------------------------------------------- */

/* For a snapshot that was just discovered: a switch that did not say whether its ports can filter, nor how large their tables are,
 * has what is known of its leaf ports. It stays incomplete: nothing is written there, but a filter is no filter less. */
void knowledge_complete_subnet(const struct knowledge *k, struct subnet *s);

/* A discovery ended: who is there, who is silent, who is absent, and what leaf port is before whom. Nothing is fresh any more.
 * `now` is the clock of seen, `wall` seconds since 1970. If the wall clock was set since, all times that it gave are moved with it;
 * they may then be before 1970, which is negative in an int64_t. Ports that are absent for longer than absent_hold (USEC_INFINITY:
 * never), by the clock of `now`, do not count. Returns 0 or -ENOMEM (then nothing changed). */
int knowledge_see_subnet(struct knowledge *k, const struct subnet *s, usec_t now, uint64_t wall, usec_t absent_hold);

/* The last discovery was some time ago: who was absent may be back, and talk. Until the next one; knowledge_set_policy() is to
 * follow. */
void knowledge_doubt_absence(struct knowledge *k);

/* Other settings: ports that are absent for longer than this absent_hold do not count. knowledge_set_policy() is to follow. */
void knowledge_hold_absent(struct knowledge *k, usec_t now, usec_t absent_hold);

/* The tables that were read (TABLE_READ) in `seen`. Returns 0 or -ENOMEM. */
int knowledge_see_tables(struct knowledge *k, const struct observed *seen, uint64_t wall);

/* A block was read, or the answer to a Set stated it: nothing else that was sent to it is open any more. If a leaf port has what
 * neither was read there nor sent, its filter bits are not certain any more, either. */
void knowledge_see_block(struct knowledge *k, uint32_t record, uint16_t block, const struct p_key entries[P_KEY_BLOCK_ENTRIES]);
/* Was this read of the block last, of a table that was read? Entries behind the end of the table count for nothing. */
bool knowledge_block_is(const struct knowledge *k, uint32_t record, uint16_t block,
                        const struct p_key entries[P_KEY_BLOCK_ENTRIES]);
/* Or as one of the writes that were sent since has it, and that are not only suspected. What is neither is news, and from whom it
 * is counts. */
bool knowledge_block_may_be(const struct knowledge *k, uint32_t record, uint16_t block,
                            const struct p_key entries[P_KEY_BLOCK_ENTRIES]);

/* Who says what a table holds? */
enum knowledge_trust {
        KNOWLEDGE_DOUBTED,  /* somebody at the address of the port */
        KNOWLEDGE_EXPECTED, /* who said before that it is the port. If that is news, another one may have its address since */
        KNOWLEDGE_NAMED,    /* the port: it said so before and after */
};

/* Takes over what was said of a block of a table that was read, or of the filter bits of a leaf port; if that is not believed yet,
 * it may be so besides what is known. Returns false if it is news. */
bool knowledge_hear_block(struct knowledge *k, uint32_t record, uint16_t block, const struct p_key entries[P_KEY_BLOCK_ENTRIES],
                          enum knowledge_trust trust);
bool knowledge_hear_filter(struct knowledge *k, uint32_t record, bool inbound, bool outbound, enum knowledge_trust trust);
/* A block will perhaps be sent, once or again: it is stored with the record, and changes nothing else. Returns 0 or -ENOMEM. */
int knowledge_announce_block(struct knowledge *k, uint32_t record, uint16_t block,
                             const struct p_key entries[P_KEY_BLOCK_ENTRIES]);
/* What was announced will not be sent any more. */
void knowledge_withdraw(struct knowledge *k);
/* A block is about to be sent. False: it must not be, for it was not announced and stored before. */
bool knowledge_send_block(struct knowledge *k, uint32_t record, uint16_t block, const struct p_key entries[P_KEY_BLOCK_ENTRIES]);

/* A block that another writer was asked to write: OpenSM, by its partition file. From now on it may be there or not, until it is
 * read. A table that was never read may hold it anyway, and has no such blocks. Returns 0, or -ENOMEM: it must not be asked. */
int knowledge_expect_block(struct knowledge *k, uint32_t record, uint16_t block,
                           const struct p_key entries[P_KEY_BLOCK_ENTRIES]);
/* Somebody at the port's address said that the block is so, and who that is is not known: it may be, besides what is known.
 * Returns 0 or -ENOMEM. */
int knowledge_suspect_block(struct knowledge *k, uint32_t record, uint16_t block, const struct p_key entries[P_KEY_BLOCK_ENTRIES]);
/* Another pkeyd may carry out the policy (knowledge_set_policy()): what a table lacks of it may be there from now on. Returns 0 or
 * -ENOMEM. */
int knowledge_suspect_policy(struct knowledge *k);
/* The other writer was asked for all that was expected since the last call, or for nothing of it. */
void knowledge_settle_expected(struct knowledge *k, bool asked);
/* It was not asked after all: takes the last block of that kind back. */
void knowledge_retract_block(struct knowledge *k, uint32_t record, uint16_t block,
                             const struct p_key entries[P_KEY_BLOCK_ENTRIES]);
/* Are the ports of which there are records all of another fabric than this one? */
bool knowledge_is_of_another(const struct knowledge *k, const struct subnet *s);
/* While nobody looked another pkeyd may have written by policies that nobody here knows: each table may hold anything until it is
 * read. */
void knowledge_stop_following(struct knowledge *k);
/* The table was to be read, and did not answer: what it has is not certain any more. */
void knowledge_doubt(struct knowledge *k, uint32_t record);

/* The filter bits of a leaf port: read; about to be sent with other values. */
void knowledge_see_filter(struct knowledge *k, uint32_t record, bool inbound, bool outbound);
void knowledge_send_filter(struct knowledge *k, uint32_t record);

/* A person (`who`, copied) vouches at `wall` that this table holds nothing. It ends when the table or a block of it is read, when
 * it turns out to be of another size, and when a port that was absent or silent is seen again. Returns 0 or -ENOMEM. */
int knowledge_vouch(struct knowledge *k, uint32_t record, const char *who, uint64_t wall);

/* Into the tables of `to` that were not read what was read of them last: they become TABLE_ASSUMED. */
void knowledge_recall(const struct knowledge *k, struct observed *to);
/* Of those that were read since the last discovery, with no write open: they become TABLE_READ. To be asked before the next one. */
void knowledge_recall_certain(const struct knowledge *k, struct observed *to);
/* As knowledge_recall(), with what open writes may have put at free indexes: each index that may have been used. */
void knowledge_recall_used(const struct knowledge *k, struct observed *to);
/* Is a write announced, or sent and not confirmed? */
bool knowledge_has_open_writes(const struct knowledge *k);

/* --- the policy ---------------------------------------------------------------------------------------------------------- */

/* What the policy gives each port. `desired` may be of a subnet that has absent ports, too; it is borrowed until the next call
 * (NULL: of nobody anything is known). Of a port whose node is incomplete nothing is known, either. Returns 0 or -ENOMEM. */
int knowledge_set_policy(struct knowledge *k, const struct desired *desired);

/* What was borrowed is about to be freed: nothing is judged until the next knowledge_set_policy(). */
void knowledge_drop_policy(struct knowledge *k);

/* --- the rule -------------------------------------------------------------------------------------------------------------- */

/* Every table that counts was read since the last discovery, and no write is open. */
bool knowledge_is_certain(const struct knowledge *k);
/* The bounds of one table in a base; of what a port (an endport, or whatever is at a place) sends, with its filter. */
struct bounds knowledge_table_bounds(const struct knowledge *k, uint32_t record, uint16_t base);
struct bounds knowledge_port_bounds(const struct knowledge *k, uint32_t record, uint16_t base);

/* May this block be sent to this table, as far as this base is concerned? */
enum rule_verdict knowledge_judge_block(const struct knowledge *k, uint32_t record, uint16_t block,
                                        const struct p_key entries[P_KEY_BLOCK_ENTRIES], uint16_t base);
/* Could the block raise the level of this table in this base, and above what the policy gives its port? */
bool knowledge_exceeds_policy(const struct knowledge *k, uint32_t record, uint16_t block,
                              const struct p_key entries[P_KEY_BLOCK_ENTRIES], uint16_t base);
/* May an absent port be given this level for the day when it is back? `policy` is what the policy gives it; record: KNOWLEDGE_NONE
 * if nothing is known of it. */
enum rule_verdict knowledge_judge_arrival(const struct knowledge *k, uint32_t record, uint16_t base, enum level policy,
                                          enum level level);
/* May the filter bits of this leaf port be set so? *ret_base: a base that stands in the way. */
enum rule_verdict knowledge_judge_filter(const struct knowledge *k, uint32_t record, bool inbound, bool outbound,
                                         uint16_t *ret_base);
