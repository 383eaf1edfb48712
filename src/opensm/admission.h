/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What of a partition file OpenSM may be given.
 *
 * A file makes OpenSM write to tables: to that of each endport, and to that of the switch port beside it where the switch can
 * filter. When, and in which order, is OpenSM's matter, and some of the writes may fail. So each of them has to be admitted by the
 * rule (knowledge/rule.h) while each of the others was carried out or not. A base in which one is not admitted is held: in this
 * file and in all later ones each port has it as before.
 *
 * What is given to OpenSM is in the knowledge from then on, as blocks that may be there or not, until the tables were read. At
 * which index OpenSM puts a new entry is not known, and makes no difference to the level of the port.
 *
 * Three things are as they are whatever a file says. OpenSM makes every port a limited member of the default partition; that is not
 * judged, but known. Any file gives a host and the switch port before it the same entries: where they differ now, the first file
 * cannot leave them so; the base is held from then on. And from a table that was never read OpenSM takes what no file gave it.
 *
 * Filters: those that are on stay on, but where a table has more entries than the switch port can hold; there OpenSM turns them
 * off (and on again when the entries fit), which has to be admitted, too. What OpenSM turns on by options of its own
 * (part_enforce) it does at any sweep, whatever file it is given.
 */

#include "opensm/phases.h"

/* Holds what of a phase is not admitted, and puts the rest into the knowledge (whose counts are those of the policy). hold_from:
 * the phase from which on a base is held; earlier than `phase` where OpenSM is not given the files between them. Returns 0 or
 * -ENOMEM (then nothing is in the knowledge); in the arena. */
int opensm_admit(struct arena *a, struct opensm_phases *phases, enum opensm_phase phase, enum opensm_phase hold_from,
                 const struct subnet *subnet, struct knowledge *k);

/* Puts what a file with these tables (one for each transition) makes OpenSM write into the knowledge. For the file before the
 * one that OpenSM did not carry out: whichever of both each table holds, no promise is broken, because the later one was
 * admitted. Returns 0 or -ENOMEM (likewise). */
int opensm_expect(const struct opensm_phases *phases, const struct partitions_file_port *tables, const struct subnet *subnet,
                  struct knowledge *k);

/* The tables were read after the last phase. What the file says may come yet, also what an earlier one said of a base that is held
 * since: of a port where it did not, and of the switch port before it, what was read is not what is known; they are to be read
 * again (`failed`). */
void opensm_doubt_open(const struct opensm_phases *phases, struct observed *seen, const struct knowledge *k, bool *failed);

/* The tables were read after a phase: those that are as its file has them are certain, those that could not be read are not. */
void opensm_confirm(const struct opensm_phases *phases, enum opensm_phase phase, const struct observed *seen, struct knowledge *k);
