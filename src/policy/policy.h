/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * policy/: what shall be.
 *
 *     bytes --yaml_tree--> tree with marks --policy_parse--> struct policy --policy_resolve(subnet)--> struct memberships
 *
 * A policy is what an admin wrote in partitions.yaml: partitions, who belongs to them by selector, groups, and which
 * bases are pkeyd's to touch. It is immutable and owned by one arena (one generation). Resolving it against a snapshot of
 * the fabric says for every endport which partitions it is a member of, and by which line.
 *
 * Invariants: a struct policy exists only if its file had not one error. Order of lines never matters. The default
 * partition is always partitions[0]. What is not understood is refused: there is no default that opens anything.
 *
 * This folder refuses to know P_Key tables, indexes, MADs, and where the bytes came from.
 */

#include "ib/multicast.h"
#include "ib/types.h"
#include "policy/freeze.h"
#include "subnet/subnet.h"
#include "util/arena.h"
#include "util/findings.h"

struct known; /* subnet/known.h */

#define POLICY_MAX_FILE_SIZE (16u << 20)

/* From the least to the most specific; of the lines that match a port the highest value decides. */
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

struct selector; /* one element of a members line or a group; see selector.h */

/* One line below `members`: selector text, membership, where it stands. */
struct policy_rule {
        const char *text;              /* as written */
        struct location where;
        const char *source_line;
        enum membership membership;
        struct selector **selectors;   /* a comma separates several */
        uint32_t n_selectors;
};

/* A selector with its line. */
struct policy_candidate {
        const struct selector *selector;
        uint32_t rule; /* index into rules */
};

struct policy_partition {
        const char *name;
        struct location where;
        uint16_t base;
        bool index0;
        const struct ipoib *ipoib;     /* NULL: it is no IPoIB partition */
        struct policy_rule *rules;
        uint32_t n_rules;
        struct policy_candidate *candidates; /* the selectors of all rules, ordered so that whoever comes first decides: the
                                                most specific, and of those the one of the first line */
        uint32_t n_candidates;
};

struct policy_group {
        const char *name;
        struct location where;
        const char *source_line;
        struct selector **selectors;
        uint32_t n_selectors;
};

struct base_range {
        uint16_t first, last;
};

struct policy {
        const char *file;
        bool strict;
        struct base_range *owns;       /* what `owns:` says; the whole range 0x0001-0x7fff without it */
        uint32_t n_owns;
        struct policy_partition *partitions; /* [0]: the default partition, made up if the file has none (where.line 0);
                                                without members if `owns` leaves 0x7fff to others. Then: as in the file. */
        uint32_t n_partitions;
        struct policy_group *groups;         /* ascending name */
        uint32_t n_groups;
};

/* True if `owns` lets pkeyd touch entries of this base. */
bool policy_owns(const struct policy *p, uint16_t base);
/* True if pkeyd may write entries of this base: the policy owns it and, where entries that no partition names are kept, has a
 * partition with it. */
bool policy_manages(const struct policy *p, bool keeps_unmanaged, uint16_t base);
/* Index into partitions of the one with this base, or -1. */
int policy_find_base(const struct policy *p, uint16_t base);
/* Every GUID that a line or a group names, of a port or of a node: ascending, each once. Returns 0 or -ENOMEM; *ret in the
 * arena. */
int policy_named_guids(struct arena *a, const struct policy *p, const struct guid **ret, uint32_t *ret_n);
/* The partition whose entry belongs at index 0: the one with `index0: true`, else the default partition. */
uint32_t policy_index0_partition(const struct policy *p);

/* Reads a policy. file_name is copied, for messages. Everything wrong is appended to findings; *ret is set only if
 * nothing was an error. Returns 0, -EBADMSG (refused: findings say why), -ENOMEM. Pure, and safe for any bytes. */
int policy_parse(struct arena *a, const char *file_name, const char *bytes, size_t n, struct findings *findings,
                 struct policy **ret);

/* One partition that an endport is a member of. */
struct port_membership {
        uint32_t partition;       /* index into policy->partitions */
        enum membership membership; /* never MEMBERSHIP_NONE */
        const struct policy_rule *rule; /* the line that decided; NULL: the default partition's own rules */
        enum membership certain;    /* what it is at least, whichever of the contested lines mean it (policy/freeze.h) */
};

/* What every endport of a subnet is a member of. */
struct memberships {
        const struct policy *policy; /* borrows */
        const struct subnet *subnet; /* borrows */
        /* of port p of the subnet: items[first[p]] .. items[first[p + 1] - 1], ascending partition. External ports of
         * switches have none of their own. */
        uint32_t *first;
        struct port_membership *items;
        enum freeze *frozen; /* of each port; what it is a member of is what its lines say, of two that disagree the lower one */
};

/* Applies a policy to a fabric. Selectors that match nothing become warnings (errors if `strict`), two equally specific
 * lines that disagree about a port an error that names both. Returns 0, -EBADMSG, -ENOMEM; *ret only on 0, in the arena.
 * SELF and the master SM's port are full members of the default partition whatever the lines say (if pkeyd owns
 * 0x7fff). */
int policy_resolve(struct arena *a, const struct policy *policy, const struct subnet *subnet, struct findings *findings,
                   struct memberships **ret);
/* The same for a policy that is in force: errors that concern single ports freeze these ports (policy/freeze.h), and refuse
 * nothing. Ports of which two have one name are frozen either way. */
int policy_resolve_in_force(struct arena *a, const struct policy *policy, const struct subnet *subnet, struct findings *findings,
                            struct memberships **ret);

/* Either of the two, with the ports that were seen in the fabric before: a selector that means one that is not there now is
 * reported as that, and not as a name that is wrong. known may be NULL. */
int policy_resolve_known(struct arena *a, const struct policy *policy, const struct subnet *subnet, const struct known *known,
                         bool in_force, struct findings *findings, struct memberships **ret);

/* The endports that one selector text (as below `members`: a host, a GUID, @switch/port, a group, ...) means in this
 * fabric, for `pkeyctl explain A B` and `show port X`: appends nothing to the policy. policy may be NULL (no groups
 * then), and so may known: else who is not there now is reported as that. Returns 0 (*ret_n may be 0), -EBADMSG (findings say why),
 * -ENOMEM. */
int policy_select(struct arena *a, const struct policy *policy, const struct subnet *subnet, const struct known *known,
                  const char *text, struct findings *findings, uint32_t **ret_ports, uint32_t *ret_n);

/* What the policy makes of a port in the partition of this base; NULL: nothing. */
const struct port_membership *memberships_find(const struct memberships *m, uint32_t port, uint16_t base);

/* The lines `ipoib: ...` of a partition, in normal form, indented by 4 blanks. Allocated from a; NULL: out of memory. */
const char *policy_print_ipoib(struct arena *a, const struct ipoib *ipoib);
