/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What a partition file gives in partitions that pkeyd does not manage (policy_manages()). Those entries stay as they are. Where a
 * port's table can be read, it shows them; of a port that is down, or was never seen, only the file says what it is to have.
 */

#include "opensm/partitions_conf.h"
#include "opensm/partitions_file.h"

/* The policy, and whether it keeps entries that none of its partitions names (unmanaged: keep). */
struct opensm_manager {
        const struct policy *policy;
        bool keeps_unmanaged;
};

/* Every GUID that the policy names, or conf (may be NULL) in a partition that the policy does not manage. In any order, some twice.
 * Returns 0 or -ENOMEM; *ret in the arena. */
int opensm_named_guids(struct arena *a, const struct opensm_manager *manager, const struct partitions_conf *conf,
                       const struct guid **ret, uint32_t *ret_n);

/* For each port of `larger` (known_extend_named(); same index) that is not in `present`: its entries by conf in partitions that the
 * policy does not manage. ALL is each endport of `larger`. Without allow_both_pkeys `both` is full. Labels are NULL. Returns 0 or
 * -ENOMEM; *ret in the arena. */
int opensm_unmanaged_of_absent(struct arena *a, const struct opensm_manager *manager, const struct partitions_conf *conf,
                               const struct subnet *larger, const struct subnet *present, bool allow_both_pkeys,
                               struct partitions_file_port **ret);

/* The first partition that the policy does not manage and whose members are ALL or the like; NULL: none. pkeyd's file names ports,
 * so hosts that come later are not in it. */
const struct partitions_conf_partition *opensm_find_unmanaged_all(const struct opensm_manager *manager,
                                                                  const struct partitions_conf *conf);
