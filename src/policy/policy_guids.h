/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Replaces GUIDs in the lines, groups and pools of a policy file, after hardware was exchanged. */

#include "policy/policy.h"

struct guid_change {
        struct guid from, to;
};

/* Changes each GUID `from` of ports, nodes and switches in the bytes that `policy` was read from, and nothing else: not in
 * comments, names or other values. *ret_bytes lives in the arena; if there is nothing to change it is `bytes`. Returns the number
 * of GUIDs that were changed; -EINVAL if the place of one is not certain, as in a text that continues on the next line; or
 * -ENOMEM. */
int policy_change_guids(struct arena *a, const struct policy *policy, const char *bytes, size_t n,
                        const struct guid_change *changes, size_t n_changes, const char **ret_bytes, size_t *ret_n);
