/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "ib/smp.h"
#include "mad_engine/stage.h"

/*
 * A stage of one question: what does the port that pkeyd works through say of itself? sysfs knows most of it too, but the
 * port's own SMA is who decides, and under a simulator the only one that is up to date.
 */
struct own_port {
        uint64_t m_key;
        bool asked, done;
        enum mad_outcome outcome;
        struct port_info info; /* if outcome is MAD_ANSWERED */
};

/* Borrows p, which need not be initialised. m_key: of the port that is asked. */
struct mad_stage own_port_stage(struct own_port *p, uint64_t m_key);
/* Why there is no work to be done through this port yet; NULL: there is. A static string. */
const char *own_port_why_wait(const struct own_port *p);
