/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "verify/table.h"

#include <errno.h>
#include <string.h>

bool table_may_touch(const struct policy *policy, enum settings_unmanaged unmanaged, struct p_key key)
{
        if (!policy_owns(policy, p_key_base(key)))
                return false;
        return unmanaged == UNMANAGED_REMOVE || policy_find_base(policy, p_key_base(key)) >= 0;
}

/* Index into wanted, or n_wanted. */
static uint32_t find_wanted(const struct desired_port *want, struct p_key key)
{
        uint32_t i = LOWER_BOUND(wanted, want->wanted, want->n_wanted, p_key_compare(wanted, &key) < 0);

        return i < want->n_wanted && want->wanted[i].v == key.v ? i : want->n_wanted;
}

/* NULL: out of memory. */
static const struct p_key *keep(struct arena *a, struct p_key *keys, uint32_t n)
{
        struct p_key *copy = arena_new_array(a, struct p_key, n);

        if (copy && n > 0) {
                memcpy(copy, keys, n * sizeof(*keys));
                qsort(copy, n, sizeof(*copy), p_key_compare);
        }
        return copy;
}

int table_compare(struct arena *a, const struct policy *policy, enum settings_unmanaged unmanaged,
                  const struct desired_port *want, const struct p_key *entries, uint32_t n_entries,
                  struct table_comparison *ret)
{
        uint32_t n_wanted = want->n_wanted, n_missing = 0, n_unexpected = 0;
        _cleanup_free_ bool *found = calloc((size_t) n_wanted + 1, sizeof(*found));
        _cleanup_free_ struct p_key *keys = calloc((size_t) n_wanted + n_entries + 1, sizeof(*keys));
        struct p_key *missing = keys, *unexpected = keys ? keys + n_wanted : NULL;

        if (!found || !keys)
                return -ENOMEM;
        for (uint32_t i = 0; i < n_entries; i++) {
                uint32_t k;

                if (!p_key_is_used(entries[i]) || !table_may_touch(policy, unmanaged, entries[i]))
                        continue;
                k = find_wanted(want, entries[i]);
                if (k < n_wanted && !found[k])
                        found[k] = true;
                else
                        unexpected[n_unexpected++] = entries[i];
        }
        for (uint32_t k = 0; k < n_wanted; k++)
                if (!found[k] && table_may_touch(policy, unmanaged, want->wanted[k]))
                        missing[n_missing++] = want->wanted[k];
        *ret = (struct table_comparison) { .n_missing = n_missing, .n_unexpected = n_unexpected };
        if (n_missing == 0 && n_unexpected == 0)
                return 0;
        ret->missing = keep(a, missing, n_missing);
        ret->unexpected = keep(a, unexpected, n_unexpected);
        return ret->missing && ret->unexpected ? 0 : -ENOMEM;
}
