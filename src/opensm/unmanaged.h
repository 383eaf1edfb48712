/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Entries of a partition file in partitions that pkeyd does not manage (policy_manages()). pkeyd keeps them. They are in the table
 * of a port that can be read; for a port that is down, or was never seen, only the file has them.
 */

#include "opensm/partitions_conf.h"
#include "opensm/partitions_file.h"

/* The policy, and whether it keeps entries that none of its partitions names (unmanaged: keep). */
struct opensm_manager {
        const struct policy *policy;
        bool keeps_unmanaged;
};

/* Every GUID in the policy, and in the partitions of conf (may be NULL) that the policy does not manage, in any order and
 * possibly repeated. Returns 0 or -ENOMEM; *ret in the arena. */
int opensm_named_guids(struct arena *a, const struct opensm_manager *manager, const struct partitions_conf *conf,
                       const struct guid **ret, uint32_t *ret_n);

/* For each port of `larger` (known_extend_named(); same index) that is not in `present`: what conf gives it in partitions that the
 * policy does not manage. ALL selects every endport of `larger`. Without allow_both_pkeys `both` is full. Labels are NULL. Returns
 * 0 or -ENOMEM; *ret in the arena. */
int opensm_unmanaged_of_absent(struct arena *a, const struct opensm_manager *manager, const struct partitions_conf *conf,
                               const struct subnet *larger, const struct subnet *present, bool allow_both_pkeys,
                               struct partitions_file_port **ret);

/* The first partition that the policy does not manage and that has members by ALL, ALL_CAS or the like; NULL: none. pkeyd's file
 * names ports, so it does not include hosts that are added later. */
const struct partitions_conf_partition *opensm_find_unmanaged_all(const struct opensm_manager *manager,
                                                                  const struct partitions_conf *conf);
