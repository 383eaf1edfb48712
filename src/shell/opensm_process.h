/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>

#include "settings/settings.h"
#include "shell/shell.h"

/*
 * OpenSM as a process of this host. What is sent to it is SIGHUP, which makes it read its partition file in a heavy sweep.
 *
 * A process that is not called opensm is never sent anything: numbers in pidfiles go stale and are given to others. The process
 * is held by a descriptor between the check of its name and the signal, so it cannot be replaced by another one in between.
 *
 * systemd:UNIT asks systemd for the unit's control group, and each process in there that is OpenSM is signalled; its units have no
 * ExecReload as a rule, and some start OpenSM from a script, which is the main process then. Where none is, the services that are
 * PartOf= the unit are asked for: Debian's opensm.service only starts opensm@GUID.service for each port.
 */

#define OPENSM_WHY (4096 + 256) /* it may name a file */

/* Sends `signal`, or only checks whether OpenSM runs (0). Returns 0, or a negative errno (-ESRCH: it does not run) with the
 * reason in ret_why. */
int opensm_process_signal(const struct settings *s, int signal, char ret_why[OPENSM_WHY]);
