/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Compares the P_Key tables of this host's ports in its kernel (ibv_query_pkey) with the policy and with the tables of the SMAs
 * (SubnGet(P_KeyTable)).
 *
 * Applications use the kernel's table. It follows the SMA's table a moment later, with the same indexes. A queue pair refers to an
 * index, so an entry at another index is as bad as a missing one.
 *
 * This file does not know how the kernel's tables are read.
 */

#include "policy/policy_local.h"
#include "verify/verify.h"

struct kernel_table {
        uint32_t port;               /* index into the snapshot's ports */
        const struct p_key *entries; /* by index, host byte order; borrows */
        uint32_t n_entries;
};

/* Adds to v a discrepancy of SOURCE_KERNEL for each table that differs from the policy, or from the SMA's table if that was read.
 * Returns 0 or -ENOMEM; what is added lives in the arena. */
int verbs_tables_verify(struct arena *a, const struct desired *desired, const struct observed *observed,
                        const struct plan_options *options, const struct kernel_table *tables, uint32_t n_tables,
                        struct verification *v);

/* Compares the SMA's table with the kernel's. Sets ret->kernel and ret->n_kernel, ascending by the index of the entry (in the SMA's
 * table, if it is there). Returns 0 or -ENOMEM; the differences live in the arena. */
int verbs_tables_compare(struct arena *a, const struct p_key *sma, uint32_t n_sma, const struct p_key *kernel,
                         uint32_t n_kernel, struct discrepancy *ret);

/* A partition in which the policy may give a port several memberships, among them the one found. Only a snapshot of the fabric
 * shows which one it gives. */
struct undecided {
        uint32_t port, partition;
        enum membership found;
        const struct policy_rule *unresolved; /* the line that may decide; NULL: it depends on SELF */
};

struct local_verification {
        struct verification *v;
        struct undecided *undecided;
        uint32_t n_undecided;
};

/* Without a snapshot of the fabric: compares each table with what the policy may give this host. A P_Key of a pool may be in it, or
 * not. v->n_ports counts the tables. Returns 0 or -ENOMEM; *ret lives in the arena. */
int verbs_tables_verify_local(struct arena *a, const struct possibilities *possible, const struct plan_options *options,
                              const struct kernel_table *tables, uint32_t n_tables, struct local_verification *ret);

/* "lacks", "only", "moved"; a static string. */
const char *kernel_difference_kind_to_string(enum kernel_difference_kind k);
