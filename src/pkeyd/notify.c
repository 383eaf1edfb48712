/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd/notify.h"

#include <systemd/sd-daemon.h>

#include "shell/shell.h"

void notify_status(const char *status)
{
        (void) sd_notifyf(0, "STATUS=%s", status);
}

void notify_ready(const char *status)
{
        (void) sd_notifyf(0, "READY=1\nSTATUS=%s", status);
}

void notify_reloading(void)
{
        (void) sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64 "\nSTATUS=loading the files again",
                          clock_now());
}

void notify_stopping(const char *status)
{
        (void) sd_notifyf(0, "STOPPING=1\nSTATUS=%s", status);
}

void notify_extend(usec_t more)
{
        (void) sd_notifyf(0, "EXTEND_TIMEOUT_USEC=%" PRIu64, more);
}
