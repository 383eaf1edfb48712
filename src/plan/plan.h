/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * plan/: observed x desired -> phases of block writes.
 *
 * Two ports can communicate in a partition if both have a P_Key with its base and at least one of the two is full. From the
 * observed tables A to the desired tables B the plan keeps these promises at every moment, for every pair of ports and every base:
 *
 *     continuity  two ports that can communicate in A and in B can do so all the time;
 *     isolation   two ports that can communicate in neither never can in between;
 *     stability   an entry in A and B stays at its index, and a freed index goes to no other base while an unused one is left;
 *                 with a layout an added entry goes back to its index there, even if that is freed only now.
 *
 * The order of phases gives the first two, the choice of indexes the third:
 *
 *     repair   correct index 0, without a change of any level (with repair_index0, or for a lease)
 *     revoke   drop entries on endports
 *     close    drop entries on enforcing ports
 *     relax    turn enforcement off where the settings require it
 *     open     add and raise on enforcing ports
 *     raise    limited to full on endports
 *     lower    full to limited on endports, then on enforcing ports
 *     grant    add entries: on ports that enforce already, where the peer has the base and only the switch keeps it
 *              from having an effect; then on endports
 *     enforce  turn enforcement on, where every table matches the policy
 *
 * Each is a barrier over the whole fabric. All changes of one block in one phase are one MAD. A port's level in a base is full if
 * it has the full entry, else limited, else none; {limited} to {limited, full} is a raise, {limited, full} to {limited} a lower,
 * {full} to {limited, full} and back change no level.
 *
 * A frozen port (policy/freeze.h) is left as it is: no write to it or to its leaf port is planned.
 *
 * The plan is data, to be printed, counted, simulated, or carried out by apply/. The planner is pure: the same inputs give the same
 * plan. It does not know how a write is sent, or whether it will succeed.
 */

#include "desired/desired.h"
#include "plan/index_memory.h"
#include "settings/settings.h"
#include "subnet/layout.h"
#include "subnet/observed.h"
#include "util/findings.h"

enum plan_phase {
        PHASE_REPAIR_ADD,  /* the new place of the entry that index 0 holds */
        PHASE_REPAIR_SWAP, /* index 0 itself */
        PHASE_REPAIR_DROP, /* the old place of the entry that belongs at index 0 */
        PHASE_REVOKE,
        PHASE_CLOSE,
        PHASE_RELAX,
        PHASE_OPEN,
        PHASE_RAISE,
        PHASE_LOWER_ENDPORTS,
        PHASE_LOWER_ENFORCING,
        PHASE_GRANT_ENFORCING,
        PHASE_GRANT,
        PHASE_ENFORCE,
        PLAN_N_PHASES,
};

enum plan_write_kind {
        WRITE_BLOCK,       /* SubnSet(P_KeyTable) */
        WRITE_ENFORCEMENT, /* SubnSet(PortInfo), the two enforcement bits */
};

struct plan_write {
        enum plan_write_kind kind;
        uint32_t port;     /* index into subnet->ports */
        uint16_t block;    /* of WRITE_BLOCK */
        /* WRITE_BLOCK: the whole block before and after, if all earlier writes succeeded */
        struct p_key before[P_KEY_BLOCK_ENTRIES], after[P_KEY_BLOCK_ENTRIES];
        /* WRITE_ENFORCEMENT */
        bool before_inbound, before_outbound, after_inbound, after_outbound;
};

struct plan_step {
        enum plan_phase phase;
        struct plan_write *writes; /* ascending (port, block) */
        uint32_t n_writes;
};

struct plan {
        const struct subnet *subnet;   /* borrows */
        const struct desired *desired; /* borrows */
        struct plan_step steps[PLAN_N_PHASES]; /* steps[p].phase == p; most are empty */
        uint32_t n_block_writes;       /* SubnSet(P_KeyTable), all phases */
        uint32_t n_enforcement_writes; /* SubnSet(PortInfo) */
        uint32_t n_ports_affected;
        struct p_key **final_tables;   /* per port of the subnet: its table at the end; NULL: not managed, or left alone because
                                        * nothing is known of it */
        enum freeze *frozen;           /* per port: why it is left as it is, together with its peer */
};

/* What to do about an SM, which may write P_Key tables, too, if pkeyd.yaml does not set how pkeyd works beside it. */
enum plan_beside_sm {
        BESIDE_SM_ACCEPTED, /* pkeyd.yaml or the command line sets it */
        BESIDE_SM_REPORTED,
        BESIDE_SM_REFUSED,  /* nothing is planned */
        BESIDE_SM_AUDITED,  /* reported; the plan is only shown, not carried out */
};

struct plan_options {
        enum settings_unmanaged unmanaged;
        enum settings_enforcement enforcement;
        enum settings_overflow enforcement_overflow;
        bool repair_index0;
        enum settings_writer writer;
        bool in_force;     /* the policy is in force: ports whose tables would overflow are frozen, and do not refuse the plan */
        enum plan_beside_sm beside_sm;
        bool opensm_order; /* bases that are added together get their indexes in the order in which OpenSM would assign them, so
                            * that it has nothing to move when it reads a file with the same policy */
        const struct known *known; /* borrowed; known endports, for the findings; NULL: none */
        const struct layout *layout; /* borrowed; an entry that is added goes to the index that it has there; NULL: none */
        const struct pins *pins;   /* borrowed; the names that are pinned; NULL: names are not pinned */
};

void plan_options_from_settings(const struct settings *s, struct plan_options *ret);

/* Computes the plan. Each table that would overflow becomes an error, and nothing is planned; with `in_force` nothing is planned
 * for these ports only. index_memory may be NULL. Returns 0, -EBADMSG (refused, see the findings), or -ENOMEM. *ret lives in the
 * arena and borrows desired and its subnet. */
int plan_compute(struct arena *a, const struct desired *desired, const struct observed *observed,
                 const struct index_memory *memory, const struct plan_options *options, struct findings *findings,
                 struct plan **ret);

static inline bool plan_is_empty(const struct plan *p)
{
        return p->n_block_writes == 0 && p->n_enforcement_writes == 0;
}
bool plan_has_frozen_ports(const struct plan *p);

/* "revoke", "lower", ...: a static string, also in JSON. Both LOWER phases are "lower", both GRANT phases "grant", all three REPAIR
 * phases "repair". */
const char *plan_phase_to_string(enum plan_phase p);
/* True for the phases that write switch external ports. */
bool plan_phase_is_enforcing(enum plan_phase p);
