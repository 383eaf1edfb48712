/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * host/: what pkeyd queries on its own host.
 *
 *     port_key.h      which port the settings name, and why it cannot be opened
 *     port_query.h    PortInfo of the local port: can pkeyd work through it?
 *     sm_follow.h     SM tracking: is the master SM on this host, so that this pkeyd writes?
 *     verbs_check.h   does the kernel have the P_Key tables that the SMA has and the policy wants?
 *
 * The PortInfo query is a stage with one request. sysfs has most of PortInfo, too, but the port's SMA is authoritative, and under a
 * simulator only the SMA is up to date.
 *
 * The folder does not know when a sweep sends its queries, or what follows from the answers.
 */

#include "ib/smp.h"
#include "mad_engine/stage.h"

struct port_query {
        uint64_t m_key;
        bool asked, done;
        usec_t asked_at; /* the answer is not older */
        enum mad_outcome outcome;
        struct port_info info; /* if outcome is MAD_ANSWERED */
};

/* Borrows q, and initializes it. m_key: of the local port. */
struct mad_stage port_query_stage(struct port_query *q, uint64_t m_key);
/* Why pkeyd cannot work through this port yet; NULL: it can. A static string. */
const char *port_query_problem(const struct port_query *q);
