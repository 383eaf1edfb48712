/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The probe queries what the survey does not: the M_Key protection of endports (PortInfo), the state of subnet managers (SMInfo of
 * ports with IsSM), the P_Key tables of external ports whose switch has tables and cannot enforce them, and what the SA returns
 * to a request with no SM_Key or the well-known one.
 *
 * It is a stage, with a survey of its own for the tables. It changes nothing, but the SM logs a line for each SM_Key that it
 * refuses.
 */

#include "ib/m_keys.h"
#include "ib/smp.h"
#include "mad_engine/stage.h"
#include "subnet/observed.h"

/* The outcome of a query. */
struct probe_answer {
        bool asked; /* a query was sent, and has ended */
        enum mad_outcome outcome;
        uint16_t mad_status; /* of MAD_REFUSED */
};

static inline bool probe_is_answered(const struct probe_answer *a)
{
        return a->asked && a->outcome == MAD_ANSWERED;
}

/* One port of the subnet. */
struct probe_port {
        struct probe_answer port_info; /* endports */
        struct port_protection protection;
        struct lid sm_lid;             /* MasterSMLID */
        bool is_sm;                    /* PortInfo's IsSM */
        struct probe_answer sm_info;   /* endports with IsSM */
        struct sm_info sm;
};

/* SM_Keys of the queries to the SA. */
enum probe_sa_key {
        PROBE_SA_KEY_DEFAULT, /* 1, OpenSM's default */
        PROBE_SA_KEY_NONE,    /* 0 */
        PROBE_N_SA_KEYS,
};

struct probe_result {
        struct probe_port *ports; /* same index as subnet->ports */
        struct observed *tables;  /* external ports that the survey of the snapshot does not read; all others have entries NULL */
        struct probe_answer sa[PROBE_N_SA_KEYS]; /* to queries for a P_KeyTableRecord */
};

struct probe;

struct probe_options {
        const struct m_keys *m_keys; /* borrows; NULL: all queries have an M_Key of 0 */
        uint8_t retries;
        bool ask_sa; /* the local port can send to the SA */
};

/* Lives in the arena, as *ret_result does; borrows the subnet. Returns 0 or -ENOMEM. */
int probe_new(struct arena *a, const struct subnet *subnet, const struct probe_options *options, struct probe **ret,
              struct probe_result **ret_result);
struct mad_stage probe_stage(struct probe *p);
