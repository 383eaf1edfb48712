/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* How many endports are members of each partition: by the policy, and in the tables. */

#include "session/output.h"

/* Counts of every base, indexed by it. */
struct partitions {
        struct member_count *by_policy, *in_hardware;
        bool *differs; /* another count, or an endport that was read is another member than by the policy */
        uint32_t n_unread; /* endports whose tables are not counted */
};

/* In the context's arena. Returns 0 or -ENOMEM. */
int partitions_count(struct context *ctx, struct partitions *ret);
/* The first base from this one upwards that the policy or a table has; 0: there is none. */
uint16_t partitions_next(const struct context *ctx, const struct partitions *p, uint32_t base);
/* Its name, and how many endports have which membership by the policy and in the tables. */
json_t *json_partition(struct doc *d, const struct partitions *p, uint16_t base);
