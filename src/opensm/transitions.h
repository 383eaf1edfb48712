/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What each endport has before the first file, and what it has after the last one. Every file includes all of these ports, also
 * those that are down, because they may come up at any time.
 *
 *     endport                                          before                              after
 *     was read, and its leaf port, if it may filter    its table, through its leaf port    the plan's table
 *     was read, its leaf port may filter and was not   its table, through the last known   as before
 *                                                      table of the leaf port and what
 *                                                      the file in place gives it
 *     cannot be read, OpenSM wrote nothing since       its last known table, likewise      as before
 *     cannot be read, OpenSM may have written since    what the file in place gives it     as before
 *     was never read, or is behind a leaf port that    what the file in place gives it     as before
 *     may filter and was never read
 *     a person vouches that it holds nothing           nothing                             as before
 *     is down                                          what the file in place gives it     the policy's, and what pkeyd does not
 *                                                                                          manage
 *
 * A port that is silent counts as one that cannot be read. If there is no file in place, OpenSM has written nothing.
 *
 * A table may have entries that neither the file in place nor the policy gives. They do not count as held if OpenSM may have
 * removed them since the table was read, because a file with them would restore them.
 *
 * An entry that the leaf port drops counts as absent: otherwise the first file would open the leaf port to it before others have
 * lost what they must lose. A leaf port that filters in one direction only, which OpenSM never sets up, counts as filtering both:
 * the first file ends what still passes in the other direction. A full member behind a limited entry of the leaf port counts as
 * limited: that it becomes limited is no loss. If it is not known whether the leaf port filters, it counts as filtering, and pkeyd
 * does not give the first file to OpenSM (is_undecided). A later file gives the host what the file in place does.
 */

#include "knowledge/knowledge.h"
#include "opensm/given.h"
#include "plan/plan.h"

/* One endport and its transition. */
struct opensm_transition {
        uint32_t port;              /* index into subnet->ports; SUBNET_NONE: it is not in the snapshot */
        uint32_t record;            /* of the knowledge; KNOWLEDGE_NONE: it has none */
        struct guid guid;
        const char *label;
        uint16_t capacity;          /* 0: not known */
        const struct p_key *before, *after; /* sets, in any order */
        uint32_t n_before, n_after;
        uint16_t index0_base;       /* the base whose entry belongs at index 0; 0: none, or it is not known */
        bool is_undecided;          /* it is not known whether its leaf port filters and drops an entry that `before` omits */
        bool has_surplus;           /* its table was read, and has entries that neither the file in place nor the policy gives it */
};

/* The transitions of all endports of the snapshot, from their tables to those at the end of the plan. A port that was not read, or
 * whose leaf port was not, stays as it is. in_place NULL: there is no file in place. Returns 0 or -ENOMEM; *ret in the arena,
 * borrowing plan, observed, in_place, and the tables of the knowledge. */
int opensm_transitions_of_plan(struct arena *a, const struct plan *plan, const struct observed *observed, const struct knowledge *k,
                               const struct opensm_tables *in_place, struct opensm_transition **ret, uint32_t *ret_n);

/* Endports that are not in the snapshot. */
struct opensm_absent {
        const struct subnet *larger;   /* by known_extend_named(): includes them */
        const struct desired *desired; /* on `larger`; NULL: not known, and all of these ports stay as they are */
        bool keeps_unmanaged;
        const struct partitions_file_port *given; /* by opensm_unmanaged_of_absent(): their entries in a file that was just handed
                                                   * over to pkeyd; NULL: none was */
};

/* The transitions of these endports. Silent ones stay as they are. Entries that pkeyd does not manage (policy_manages()) stay as in
 * the file in place, or in the one that was handed over. Returns 0 or -ENOMEM; *ret as above. */
int opensm_transitions_of_absent(struct arena *a, const struct opensm_absent *absent, const struct subnet *subnet,
                                 const struct knowledge *k, const struct opensm_tables *in_place, struct opensm_transition **ret,
                                 uint32_t *ret_n);
