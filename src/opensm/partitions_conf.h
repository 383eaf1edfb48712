/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * opensm/: OpenSM's files.
 *
 *     partitions.conf --partitions_conf_parse--> struct partitions_conf --partitions_conf_apply(subnet)--> who has what
 *                                                          '--partitions_conf_import(subnet)--> partitions.yaml
 *     policy or tables --partitions_file_*--> partitions.conf        opensm.conf --opensm_conf_parse--> what matters of it
 *
 * Two readings of a partitions.conf are of use to a site: what its author meant, and what OpenSM makes of it. This folder
 * knows the second, that of OpenSM 3.3.23, with all of its habits, and says in findings where the first is probably another:
 * words that are taken for other words because they begin like them, keys that are cut, numbers that are octal, lines that
 * are cut in two, text of an earlier line that is read again, and the ways to make OpenSM drop the whole file and make
 * every port a full member of the default partition. What it writes itself (partitions_file.h) says everything in the
 * one way in which OpenSM cannot misread it.
 *
 * Invariants: a model never grants what OpenSM would not. Of two memberships of a port in one partition the later one
 * counts, as in OpenSM, so the order of members is kept.
 *
 * This folder refuses to know where the bytes came from and when OpenSM reads them.
 */

#include "ib/multicast.h"
#include "subnet/subnet.h"
#include "util/findings.h"

#define PARTITIONS_CONF_MAX_SIZE        (16u << 20)
#define PARTITIONS_CONF_MAX_DEFINITIONS 40000
#define PARTITIONS_CONF_LINE            4094 /* characters that OpenSM takes at once; what is longer it takes for two lines */

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
        struct location where;      /* line 0: OpenSM's own, not in the file */
};

struct partitions_conf_partition {
        const char *name;           /* as OpenSM has it: at most 31 bytes, of any kind; "" if it has none */
        uint16_t base;
        bool generated;             /* OpenSM made up the number */
        struct location where;      /* the first definition; line 0: made by OpenSM */
        struct partitions_conf_member *members, *last;
        uint32_t n_members;
        struct ipoib *ipoib;        /* NULL: none; its groups are those of mgid lines, and are the model's own */
        uint32_t allocated_groups;  /* of them */
        bool has_broadcast;         /* `ipoib` was said; else only mgid lines were there */
};

/* What stands behind a #. */
struct partitions_conf_comment {
        struct partitions_conf_comment *next;
        const char *text;           /* as it may stand in a policy, without the # and blanks around it */
        unsigned line;
        bool alone;                 /* nothing before it on its line */
};

struct partitions_conf {
        const char *file;
        bool discarded;             /* OpenSM drops the file; the model is that of its default then */
        bool is_empty;              /* discarded, as nothing stands there but comments */
        struct partitions_conf_partition *partitions; /* in the order of their making; [0] is the default partition */
        uint32_t n_partitions;
        struct partitions_conf_comment *comments;     /* ascending line */
};

/* Reads a file as OpenSM does when it is started. Everything odd is a finding of severity warning: OpenSM does something in
 * any case, and the model says what. Returns 0; -EBADMSG if there is no telling what OpenSM would do (an error says why: it
 * crashes, or there is more than any limit); -ENOMEM. Safe for any bytes; in the arena. */
int partitions_conf_parse(struct arena *a, const char *file_name, const char *bytes, size_t n, struct findings *findings,
                          struct partitions_conf **ret);

/* What OpenSM has without a partition file, as of one that it drops: every port a full member of the default partition, with its
 * broadcast group. file_name is copied. Returns 0 or -ENOMEM; in the arena. */
int partitions_conf_fallback(struct arena *a, const char *file_name, struct partitions_conf **ret);

/* What OpenSM makes of one partition in a fabric: an enum membership for each port of the subnet, in the arena. Without
 * allow_both_pkeys `both` is full. Returns 0 or -ENOMEM. */
int partitions_conf_apply(struct arena *a, const struct partitions_conf_partition *partition, const struct subnet *subnet,
                          bool allow_both_pkeys, uint8_t **ret);
