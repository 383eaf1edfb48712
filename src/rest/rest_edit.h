/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Turns a change into an edit of one lease, as the methods EditWith and ReleaseWith of pkeyd take it (org.pkeyd1(5)), and their
 * answer into the outcome of the change. */

#include "rest/rest.h"

/* Members with equal properties. */
struct rest_group {
        const char *selectors;      /* "0x2c90300000001,0x2c90300000002" */
        enum membership membership; /* LIMITED or FULL */
        bool index0;
};

struct rest_edit {
        const char *id;
        const char *what;           /* "add", "remove", "set"; NULL: the lease is released */
        uint16_t base;
        struct rest_group *groups;
        size_t n_groups;

        /* options */
        bool has_ip_over_ib, ip_over_ib;
        bool has_keep, keep;
        bool must_exist;
        struct rest_qos qos;        /* mtu_limit 0: it stays as it is */
};

/* The view has the partitions. Returns 0 or -ENOMEM; *ret in the arena. */
int rest_edit_make(struct arena *a, const struct rest_change *change, const struct rest_view *view, struct rest_edit *ret);

/* Returns whether the change is refused, because clients do not see its partition: one that is deleted, or of which only a lease
 * without members is left and that gets another QoS. It must not be sent: pkeyd would change that lease, or, if the view has none
 * with the ID of that partition, one of another pool. */
bool rest_edit_lacks_partition(const struct rest_change *change, const struct rest_view *view);

/* Translates a text of pkeyd for clients: "partition 0x0005" for "lease rest:0x0005". Returns it in the arena; NULL: out of memory. */
const char *rest_edit_translate(struct arena *a, const char *text);

/* outcome: as pkeyd answered; code: of the first error among its findings, or NULL. */
enum rest_outcome rest_edit_outcome(const struct rest_change *change, const char *outcome, const char *code);
