/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * import/: from a partitions.conf to a policy that asks for the same tables.
 *
 *     import_reduce ... what OpenSM's "the later line counts" comes to: one membership for each kind of node and each port
 *     import_names .... ports as hosts, folded into hostlists; sets that several partitions share as groups
 *     import_print .... partitions.yaml, with the comments of the original
 *     import_check .... the result read again, and compared port by port with what OpenSM makes of the original
 *
 * What a policy cannot say is never said wider: it is left out or narrowed, with a warning that tells where.
 *
 * This folder refuses to know where the file is, and what becomes of the text.
 */

#include "opensm/partitions_conf.h"
#include "policy/file_report.h"

/* A port that is named on its own, and what it is in the end. */
struct import_port {
        struct guid guid;
        uint32_t port;              /* of the subnet; SUBNET_NONE: not there, or there is no subnet */
        enum membership membership;
        bool self;                  /* by the word SELF; guid may be 0 then */
        bool stays;                 /* is said by its GUID */
        uint32_t order;             /* in the file */
        struct location where;
};

/* Lines of equal membership. */
struct import_set {
        enum membership membership;
        struct import_port **ports;
        uint32_t n_ports;
        const char **items;         /* selectors: hostlists, then GUIDs */
        uint32_t n_items;
        struct import_port **guids; /* of the GUIDs, which are the last n_guids items */
        uint32_t n_guids;
        const char *text;           /* all of them, to compare sets */
        const char *group;          /* the group that stands for it; NULL: none */
        bool group_first;           /* the first with this group: prints it */
};

#define IMPORT_N_TYPES 4            /* by enum node_type */

struct import_partition {
        const struct partitions_conf_partition *source;
        const char *name;
        enum membership all, types[IMPORT_N_TYPES];
        enum membership self;       /* NONE: not said */
        uint32_t self_order;        /* in the file */
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
        const struct subnet *subnet; /* NULL: nothing is known of the fabric */
        bool allow_both_pkeys;
        struct import_partition *partitions; /* as in conf */
        uint32_t n_partitions;
};

/* Whether it is known which port SELF means. */
static inline bool import_knows_self(const struct import *im)
{
        return im->subnet && partitions_conf_self_port(im->subnet) != SUBNET_NONE;
}

/* The whole of it. Returns 0, -EBADMSG (an error: the result would not be the same), -ENOMEM. *ret is the text of a
 * partitions.yaml, in the arena. subnet may be NULL: then GUIDs stay GUIDs and nothing is compared. */
int import_convert(struct arena *a, const struct partitions_conf *conf, const struct subnet *subnet, bool allow_both_pkeys,
                   struct findings *findings, const char **ret);

/* The steps. Return 0 or -ENOMEM; import_check also -EBADMSG. */
int import_reduce(struct import *im, struct import_partition *p);
int import_name_partitions(struct import *im);
int import_name_sets(struct import *im, struct import_partition *p);
int import_find_groups(struct import *im);
const char *import_print(struct import *im);
int import_check(struct import *im, const char *yaml);
