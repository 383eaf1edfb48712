/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The P_Key tables of this host's ports as its kernel has them (ibv_query_pkey), compared with the policy and with what the
 * port's SMA answered to SubnGet(P_KeyTable).
 *
 * Applications use the kernel's table. It follows the SMA's a moment later, and by the same indexes: a queue pair holds an
 * index, so an entry that the kernel has elsewhere is as wrong as one that it does not have.
 *
 * This file refuses to know how the kernel is asked.
 */

#include "policy/policy_local.h"
#include "verify/verify.h"

struct kernel_table {
        uint32_t port;               /* index into the snapshot's ports */
        const struct p_key *entries; /* by index, host byte order; borrows */
        uint32_t n_entries;
};

/* Adds to v a discrepancy of SOURCE_KERNEL for each table that is not as the policy says or, where the SMA's was read, not
 * as that one. Returns 0 or -ENOMEM; what is added lives in the arena. */
int verbs_tables_verify(struct arena *a, const struct desired *desired, const struct observed *observed,
                        const struct plan_options *options, const struct kernel_table *tables, uint32_t n_tables,
                        struct verification *v);

/* The SMA's table against the kernel's, into ret->kernel; ascending index in whichever of the two has the entry. Returns 0 or
 * -ENOMEM. */
int verbs_tables_compare(struct arena *a, const struct p_key *sma, uint32_t n_sma, const struct p_key *kernel,
                         uint32_t n_kernel, struct discrepancy *ret);

/* A partition of which this host alone cannot say whether the entry that is there is right: more than one is possible. */
struct undecided {
        uint32_t port, partition;
        enum membership found;
        const struct policy_rule *unresolved; /* NULL: it hangs on whether pkeyd works through this port */
};

struct local_verification {
        struct verification *v;
        struct undecided *undecided;
        uint32_t n_undecided;
};

/* Without a fabric: each table against what the policy can mean for this host. v->n_ports counts the tables. Returns 0 or
 * -ENOMEM; *ret lives in the arena. */
int verbs_tables_verify_local(struct arena *a, const struct possibilities *possible, const struct plan_options *options,
                              const struct kernel_table *tables, uint32_t n_tables, struct local_verification *ret);

/* "lacks", "only", "moved"; a static string. */
const char *kernel_difference_kind_to_string(enum kernel_difference_kind k);
