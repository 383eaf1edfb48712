/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Who took part in what a notice reports, by the LIDs and GIDs in it. */

#include "violations/lids.h"

/* The port that refused the packet of a notice: for 259 a switch port, else an endport; node GUID 0 if it is not known. subnet and
 * lids may be NULL: nothing is known of the fabric. */
struct violation_port violation_port_of_notice(const struct subnet *subnet, const struct lid_map *lids,
                                               const struct notice *notice);

/* The sender and the receiver of that packet. subnet and lids may be NULL, as above. Strings live in the arena. 0 or -ENOMEM. */
int violation_ends_of_notice(struct arena *a, const struct subnet *subnet, const struct lid_map *lids,
                             const struct notice *notice, struct violation_ends *ret);
