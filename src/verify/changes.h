/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A plan as an admin sees it: in each partition, which endports join, leave, rise to full membership or fall to limited. */

#include "plan/plan.h"
#include "subnet/observed.h"

/* Endports that change from one membership in a base to another. */
struct change {
        uint16_t base;
        enum membership before, after;
        const uint32_t *ports;
        uint32_t n_ports;
};

struct changes {
        const struct change *items; /* ascending base */
        uint32_t n;
        uint32_t n_enforcing_ports; /* switch ports whose tables or enforcement bits change as a consequence */
};

/* Compares the observed tables with the final tables of the plan. Returns 0 or -ENOMEM; *ret lives in the arena. */
int changes_compute(struct arena *a, const struct plan *plan, const struct observed *observed, struct changes *ret);

/* '+' joins, '-' leaves, '^' rises, 'v' falls, '~' changes between full and both. */
char change_mark(const struct change *c);
