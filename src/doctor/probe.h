/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The probe asks the fabric what the survey does not: how endports are protected and who is a subnet manager (PortInfo, and
 * SMInfo of those that say they are one), what stands in the P_Key tables of those external ports of switches that the
 * survey passes over (their switch has a table and cannot enforce it), and what the SA tells to somebody who has no SM_Key
 * or the well-known one.
 *
 * It is a stage, and has a survey of its own for the tables. Nothing that it sends changes anything; the SM logs a line for a
 * key that it refuses.
 */

#include "ib/m_keys.h"
#include "ib/smp.h"
#include "mad_engine/stage.h"
#include "subnet/observed.h"

/* How a question ended. */
struct probe_answer {
        bool asked;
        enum mad_outcome outcome;
        uint16_t mad_status; /* of MAD_REFUSED */
};

static inline bool probe_is_answered(const struct probe_answer *a)
{
        return a->asked && a->outcome == MAD_ANSWERED;
}

/* Of one port of the subnet. */
struct probe_port {
        struct probe_answer port_info; /* endports */
        struct port_protection protection;
        struct lid sm_lid;             /* MasterSMLID */
        bool is_sm;                    /* PortInfo's IsSM */
        struct probe_answer sm_info;   /* endports with IsSM */
        struct sm_info sm;
};

/* The keys that the SA is asked with. */
enum probe_sa_key {
        PROBE_SA_KEY_DEFAULT, /* 1, what OpenSM has when nobody gave it another */
        PROBE_SA_KEY_NONE,    /* 0 */
        PROBE_N_SA_KEYS,
};

/* What came of it. */
struct probe_result {
        struct probe_port *ports; /* same index as subnet->ports */
        struct observed *tables;  /* of external ports that the survey of the snapshot does not read; entries NULL: of all others */
        struct probe_answer sa[PROBE_N_SA_KEYS]; /* to a question for a P_KeyTableRecord */
};

struct probe;

struct probe_options {
        const struct m_keys *m_keys; /* borrows; NULL: all are asked as a stranger would */
        uint8_t retries;
        bool ask_sa; /* the port is registered for subnet administration */
};

/* Lives in the arena, as *ret_result does; borrows the subnet. Returns 0 or -ENOMEM. */
int probe_new(struct arena *a, const struct subnet *subnet, const struct probe_options *options, struct probe **ret,
              struct probe_result **ret_result);
struct mad_stage probe_stage(struct probe *p);
