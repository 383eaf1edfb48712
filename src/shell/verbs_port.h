/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The ports of this host through libibverbs: what the kernel and its drivers report, which is what applications see.
 *
 * A verbs_host holds every device that could be opened. Devices come and go, so its user scans from time to time. Reading from a
 * device that is gone fails; it never returns old values. With an event loop a verbs_host also passes on the asynchronous
 * events of each device and its InfiniBand ports. No privilege is needed: devices are opened through /dev/infiniband/uverbs*
 * (mode 0666 with rdma-core's rules), P_Key tables are read from sysfs.
 */

#include <systemd/sd-event.h>

#include "control/control.h"
#include "shell/umad_port.h"
#include "util/arena.h"

/* A port as the kernel reports it now. */
struct verbs_port {
        char device[CA_NAME_SIZE];
        char description[NODE_DESCRIPTION_SIZE + 1]; /* not escaped; "" if sysfs does not have it */
        unsigned number;
        struct guid node_guid, port_guid;
        bool is_infiniband; /* the link layer; RoCE and iWARP have no partitions of pkeyd's kind */
        enum port_state state;
        struct lid lid, sm_lid;
        uint8_t lmc;
        uint16_t n_p_keys;  /* pkey_tbl_len; 0: more than that field can hold */
        bool has_bad_p_key_counter;     /* the device counts packets whose P_Key is not in its table */
        uint32_t bad_p_key_counter;     /* 0 without such a counter */
};

struct verbs_host;

/* Called from the loop; the device of the event is valid during the call. */
typedef void (*verbs_event_handler)(const struct verbs_event *event, void *userdata);

/* Opens no device yet. event NULL: without events. Returns 0 or -ENOMEM; *ret owned. */
int verbs_host_new(sd_event *event, verbs_event_handler handler, void *userdata, struct verbs_host **ret);
struct verbs_host *verbs_host_free(struct verbs_host *h);
DEFINE_CLEANUP(struct verbs_host *, verbs_host_free)
#define _cleanup_verbs_host_ _cleanup_(verbs_host_free_p)

/* Opens new devices and closes those that are gone. Must not be called from the handler. Returns 0 if a device is open; else
 * -ENODEV (there is none), -ENOSYS (the kernel has no verbs: ib_uverbs is not loaded), -ENOMEM, or the error of the last device
 * that could not be opened (-EACCES: permission denied). */
int verbs_host_scan(struct verbs_host *h);

/* Number of devices that could not be opened at the last scan. */
unsigned verbs_host_n_closed(const struct verbs_host *h);

/* Number of ports of the open devices. Ports are numbered from 0; the numbers hold until the next scan. */
size_t verbs_host_n_ports(const struct verbs_host *h);
/* Returns 0 or negative errno (-ENODEV: the device failed). */
int verbs_host_query(struct verbs_host *h, size_t i, struct verbs_port *ret);

/* Reads the port's whole P_Key table, in host byte order, into the arena. Returns 0, -ENOMEM, -ERANGE (the table is larger than
 * the kernel's interface can express), or another negative errno. */
int verbs_host_read_table(struct verbs_host *h, size_t i, struct arena *a, struct p_key **ret, uint32_t *ret_n);

/* The number of the port with this GUID, or (size_t) -1. */
size_t verbs_host_find(struct verbs_host *h, struct guid port_guid);
