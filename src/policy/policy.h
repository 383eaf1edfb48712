/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * policy/: which port is a member of which partition.
 *
 *     bytes --yaml_tree--> tree with places --policy_parse--> struct policy --policy_resolve(subnet)--> struct memberships
 *
 * A policy is what an admin wrote in partitions.yaml: partitions with their members, named by selectors; groups; pools; and the
 * bases that pkeyd may write. It is immutable and lives in one arena, that of its generation. Resolving it for a snapshot of the
 * fabric gives the partitions of each endport, with the lines that decided.
 *
 *     policy_parse         the file as a whole, `owns`; the sections: policy_partitions, policy_groups, policy_pools, policy_ipoib,
 *                          policy_ranges (lists of P_Keys). policy_keys.h: all keys
 *     policy_check         what the sections must fulfill together; policy_contradictions: lines that disagree in any fabric
 *     hostlist, selector   names and selectors as text; selector_match: which ports a selector selects; selector_hint: why none
 *     policy_resolve       which line decides for each endport; freeze: what an error about single ports does to a policy in force
 *     policy_select        the endports of a text or a pool; policy_local: what a policy may give this host, without a fabric
 *     policy_fix           corrections in the bytes of the file; typing_error: finds the one wrong character
 *
 * Invariants: a struct policy exists only if its file has no error. The order of lines does not matter. The default partition is
 * always partitions[0]. Anything that is not understood is refused: no default opens anything.
 *
 * This folder knows nothing about P_Key tables, indexes and MADs, nor where the bytes of the file come from.
 */

#include "ib/multicast.h"
#include "ib/types.h"
#include "policy/freeze.h"
#include "subnet/subnet.h"
#include "util/arena.h"
#include "util/findings.h"

struct known; /* subnet/known.h */
struct pins;  /* pins/pins.h */

#define POLICY_MAX_FILE_SIZE (16u << 20)

/* From the least to the most specific. Of the lines that match a port, the most specific one decides. */
enum specificity {
        SPECIFICITY_ALL,         /* ALL */
        SPECIFICITY_TYPE,        /* ALL_CAS, ALL_SWITCHES, ALL_ROUTERS */
        SPECIFICITY_GROUP,       /* a group */
        SPECIFICITY_HOST,        /* host names, hostlists, globs, @SWITCH */
        SPECIFICITY_DEVICE,      /* host/device */
        SPECIFICITY_DEVICE_PORT, /* host/device/port */
        SPECIFICITY_SWITCH_PORT, /* @SWITCH/PORTS */
        SPECIFICITY_GUID,        /* 0x..., SELF */
};

struct selector; /* policy/selector.h */

/* One line of `members`. */
struct policy_rule {
        const char *text;              /* its selectors as written */
        struct location where;
        const char *source_line;
        enum membership membership;
        bool index0;                   /* of leases: the entry belongs at index 0 of these ports */
        struct selector **selectors;
        uint32_t n_selectors;
};

/* A selector and its line. */
struct policy_candidate {
        const struct selector *selector;
        uint32_t rule; /* index into rules */
};

struct policy_partition {
        const char *name;
        struct location where;
        uint16_t base;
        const char *lease;             /* the ID of the lease that it is; NULL: it is of the file */
        bool index0;
        const struct ipoib *ipoib;     /* NULL: not an IPoIB partition */
        struct policy_rule *rules;
        uint32_t n_rules;
        struct policy_candidate *candidates; /* the selectors of all rules, the most specific first; of equally specific ones
                                                that of the first line first. The first one that matches a port decides. */
        uint32_t n_candidates;
};

struct policy_group {
        const char *name;
        struct location where;
        struct selector **selectors;
        uint32_t n_selectors;
};

struct base_range {
        uint16_t first, last;
};

#define POLICY_UNLIMITED UINT64_MAX

/* P_Keys that may be handed out at run time (leases/leases.h), and to whom. */
struct policy_pool {
        const char *name;
        struct location where;
        struct base_range *ranges;     /* of its P_Keys; ascending, without overlaps */
        uint32_t n_ranges;
        const char *ports_text;        /* the selectors as written */
        struct selector **ports;       /* only endports that these select */
        uint32_t n_ports;
        enum membership membership;    /* LIMITED or FULL: of a member, unless a lease sets another */
        uint64_t longest;              /* seconds that a lease may last; POLICY_UNLIMITED: until it is released */
        uint64_t rest;                 /* seconds for which a P_Key is not handed out again */
        bool index0;                   /* members may ask for index 0 */
        const char *const *allow;      /* names of users and groups, and rest:CLIENT for clients of the REST API */
        uint32_t n_allow;
};

struct policy {
        const char *file;
        bool strict;
        struct base_range *owns;       /* `owns:`, ascending, without overlaps; 0x0001-0x7fff if the file has none */
        uint32_t n_owns;
        struct policy_partition *partitions; /* [0]: the default partition, added if the file has none (where.line 0); without
                                                members if 0x7fff is not in `owns`. The others follow in the order of the file. */
        uint32_t n_partitions;
        struct policy_group *groups;         /* ascending name */
        uint32_t n_groups;
        struct policy_pool *pools;           /* in the order of the file; their P_Keys are in `owns`, and of no partition or other
                                                pool */
        uint32_t n_pools;
};

/* Returns whether the base is in `owns`. */
bool policy_owns(const struct policy *p, uint16_t base);
/* Returns whether pkeyd may write entries of this base: the policy owns it and, with `unmanaged: keep`, has a partition or a pool
 * with it. */
bool policy_manages(const struct policy *p, bool keeps_unmanaged, uint16_t base);
/* The index of the partition with this base, or -1. */
int policy_find_base(const struct policy *p, uint16_t base);
/* What sentences call it: "tenant-a", "lease job17". Allocated from a; NULL: out of memory. */
const char *policy_partition_label(struct arena *a, const struct policy_partition *p);
/* NULL: there is none of this name; the base is in none. */
const struct policy_pool *policy_find_pool(const struct policy *p, const char *name);
const struct policy_pool *policy_pool_of_base(const struct policy *p, uint16_t base);
/* The GUIDs of ports and nodes that lines, groups and pools name, ascending, each once. Returns 0 or -ENOMEM; *ret lives in the
 * arena. */
int policy_named_guids(struct arena *a, const struct policy *p, const struct guid **ret, uint32_t *ret_n);
/* The index of the partition whose entry belongs at index 0 of each table: the one with `index0: true`, else the default
 * partition. */
uint32_t policy_index0_partition(const struct policy *p);

/* What the default partition gives a host that only lines for all hosts select: LIMITED or FULL (or BOTH); NONE: the policy does
 * not own 0x7fff. */
enum membership policy_default_membership(const struct policy *p);

/* Reads a policy and appends its errors and warnings to findings. Copies file_name, which findings name. Returns 0, -EBADMSG
 * (refused: findings say why), -ENOMEM. *ret lives in the arena and is set only on 0. Safe for any bytes. */
int policy_parse(struct arena *a, const char *file_name, const char *bytes, size_t n, struct findings *findings,
                 struct policy **ret);

/* One partition that an endport is a member of. */
struct port_membership {
        uint32_t partition;       /* index into policy->partitions */
        enum membership membership; /* never MEMBERSHIP_NONE */
        const struct policy_rule *rule; /* the line that decides; NULL: a rule of the default partition that needs no line */
        enum membership certain;    /* the least that it is under any reading of contested lines (policy/freeze.h) */
};

/* Returns whether the port is a full member of the partition with this base, whatever the lines give it: in the default partition,
 * the port pkeyd works through and the master SM's. */
static inline bool policy_requires_full(const struct subnet *s, uint32_t port, uint16_t base)
{
        return base == P_KEY_DEFAULT_BASE && (port == s->self || port == s->sm);
}

/* The partitions of each endport of a subnet. */
struct memberships {
        const struct policy *policy; /* borrows */
        const struct subnet *subnet; /* borrows */
        /* of port p of the subnet: items[first[p]] .. items[first[p + 1] - 1], ascending partition; of external ports of
         * switches: none */
        uint32_t *first;
        struct port_membership *items;
        enum freeze *frozen; /* of each port; the items of a frozen port are what its lines give it; if two disagree, the lower */
};

/* What is known besides a snapshot. Each may be NULL. */
struct policy_memory {
        const struct known *known; /* the ports that were seen before: a selector of an absent one is reported as such,
                                    * not as a wrong name */
        const struct pins *pins;   /* nodes have the names that are pinned to them; NULL: those that they give themselves */
};

/* Applies a policy to a fabric. A selector that matches nothing is a warning, or an error with `strict`; two equally specific lines
 * that disagree about a port are an error. If the policy owns 0x7fff, the port that pkeyd works through and the master SM's port
 * are full members of the default partition, whatever the lines give them. Ports with a name that two adapters have are frozen.
 * in_force: errors about single ports freeze these ports (policy/freeze.h) and refuse nothing. Returns 0, -EBADMSG, -ENOMEM. *ret
 * lives in the arena and is set only on 0. */
int policy_resolve_with_memory(struct arena *a, const struct policy *policy, const struct subnet *subnet,
                               const struct policy_memory *memory, bool in_force, struct findings *findings,
                               struct memberships **ret);

/* The same for a policy that is not in force, when nothing is known besides the snapshot. */
int policy_resolve(struct arena *a, const struct policy *policy, const struct subnet *subnet, struct findings *findings,
                   struct memberships **ret);

/* The endports that a list of selectors selects in this fabric, for `pkeyctl explain A B` and `show port X`. policy, for its
 * groups, may be NULL. Returns 0 (*ret_n may be 0), -EBADMSG (findings say why), -ENOMEM; *ret_ports lives in the arena. */
int policy_select(struct arena *a, const struct policy *policy, const struct subnet *subnet, const struct policy_memory *memory,
                  const char *text, struct findings *findings, uint32_t **ret_ports, uint32_t *ret_n);

/* The membership of a port in the partition with this base; NULL: none. */
const struct port_membership *memberships_find(const struct memberships *m, uint32_t port, uint16_t base);
enum membership memberships_get(const struct memberships *m, uint32_t port, uint16_t base);

/* The line of a partition that decides about a port, one as specific that gives another membership, and the less specific one that
 * would decide without it; NULL: there is none. */
struct policy_lines {
        const struct policy_rule *decides, *disputes, *overridden;
        enum specificity level; /* of `decides` */
};

/* Finds the lines of all partitions for n ports. pins: as in policy_memory. Returns 0 or -ENOMEM. *ret lives in the arena: n items
 * for each partition. */
int policy_find_lines(struct arena *a, const struct policy *policy, const struct subnet *subnet, const struct pins *pins,
                      const uint32_t *ports, uint32_t n, struct policy_lines **ret);

/* The lines `ipoib: ...` of a partition in normal form, indented by 4 spaces. Allocated from a; NULL: out of memory. */
const char *policy_print_ipoib(struct arena *a, const struct ipoib *ipoib);
