/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * plan/: observed x desired -> phases of block writes.
 *
 * Two P_Keys let two ports talk if their bases are equal and at least one is full. From the observed tables A to the
 * desired tables B the plan keeps, at every instant and for every pair of ports and every base: continuity (who may talk
 * in A and in B may talk all the way), isolation (who may talk in neither never may on the way), stability (an entry in A
 * and B stays at its index; a freed index does not pass to another base while an unused one is left).
 *
 * The order of phases gives the first two, index choice the third:
 *
 *     repair   put index 0 right, level-neutral (only with repair_index0)
 *     revoke   drop entries on endports
 *     close    drop entries on enforcing ports
 *     relax    turn enforcement off where the settings say so
 *     open     add and raise on enforcing ports
 *     raise    limited to full on endports
 *     lower    full to limited on endports, then on enforcing ports
 *     grant    add entries: on ports that enforce already, where the peer has the base and only the switch keeps it
 *              from having any effect; then on endports
 *     enforce  turn enforcement on, where every table is right
 *
 * Each is a barrier over the whole fabric. All changes of one block in one phase are one MAD. A port's level for a base
 * is full if the full entry is there, else limited, else none; {limited} to {limited, full} is a raise, {limited, full}
 * to {limited} a lower, {full} to {limited, full} and back change no level.
 *
 * A frozen port (policy/freeze.h) is left as it is: no write to it, nor to its leaf port, is planned.
 *
 * The plan is data: print it, count it, simulate it, or let apply/ carry it out. The planner is pure; same inputs, same
 * plan. It refuses to know how a write is sent and whether it will succeed.
 */

#include "desired/desired.h"
#include "plan/index_memory.h"
#include "settings/settings.h"
#include "subnet/observed.h"
#include "util/findings.h"

enum plan_phase {
        PHASE_REPAIR_ADD,  /* a displaced entry's new place */
        PHASE_REPAIR_SWAP, /* index 0 itself */
        PHASE_REPAIR_DROP, /* the old place of index 0's partition */
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
        struct p_key **final_tables;   /* per port of the subnet: the table when all is done; NULL: not managed, or left
                                          alone since nothing is known of it */
        enum freeze *frozen;           /* per port: why it is left as it is, with the other end of its cable */
};

/* Of an SM of which pkeyd.yaml does not say how to live with it. It writes P_Key tables, too, or does not: nobody here can know. */
enum plan_beside_sm {
        BESIDE_SM_ACCEPTED, /* pkeyd.yaml says it, or the command line */
        BESIDE_SM_TOLD,
        BESIDE_SM_REFUSED,  /* nothing is planned */
        BESIDE_SM_AUDITED,  /* told; who carries out the plan only looks */
};

struct plan_options {
        enum settings_unmanaged unmanaged;
        enum settings_enforcement enforcement;
        enum settings_overflow enforcement_overflow;
        bool repair_index0;
        enum settings_writer writer;
        bool in_force;     /* of a policy that is in force: ports whose tables would overflow are frozen, and refuse nothing */
        enum plan_beside_sm beside_sm;
        bool opensm_order; /* indexes of bases that are new together are given in the order in which OpenSM would give them,
                              so that it finds nothing to move when it reads a file that says the same */
        const struct known *known; /* borrowed; endports that were seen once, for what is reported; NULL: none */
};

void plan_options_from_settings(const struct settings *s, struct plan_options *ret);

/* Computes the plan. Tables that would overflow (all of them) become errors and nothing is planned; with `in_force` nothing is
 * planned for these ports only. index_memory may be NULL. Returns 0, -EBADMSG (refused: findings say why), -ENOMEM. *ret lives
 * in the arena and borrows desired and its
 * subnet. */
int plan_compute(struct arena *a, const struct desired *desired, const struct observed *observed,
                 const struct index_memory *memory, const struct plan_options *options, struct findings *findings,
                 struct plan **ret);

static inline bool plan_is_empty(const struct plan *p)
{
        return p->n_block_writes == 0 && p->n_enforcement_writes == 0;
}

/* "revoke", "lower", ...: the word for people and JSON; a static string. Both LOWER phases are "lower", both GRANT
 * phases "grant", all three REPAIR phases "repair". */
const char *plan_phase_to_string(enum plan_phase p);
/* True for the phases that write switch external ports. */
bool plan_phase_is_enforcing(enum plan_phase p);
