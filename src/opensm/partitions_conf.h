/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * opensm/: OpenSM's files.
 *
 *     partitions.conf --partitions_conf_parse--> struct partitions_conf --partitions_conf_apply(subnet)--> memberships of ports
 *                                                          '--import_convert(subnet)--> partitions.yaml
 *     policy or tables --partitions_file_*--> partitions.conf        opensm.conf --opensm_conf_parse--> struct opensm_conf
 *
 *     plan, knowledge, file in place --opensm_transitions_*--> transitions --opensm_phases_compute--> a file for each phase
 *     (phases.h), of which opensm_admit() (admission.h) holds what the rule does not admit
 *
 * The parser reads a partitions.conf exactly as OpenSM 3.3.23 does. Where that is probably not what the author meant, it adds a
 * finding: any prefix of a word is that word, P_Keys are cut to 15 bits, numbers may be octal, long lines are split, text of an
 * earlier line is read again, and many errors make OpenSM drop the whole file and make every port a full member of the default
 * partition. What depends on the build of OpenSM is a parameter (opensm_numbers.h). The files that this folder writes
 * (partitions_file.h) avoid all of this.
 *
 * Invariants: a model never grants what OpenSM would not. Of two memberships of a port in one partition, the later one
 * counts, as in OpenSM, so the order of members is kept.
 *
 * This folder does not know where the bytes come from and when OpenSM reads them.
 */

#include "ib/multicast.h"
#include "opensm/opensm_numbers.h"
#include "subnet/subnet.h"
#include "util/findings.h"

#define PARTITIONS_CONF_MAX_SIZE        (16u << 20)
#define PARTITIONS_CONF_MAX_DEFINITIONS 40000
#define PARTITIONS_CONF_LINE            4094 /* the longest line in characters; OpenSM reads the rest as another line */

enum partitions_conf_who {
        PARTITIONS_CONF_ALL,
        PARTITIONS_CONF_TYPE, /* ALL_CAS, ALL_SWITCHES, ALL_ROUTERS */
        PARTITIONS_CONF_SELF, /* the port of the SM */
        PARTITIONS_CONF_GUID,
};

/* One port specifier, in the order of the file. */
struct partitions_conf_member {
        struct partitions_conf_member *next;
        enum partitions_conf_who who;
        enum node_type type;        /* of PARTITIONS_CONF_TYPE */
        struct guid guid;           /* of PARTITIONS_CONF_GUID */
        enum membership membership; /* never none */
        bool index0;
        struct location where;      /* line 0: OpenSM's own default, not in the file */
};

struct partitions_conf_partition {
        const char *name;           /* as OpenSM stores it: at most 31 arbitrary bytes; "": none */
        uint16_t base;
        bool generated;             /* OpenSM assigned the P_Key */
        struct location where;      /* the first definition; line 0: OpenSM's own default */
        struct partitions_conf_member *members, *last;
        uint32_t n_members;
        struct ipoib *ipoib;        /* NULL: none; its groups are those of mgid lines, in the arena */
        uint32_t allocated_groups;  /* of `ipoib` */
        uint8_t sl;                 /* of the paths in the partition; the last definition decides */
        bool has_broadcast;         /* by the flag `ipoib`; without it `ipoib` has only groups of mgid lines */
};

/* The first member with indx0; NULL: there is none. *ret_all: every one has it. */
const struct partitions_conf_member *partitions_conf_find_index0(const struct partitions_conf_partition *p, bool *ret_all);

/* The text after a #. */
struct partitions_conf_comment {
        struct partitions_conf_comment *next;
        const char *text;           /* escaped for a policy, without the # and surrounding blanks */
        unsigned line;
        bool alone;                 /* the line has only the comment */
};

struct partitions_conf {
        const char *file;
        bool discarded;             /* OpenSM drops the file; the model is OpenSM's default */
        bool is_empty;              /* discarded, because it has only comments */
        struct partitions_conf_partition *partitions; /* in the order in which OpenSM creates them; [0] is the default partition */
        uint32_t n_partitions;
        struct partitions_conf_comment *comments;     /* ascending line */
};

/* Reads a file as an OpenSM with such numbers does when it starts. What its author probably did not mean becomes a warning. Returns
 * 0; -EBADMSG if it cannot be predicted what OpenSM does, or a limit is exceeded (an error says which; FINDING_OPENSM_NUMBER: it
 * depends on `numbers`, which is UNKNOWN); -ENOMEM. Safe for any bytes; *ret in the arena. */
int partitions_conf_parse(struct arena *a, enum opensm_numbers numbers, const char *file_name, const char *bytes, size_t n,
                          struct findings *findings, struct partitions_conf **ret);

/* What OpenSM uses without a partition file, or for one that it drops: every port is a full member of the default partition, which
 * has a broadcast group. Copies file_name. Returns 0 or -ENOMEM; *ret in the arena. */
int partitions_conf_fallback(struct arena *a, const char *file_name, struct partitions_conf **ret);

/* The port that SELF selects, which is the one that OpenSM runs on: the master SM's if that is known, else this host's. */
static inline uint32_t partitions_conf_self_port(const struct subnet *s)
{
        return s->sm != SUBNET_NONE ? s->sm : s->self;
}

/* Without allow_both_pkeys OpenSM gives a port with the full entry of a base not the limited one, too. */
static inline enum membership partitions_conf_membership(enum membership m, bool allow_both_pkeys)
{
        return m == MEMBERSHIP_BOTH && !allow_both_pkeys ? MEMBERSHIP_FULL : m;
}

/* The members of one partition in a fabric: *ret has an enum membership for each port of the subnet, in the arena. Without
 * allow_both_pkeys `both` is full. Returns 0 or -ENOMEM. */
int partitions_conf_apply(struct arena *a, const struct partitions_conf_partition *partition, const struct subnet *subnet,
                          bool allow_both_pkeys, uint8_t **ret);
