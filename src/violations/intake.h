/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* From what was found to the book: looks of a poll, in the order in which they happened, and the port that a notice is
 * about. */

#include "violations/lids.h"
#include "violations/poll.h"

/* All that waits; of counters at their maximum the poll is told. */
void violations_take_samples(struct violations *book, usec_t now, struct violation_poll *poll);

/* Of 259 the switch port that refused the packet, else the endport that did. What nobody knows is counted all the same, at
 * a port that is none (node GUID 0). Both may be NULL: nothing is known of the fabric. */
struct violation_port violation_port_of_notice(const struct subnet *subnet, const struct lid_map *lids,
                                               const struct notice *notice);
