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
        struct desired *desired;
        struct plan *plan;
};

/* Returns 0, -EBADMSG (refused: findings say why; nothing may be sent), -ENOMEM. Results live in the arena and borrow
 * policy and observed->subnet. memory may be NULL. */
int reconcile(struct arena *a, const struct policy *policy, const struct observed *observed,
              const struct index_memory *memory, const struct plan_options *options, struct findings *findings,
              struct reconciled *ret);
