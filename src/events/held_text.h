/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Held bases (knowledge/held.h) as text, the same in the journal, on the terminal and on the bus: which base waits for which
 * port, since when, why, and the way out.
 */

#include "knowledge/held.h"
#include "policy/policy.h"
#include "subnet/known.h"
#include "util/text.h"

/* The inputs of the texts, all borrowed. */
struct held_context {
        struct arena *arena;
        const struct subnet *subnet; /* names of ports in the fabric; NULL: not known */
        const struct known *known;   /* names of endports that are gone; NULL: not known */
        const struct policy *policy; /* names of partitions; NULL: not known */
        uint64_t now;                /* seconds since 1970 */
        /* "2026-11-20 23:14" in the arena. NULL: times are durations before and after `now` */
        const char *(*time)(struct arena *a, uint64_t seconds);
};

/* Names of a port. Strings are in the arena. */
struct held_port {
        const char *label;           /* "nodeA mlx5_0/1", "leaf07/12", "the device at leaf07/12" */
        const char *node;            /* its name or description; "": not known */
        struct guid node_guid, port_guid; /* port_guid 0: not known */
        const char *place;           /* "@leaf07/12": a device that did not name itself; NULL: any other port */
        /* The argument of `pkeyctl forget` that selects this port only, with GUIDs instead of names from the fabric: "0xPORTGUID",
         * "0xNODEGUID/1", "@0xSWITCHGUID/12". NULL: a vouch for the port has no effect */
        const char *forget;
};

/* Returns 0 or -ENOMEM. */
int held_port_find(const struct held_context *context, struct knowledge_name name, struct held_port *ret);

/* True if times can be given as dates: a clock that shows a year before 2020 is not set. */
bool held_has_dates(const struct held_context *context);

/* The name of the partition with this base; NULL: there is none. */
const char *held_partition(const struct held_context *context, uint16_t base);

/* `base 0x0010 (partition "storage") is held: node7/1 gets it when nodeA/1 is known not to hold it` */
void held_add_headline(const struct held_context *context, const struct held *h, struct text *t);
/* "nodeA/1 (0x...) has not answered a query for its P_Key table since 2026-11-20 23:14 (link up)" */
void held_add_reason(const struct held_context *context, const struct held_by *by, struct text *t);
/* "repair or unplug it; or, if you are certain that it holds nothing: pkeyctl forget 0x...", for all ports of this base with
 * this reason. */
void held_add_way_out(const struct held_context *context, const struct held *h, enum held_reason reason, struct text *t);
/* All of that in one line, with the first few ports. */
void held_add_line(const struct held_context *context, const struct held *h, struct text *t);
/* The same of held_find_holders(), without a headline. */
void held_add_holders(const struct held_context *context, const struct held *h, struct text *t);

/* How many of n ports are in the arrays of a base. */
static inline uint32_t held_n_kept(uint32_t n)
{
        return MIN(n, (uint32_t) HELD_MAX);
}
/* The promise for which a write waits: "isolation", "continuity", "order"; a static string, also in JSON. */
const char *held_rule_to_string(enum rule_verdict rule);
