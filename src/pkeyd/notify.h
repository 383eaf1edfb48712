/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "ib/types.h"

/* What the service manager is told. Without one (no NOTIFY_SOCKET) nothing happens. */

/* One line for `systemctl status`. */
void notify_status(const char *status);
void notify_ready(const char *status);
/* The configuration is being loaded again; ends with notify_ready. */
void notify_reloading(void);
void notify_stopping(const char *status);
/* Do not lose patience for another `more`. */
void notify_extend(usec_t more);
