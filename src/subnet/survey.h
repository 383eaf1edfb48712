/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The survey reads P_Key tables: every block of every managed port, or of a chosen few. It fills an observed that the
 * caller owns. A port of which any block could not be read stays TABLE_UNKNOWN (with `failure` set) as a whole: half a
 * table is none. After the first block that fails the port is not asked further, and after two ports of one SMA timed out
 * in a row the SMA is not: a dead switch would cost minutes.
 *
 * LIDs move, and so do cables. So an SMA is asked who it is (one NodeInfo) after its tables were read, if what was read of it says
 * something new, if one of its answers was late (mad_result_is_prompt), if it is reached by a directed route, or if the snapshot is
 * from an earlier moment (options.identify). If another node answers, or another port of it, none of the tables behind that address
 * counts as read (is_stranger), and if nobody answers, neither. Only what is as it was known for certain, and came at once, is
 * believed without a name: on a calm fabric nobody is asked.
 *
 * Beside a stranger at a LID the snapshot is stale. At the end of a directed route of a fresh snapshot a cable was moved since:
 * these ports are only tried again later, as no device may keep pkeyd from reading the others.
 *
 * An incomplete port (subnet_port_is_incomplete) is not queried and counts as MAD_TIMED_OUT, so that nothing on it is changed.
 *
 * A port whose table has no entries at all (a capacity of 0, which the standard does not allow) is not asked and counts
 * as MAD_REFUSED with status 0.
 */

#include "ib/m_keys.h"
#include "mad_engine/stage.h"
#include "subnet/observed.h"

struct survey;

struct survey_options {
        const struct m_keys *m_keys; /* borrows; NULL: none */
        uint8_t retries;
        const struct observed *before; /* borrows; NULL: none. A port that was asked for this and could not be read gets fewer
                                        * retries (STAGE_RETRIES_AGAIN) */
        const struct observed *certain; /* borrows; of the same subnet; NULL: none. Its tables that are TABLE_READ are as they
                                         * were known for certain before */
        const struct survey *interrupted; /* borrows, with the snapshot that it read; NULL: none. One that was abandoned
                                           * (stage.h): as often as it asked a port in vain, this one asks less, but once */
        bool identify;         /* the snapshot is not of this moment */
        const uint32_t *ports; /* borrows; NULL: all managed ports of the subnet */
        uint32_t n_ports;
};

/* Lives in the arena; borrows observed, options->ports and the subnet behind observed. Returns 0 or -ENOMEM. */
int survey_new(struct arena *a, struct observed *observed, const struct survey_options *options, struct survey **ret);
struct mad_stage survey_stage(struct survey *s);
/* An SMA answered that is not the one that the snapshot has at its address, and the snapshot is to blame. */
bool survey_is_stale(const struct survey *s);
