/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Hash functions for indexes and for detecting changes. They are not safe against an attacker who searches for collisions. */

#include <stddef.h>
#include <stdint.h>

#define HASH_START UINT64_C(0xcbf29ce484222325)

/* Adds a number to a hash (the finalizer of splitmix64). */
static inline uint64_t hash_mix(uint64_t hash, uint64_t number)
{
        uint64_t z = (hash ^ number) + UINT64_C(0x9e3779b97f4a7c15);

        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        return z ^ z >> 31;
}

/* Adds bytes to a hash that began with HASH_START. It is FNV-1a, so that values may be stored. */
static inline uint64_t hash_bytes(uint64_t hash, const char *bytes, size_t n)
{
        for (size_t i = 0; i < n; i++)
                hash = (hash ^ (unsigned char) bytes[i]) * UINT64_C(0x100000001b3);
        return hash;
}
