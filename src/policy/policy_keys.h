/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The keys of a policy file. The parser's "unknown key" comes from these, and so does the check of the manual page. */

#include <stddef.h>

extern const char *const policy_keys[];
extern const size_t policy_n_keys;
extern const char *const policy_partition_keys[];
extern const size_t policy_n_partition_keys;
extern const char *const policy_ipoib_keys[];
extern const size_t policy_n_ipoib_keys;
extern const char *const policy_group_keys[];
extern const size_t policy_n_group_keys;
