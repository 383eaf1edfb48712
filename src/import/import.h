/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * import/: converts a partitions.conf to a policy that results in the same tables.
 *
 *     import_reduce ... reduces the lines of a partition to one membership for each node type and port; later lines override
 *     import_names .... replaces ports by hosts, folded into hostlists, and sets that several partitions share by groups
 *     import_print .... prints partitions.yaml, with the comments of the original
 *     import_check .... reads the result, and compares it port by port with what OpenSM makes of the original
 *
 * What a policy cannot express is left out or narrowed, never widened, with a warning about the line.
 *
 * This folder does not know where the file comes from and where the policy goes.
 */

#include "opensm/partitions_conf.h"
#include "subnet/known.h"
#include "util/file_report.h"

/* A port that a line names, and its resulting membership. */
struct import_port {
        struct guid guid;
        uint32_t port;              /* of the subnet; SUBNET_NONE: not in it, or there is no subnet */
        enum membership membership;
        bool self;                  /* named by the word SELF; then guid may be 0 */
        bool stays_guid;            /* the policy names it by its GUID */
        uint32_t order;             /* of its line among those of the partition */
        struct location where;
};

/* The named ports of a partition that have the same membership. */
struct import_set {
        enum membership membership;
        struct import_port **ports;
        uint32_t n_ports;
        const char **items;         /* selectors: hostlists, then GUIDs */
        uint32_t n_items;
        struct import_port **guids; /* of the GUIDs, which are the last n_guids items */
        uint32_t n_guids;
        const char *text;           /* all items, to compare sets */
        const char *group;          /* the group that stands for it; NULL: none */
        bool defines_group;         /* the first set with this group */
};

#define IMPORT_N_TYPES 4            /* by enum node_type */

struct import_partition {
        const struct partitions_conf_partition *source;
        const char *name;
        enum membership all, types[IMPORT_N_TYPES];
        enum membership self;       /* of SELF; MEMBERSHIP_NONE: it is not a member */
        uint32_t self_order;        /* of its line among those of the partition */
        bool index0;
        struct import_port *ports;  /* ascending GUID */
        uint32_t n_ports;
        struct import_set sets[3];
        uint32_t n_sets;
};

struct import {
        struct arena *arena;
        struct report report;
        const struct partitions_conf *conf;
        const struct subnet *subnet; /* with the known ports that are absent; NULL: the fabric is not known */
        bool allow_both_pkeys;
        struct import_partition *partitions; /* as in conf */
        uint32_t n_partitions;
};

/* Returns whether it is known which port SELF selects. */
static inline bool import_knows_self(const struct import *im)
{
        return im->subnet && partitions_conf_self_port(im->subnet) != SUBNET_NONE;
}

/* Converts. Returns 0, -EBADMSG (the policy would result in other tables: findings name them), -ENOMEM. *ret is the text of a
 * partitions.yaml, in the arena. subnet may be NULL: then GUIDs stay GUIDs and nothing is compared. known (NULL: none) has the
 * ports that were seen before: the policy names them as if they were there. */
int import_convert(struct arena *a, const struct partitions_conf *conf, const struct subnet *subnet, const struct known *known,
                   bool allow_both_pkeys, struct findings *findings, const char **ret);

/* The steps. Return 0 or -ENOMEM; import_check also -EBADMSG. */
int import_reduce(struct import *im, struct import_partition *p);
int import_name_partitions(struct import *im);
int import_name_sets(struct import *im, struct import_partition *p);
int import_find_groups(struct import *im);
const char *import_print(struct import *im);
int import_check(struct import *im, const char *yaml);
