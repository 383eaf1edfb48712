/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The local port that the settings name, for CONTROL_OPEN_PORT in control's shells. It stays open as long as the settings name the
 * same port.
 */

#include "control/control.h"
#include "shell/port_session.h"

struct opened_port {
        bool serves;                       /* no other process of this host may serve the port (umad_port_claim) */
        bool is_of_several;                /* ... fabrics of this host: the settings must say which port, if there is a choice */
        struct port_session *session;      /* NULL: it is not open */
        uint64_t n_opened;                 /* sessions so far */
        struct local_port lp;              /* as it was found last */
        unsigned window;                   /* settings of the session */
        usec_t timeout;
        struct guid host_guids[64];
        struct mad_engine_counters closed; /* sum over the sessions that were closed */
};

/* Finds the port that the settings name; opens it, or keeps it open. The members of *ret borrow p. Its r is also -ENOTUNIQ (the
 * settings do not say which of several ports) or -EBUSY (another pkeyd serves it). */
void opened_port_open(struct opened_port *p, sd_event *event, const struct settings *settings,
                      const struct port_session_handlers *handlers, struct control_port *ret);
void opened_port_close(struct opened_port *p);
/* The sum over all sessions. */
void opened_port_get_counters(const struct opened_port *p, struct mad_engine_counters *ret);
