/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A partitions.conf that pkeyd writes, and how it knows one of its own.
 *
 * The file says everything: each port by its GUID with its membership, one to a line, each partition by its P_Key, each
 * multicast parameter. Nothing is left to a default of OpenSM, no line comes near the 4,094 characters at which OpenSM cuts
 * lines in two, no word is of a kind that OpenSM takes for another. One default it has for which there is no word: a port
 * that the file does not name is a limited member of the default partition, and the SM's own port a full one.
 *
 * The default partition has `indx0`: with allow_both_pkeys OpenSM would else put 0x7fff behind all other entries of a port that had
 * 0xffff at index 0, and leave index 0 empty. Members with both entries are in a rule without it, where 0xffff has index 0. Another
 * partition with `indx0` comes later in the file, and that counts.
 *
 * What is rendered is a plain struct, made from tables (partitions_file_collect): those that the policy wants, those in the
 * middle of a plan, or others; or from anything else that knows which port has which P_Keys (partitions_file_from_ports).
 * External ports of switches do not appear: OpenSM gives them what their peer ports have.
 *
 * The head names the program, the generation and the phase, and carries a checksum over all of the file, so that a file that
 * somebody edited since, or that was cut short, is told from one that is intact.
 */

#include "desired/desired.h"
#include "ib/multicast.h"
#include "opensm/partitions_conf.h"

struct partitions_file_member {
        struct guid port;
        enum membership membership;
        const char *label; /* who that is, as a comment; NULL: not known */
};

struct partitions_file_partition {
        const char *name;          /* what OpenSM cannot read in a name is left out of it */
        uint16_t base;
        bool index0;               /* the entry goes to index 0 of its members' tables */
        const struct ipoib *ipoib; /* NULL: no multicast groups */
        const struct partitions_file_member *members;
        uint32_t n_members;
};

struct partitions_file {
        const struct partitions_file_partition *partitions; /* each base once */
        uint32_t n_partitions;
        uint64_t generation;
        const char *phase;         /* "3 open"; NULL: the whole policy */
        bool released;             /* for people to go on with: nothing in it says that it is pkeyd's */
};

/* One port and what it shall have. */
struct partitions_file_port {
        struct guid guid;
        const char *label;         /* NULL: not known */
        const struct p_key *keys;
        uint32_t n_keys;
};

/* The file of ports with their P_Keys. Names, index 0 and IPoIB come from the policy; of a base that it does not have or own, from
 * conf, the file that OpenSM had before (NULL: not known); one that is in neither is named by its number. Partitions are in the
 * order default, then ascending base; members ascending GUID; a base without a member is left out. generation and phase are left
 * to the caller. Returns 0 or -ENOMEM. In the arena; borrows policy, conf and labels. */
int partitions_file_from_ports(struct arena *a, const struct policy *policy, const struct partitions_conf *conf,
                               const struct partitions_file_port *ports, uint32_t n_ports, struct partitions_file *ret);

/* The endports of a subnet with these tables (same index as subnet->ports; d->ports will do, and so will the sets of P_Keys
 * that a phase of a plan leaves), as ports. Endports without a GUID are left out. Returns 0 or -ENOMEM. */
int partitions_file_collect(struct arena *a, const struct subnet *subnet, const struct desired_port *tables,
                            struct partitions_file_port **ret, uint32_t *ret_n);

/* The bytes of the file (with a NUL behind). allow_both_pkeys as in opensm.conf: without it a membership `both` is refused
 * with the line to add there. Returns 0, -EBADMSG (findings say why), -ENOMEM; in the arena. */
int partitions_file_render(struct arena *a, const struct partitions_file *file, bool allow_both_pkeys,
                           struct findings *findings, const char **ret, size_t *ret_n);

enum partitions_file_owner {
        PARTITIONS_FILE_FOREIGN, /* pkeyd did not write it */
        PARTITIONS_FILE_EDITED,  /* it did, and somebody changed it since, or it is not whole */
        PARTITIONS_FILE_INTACT,
};

/* Whose is this file? *ret_is_phase (may be NULL): it is intact, and pkeyd was to write others after it. Pure, and safe for any
 * bytes. */
enum partitions_file_owner partitions_file_recognise(const char *bytes, size_t n, bool *ret_is_phase);
