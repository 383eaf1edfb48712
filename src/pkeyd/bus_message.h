/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Builds D-Bus messages. The bus requires UTF-8, so other bytes, for example of file names, are escaped. */

#include <systemd/sd-bus.h>

#include "pkeyd/violation_list.h"
#include "util/cleanup.h"
#include "util/findings.h"

#define BUS_FINDING "(suusssss)" /* file, line, column, severity, code, text, hint, source line */

#define BUS_MAX_FINDINGS 256 /* of one answer */
#define BUS_MAX_ANSWER   (16u << 20) /* bytes; dbus-daemon closes a connection that sends more than 32 MiB */

#define BUS_ERROR_TOO_MANY "org.pkeyd1.Error.TooManyCallers"
#define BUS_ERROR_STOPPING "org.pkeyd1.Error.Stopping"

#define _cleanup_message_ _cleanup_(sd_bus_message_unrefp)

/* Returns whether too many messages wait here that the bus has not taken yet. */
bool bus_queue_is_full(sd_bus *bus);
/* Refuses a call meanwhile. Returns 0, or a negative errno with the error set, which sd-bus sends as the answer. */
int bus_check_queue(sd_bus_message *call, sd_bus_error *error);
/* Refuses an answer of more than BUS_MAX_ANSWER bytes; size: about. Returns 0, or a negative errno with the error set. */
int bus_check_size(size_t size, sd_bus_error *error);
/* Refuses an option that the method does not have; accepted: their names. Returns a negative errno with the error set. */
int bus_refuse_option(const char *key, const char *accepted, sd_bus_error *error);
/* Asks the bus for the user of the caller; `answered` gets its answer. Returns 0, or a negative errno, perhaps with the error set;
 * then `answered` is not called. */
int bus_look_up_sender(sd_bus_message *call, sd_bus_message_handler_t answered, void *userdata, sd_bus_error *error);
/* Reads the user ID from that answer. Returns false if the bus does not know it. */
bool bus_read_sender(sd_bus_message *answer, uint32_t *ret);

/* These append to m, and return 0 or negative errno. */
int bus_append_text(sd_bus_message *m, const char *text);
/* Appends a dict entry. `signature` is one basic type, `member` the address of the value: a pointer for a text, an int for a
 * boolean. */
int bus_append_variant(sd_bus_message *m, const char *key, const char *signature, const void *member);
/* Appends the first BUS_MAX_FINDINGS findings as an array of BUS_FINDING. */
int bus_append_findings(sd_bus_message *m, const struct findings *findings);
/* Appends a violation as a{sv}, without the members that are not known. */
int bus_append_violation(sd_bus_message *m, const struct violation_item *item);
