/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The transition from the tables as they are to those that are wanted, when it is OpenSM that writes: a sequence of complete
 * partition files, each of which OpenSM must have carried out before it is given the next.
 *
 *     adopt    what the ports have now, so that what OpenSM believes of them is true; only if the file in place says something
 *              else. Entries that somebody else wrote or took are unknown to OpenSM: it would leave them as they are.
 *     revoke   bases that a port shall lose
 *     raise    limited to full
 *     lower    full to limited
 *     grant    bases that a port shall gain; this is the file of the policy
 *
 * These are the planner's phases (plan/plan.h) for endports. OpenSM applies the ports of one file in any order, which breaks
 * neither continuity nor isolation, since the changes of one phase go all in one direction. The phases for enforcing ports
 * are missing: OpenSM gives a switch port what its peer has, right behind the peer, in the same sweep. For isolation
 * this makes no difference, for a switch port only takes away from what two endports may do. For continuity it makes none where
 * a base is granted or revoked, since the pair may not talk before, or not afterwards. What is left is a raise or a lower at a
 * switch that tells full from limited: between two MADs of OpenSM the port has one of them and the switch the other, and
 * packets in that base are lost until the second arrives, which reliable connections send again. Where allow_both_pkeys is on,
 * it does not come to that: raise adds the other entry, and lower drops what is no longer wanted. The default partition is the
 * exception: with both entries on the way OpenSM would move one of them away from index 0, which queue pairs use. So raise and
 * lower exchange its entry, and who is to have both gets the limited entry in the last phase. Likewise all entries of a port whose
 * table has no room for both.
 *
 * An entry that its enforcing switch port does not let through counts as not there: else the first file would open the switch
 * port to it before others have lost what they must lose. A switch port that filters in one direction only, as no OpenSM sets
 * it up, counts as filtering in both: the first file ends what still passes in the other. A full member behind a limited entry
 * counts as a limited one: that it becomes one is no loss. Where it is not known whether the switch port filters, it counts
 * as one that does, and the first of all files is not given (is_undecided). A later one gives the host what the file in place does.
 *
 * One thing OpenSM does whatever a file says: every port is at least a limited member of the default partition. So it counts
 * as one from the start. Indexes are OpenSM's, too.
 *
 * A port that is down is in each file as well, from what the file in place gave it to what the policy gives it: it may come up
 * at any moment. A port that is there and cannot be read is in each file as it was: what it was told last and may not have
 * done, or what it held when it was read last, or (never read, or behind a switch port that may filter and was never read, if
 * only because its switch did not answer discovery) what the file in place gives it.
 *
 * A base is held where the rule does not admit what a file would change of it (admission.h), or where nobody knows whether a file
 * was carried out. Then it stays in all later files as it was.
 *
 * This file is pure: tables and files in, files out. It refuses to know how OpenSM is told and how long that takes.
 */

#include "knowledge/knowledge.h"
#include "opensm/partitions_conf.h"
#include "opensm/partitions_file.h"
#include "plan/plan.h"

enum opensm_phase {
        OPENSM_ADOPT,
        OPENSM_REVOKE,
        OPENSM_RAISE,
        OPENSM_LOWER,
        OPENSM_GRANT,
        OPENSM_N_PHASES,
};

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

/* What the file in place gives to whom: ascending GUID. label is NULL. */
struct opensm_tables {
        struct partitions_file_port *ports;
        uint32_t n_ports;
        bool is_done; /* OpenSM did what it says: whatever a table has besides was put there later, and is unknown to OpenSM */
};

/* One endport and its transition. */
struct opensm_transition {
        uint32_t port;              /* index into subnet->ports; SUBNET_NONE: it is not there now */
        uint32_t record;            /* of the knowledge; KNOWLEDGE_NONE: there is none */
        struct guid guid;
        const char *label;
        uint16_t capacity;          /* 0: not known */
        const struct p_key *before, *after; /* sets, in any order */
        uint32_t n_before, n_after;
        bool is_undecided;          /* it holds what a switch port may not let through, of which it is not known whether it filters:
                                     * `before` is without that */
        bool is_late;               /* its table was read, and has more than the file in place and the policy give it */
};

struct opensm_phases {
        uint32_t n_ports;
        const struct opensm_transition *transitions; /* n_ports of them */
        const struct partitions_file_port *in_place; /* n_ports, same order; NULL: there is no file */
        struct partitions_file_port *tables[OPENSM_N_PHASES]; /* likewise; keys ascending base, limited first */
        bool needed[OPENSM_N_PHASES];  /* it differs from the phase before; OPENSM_ADOPT: from the file in place, or that was not
                                        * carried out */
        bool allow_both;
        struct opensm_bases held;
};

/* "adopt", ..., "grant"; a static string. */
const char *opensm_phase_to_string(enum opensm_phase p);

/* What a partition file gives to single ports; rules for ALL and the like are left out, so it is meant for files that pkeyd
 * wrote. Returns 0 or -ENOMEM; in the arena. */
int opensm_tables_of_file(struct arena *a, const struct partitions_conf *conf, struct opensm_tables *ret);

/* The transitions of all endports of the snapshot, from its tables to the end of the plan. One that was not read, or whose leaf
 * port was not, stays as it is. in_place may be NULL: there is no file. Returns 0 or -ENOMEM; *ret in the arena, borrowing plan,
 * observed, in_place, and what the knowledge has of tables. */
int opensm_transitions_of_plan(struct arena *a, const struct plan *plan, const struct observed *observed, const struct knowledge *k,
                               const struct opensm_tables *in_place, struct opensm_transition **ret, uint32_t *ret_n);

/* What is known of endports that are not in the snapshot. */
struct opensm_absent {
        const struct subnet *larger;   /* known_extend_named(): it has them */
        const struct desired *desired; /* on `larger`; NULL: nobody knows what they should have, and all of them stay */
        bool keeps_unmanaged;
        const struct partitions_file_port *given; /* opensm_unmanaged_of_absent(): what a file that was just given to pkeyd has for
                                                   * them; NULL: no file was */
};

/* The transitions of these endports: they are down, or silent; then they stay as they are. Entries that pkeyd does not manage
 * (policy_manages()) stay as the file in place, or the one that was given, has them. Same borrowing. Returns 0 or -ENOMEM. */
int opensm_transitions_of_absent(struct arena *a, const struct opensm_absent *absent, const struct subnet *subnet,
                                 const struct knowledge *k, const struct opensm_tables *in_place, struct opensm_transition **ret,
                                 uint32_t *ret_n);

/* The files. in_place as above. Ways that do not fit so either become errors (PLAN_CAPACITY_TRANSITION). Returns 0,
 * -EBADMSG, -ENOMEM; in the arena, borrowing the transitions. */
int opensm_phases_compute(struct arena *a, const struct opensm_transition *transitions, uint32_t n_transitions,
                          const struct opensm_tables *in_place, bool allow_both, struct findings *findings,
                          struct opensm_phases *ret);

/* The tables before a phase; before OPENSM_ADOPT: its own, for it says what is there. */
const struct partitions_file_port *opensm_phases_before(const struct opensm_phases *phases, enum opensm_phase phase);

/* These bases are held: from this phase on each port has them as before it; from OPENSM_ADOPT on as in the file in place, which
 * OpenSM may carry out anyway. Returns 0 or -ENOMEM; in the arena. */
int opensm_phases_hold(struct arena *a, struct opensm_phases *phases, enum opensm_phase from, const struct opensm_bases *bases);

/* After a phase: ports that could not be read stay from now on as its file has them, and the bases that it changed there are held.
 * Returns 0 or -ENOMEM; in the arena. */
int opensm_phases_see_unread(struct arena *a, struct opensm_phases *phases, enum opensm_phase phase,
                             const struct observed *observed);

/* Does the file of this phase change anything at a port of the snapshot? Else the tables do not show whether OpenSM read it. */
bool opensm_phases_show(const struct opensm_phases *phases, enum opensm_phase phase);

/* Ports of the snapshot whose tables a phase changes, each endport with the switch port beside it, ascending. Returns 0 or
 * -ENOMEM; *ret in the arena. */
int opensm_phases_changed(struct arena *a, const struct opensm_phases *phases, enum opensm_phase phase,
                          const struct subnet *subnet, const uint32_t **ret, uint32_t *ret_n);

/* Was this port (index of a transition) read, and does it have what a phase gives it? An endport exactly (full and limited of a
 * base count as full unless allow_both), the enforcing switch port beside it at least that. OpenSM never clears what is behind
 * the last block that it writes of a switch port, so more is no reason to wait. Bases that are held do not count. */
enum opensm_reached {
        OPENSM_UNREAD,  /* or it is not there */
        OPENSM_MISSING,
        OPENSM_REACHED,
};
enum opensm_reached opensm_phases_reached(const struct opensm_phases *phases, enum opensm_phase phase, uint32_t transition,
                                          const struct observed *observed);

/* How many ports are OPENSM_MISSING. *ret_first (if there is one) is such a port. 0: the phase has been reached, but for the ports
 * that could not be read. */
uint32_t opensm_phases_missing(const struct opensm_phases *phases, enum opensm_phase phase, const struct observed *observed,
                               uint32_t *ret_first);

/* Does every endport that was read hold 0xffff and nothing else? */
bool opensm_phases_are_open(const struct opensm_phases *phases, const struct observed *observed);

/* Do the tables look like OpenSM's defaults, which it takes if it cannot read its file: every endport that was read holds 0xffff
 * and nothing else, and to one of them neither this phase gives that nor the one before? */
bool opensm_phases_fell_back(const struct opensm_phases *phases, enum opensm_phase phase, const struct observed *observed);

/* Likewise before the first phase, where the file in place may be why the tables look like that. */
bool opensm_phases_had_fallen_back(const struct opensm_phases *phases, const struct observed *observed);
