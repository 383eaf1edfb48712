/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Which endports a text, or a pool, means in a fabric. Also here: policy_select(). */

#include "policy/selector_match.h"

/* A matcher with the names by which the policy knows the nodes of the subnet. Ports have the same indexes. Returns 0 or -ENOMEM. */
int matcher_init_by_pins(struct matcher *m, struct arena *a, const struct policy *policy, const struct subnet *subnet,
                         const struct policy_memory *memory, struct report *report);

/* As policy_select(), but whatever is not certain is an error: a name without a port, a name that several adapters have. The list
 * is not empty. Returns 0, -EBADMSG (findings say why) or -ENOMEM; *ret in the arena. */
int policy_select_exactly(struct arena *a, const struct policy *policy, const struct subnet *subnet,
                          const struct policy_memory *memory, const char *text, struct findings *findings, struct port_list *ret);

/* The endports that certainly belong to a pool of this policy. Returns 0 or -ENOMEM; *ret in the arena. */
int policy_select_pool(struct arena *a, const struct policy *policy, const struct policy_pool *pool, const struct subnet *subnet,
                       const struct policy_memory *memory, struct port_list *ret);
