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
        "members",
};
const size_t policy_n_partition_keys = ELEMENTS(policy_partition_keys);
