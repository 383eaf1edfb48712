/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The keys of a policy file, for the parser and for the check of the manual page. */

/* top of the file */
static const char *const policy_keys[] = { "version", "strict", "owns", "groups", "pools", "partitions" };
/* pools.NAME */
static const char *const policy_pool_keys[] = { "pkeys", "ports", "membership", "lease", "rest", "index0", "allow" };
/* partitions.NAME */
static const char *const policy_partition_keys[] = { "pkey", "index0", "ipoib", "members" };
/* partitions.NAME.ipoib */
static const char *const policy_ipoib_keys[] = { "mtu", "rate", "sl", "scope", "q_key", "tclass", "flow_label", "mgids" };
/* an item of partitions.NAME.ipoib.mgids */
static const char *const policy_group_keys[] = { "mgid", "mtu", "rate", "sl", "scope", "q_key", "tclass", "flow_label" };
