/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The local port that the settings name, opened for as long as they name the same: what control's shells need for
 * CONTROL_OPEN_PORT.
 */

#include "control/control.h"
#include "shell/port_session.h"

struct opened_port {
        struct port_session *session;      /* NULL: it is not open */
        struct local_port lp;              /* as it was found last */
        unsigned window;                   /* with which it was opened */
        usec_t timeout;
        struct guid host_guids[64];
        struct mad_engine_counters closed; /* of sessions that are gone */
};

/* Finds the port that the settings name; opens it, or keeps it open. The members of *ret borrow p. */
void opened_port_open(struct opened_port *p, sd_event *event, const struct settings *settings,
                      const struct port_session_handlers *handlers, struct control_port *ret);
void opened_port_close(struct opened_port *p);
/* Of all sessions. */
void opened_port_get_counters(const struct opened_port *p, struct mad_engine_counters *ret);
