/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A client of the daemon's D-Bus interface (org.pkeyd1(5)). It does not include pkeyd/bus.h. */

#include "session/doc.h"
#include "shell/bus_fields.h"

#define BUS_INTERFACE "org.pkeyd1"
#define BUS_LEASES    "org.pkeyd1.Leases"

/* Properties of the daemon. */
struct daemon_status {
        const char *version, *fabric, *state, *text, *mode, *role, *policy_file, *notices, *frozen, *claims, *held;
        uint64_t reloading, writing, generation, confirm_until, undone, partitions, file_errors;
        uint64_t ports_managed, ports_right, ports_differ, ports_unreachable, links_silent, ports_frozen, names_claimed, held_bases;
        uint64_t leases, leases_releasing, last_success, violations_total, violations_since;
};
extern const struct bus_fields daemon_status_fields;
/* The bit of a field in masks of fields. */
#define DAEMON_STATUS_BIT(member) daemon_status_bit(offsetof(struct daemon_status, member))
uint64_t daemon_status_bit(size_t offset);

/* A record of violations; with a kind, a report. */
struct seen_violation {
        const char *kind, *source, *node, *switch_name, *partition, *text;
        uint64_t port_guid, lid, port, p_key, count, total, n_ports, first, last, names_sender, saturated;
};
extern const struct bus_fields seen_violation_fields;

/* What `pkeyctl violations` shows. */
struct violations_result {
        const struct seen_violation *items; /* the latest first */
        uint32_t n_items;
        uint64_t n_all;              /* that there are; the daemon gives a bounded number */
        const char *node;            /* only of this one; NULL: of all */
        usec_t since;                /* of --since, CLOCK_REALTIME; 0: all */
        usec_t counted_since;        /* 0: nothing is counted */
        bool once;                   /* this program read the counters, twice */
        uint32_t n_polled, n_silent; /* ports, of once */
        usec_t interval;             /* between the two readings */
};

/* Is the daemon in this state ("right", "failed", ...)? */
bool daemon_is_in_state(const struct daemon_status *s, const char *state);

/* The next line of a text of several lines (NULL: none), and its length; NULL at the end. */
const char *bus_next_line(const char **rest, int *length);

/* Makes an object of the fields of daemon_status_fields whose bits are set in `which`. */
json_t *json_daemon_status(struct doc *d, const struct daemon_status *status, uint64_t which);
/* Only reports have a kind and a count of their own. */
json_t *json_violation(struct doc *d, const struct seen_violation *v);
/* is_listed: without its members and selectors. */
json_t *json_lease(struct doc *d, const struct seen_lease *lease, bool is_listed);
/* Adds a struct violations_result to the JSON of a command. */
void json_violations(struct doc *d, const void *result);

/* Functions return 0, -EBADMSG (findings say why) or -ENOMEM; strings live in the context's arena. */

/* Checks whether pkeyd runs on this host. Returns 1 (with its properties), 0 (no; or there is no bus, or permission is denied),
 * -ETIMEDOUT (it is on the bus and does not answer; no finding), -EBADMSG or -ENOMEM. Does not start it. */
int bus_client_find(struct context *ctx, struct daemon_status *ret);
/* The same; 0 also if pkeyd writes to another fabric than this run of pkeyctl. */
int bus_client_find_here(struct context *ctx, struct daemon_status *ret);
/* Connects to the bus (ctx->bus), once; the daemon need not run. */
int bus_client_open(struct context *ctx);
/* Connects and calls a method with arguments of these D-Bus types. timeout 0: the bus's own. *ret owned. */
int bus_client_call(struct context *ctx, const char *interface, const char *member, uint64_t timeout, sd_bus_message **ret,
                    const char *types, ...);
#define BUS_NO_TIMEOUT UINT64_MAX /* pkeyd answers when a sweep has ended */
/* Adds a finding for a negative errno of sd-bus. */
int bus_client_complain(struct context *ctx, int r);

/* As bus_fields_read(). The dictionary of a lease is empty if there is none. */
int bus_client_read(struct context *ctx, sd_bus_message *m, const struct bus_fields *fields, void *ret, uint64_t *seen);
/* What the daemon counted, of `node` and after `since` of *result, into the rest of it. Returns as bus_client_call(). */
int violations_request(struct context *ctx, struct violations_result *result);
/* Adds the daemon's findings to those of the context. */
int bus_client_read_findings(struct context *ctx, sd_bus_message *m);

static inline void bus_unref_p(sd_bus **bus)
{
        if (*bus)
                sd_bus_close(*bus);
        (void) sd_bus_unref(*bus);
}
#define _cleanup_bus_ _cleanup_(bus_unref_p)
