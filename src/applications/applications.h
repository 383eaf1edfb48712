/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * applications/: how programs on a host use a partition.
 *
 * A queue pair uses one entry of the P_Key table, by its index. Programs choose it by an environment variable, each in its own way:
 *
 *     UCX_IB_PKEY              the P_Key without the full bit (a value with it is refused). UCX takes the first full entry with it,
 *                              else the first limited one; without the variable the first full entry of the table, else the first
 *                              limited one (UCX, src/uct/ib/base/ib_iface.c, uct_ib_iface_init_pkey). Open MPI and MPICH use UCX.
 *     NCCL_IB_PKEY             an index, the same for all devices; 0 without it (NCCL, src/transport/net_ib*: NCCL_PARAM(IbPkey),
 *                              into ibv_qp_attr.pkey_index). RCCL has the same.
 *     NVSHMEM_IB_PKEY_INDEX    an index, likewise (NVSHMEM, documentation and src/modules/transport/ibrc)
 *     MV2_DEFAULT_PKEY         a P_Key, of which the full bit is ignored (MVAPICH2, channels/mrail/src/gen2/ibv_param.c)
 *
 * IPoIB uses the P_Key of a network interface: a child of the device's interface, whose name ends in the P_Key with the full bit.
 *
 * An index that differs between devices cannot be expressed: then its variables have no value, and `differs` is set. Pure: tables
 * in, settings out. The folder does not know how the tables are read, or how settings are printed.
 */

#include "ib/types.h"
#include "util/arena.h"

/* An InfiniBand port of this host that has a P_Key table. */
struct application_port {
        const char *device;      /* "mlx5_0" */
        unsigned number;
        const char *interface;   /* its IPoIB interface, "ib0"; NULL: none */
        const struct p_key *entries;
        uint32_t n_entries;
};

/* The entry by which programs on a port use the partition. */
struct application_entry {
        const struct application_port *port;
        struct p_key key;        /* the full one if the table has both */
        uint32_t index;
        const char *child;       /* the name of the IPoIB interface for it: "ib0.8101"; NULL: the port has no interface. If the
                                  * entry is at index 0, the port's own interface uses it, too */
        struct p_key by_default; /* what UCX takes without a setting; 0: nothing */
        struct p_key at_index0;  /* what the others take */
};

struct application_variable {
        const char *name;
        const char *value;       /* NULL: the index differs between ports */
};

#define APPLICATION_N_VARIABLES 4

struct application_settings {
        const struct application_entry *entries; /* of the ports that hold the partition */
        uint32_t n_entries;
        struct application_variable variables[APPLICATION_N_VARIABLES];
        bool differs;            /* the index */
        /* The first entry with a limited P_Key, and the first with a limited one of another partition at index 0; NULL: none */
        const struct application_entry *limited, *limited_index0;
};

/* The settings for a partition, by its base. Returns 0, -ENOENT (no port holds it) or -ENOMEM; *ret lives in the arena and borrows
 * the ports. */
int application_settings(struct arena *a, const struct application_port *ports, uint32_t n_ports, uint16_t base,
                         struct application_settings *ret);

/* The entry that UCX takes without a setting: the first full one, else the first limited one; 0: there is none. */
struct p_key application_default(const struct p_key *entries, uint32_t n);
