/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A plan as an admin thinks of it: per partition, which endports come in, go, rise or fall. */

#include "plan/plan.h"
#include "subnet/observed.h"

/* Endports that go from one membership of a base to another. */
struct change {
        uint16_t base;
        enum membership before, after;
        const uint32_t *ports;
        uint32_t n_ports;
};

struct changes {
        const struct change *items; /* ascending base */
        uint32_t n;
        uint32_t n_enforcing_ports; /* switch ports whose tables or bits follow */
};

/* Compares what was observed with the plan's final tables. Returns 0 or -ENOMEM; *ret lives in the arena. */
int changes_compute(struct arena *a, const struct plan *plan, const struct observed *observed, struct changes *ret);

/* '+' comes in, '-' goes, '^' rises, 'v' falls, '~' between full and both. */
char change_mark(const struct change *c);
