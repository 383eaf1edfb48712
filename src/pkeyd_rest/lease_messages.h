/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The messages to and from org.pkeyd1.Leases (org.pkeyd1(5)). All return 0 or negative errno; what is read lives in the arena. */

#include "pkeyd_rest/pkeyd_bus.h"
#include "rest/rest_edit.h"
#include "rest/rest_view.h"
#include "shell/bus_fields.h"

/* Make a call: of a method that takes one text or nothing (argument NULL); of EditWith or, if the edit releases the lease, of
 * ReleaseWith. There must be a connection. *ret owned. */
int lease_messages_call(const struct pkeyd_bus *b, const char *method, const char *argument, sd_bus_message **ret);
int lease_messages_edit(const struct pkeyd_bus *b, const char *pool, const char *client, const struct rest_edit *edit,
                        sd_bus_message **ret);

/* Read the answers to ListWhole, Ports and DefaultMembership, and add them to a view. */
int lease_messages_read_list(struct arena *a, sd_bus_message *m, struct rest_view *view);
int lease_messages_read_ports(struct arena *a, sd_bus_message *m, struct rest_view *view);
int lease_messages_read_default(struct arena *a, sd_bus_message *m, struct rest_view *view);

struct lease_messages_answer {
        const char *outcome;
        const char *text; /* of the first error; without one, of the answer */
        const char *code; /* of the first error; NULL: there is none */
};
int lease_messages_read_answer(struct arena *a, sd_bus_message *m, struct lease_messages_answer *ret);
