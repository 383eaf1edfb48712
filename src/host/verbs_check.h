/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The verbs check: this host's own tables as its kernel has them, compared with the policy and with what each port's SMA
 * answered. Applications use the kernel's table.
 *
 *     a sweep ended --verbs_check_expect--> what each local port should hold
 *     its tables    --verbs_check_see-----> log entries, ports whose SMA is to be asked again
 *     an event      --verbs_check_changed--> the tables are to be read again
 *
 * The kernel's table follows the SMA's a moment later. So a difference counts only GRACE after it was expected to be gone,
 * and before it is reported the SMA is asked once more: what differs from its answer may be news of the port itself.
 *
 * This file refuses to know how the kernel is asked.
 */

#include "desired/desired.h"
#include "events/log.h"
#include "generation/generation.h"
#include "subnet/observed.h"

struct verbs_check;

/* A port of this host as its kernel shows it. */
struct local_table {
        struct guid port_guid;
        const struct p_key *entries; /* by index; NULL: the table means nothing now (the port is down), or cannot be read */
        uint32_t n_entries;
};

/* Returns owned, or NULL when memory is out. */
struct verbs_check *verbs_check_new(void);
struct verbs_check *verbs_check_free(struct verbs_check *v);

/* From now on the ports with these GUIDs should hold what `desired` says (on the subnet of `observed`), and what their
 * SMAs answered; all of it is copied, the generation is referenced. The tables are wanted at once. Where memory is out
 * nothing is expected: the next sweep expects it. */
void verbs_check_expect(struct verbs_check *v, usec_t now, struct generation *g, const struct desired *desired,
                        const struct observed *observed, const struct guid *guids, size_t n);
/* Another policy came in force: nothing is expected. */
void verbs_check_forget(struct verbs_check *v);

/* The kernel says that the table of a port, or any of them (GUID 0), has changed. */
void verbs_check_changed(struct verbs_check *v, usec_t now, struct guid port_guid);

/* When the tables are to be read; USEC_INFINITY: not before something happens. */
usec_t verbs_check_due(const struct verbs_check *v);
/* The tables of all ports of this host, as they are now. */
void verbs_check_see(struct verbs_check *v, usec_t now, const struct local_table *tables, size_t n, struct log *log);
/* A port whose SMA is to be asked again, at *ret_at; false: no more. */
bool verbs_check_next_port(struct verbs_check *v, struct guid *ret, usec_t *ret_at);
