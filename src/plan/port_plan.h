/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* One port's part of the plan: from the table that it has (A) and the P_Keys that it should have to the table that it will have
 * (B), and in which phase each entry changes. Private to plan/. */

#include "plan/plan.h"

struct port_plan {
        /* in */
        const struct policy *policy;
        const struct plan_options *options;
        const struct desired_port *want;
        const struct freed_index *freed; /* oldest first */
        size_t n_freed;
        const struct layout_table *layout; /* where entries that are added belong; NULL: anywhere */
        const struct p_key *observed;    /* the table as it is */
        uint16_t capacity;
        bool enforcing;                  /* an external port of a switch */
        bool enforces_now;               /* of an external port: its table is in effect already */
        const struct observed_table *peer; /* of an external port: the table of its peer; NULL: no peer */
        uint16_t index0_base;            /* the base whose entry belongs at index 0 of this port; 0: any */
        bool repairs;                    /* pkeyd may move an entry of that base there, and the present one away */

        /* out, capacity entries each */
        struct p_key *a;                 /* A after a repair of index 0; equal to observed without one */
        struct p_key *b;                 /* B */
        uint8_t *repair_phase;           /* of indexes where a differs from observed */
        uint32_t needed;                 /* entries the table would have to hold */
        bool overflow;                   /* needed > capacity: no other output is valid */
        bool stuck;                      /* the table has room for the final entries, but not for those in between */
        bool index0_wrong;               /* index 0 holds another entry, and keeps it */
};

/* Fills the output members. a, b and repair_phase are allocated by the caller. */
void port_plan_compute(struct port_plan *pp);

/* The phase in which the entry at `index` leaves its value of A, and the one in which it takes its value of B. Only for an index
 * where they differ; a change within one base (raise, lower) does both in one phase. PLAN_N_PHASES: it has no such part. */
enum plan_phase port_plan_drop_phase(const struct port_plan *pp, uint16_t index);
enum plan_phase port_plan_add_phase(const struct port_plan *pp, uint16_t index);
