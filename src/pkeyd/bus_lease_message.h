/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Leases in D-Bus messages. What is read returns 0, or a negative errno, with the error set if the caller sent something that is
 * not accepted; texts are borrowed from the message.
 */

#include "control/control.h"
#include "pkeyd/bus_message.h"

enum bus_lease_detail {
        BUS_LEASE_FACTS,
        BUS_LEASE_WHOLE,   /* with what can be large */
        BUS_LEASE_HOLDERS, /* and with the ports that may hold its P_Key while it is released: each port is visited */
};

/* An a{sv}. lease NULL: an empty one. status: what pkeyd knows of the tables. */
void bus_append_lease(struct bus_builder *b, const struct lease *lease, const struct control_status *status,
                      enum bus_lease_detail detail);
/* About how many bytes that needs, with BUS_LEASE_WHOLE. */
size_t bus_lease_size(const struct lease *lease);

/* "": MEMBERSHIP_NONE. */
int bus_read_membership(const char *word, enum membership *ret, sd_bus_error *error);
int bus_check_base(uint16_t base, sd_bus_error *error);
int bus_read_edit_kind(const char *word, enum lease_edit_kind *ret, sd_bus_error *error);
/* Reads a(ssb): selectors, membership, at index 0. */
int bus_read_groups(sd_bus_message *call, struct lease_edit *edit, sd_bus_error *error);

/* Read a{sv}. *ret_client: the client of the REST API that is named, or NULL. */
int bus_read_edit_options(sd_bus_message *call, struct lease_options *ret, const char **ret_client, sd_bus_error *error);
int bus_read_release_options(sd_bus_message *call, const char **ret_client, sd_bus_error *error);
