/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Which changes of a partition file may be given to OpenSM.
 *
 * A file makes OpenSM write tables: that of each endport, and that of its leaf port if the switch can filter. OpenSM decides when
 * and in which order, and some of the writes may fail. So the rule (knowledge/rule.h) must admit each of them for any combination
 * of the others that were carried out or not. A base in which one write is not admitted is held: in this file and in all later ones
 * each port has it as before.
 *
 * What was given to OpenSM is in the knowledge, as blocks that the tables may hold or not, until the tables are read. At which
 * index OpenSM puts a new entry is not known, and makes no difference to the level of the port.
 *
 * No file can change three things. OpenSM makes every port a limited member of the default partition: this is not judged, but the
 * knowledge has it. Any file gives an endport and its leaf port the same entries: where they differ now, the first file makes them
 * equal; the base is held from then on. And from a table that was never read OpenSM removes what no file gave it.
 *
 * Filters that are on stay on, except where a table has more entries than the leaf port can hold: there OpenSM turns the filter off
 * (and on again when the entries fit), which the rule must admit, too. Filters that OpenSM turns on by its own options
 * (part_enforce) are turned on at any sweep, with any file.
 */

#include "opensm/phases.h"

/* Holds the bases in which a phase is not admitted, and adds the writes of the rest to the knowledge, whose counts must be those of
 * the policy. hold_from: the phase from which on a base is held; earlier than `phase` if the files between them were not given to
 * OpenSM. Returns 0 or -ENOMEM (then the knowledge is unchanged); allocates in the arena. */
int opensm_admit(struct arena *a, struct opensm_phases *phases, enum opensm_phase phase, enum opensm_phase hold_from,
                 const struct subnet *subnet, struct knowledge *k);

/* Adds to the knowledge what a file with these tables (one for each transition) makes OpenSM write. Used to go back to the file
 * before one that OpenSM did not carry out. This breaks no promise whichever of the two each table holds, because the later file
 * was admitted. Returns 0 or -ENOMEM (then the knowledge is unchanged). */
int opensm_expect(const struct opensm_phases *phases, const struct partitions_file_port *tables, const struct subnet *subnet,
                  struct knowledge *k);

/* To be called when the tables were read after the last phase. OpenSM may still carry out writes of this file, or of an earlier one
 * in a base that was held since. Where a port lacks such a write, the tables of the port and its leaf port count as unknown and
 * must be read again (`failed`, by port). */
void opensm_doubt_open(const struct opensm_phases *phases, struct observed *seen, const struct knowledge *k, bool *failed);

/* To be called when the tables were read after a phase. Confirms in the knowledge those that are as in its file, and doubts those
 * that could not be read. */
void opensm_confirm(const struct opensm_phases *phases, enum opensm_phase phase, const struct observed *seen, struct knowledge *k);
