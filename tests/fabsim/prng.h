/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The same sequence for a 64-bit seed on every machine (splitmix64). */

#include <stdbool.h>
#include <stdint.h>

struct prng {
        uint64_t state;
};

static inline uint64_t prng_next(struct prng *p)
{
        uint64_t z = p->state += UINT64_C(0x9e3779b97f4a7c15);

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}

/* 0 .. n - 1; 0 for n == 0. */
static inline unsigned prng_below(struct prng *p, unsigned n)
{
        return n ? (unsigned) (prng_next(p) % n) : 0;
}

/* lowest .. highest */
static inline unsigned prng_between(struct prng *p, unsigned lowest, unsigned highest)
{
        return lowest + prng_below(p, highest - lowest + 1);
}

/* True with this probability per thousand. */
static inline bool prng_permille(struct prng *p, unsigned permille)
{
        return prng_below(p, 1000) < permille;
}
