/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The service manager is notified of what the daemon does: whether it is ready, reloading or stopping, that it needs more
 * time, and one line of status. Without one (no NOTIFY_SOCKET) nothing happens.
 */

#include <systemd/sd-event.h>

#include "control/control.h"

struct notify;

/* Borrows event loop and control. Returns 0 or negative errno; *ret owned. */
int notify_new(sd_event *event, const struct control *control, struct notify **ret);
struct notify *notify_free(struct notify *n);

/* The files are about to be loaded again. */
void notify_reloading(struct notify *n);
/* After each event of control: what changed is sent. */
void notify_update(struct notify *n);
