/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Notifies the service manager of what the daemon does: that it is ready, reloading or stopping, that it needs more time, and one
 * line of status. Without a service manager (no NOTIFY_SOCKET) nothing happens.
 */

#include <systemd/sd-event.h>

#include "control/control.h"

struct notify {
        const struct control *control;
        sd_event_source *timer;
        bool settled;                    /* clients can call the daemon, or it is known that they cannot */
        bool ready, reloading, stopping; /* as last sent */
        char *text;                      /* as last sent; owned; NULL: none yet */
};

/* Borrows event loop and control. Returns 0 or negative errno. */
int notify_init(struct notify *n, sd_event *event, const struct control *control);
/* Zeroed: nothing to do. */
void notify_done(struct notify *n);

/* To be called before the files are loaded again. */
void notify_reloading(struct notify *n);
/* To be called after each event of control: sends what changed. */
void notify_update(struct notify *n);
/* To be called when clients can call the daemon, or it is known that they cannot. The daemon is not ready before: a client that is
 * started after it could not call it. */
void notify_settled(struct notify *n);
