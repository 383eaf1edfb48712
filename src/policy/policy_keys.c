/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/policy_keys.h"

const char *const policy_keys[] = { "version", "strict", "owns", "groups", "partitions" };
const char *const policy_partition_keys[] = { "pkey", "index0", "ipoib", "members" };
const char *const policy_ipoib_keys[] = { "mtu", "rate", "sl", "scope", "q_key", "tclass", "flow_label", "mgids" };
const char *const policy_group_keys[] = { "mgid", "mtu", "rate", "sl", "scope", "q_key", "tclass", "flow_label" };
