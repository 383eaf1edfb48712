/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The values of all properties of the bus object at one moment. */

#include "control/control.h"
#include "events/held_text.h"
#include "pkeyd/bus_message.h"
#include "shell/bus_properties.h"

/* Members have the types that sd-bus reads: a text is a pointer, a boolean an int. */
struct bus_status {
        const char *version, *fabric, *state, *text, *mode, *role, *policy_file, *notices, *frozen, *claims, *held;
        int reloading, writing;
        uint64_t generation, confirm_until, undone, last_success, violations_total, violations_since;
        uint32_t partitions, file_errors, ports_managed, ports_right, ports_differ, ports_unreachable, links_silent,
                ports_frozen, names_claimed, held_bases, leases, leases_releasing;
        /* `text`, `frozen`, `claims` and `held` point to these */
        char text_buffer[CONTROL_TEXT_MAX], frozen_buffer[4096], claims_buffer[4096], held_buffer[4096];
};

/* Updates s and returns which properties changed: bit i is property i. Borrows fabric and policy_file; other text is
 * static or in s. */
uint32_t bus_status_update(struct bus_status *s, const struct control_status *control, const struct violation_list *violations,
                           const char *fabric, const char *policy_file);

/* Writes the names of these properties, and a NULL after them. The names are static. */
#define BUS_STATUS_MAX_NAMES 33 /* one for each bit, and the NULL */
void bus_status_names(uint32_t changed, const char *names[static BUS_STATUS_MAX_NAMES]);

/* For texts about held bases, in the arena. Times are absolute, so that a property that is not news does not change. */
struct held_context bus_held_context(const struct control_status *control, struct arena *a);

/* Appends an a{sv} of all properties. */
void bus_status_append(const struct bus_status *s, struct bus_builder *b);
