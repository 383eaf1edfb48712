/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What is put into messages. Text that is not UTF-8 (a file's name may be anything) is escaped: the bus takes no other. */

#include <systemd/sd-bus.h>

#include "pkeyd/violation_list.h"
#include "util/cleanup.h"
#include "util/findings.h"

#define BUS_FINDING "(suusssss)" /* file, line, column, severity, code, text, hint, source line */

#define BUS_ERROR_TOO_MANY "org.pkeyd1.Error.TooManyCallers"

#define _cleanup_message_ _cleanup_(sd_bus_message_unrefp)

/* Return 0 or negative errno. */
int bus_append_text(sd_bus_message *m, const char *text);
/* `signature` is that of one basic type, `member` where the value stands; that of a text is a pointer, of a boolean an int. */
int bus_append_variant(sd_bus_message *m, const char *key, const char *signature, const void *member);
/* An array of BUS_FINDING, the first `max` of them. */
int bus_append_findings(sd_bus_message *m, const struct findings *findings, size_t max);
/* a{sv}, with what is known. */
int bus_append_violation(sd_bus_message *m, const struct violation_item *item);

/* A copy that is UTF-8; owned, NULL when memory is out. */
char *bus_make_text(const char *text);
