/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A partitions.conf that pkeyd writes, and how pkeyd recognizes one.
 *
 * The file is explicit: each port by its GUID with its membership, one to a line, each partition by its P_Key, each multicast
 * parameter. It relies on no default of OpenSM, no line comes near the 4,094 characters at which OpenSM splits lines, and no word
 * can be read as another. One default cannot be overridden: a port that the file does not name is a limited member of the default
 * partition, and the SM's own port a full member.
 *
 * The default partition has `indx0`. Without it, and with allow_both_pkeys, OpenSM would add the 0x7fff of a port that had 0xffff
 * at index 0 after all other entries, and leave index 0 empty. Members with both entries are in a definition without `indx0`, so
 * that 0xffff keeps index 0. If another partition has `indx0`, it comes later in the file and takes precedence. `indx0` is a flag
 * of a definition: members of a lease that are at index 0 have one of their own, and in other partitions they are in one without
 * it.
 *
 * The file is rendered from a struct that is made from tables: those of the policy, or those between two phases of a plan.
 * External ports of switches do not appear in it: OpenSM gives them the entries of their peers.
 *
 * The head names the program, the generation, the fabric and the phase, and has a checksum of the whole file: pkeyd detects a
 * file that was edited or truncated.
 */

#include "desired/desired.h"
#include "ib/multicast.h"
#include "opensm/partitions_conf.h"

struct partitions_file_member {
        struct guid port;           /* not 0 */
        enum membership membership; /* not none */
        const char *label;   /* its host, for a comment; NULL: not known */
        bool inverts_index0; /* its entry goes to index 0 if those of its partition do not, and the reverse; not of the default
                              * partition */
};

struct partitions_file_partition {
        const char *name;          /* rendered without the characters that OpenSM cannot read */
        uint16_t base;
        bool index0;               /* the entry goes to index 0 of its members' tables */
        const struct ipoib *ipoib; /* NULL: no multicast groups */
        uint8_t sl;                /* of the paths in the partition; each definition has it, because the last one decides */
        const struct partitions_file_member *members;
        uint32_t n_members;
};

struct partitions_file {
        const struct partitions_file_partition *partitions; /* each base once */
        uint32_t n_partitions;
        uint64_t generation;
        const char *fabric;        /* of several fabrics of the host, the one that it is for; NULL: the host has one */
        const char *phase;         /* "revoke"; NULL: the file is that of the whole policy */
        bool released;             /* without the head: it no longer belongs to pkeyd */
        bool self_full;            /* SELF, the SM's port, is a full member of the default partition, even if listed as limited */
};

/* One port and its P_Keys in a file. */
struct partitions_file_port {
        struct guid guid;
        const char *label;         /* NULL: not known */
        const struct p_key *keys;
        uint32_t n_keys;
};

/* The file that gives these ports their P_Keys. Names, index 0 and IPoIB come from the policy; for a base that the policy does not
 * own, from conf, the file that OpenSM had before (NULL: not known); a base in neither is named by its number. Partitions: the
 * default one, then by ascending base; members by ascending GUID. A base without members is left out. The caller sets generation,
 * fabric and phase. Returns 0 or -ENOMEM; *ret in the arena, borrowing policy, conf and labels. */
int partitions_file_from_ports(struct arena *a, const struct policy *policy, const struct partitions_conf *conf,
                               const struct partitions_file_port *ports, uint32_t n_ports, struct partitions_file *ret);

/* The endports of a subnet with the P_Keys of `tables` (same index as subnet->ports). Endports without a GUID are left out. Returns
 * 0 or -ENOMEM; *ret in the arena, borrowing the P_Keys. */
int partitions_file_collect(struct arena *a, const struct subnet *subnet, const struct desired_port *tables,
                            struct partitions_file_port **ret, uint32_t *ret_n);

/* The bytes of the file, with a NUL at their end. allow_both_pkeys as in opensm.conf: without it a membership `both` is refused,
 * and the finding names the line to add there. Returns 0, -EBADMSG (findings say why), -ENOMEM; *ret in the arena. */
int partitions_file_render(struct arena *a, const struct partitions_file *file, bool allow_both_pkeys,
                           struct findings *findings, const char **ret, size_t *ret_n);

enum partitions_file_owner {
        PARTITIONS_FILE_FOREIGN, /* pkeyd did not write it */
        PARTITIONS_FILE_EDITED,  /* pkeyd wrote it, and it was edited or truncated since */
        PARTITIONS_FILE_OTHER,   /* intact, but of another fabric of this host */
        PARTITIONS_FILE_INTACT,
};

/* Whether the pkeyd of this fabric wrote the file. *ret_is_phase (may be NULL): it is intact, and of a phase, so that others should
 * have followed. Safe for any bytes. */
enum partitions_file_owner partitions_file_recognize(const char *bytes, size_t n, const char *fabric, bool *ret_is_phase);
