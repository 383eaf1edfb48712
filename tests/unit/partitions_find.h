/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The partition of this base in a partitions.conf; NULL: there is none. */

#include "opensm/partitions_conf.h"

static inline const struct partitions_conf_partition *find_partition(const struct partitions_conf *c, uint16_t base)
{
        for (uint32_t i = 0; i < c->n_partitions; i++)
                if (c->partitions[i].base == base)
                        return &c->partitions[i];
        return NULL;
}
