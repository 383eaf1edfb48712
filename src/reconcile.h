/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * READ THIS FIRST. The decision of pkeyd in one function: policy x observed -> plan. The code before it gathers the arguments
 * (policy/ reads the file, subnet/ the fabric); the code after it carries the plan out (apply/) and checks the result (verify/).
 * Pure: the same inputs give the same plan.
 */

#include "plan/plan.h"

struct reconciled {
        struct memberships *memberships;
        struct desired *desired;     /* what each table should hold; of a frozen port: what it holds now */
        const struct desired *given; /* what the policy gives each port, frozen ports included */
        const struct desired_port *certain; /* of frozen endports: what the policy gives under every reading of contested lines */
        struct plan *plan;
};

/* With options->in_force, errors about single ports freeze these ports and refuse nothing (policy/freeze.h); each frozen endport
 * whose table was to be read is a finding, PORT_FROZEN. memory may be NULL. Returns 0, -EBADMSG (refused: findings say why; nothing
 * may be sent), -ENOMEM. *ret is set only on 0; it lives in the arena and borrows policy and observed->subnet. */
int reconcile(struct arena *a, const struct policy *policy, const struct observed *observed,
              const struct index_memory *memory, const struct plan_options *options, struct findings *findings,
              struct reconciled *ret);

/* The same for what only compares or shows tables, of which some may not have been read: it does not check the SM, and reports
 * nothing else of a plan. ret->plan is NULL without options->in_force: a new policy may need more room than a table has. */
int reconcile_tables(struct arena *a, const struct policy *policy, const struct observed *observed,
                     const struct plan_options *options, struct findings *findings, struct reconciled *ret);

/* Adds a warning for each port whose link is up and whose peer did not answer discovery. The peer is not in the snapshot, so pkeyd
 * writes nothing to it, although the policy may name it. known: the ports seen before, to name the peer; may be NULL. Returns the
 * number of such ports. */
uint32_t reconcile_report_silent(const struct subnet *s, const struct known *known, struct findings *findings);

/* One sentence about a frozen endport: the reason, and what its table holds. Allocated from a; NULL: out of memory. */
const char *reconcile_frozen_text(struct arena *a, const struct reconciled *r, uint32_t port);
