/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * ib/: the InfiniBand vocabulary.
 *
 *     types         P_Key, GUID, LID, membership
 *     mad           one request and its answer, of any management class
 *     smp, pma, sa  attributes of subnet management, performance management and subnet administration
 *     m_keys        a file of M_Keys: the key of each port
 *     multicast     parameters of the multicast groups of a partition
 *
 * All folders that come after this one in the flow use these types: a P_Key is not a GUID and a GUID is not a LID, and the compiler
 * checks it. Values are in host byte order everywhere in pkeyd; network byte order exists only inside a MAD, and only the codecs of
 * this folder (smp.h, pma.h, sa.h) read and write one.
 *
 * The common rules of partitioning are defined here once: the base of a P_Key, full membership, and when two P_Keys let two ports
 * communicate (IBA 1.5, 10.9.3).
 *
 * This folder knows nothing about policies, plans, files, sockets and time.
 */

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text; /* util/text.h */

/* A P_Key as in a table: the base in the low 15 bits, the membership in the high bit. A base of 0 means an unused entry (0x0000 and
 * 0x8000 are both invalid P_Keys). */
struct p_key {
        uint16_t v;
};

struct guid {
        uint64_t v;
};

struct lid {
        uint16_t v;
};

#define LID_MAX_UNICAST 0xbfff /* above are multicast LIDs and the permissive LID (IBA 1.5, 4.1.3) */

/* True if it can be the LID of a port. */
static inline bool lid_is_unicast(struct lid lid)
{
        return lid.v != 0 && lid.v <= LID_MAX_UNICAST;
}

/* Microseconds of a monotonic clock. USEC_INFINITY: never. */
typedef uint64_t usec_t;
#define USEC_INFINITY UINT64_MAX
#define USEC_PER_SEC  UINT64_C(1000000)
#define USEC_PER_MSEC UINT64_C(1000)

#define P_KEY_BASE_MASK      0x7fff
#define P_KEY_FULL_BIT       0x8000
#define P_KEY_DEFAULT_BASE   0x7fff
#define P_KEY_BLOCK_ENTRIES  32     /* entries of one P_KeyTable block: what one MAD carries */

#define NODE_DESCRIPTION_SIZE 64

enum node_type {
        NODE_UNKNOWN = 0, /* not in any MAD: the type of a port that was never discovered */
        NODE_CA = 1,
        NODE_SWITCH = 2,
        NODE_ROUTER = 3,
};

/* PortInfo:PortState */
enum port_state {
        PORT_STATE_NONE = 0,
        PORT_STATE_DOWN = 1,
        PORT_STATE_INIT = 2,
        PORT_STATE_ARMED = 3,
        PORT_STATE_ACTIVE = 4,
};

/* The membership of a port in a partition. BOTH: it has two entries, the limited and the full one. */
enum membership {
        MEMBERSHIP_NONE,
        MEMBERSHIP_LIMITED,
        MEMBERSHIP_FULL,
        MEMBERSHIP_BOTH,
};

/* What a membership is worth: with both entries a port may talk to the same ports as with the full one. */
enum level {
        LEVEL_NONE,
        LEVEL_LIMITED,
        LEVEL_FULL,
        N_LEVELS,
        /* levels of a policy that is not known exactly (knowledge/rule.h): */
        POLICY_UNKNOWN = N_LEVELS, /* none for a gain, full for a loss */
        POLICY_UP_TO_LIMITED,      /* none for a gain, limited for a loss */
        POLICY_FROM_LIMITED,       /* limited for a gain, full for a loss */
        N_POLICY_LEVELS,
};

static inline uint16_t p_key_base(struct p_key k)
{
        return k.v & P_KEY_BASE_MASK;
}

static inline bool p_key_is_full(struct p_key k)
{
        return k.v & P_KEY_FULL_BIT;
}

/* An entry with base 0 grants nothing. */
static inline bool p_key_is_used(struct p_key k)
{
        return p_key_base(k) != 0;
}

static inline struct p_key p_key_make(uint16_t base, bool full)
{
        return (struct p_key) { (uint16_t) ((base & P_KEY_BASE_MASK) | (full ? P_KEY_FULL_BIT : 0)) };
}

/* The blocks of a table of this capacity, and the entries of a block that are within it. */
static inline uint16_t p_key_table_blocks(uint16_t capacity)
{
        return (uint16_t) ((capacity + P_KEY_BLOCK_ENTRIES - 1) / P_KEY_BLOCK_ENTRIES);
}

static inline size_t p_key_block_size(uint16_t capacity, uint16_t block)
{
        size_t first = (size_t) block * P_KEY_BLOCK_ENTRIES, n = capacity > first ? capacity - first : 0;

        return n < P_KEY_BLOCK_ENTRIES ? n : P_KEY_BLOCK_ENTRIES;
}

static inline bool p_key_same_partition(struct p_key a, struct p_key b)
{
        return p_key_is_used(a) && p_key_base(a) == p_key_base(b);
}

/* The matching rule: same base, and at least one of the two is a full member. */
static inline bool p_key_may_talk(struct p_key a, struct p_key b)
{
        return p_key_same_partition(a, b) && (p_key_is_full(a) || p_key_is_full(b));
}

static inline bool membership_has_full(enum membership m)
{
        return m == MEMBERSHIP_FULL || m == MEMBERSHIP_BOTH;
}

static inline bool membership_has_limited(enum membership m)
{
        return m == MEMBERSHIP_LIMITED || m == MEMBERSHIP_BOTH;
}

static inline enum level membership_level(enum membership m)
{
        return m == MEMBERSHIP_BOTH ? LEVEL_FULL : (enum level) m;
}

static inline bool levels_talk(unsigned x, unsigned y)
{
        return x != LEVEL_NONE && y != LEVEL_NONE && (x == LEVEL_FULL || y == LEVEL_FULL);
}

/* The membership that one entry gives. */
static inline enum membership p_key_membership(struct p_key key)
{
        return p_key_is_full(key) ? MEMBERSHIP_FULL : MEMBERSHIP_LIMITED;
}

/* For qsort() and bsearch() over struct p_key: by base, the limited before the full entry. */
int p_key_compare(const void *a, const void *b);

/* True if exactly this entry is among these, which may be in any order. */
bool p_keys_hold(const struct p_key *keys, uint32_t n, struct p_key key);
/* True if an entry of this base is among them. */
bool p_keys_hold_base(const struct p_key *keys, uint32_t n, uint16_t base);
/* The membership that these entries, in any order, give in this base; its level. */
enum membership p_keys_membership(const struct p_key *keys, uint32_t n, uint16_t base);
static inline enum level p_keys_level(const struct p_key *keys, uint32_t n, uint16_t base)
{
        return membership_level(p_keys_membership(keys, n, base));
}

/* A set of bases. */
struct base_set {
        uint8_t bits[(P_KEY_BASE_MASK + 1) / 8];
};

static inline bool base_set_has(const struct base_set *set, uint16_t base)
{
        return set->bits[base / 8] >> base % 8 & 1;
}

static inline void base_set_add(struct base_set *set, uint16_t base)
{
        set->bits[base / 8] |= (uint8_t) (1 << base % 8);
}

/* Gets the entries that give a membership in this base: none, one, or the limited and then the full one. Returns their number. */
uint32_t p_keys_of_membership(uint16_t base, enum membership m, struct p_key ret[2]);
/* Sorts by p_key_compare(), and drops duplicates and unused entries. Returns how many are left. */
uint32_t p_keys_sort(struct p_key *keys, uint32_t n);
/* Gets a whole block of a table, with zeros past the end of the table. */
void p_keys_get_block(const struct p_key *table, uint16_t capacity, uint16_t block, struct p_key ret[P_KEY_BLOCK_ENTRIES]);
/* The number of entries in use. */
uint32_t p_keys_count(const struct p_key *keys, uint32_t n);
/* True if one of these entries covers the key: it has the same base and at least its membership. */
bool p_keys_cover(const struct p_key *keys, uint32_t n, struct p_key key);
/* The first entry in use of `keys` that no entry of `table` covers; NULL: all are covered. Borrows from `keys`. */
const struct p_key *p_keys_find_uncovered(const struct p_key *table, uint32_t n_table, const struct p_key *keys, uint32_t n_keys);

/* Adds four hexadecimal digits for each entry. */
void p_keys_to_hex(struct text *t, const struct p_key *keys, size_t n);
/* Reads n digits into at most `max` entries, which are zeros. Returns false if the digits are not of that many entries. */
bool p_keys_from_hex(const char *digits, size_t n, struct p_key *ret, size_t max);

/* "none", "limited", "full", "both"; a static string. */
const char *membership_to_string(enum membership m);
bool membership_from_string(const char *word, enum membership *ret);
/* "CA", "switch", "router"; a static string. */
const char *node_type_to_string(enum node_type t);
/* "DOWN", "INIT", ...; a static string. */
const char *port_state_to_string(enum port_state s);
