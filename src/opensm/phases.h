/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The transition from the observed tables to the desired ones when OpenSM is the writer: a sequence of complete partition files.
 * OpenSM must have carried out each of them before it is given the next.
 *
 *     adopt    what the ports have now. OpenSM leaves entries that another writer added or removed as they are, because it does not
 *              know of them. Only needed if the file in place gives something else
 *     revoke   bases that a port loses
 *     raise    limited to full
 *     lower    full to limited
 *     grant    bases that a port gains; this is the file of the policy
 *
 * These are the planner's phases (plan/plan.h) for endports. OpenSM writes the ports of one file in any order. That breaks neither
 * continuity nor isolation, because all changes of one phase go in the same direction.
 *
 * There are no phases for leaf ports: OpenSM writes the same entries to a leaf port right after its peer, in the same sweep.
 * Isolation is not affected, because a leaf port only restricts what two endports may do. Continuity is not affected by revoke and
 * grant, because the pair may not talk afterwards, or not before. But in a raise or lower at a leaf port that distinguishes full
 * from limited, packets of that base are lost between two MADs of OpenSM. Reliable connections resend them.
 *
 * With allow_both_pkeys even this does not happen: raise adds the other entry, and lower removes the old one. There are two
 * exceptions. OpenSM would move one of two entries away from index 0, which queue pairs use: raise and lower exchange the entry of
 * the default partition and that of the base which belongs at index 0 of the port, and a port that gets both receives the limited
 * one in the last phase. The same applies to all entries of a port whose table has no room for both.
 *
 * Whatever a file contains, OpenSM makes every port at least a limited member of the default partition. So every port counts as one
 * from the start. Which index an entry gets is OpenSM's decision, too.
 *
 * A base is held if the rule does not admit what a file would change of it (admission.h), or if it is not known whether a file was
 * carried out. It stays unchanged in all later files.
 *
 *     given.h          what a file gives each port
 *     unmanaged.h      what a file gives in partitions that pkeyd does not manage
 *     leaf_filter.h    what the leaf port of an endport lets through
 *     transitions.h    what each endport has before the first file, and after the last one
 *     phases.c         the files between, which bases are held, and whether OpenSM carried a file out, or dropped it
 *
 * These files are pure: tables and files in, files out. They do not know how files are given to OpenSM and how long that takes.
 */

#include "opensm/transitions.h"

enum opensm_phase {
        OPENSM_ADOPT,
        OPENSM_REVOKE,
        OPENSM_RAISE,
        OPENSM_LOWER,
        OPENSM_GRANT,
        OPENSM_N_PHASES,
};

struct opensm_phases {
        uint32_t n_ports;
        const struct opensm_transition *transitions; /* n_ports of them */
        const struct partitions_file_port *in_place; /* n_ports, same order; NULL: there is no file in place */
        struct partitions_file_port *tables[OPENSM_N_PHASES]; /* n_ports each, same order; keys by ascending base, limited first */
        bool needed[OPENSM_N_PHASES];  /* the phase changes something; OPENSM_ADOPT: it differs from the file in place, or a port
                                        * has_surplus */
        bool allow_both;
        struct base_set held;
};

/* "adopt", ..., "grant"; a static string. */
const char *opensm_phase_to_string(enum opensm_phase p);

/* The files. in_place as above. A transition that does not fit into its table even by exchanging entries becomes an error
 * (PLAN_CAPACITY_TRANSITION). Returns 0, -EBADMSG, -ENOMEM; *ret in the arena, borrowing the transitions. */
int opensm_phases_compute(struct arena *a, const struct opensm_transition *transitions, uint32_t n_transitions,
                          const struct opensm_tables *in_place, bool allow_both, struct findings *findings,
                          struct opensm_phases *ret);

/* The tables before a phase. Of OPENSM_ADOPT they are its own, because it changes nothing. */
const struct partitions_file_port *opensm_phases_before(const struct opensm_phases *phases, enum opensm_phase phase);

/* Holds these bases: from this phase on, each port has them as before the phase; from OPENSM_ADOPT on, as in the file in place,
 * which OpenSM may carry out anyway. Returns 0 or -ENOMEM; in the arena. */
int opensm_phases_hold(struct arena *a, struct opensm_phases *phases, enum opensm_phase from, const struct base_set *bases);

/* After a phase: ports that could not be read stay as in its file from then on, and the bases that it changed at them are held.
 * Returns 0 or -ENOMEM; in the arena. */
int opensm_phases_see_unread(struct arena *a, struct opensm_phases *phases, enum opensm_phase phase,
                             const struct observed *observed);

/* True if the phase changes a port of the snapshot. If not, the tables do not show whether OpenSM read its file. */
bool opensm_phase_is_visible(const struct opensm_phases *phases, enum opensm_phase phase);

/* The ports of the snapshot whose tables a phase changes, each endport with its leaf port, ascending. OPENSM_ADOPT: all ports.
 * Returns 0 or -ENOMEM; *ret in the arena. */
int opensm_phases_changed(struct arena *a, const struct opensm_phases *phases, enum opensm_phase phase,
                          const struct subnet *subnet, const uint32_t **ret, uint32_t *ret_n);

/* Whether the port of a transition (by index) was read and has what a phase gives it: the endport exactly (full and limited of a
 * base count as full unless allow_both), its leaf port at least that. OpenSM never clears the blocks after the last one that it
 * writes of a leaf port, so more entries there are no reason to wait. Held bases do not count. */
enum opensm_reached {
        OPENSM_UNREAD,  /* or not in the snapshot */
        OPENSM_MISSING,
        OPENSM_REACHED,
};
enum opensm_reached opensm_phases_reached(const struct opensm_phases *phases, enum opensm_phase phase, uint32_t transition,
                                          const struct observed *observed);

/* How many ports are OPENSM_MISSING; *ret_first is the first of them, and unchanged if there is none. 0: the phase is reached,
 * except for ports that could not be read. */
uint32_t opensm_phases_missing(const struct opensm_phases *phases, enum opensm_phase phase, const struct observed *observed,
                               uint32_t *ret_first);

/* True if every endport that was read holds only 0xffff. */
bool opensm_phases_are_open(const struct opensm_phases *phases, const struct observed *observed);

/* True if the tables look as if OpenSM had dropped its file and used its default: every endport that was read holds only 0xffff,
 * and at least one of them gets that neither by this phase nor by the one before. */
bool opensm_phases_fell_back(const struct opensm_phases *phases, enum opensm_phase phase, const struct observed *observed);

/* The same before the first phase, where the tables may look like that because of the file in place. */
bool opensm_phases_had_fallen_back(const struct opensm_phases *phases, const struct observed *observed);
