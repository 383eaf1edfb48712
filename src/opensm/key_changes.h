/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* In which bases two sets of P_Keys differ, as OpenSM gives them to a port. The sets ascend, limited before full. */

#include "opensm/opensm_bases.h"
#include "opensm/partitions_file.h"

/* What is left of two normalized sets while they are walked in parallel. */
struct opensm_key_sets {
        const struct p_key *before, *after;
        uint32_t n_before, n_after;
        bool allow_both;
        const struct opensm_bases *without; /* bases to ignore; NULL: none */
};

/* The membership in one base by both sets. */
struct opensm_base_change {
        uint16_t base;
        enum membership before, after;
};

/* The next base of both sets, ascending; false: there is none. Every port begins as at least a limited member of the default
 * partition. */
bool opensm_next_base(struct opensm_key_sets *s, struct opensm_base_change *ret);

/* The next base in which the sets differ. A limited entry of the default partition makes no difference: every port has it. */
bool opensm_next_difference(struct opensm_key_sets *s, struct opensm_base_change *ret);

struct opensm_key_sets opensm_key_sets_of(const struct partitions_file_port *x, const struct partitions_file_port *y,
                                          bool allow_both);
bool opensm_keys_equal(struct opensm_key_sets s);
