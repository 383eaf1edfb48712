/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The survey reads P_Key tables: every block of every managed port, or of chosen ports. It fills an observed that the caller owns.
 * If any block of a port could not be read, the whole table stays TABLE_UNKNOWN (with `failure` set): part of a table is useless.
 * After the first block that fails the port is not queried further, and after two ports of one SMA timed out in a row the SMA is
 * not: a dead switch would cost minutes.
 *
 * LIDs move, and so do cables. So an SMA has to identify itself (one NodeInfo) after its tables were read, if they hold anything
 * new, if one of its answers was late (mad_result_is_prompt), if it is reached by a directed route, or if the snapshot is from an
 * earlier moment (options.identify). If another node or another port answers (is_stranger), or no SMA answers, none of the tables
 * behind that address counts as read. Only a prompt answer that agrees with what was known for certain is accepted without
 * identification, so on a calm fabric no NodeInfo is sent.
 *
 * A stranger at a LID means that the snapshot is stale. At the end of a directed route of a fresh snapshot it means that a cable
 * was moved since: the next survey tries these ports again, so that no device can keep pkeyd from reading the others.
 *
 * An incomplete port (subnet_port_is_incomplete) is not queried and counts as MAD_TIMED_OUT, so that nothing on it is changed.
 *
 * A port whose table has no entries (a capacity of 0, which the standard does not allow) is not queried and counts as MAD_REFUSED
 * with status 0.
 */

#include "ib/m_keys.h"
#include "mad_engine/stage.h"
#include "subnet/observed.h"

struct survey;

struct survey_options {
        const struct m_keys *m_keys; /* borrows; NULL: none */
        uint8_t retries;
        const struct observed *before; /* borrows; NULL: none. A port that could not be read then gets fewer retries
                                        * (STAGE_RETRIES_AGAIN) */
        const struct observed *certain; /* borrows; of the same subnet; NULL: none. Its TABLE_READ tables are known for certain */
        const struct survey *interrupted; /* borrows, with the snapshot that it read; NULL: none. An abandoned survey (stage.h):
                                           * its unanswered tries count for this one, which still tries each port once */
        bool identify;         /* the snapshot is from an earlier moment */
        const uint32_t *ports; /* borrows; NULL: all managed ports of the subnet */
        uint32_t n_ports;
};

/* Lives in the arena; borrows observed, options->ports and the subnet of observed. Returns 0 or -ENOMEM. */
int survey_new(struct arena *a, struct observed *observed, const struct survey_options *options, struct survey **ret);
struct mad_stage survey_stage(struct survey *s);
/* True if another SMA answered than the snapshot has at its address, because the snapshot is stale. */
bool survey_is_stale(const struct survey *s);
