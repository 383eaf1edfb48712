/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "opensm/key_changes.h"

#include "opensm/partitions_conf.h"

/* Removes the entries of a base from the beginning of a set, and returns the membership that they give. */
static enum membership take_entries(const struct p_key **keys, uint32_t *n, uint16_t base, bool allow_both)
{
        enum membership m = MEMBERSHIP_NONE;

        for (; *n > 0 && p_key_base(**keys) == base; (*keys)++, (*n)--)
                m |= p_key_membership(**keys);
        return partitions_conf_membership(m, allow_both);
}

bool opensm_next_base(struct opensm_key_sets *s, struct opensm_base_change *ret)
{
        uint16_t before = s->n_before > 0 ? p_key_base(*s->before) : UINT16_MAX;
        uint16_t after = s->n_after > 0 ? p_key_base(*s->after) : UINT16_MAX;

        if (s->n_before == 0 && s->n_after == 0)
                return false;
        ret->base = MIN(before, after);
        ret->before = take_entries(&s->before, &s->n_before, ret->base, s->allow_both);
        ret->after = take_entries(&s->after, &s->n_after, ret->base, s->allow_both);
        if (ret->base == P_KEY_DEFAULT_BASE && ret->before == MEMBERSHIP_NONE)
                ret->before = MEMBERSHIP_LIMITED;
        return true;
}

bool opensm_next_difference(struct opensm_key_sets *s, struct opensm_base_change *ret)
{
        while (opensm_next_base(s, ret)) {
                if (ret->base == P_KEY_DEFAULT_BASE && ret->after == MEMBERSHIP_NONE)
                        ret->after = MEMBERSHIP_LIMITED;
                if (ret->before != ret->after && !(s->without && opensm_bases_have(s->without, ret->base)))
                        return true;
        }
        return false;
}

struct opensm_key_sets opensm_key_sets_of(const struct partitions_file_port *x, const struct partitions_file_port *y,
                                          bool allow_both)
{
        return (struct opensm_key_sets) { x->keys, y->keys, x->n_keys, y->n_keys, allow_both, NULL };
}

bool opensm_keys_equal(struct opensm_key_sets s)
{
        struct opensm_base_change change;

        return !opensm_next_difference(&s, &change);
}
