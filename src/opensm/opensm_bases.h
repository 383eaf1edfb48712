/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A set of bases. */

#include "ib/types.h"

struct opensm_bases {
        uint8_t bits[(P_KEY_BASE_MASK + 1) / 8];
};

static inline bool opensm_bases_have(const struct opensm_bases *set, uint16_t base)
{
        return set->bits[base / 8] >> base % 8 & 1;
}

static inline void opensm_bases_add(struct opensm_bases *set, uint16_t base)
{
        set->bits[base / 8] |= (uint8_t) (1 << base % 8);
}
