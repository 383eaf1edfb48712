/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The verbs check compares the P_Key tables of this host as its kernel has them with the policy and with the tables that the SMAs
 * answered. Applications use the kernel's tables.
 *
 *     a sweep ended     --verbs_check_expect---> what each local port should hold
 *     tables were read  --verbs_check_see------> log entries, ports whose SMA must be read again
 *     a P_Key event     --verbs_check_changed--> when to read the tables again
 *
 * The kernel updates its table a moment after the SMA does. So a difference counts only GRACE after the sweep, and before it is
 * reported the SMA is read once more: its table may have changed since.
 *
 * This file does not know how the kernel's tables are read.
 */

#include "desired/desired.h"
#include "events/log.h"
#include "generation/generation.h"
#include "subnet/observed.h"

struct verbs_check;

/* The kernel's table of a port of this host. */
struct local_table {
        struct guid port_guid;
        const struct p_key *entries; /* by index; NULL: not valid now (the port is down), or not readable */
        uint32_t n_entries;
};

/* Returns owned, or NULL when out of memory. */
struct verbs_check *verbs_check_new(void);
struct verbs_check *verbs_check_free(struct verbs_check *v);

/* From now on the ports with these GUIDs should hold what `desired` (on the subnet of `observed`) and `observed` have for them;
 * both are copied, the generation is referenced. The tables are due at once. If out of memory there is no check until the next
 * sweep. */
void verbs_check_expect(struct verbs_check *v, usec_t now, struct generation *g, const struct desired *desired,
                        const struct observed *observed, const struct guid *guids, size_t n);
/* Another policy came in force: no check until the next sweep ends. */
void verbs_check_forget(struct verbs_check *v);

/* The kernel reported that the table of this port, or of any port (GUID 0), has changed. */
void verbs_check_changed(struct verbs_check *v, usec_t now, struct guid port_guid);

/* When to read the tables; USEC_INFINITY: not before an event. */
usec_t verbs_check_due(const struct verbs_check *v);
/* Checks the tables of all ports of this host, as they are now. */
void verbs_check_see(struct verbs_check *v, usec_t now, const struct local_table *tables, size_t n, struct log *log);
/* Takes a port whose SMA must be read again at *ret_at; false: there is none. */
bool verbs_check_next_port(struct verbs_check *v, struct guid *ret, usec_t *ret_at);
