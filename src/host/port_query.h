/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The PortInfo query: a stage of one question, what the local port says of itself. sysfs knows most of it too, but the
 * port's own SMA decides, and under a simulator it is the only one that is up to date.
 */

#include "ib/smp.h"
#include "mad_engine/stage.h"

struct port_query {
        uint64_t m_key;
        bool asked, done;
        enum mad_outcome outcome;
        struct port_info info; /* if outcome is MAD_ANSWERED */
};

/* Borrows q, which need not be initialised. m_key: of the local port. */
struct mad_stage port_query_stage(struct port_query *q, uint64_t m_key);
/* Why nothing can be done through this port yet; NULL: it works. A static string. */
const char *port_query_problem(const struct port_query *q);
