/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * verify/: are the tables what the policy says?
 *
 * Compares what every managed port should have with what it was read to have, as sets: an entry at another index is as
 * good (which index it has is no matter of membership), a second entry of the same P_Key is unexpected. Gives
 * discrepancies: per port what is missing and what is there unexpectedly.
 *
 * This folder refuses to know how tables are read and what is done about a difference.
 */

#include "desired/desired.h"
#include "plan/plan.h"
#include "subnet/observed.h"

enum discrepancy_source {
        SOURCE_SMP,    /* SubnGet(P_KeyTable) */
        SOURCE_KERNEL, /* ibv_query_pkey */
};

/* How the kernel's table is not that of the port's SMA. */
enum kernel_difference_kind {
        KERNEL_LACKS, /* the SMA has the entry, the kernel has not (or not yet) */
        KERNEL_ONLY,  /* the kernel has it, the SMA has not (or no more) */
        KERNEL_MOVED, /* both have it, at another index */
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
        bool enforcement_differs;  /* the bits of PortInfo are not as the settings say, or nobody knows */
        const struct kernel_difference *kernel; /* of SOURCE_KERNEL: how it is not what the SMA said */
        uint32_t n_kernel;
};

struct verification {
        struct discrepancy *differ;
        uint32_t n_differ;
        uint32_t *unreachable;  /* ports that could not be read */
        uint32_t n_unreachable;
        uint32_t n_silent;      /* links that are up, whose other end did not answer discovery; of the caller */
        uint32_t n_ports;       /* managed ports, all */
        const enum freeze *frozen; /* of each port; NULL: none is. Frozen ports are not compared */
        uint32_t n_kernel_ports; /* of them those of this host that its kernel was asked about */
};

/* Bases pkeyd does not own are not looked at; with unmanaged: keep, entries of bases that no partition of the policy has
 * are not unexpected. Returns 0 or -ENOMEM; *ret in the arena. */
int verify_compare(struct arena *a, const struct desired *desired, const struct observed *observed,
                   const struct plan_options *options, struct verification **ret);

/* One table, whoever read it: fills what is missing and unexpected, nothing else of ret. Returns 0 or -ENOMEM; what differs
 * lives in the arena, nothing is taken from it if nothing does. */
int verify_table(struct arena *a, const struct policy *policy, enum settings_unmanaged unmanaged,
                 const struct desired_port *want, const struct p_key *entries, uint32_t n_entries, struct discrepancy *ret);

/* "smp", "kernel"; a static string. */
const char *discrepancy_source_to_string(enum discrepancy_source s);
