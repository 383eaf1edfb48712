/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Builds D-Bus messages. The bus requires UTF-8, so other bytes, for example of file names, are escaped.
 *
 * An error stays in the builder: what is appended after it is ignored, and sending returns it.
 */

#include <systemd/sd-bus.h>

#include "pkeyd/violation_list.h"
#include "util/findings.h"
#include "util/macros.h"

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

/* A message that is being built. */
struct bus_builder {
        sd_bus_message *message; /* owned; NULL: it was sent, or could not be made */
        int r;                   /* the first error; not negative: there was none */
};

/* The answer to a call. */
struct bus_builder bus_begin_reply(sd_bus_message *call);
/* Sends the message, and frees it. Returns the first error of all, else as sd_bus_send(). */
int bus_send(struct bus_builder *b);
/* The same for an answer. If it cannot be sent, for example for lack of memory, the caller gets an error, which needs less. */
void bus_send_reply(struct bus_builder *b, sd_bus_message *call);

/* A container of this type ('a', 'r', ...), until bus_close(). */
void bus_open(struct bus_builder *b, char type, const char *contents);
void bus_close(struct bus_builder *b);
/* As sd_bus_message_append(): texts must be UTF-8, as names from the fabric and words of this program are. */
void bus_append(struct bus_builder *b, const char *types, ...);
void bus_append_text(struct bus_builder *b, const char *text);
/* Appends a dict entry. `signature` is one basic type, `member` the address of the value: a pointer for a text, an int for a
 * boolean. */
void bus_append_variant(struct bus_builder *b, const char *key, const char *signature, const void *member);
/* Appends the first BUS_MAX_FINDINGS findings as an array of BUS_FINDING. */
void bus_append_findings(struct bus_builder *b, const struct findings *findings);
/* Appends a violation as a{sv}, without the members that are not known. */
void bus_append_violation(struct bus_builder *b, const struct violation_item *item);
