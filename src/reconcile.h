/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * READ THIS FIRST. The decision pkeyd makes, in one function: policy x observed -> plan. Everything before it gathers its
 * arguments (policy/ reads the file, subnet/ the fabric), everything after it carries its result out (apply/) and looks
 * whether it came true (verify/). Pure: same inputs, same plan.
 */

#include "plan/plan.h"

struct reconciled {
        struct memberships *memberships;
        struct desired *desired;     /* what tables are to hold: a frozen port what it has */
        const struct desired *given; /* what the policy gives: the same, but for frozen ports */
        const struct desired_port *certain; /* of frozen endports: what it gives whichever of the contested lines mean them */
        struct plan *plan;
};

/* With options->in_force errors that concern single ports freeze these ports and refuse nothing (policy/freeze.h); each frozen
 * endport is a finding, PORT_FROZEN. Returns 0, -EBADMSG (refused: findings say why; nothing may be sent), -ENOMEM. Results live
 * in the arena and borrow policy and observed->subnet. memory may be NULL. */
int reconcile(struct arena *a, const struct policy *policy, const struct observed *observed,
              const struct index_memory *memory, const struct plan_options *options, struct findings *findings,
              struct reconciled *ret);

/* A warning for each port whose link is up and whose other end did not answer discovery: who is there and not in the snapshot gets
 * nothing, and loses nothing; but the policy may well name it. Says who was there last (known; NULL: nobody knows). Returns how
 * many. */
uint32_t reconcile_report_silent(const struct subnet *s, const struct known *known, struct findings *findings);

/* One sentence about a frozen endport: why, and what it keeps. Allocated from a; NULL: out of memory. */
const char *reconcile_frozen_text(struct arena *a, const struct reconciled *r, uint32_t port);
