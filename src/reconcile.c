/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "reconcile.h"

int reconcile(struct arena *a, const struct policy *policy, const struct observed *observed,
              const struct index_memory *memory, const struct plan_options *options, struct findings *findings,
              struct reconciled *ret)
{
        struct reconciled out = {};
        int r;

        /* who is a member of what: policy x subnet */
        r = policy_resolve(a, policy, observed->subnet, findings, &out.memberships);
        if (r < 0)
                return r;

        /* what each table should hold */
        r = desired_compute(a, out.memberships, &out.desired);
        if (r < 0)
                return r;

        /* how to get there from what each table holds, without a broken promise on the way */
        r = plan_compute(a, out.desired, observed, memory, options, findings, &out.plan);
        if (r < 0)
                return r;

        *ret = out;
        return 0;
}
