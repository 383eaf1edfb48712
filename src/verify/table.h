/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * One table against what it should hold, as sets: which index an entry has is no matter of membership, a second entry of
 * the same P_Key is unexpected. Who read the table is all the same.
 */

#include "desired/desired.h"
#include "settings/settings.h"

struct table_comparison {
        const struct p_key *missing, *unexpected; /* ascending base */
        uint32_t n_missing, n_unexpected;
};

/* True if entries of this key's base are pkeyd's to judge: owned, and with unmanaged: keep a base of the policy. */
bool table_may_touch(const struct policy *policy, enum settings_unmanaged unmanaged, struct p_key key);

/* Returns 0 or -ENOMEM; what differs lives in the arena, nothing is taken from it if nothing does. */
int table_compare(struct arena *a, const struct policy *policy, enum settings_unmanaged unmanaged,
                  const struct desired_port *want, const struct p_key *entries, uint32_t n_entries,
                  struct table_comparison *ret);
