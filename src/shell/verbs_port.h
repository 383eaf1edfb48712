/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The ports of this host through libibverbs: what the kernel and its drivers say, which is what applications see.
 *
 * A verbs_host holds every device that could be opened. It scans again now and then, for devices come and go;
 * what was read of one that is gone is an error, never old news. With an event loop it also passes on the asynchronous
 * events of each device. Opening needs /dev/infiniband/uverbs* (mode 0666 with rdma-core's rules), reading a P_Key table
 * only sysfs: no privilege.
 */

#include <systemd/sd-event.h>

#include "control/control.h"
#include "shell/umad_port.h"
#include "util/arena.h"

/* A port as it is now. */
struct verbs_port {
        char device[CA_NAME_SIZE];
        char description[NODE_DESCRIPTION_SIZE + 1]; /* raw; "" if sysfs does not have it */
        unsigned number;
        struct guid node_guid, port_guid;
        bool is_infiniband; /* the link layer; RoCE and iWARP have no partitions of pkeyd's kind */
        enum port_state state;
        struct lid lid, sm_lid;
        uint8_t lmc;
        uint16_t n_p_keys;  /* pkey_tbl_len; 0: more than the kernel can say */
        bool has_bad_p_key_counter;     /* the device counts packets whose P_Key its table does not have */
        uint32_t bad_p_key_counter;     /* how many; 0 without such a counter */
};

struct verbs_host;

/* Called from the loop; the device of the event is valid during the call. */
typedef void (*verbs_event_handler)(const struct verbs_event *event, void *userdata);

/* event NULL: no events are waited for. Opens nothing yet. Returns 0 or negative errno; *ret owned. */
int verbs_host_new(sd_event *event, verbs_event_handler handler, void *userdata, struct verbs_host **ret);
struct verbs_host *verbs_host_free(struct verbs_host *h);
DEFINE_CLEANUP(struct verbs_host *, verbs_host_free)
#define _cleanup_verbs_host_ _cleanup_(verbs_host_free_p)

/* Finds the devices: opens new ones, closes those that are gone. Not from within the handler. Returns 0,
 * -ENODEV: there is none; -ENOSYS: the kernel has no verbs (ib_uverbs is not loaded); -EACCES: none could be opened for
 * want of permission; or what the system said of the last one, if none could be opened. */
int verbs_host_scan(struct verbs_host *h);

/* Devices that could not be opened at the last scan. */
unsigned verbs_host_n_closed(const struct verbs_host *h);

/* Ports of the devices that are open, by number from 0 on; the numbers hold until the next scan. */
size_t verbs_host_n_ports(const struct verbs_host *h);
int verbs_host_query(struct verbs_host *h, size_t i, struct verbs_port *ret);

/* The port's P_Key table, every index, in host byte order, in the arena. Returns 0, -ENOMEM, -ERANGE: the table is larger
 * than the kernel's interface can say; or why it could not be read. */
int verbs_host_read_table(struct verbs_host *h, size_t i, struct arena *a, struct p_key **ret, uint32_t *ret_n);

/* The port with this GUID among those that are open, or (size_t) -1. */
size_t verbs_host_find(struct verbs_host *h, struct guid port_guid);
