/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Turns the leases of pkeyd into the partitions of a view. */

#include "rest/rest.h"

/* A lease as pkeyd describes it (org.pkeyd1(5), LEASES). */
struct rest_lease {
        const char *id, *state;
        uint16_t base;
        bool is_open, is_kept, ip_over_ib;
        struct rest_qos qos;
        uint64_t updated;    /* microseconds since 1970; 0: not known */
        struct rest_member *members; /* ascending GUID */
        uint32_t n_members;
};

/* Sets the partitions of the view to the open leases that are in force, and `last_updated` to their last change. Borrows `members`.
 * Returns 0 or -ENOMEM. */
int rest_view_add_leases(struct arena *a, const struct rest_lease *leases, size_t n, struct rest_view *view);

/* The ID of the lease that pkeyd-rest makes for a base. */
#define REST_LEASE_ID_SIZE sizeof("rest:0x7fff")
void rest_lease_id(uint16_t base, char ret[static REST_LEASE_ID_SIZE]);

/* The host in the label of a port: "node0001" of "node0001 mlx5_0/1". In the arena; NULL: out of memory. */
const char *rest_host_of_label(struct arena *a, const char *label);
