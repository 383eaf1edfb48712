/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The endports of the fabric on D-Bus: what a client needs to know which GUIDs a host has. */

#include <systemd/sd-bus.h>

#include "control/control.h"

#define BUS_PORTS "a(ttyqsyy)" /* port GUID, node GUID, port, LID, host name, node type, state */

/* Answers with the endports of the snapshot, by the names that count for the policy; a contested name (policy/selector_match.h) is
 * empty, because clients use the names to choose members by GUID. Bound: BUS_MAX_ANSWER. Returns 0 or more, or a negative errno,
 * perhaps with the error set. */
int bus_ports_reply(sd_bus_message *call, const struct control_status *status, sd_bus_error *error);
