/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/policy_keys.h"

#include "util/cleanup.h"

/* top of the file */
const char *const policy_keys[] = {
        "version",
        "strict",
        "owns",
        "groups",
        "partitions",
};
const size_t policy_n_keys = ELEMENTS(policy_keys);

/* partitions.NAME */
const char *const policy_partition_keys[] = {
        "pkey",
        "index0",
        "ipoib",
        "members",
};
const size_t policy_n_partition_keys = ELEMENTS(policy_partition_keys);

/* partitions.NAME.ipoib */
const char *const policy_ipoib_keys[] = {
        "mtu", "rate", "sl", "scope", "q_key", "tclass", "flow_label", "mgids",
};
const size_t policy_n_ipoib_keys = ELEMENTS(policy_ipoib_keys);

/* one of its mgids */
const char *const policy_group_keys[] = {
        "mgid", "mtu", "rate", "sl", "scope", "q_key", "tclass", "flow_label",
};
const size_t policy_n_group_keys = ELEMENTS(policy_group_keys);
