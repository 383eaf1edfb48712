/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ib/types.h"

#include <string.h>

#include "util/text.h"

int p_key_compare(const void *a, const void *b)
{
        struct p_key x = *(const struct p_key *) a, y = *(const struct p_key *) b;

        return ORDER(p_key_base(x), p_key_base(y)) ?: ORDER(x.v, y.v);
}

bool p_keys_hold(const struct p_key *keys, uint32_t n, struct p_key key)
{
        for (uint32_t i = 0; i < n; i++)
                if (keys[i].v == key.v)
                        return true;
        return false;
}

bool p_keys_hold_base(const struct p_key *keys, uint32_t n, uint16_t base)
{
        for (uint32_t i = 0; i < n; i++)
                if (p_key_base(keys[i]) == base)
                        return true;
        return false;
}

enum membership p_keys_membership(const struct p_key *keys, uint32_t n, uint16_t base)
{
        enum membership m = MEMBERSHIP_NONE;

        for (uint32_t i = 0; m != MEMBERSHIP_BOTH && i < n; i++)
                if (p_key_base(keys[i]) == base)
                        m |= p_key_membership(keys[i]); /* limited and full are both */
        return m;
}

uint32_t p_keys_of_membership(uint16_t base, enum membership m, struct p_key ret[2])
{
        uint32_t n = 0;

        if (membership_has_limited(m))
                ret[n++] = p_key_make(base, false);
        if (membership_has_full(m))
                ret[n++] = p_key_make(base, true);
        return n;
}

uint32_t p_keys_sort(struct p_key *keys, uint32_t n)
{
        uint32_t kept = 0;

        SORT(keys, n, p_key_compare);
        for (uint32_t i = 0; i < n; i++)
                if (p_key_is_used(keys[i]) && (kept == 0 || keys[kept - 1].v != keys[i].v))
                        keys[kept++] = keys[i];
        return kept;
}

void p_keys_get_block(const struct p_key *table, uint16_t capacity, uint16_t block, struct p_key ret[P_KEY_BLOCK_ENTRIES])
{
        size_t n = p_key_block_size(capacity, block);

        memset(ret, 0, P_KEY_BLOCK_ENTRIES * sizeof(*ret));
        if (n > 0)
                memcpy(ret, table + (size_t) block * P_KEY_BLOCK_ENTRIES, n * sizeof(*ret));
}

void p_keys_to_hex(struct text *t, const struct p_key *keys, size_t n)
{
        for (size_t i = 0; i < n; i++)
                text_add(t, "%04x", (unsigned) keys[i].v);
}

bool p_keys_from_hex(const char *digits, size_t n, struct p_key *ret, size_t max)
{
        if (n % 4 != 0 || n / 4 > max)
                return false;
        for (size_t i = 0; i < n; i++) {
                if (digit_value(digits[i]) >= 16)
                        return false;
                ret[i / 4].v = (uint16_t) (ret[i / 4].v << 4 | digit_value(digits[i]));
        }
        return true;
}

uint32_t p_keys_count(const struct p_key *keys, uint32_t n)
{
        uint32_t used = 0;

        for (uint32_t i = 0; i < n; i++)
                used += p_key_is_used(keys[i]);
        return used;
}

bool p_keys_cover(const struct p_key *table, uint32_t n, struct p_key key)
{
        for (uint32_t i = 0; i < n; i++)
                if (p_key_same_partition(table[i], key) && (p_key_is_full(table[i]) || !p_key_is_full(key)))
                        return true;
        return false;
}

const struct p_key *p_keys_find_uncovered(const struct p_key *table, uint32_t n_table, const struct p_key *keys, uint32_t n_keys)
{
        for (uint32_t i = 0; i < n_keys; i++)
                if (p_key_is_used(keys[i]) && !p_keys_cover(table, n_table, keys[i]))
                        return &keys[i];
        return NULL;
}

DEFINE_WORDS_AND_BACK(membership, enum membership, "unknown",
                      [MEMBERSHIP_NONE] = "none", [MEMBERSHIP_LIMITED] = "limited", [MEMBERSHIP_FULL] = "full",
                      [MEMBERSHIP_BOTH] = "both")

DEFINE_WORDS(node_type_to_string, enum node_type, "unknown", [NODE_CA] = "CA", [NODE_SWITCH] = "switch", [NODE_ROUTER] = "router")

DEFINE_WORDS(port_state_to_string, enum port_state, "unknown",
             [PORT_STATE_NONE] = "unknown", [PORT_STATE_DOWN] = "DOWN", [PORT_STATE_INIT] = "INIT", [PORT_STATE_ARMED] = "ARMED",
             [PORT_STATE_ACTIVE] = "ACTIVE")
