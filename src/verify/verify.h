/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * verify/: do the tables match the policy?
 *
 * Compares the desired entries of each managed port with the observed ones, as sets: the index of an entry does not matter, and a
 * second entry with the same P_Key is unexpected. The results are discrepancies: the missing and the unexpected entries of a port.
 *
 * This folder does not know how tables are read, or what is done about a difference.
 */

#include "desired/desired.h"
#include "plan/plan.h"
#include "subnet/observed.h"

enum discrepancy_source {
        SOURCE_SMP,    /* SubnGet(P_KeyTable) */
        SOURCE_KERNEL, /* ibv_query_pkey */
};

/* How the kernel's table differs from that of the port's SMA. */
enum kernel_difference_kind {
        KERNEL_LACKS, /* only the SMA has the entry; the kernel may get it in a moment */
        KERNEL_ONLY,  /* only the kernel has the entry; it may lose it in a moment */
        KERNEL_MOVED, /* both have the entry, at different indexes */
};

struct kernel_difference {
        enum kernel_difference_kind kind;
        struct p_key key;
        uint16_t sma_index;    /* not of KERNEL_ONLY */
        uint16_t kernel_index; /* not of KERNEL_LACKS */
};

struct discrepancy {
        uint32_t port;
        enum discrepancy_source source;
        const struct p_key *missing, *unexpected; /* ascending base */
        uint32_t n_missing, n_unexpected;
        bool enforcement_differs;  /* the enforcement bits of PortInfo differ from the settings, or are not known */
        const struct kernel_difference *kernel; /* of SOURCE_KERNEL: how it differs from the SMA's table */
        uint32_t n_kernel;
};

struct verification {
        const struct desired *desired; /* borrows */
        struct discrepancy *differ;
        uint32_t n_differ;
        uint32_t *unreachable;  /* ports that could not be read */
        uint32_t n_unreachable;
        uint32_t n_silent;      /* links that are up and whose peer did not answer discovery; set by the caller */
        uint32_t n_ports;       /* managed ports */
        const enum freeze *frozen; /* of each port; NULL: none is. Frozen ports are not compared */
        uint32_t n_kernel_ports; /* ports of this host whose tables in the kernel were read */
};

/* Ignores entries of bases that pkeyd may not write (policy_manages()). Returns 0 or -ENOMEM; *ret lives in the arena. */
int verify_compare(struct arena *a, const struct desired *desired, const struct observed *observed,
                   const struct plan_options *options, struct verification **ret);

/* Compares one table. Sets the missing and unexpected entries of *ret, and nothing else of it. Returns 0 or -ENOMEM. The entries
 * live in the arena; if there are none, it allocates nothing. */
int verify_table(struct arena *a, const struct policy *policy, enum settings_unmanaged unmanaged,
                 const struct desired_port *want, const struct p_key *entries, uint32_t n_entries, struct discrepancy *ret);

/* Adds to a hash how the table of a port differs; not which port it is. */
uint64_t discrepancy_hash(uint64_t h, const struct discrepancy *d);

/* "smp", "kernel"; a static string. */
const char *discrepancy_source_to_string(enum discrepancy_source s);
