/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>

#include "settings/settings.h"
#include "shell/shell.h"

/*
 * OpenSM as a process of this host. pkeyd sends it SIGHUP, which makes it read its partition file in a heavy sweep.
 *
 * Only a process that is called opensm gets a signal, because the number in a pidfile may be old and belong to another process by
 * now. A pidfd holds the process between the check of its name and the signal, so that no other process can take its number.
 *
 * With systemd:UNIT every OpenSM process in the unit's control group gets the signal. ExecReload= and the main process do not help:
 * OpenSM's units usually have no ExecReload, and in some the main process is a script that starts OpenSM. If the control group has
 * no OpenSM, the services that are PartOf= the unit are searched: Debian's opensm.service only starts an opensm@GUID.service for
 * each port.
 */

#define OPENSM_WHY (4096 + 256) /* bytes of a reason, which may name a file */

/* Sends `signal`; 0: only checks whether OpenSM runs. Returns 0, or a negative errno (-ESRCH: it does not run) with the reason in
 * ret_why. */
int opensm_process_signal(const struct settings *s, int signal, char ret_why[OPENSM_WHY]);
