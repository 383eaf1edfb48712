/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Who can talk to whom, as a matrix of sets of endports: for each two sets the partitions through which they talk. */

#include "reach/reach.h"

/* Endports, ascending; sets may overlap. */
struct reach_set {
        const uint32_t *ports;
        uint32_t n;
};

/* A partition through which two sets talk. */
struct reach_way {
        uint16_t base;
        bool all; /* each endport of one set can talk with each other endport of the other set; else only some can */
};

struct reach_cell {
        const struct reach_way *ways; /* ascending base */
        uint32_t n;
};

/* Splits these endports into sets of equal memberships, ascending first port. Ports whose tables are not known are left out.
 * Returns 0 or -ENOMEM; *ret lives in the arena. */
int reach_split(struct arena *a, const struct subnet *s, const struct reach_table *tables, const struct reach_set *from,
                struct reach_set **ret, uint32_t *ret_n);

/* Endports that have the same memberships and are in the same sets. */
struct reach_kind {
        const struct p_key *keys; /* ascending base: what they can use, by their tables and those of their leaf ports */
        uint32_t n_keys;
        const uint32_t *sets;     /* ascending indexes of the sets that they are in */
        uint32_t n_sets;
        const uint32_t *ports;    /* ascending */
        uint32_t n_ports;
};

/* Sorts all endports of the subnet whose tables are known into kinds, ascending first port. Returns 0 or -ENOMEM; *ret lives in the
 * arena. */
int reach_kinds(struct arena *a, const struct subnet *s, const struct reach_table *tables, const struct reach_set *sets,
                uint32_t n_sets, struct reach_kind **ret, uint32_t *ret_n);

/* Judges these tables, by port of the subnet. Ports whose tables are not known count as unable to talk. Sets *ret to n * n cells,
 * by row and column; the matrix is symmetric. Returns 0 or -ENOMEM; *ret lives in the arena. */
int reach_matrix(struct arena *a, const struct subnet *s, const struct reach_table *tables, const struct reach_set *sets,
                 uint32_t n, const struct reach_cell **ret);
