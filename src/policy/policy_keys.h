/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The keys of a policy file, for the parser and for the check of the manual page. */

extern const char *const policy_keys[5];           /* top of the file */
extern const char *const policy_partition_keys[4]; /* partitions.NAME */
extern const char *const policy_ipoib_keys[8];     /* partitions.NAME.ipoib */
extern const char *const policy_group_keys[8];     /* one of its mgids */
