/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Which endport has a LID: a port with LMC n answers to 2^n of them. LIDs of a snapshot are as hostile as the rest. */

#include "violations/violations.h"

/* More than one endport claims it. */
#define LID_SEVERAL (UINT32_MAX - 1)

struct lid_map;

/* Returns 0 or -ENOMEM. Lives in the arena, does not need the subnet any more. */
int lid_map_new(struct arena *a, const struct subnet *s, struct lid_map **ret);
/* The endport (an index into s->ports), SUBNET_NONE, or LID_SEVERAL. */
uint32_t lid_map_find(const struct lid_map *m, struct lid lid);

/* The port that a notice is about: of 259 the switch port that refused the packet, else the endport that did. What nobody knows
 * is counted all the same, at a port that is none (node GUID 0). Both may be NULL: nothing is known of the fabric. */
struct violation_port violation_port_of_notice(const struct subnet *subnet, const struct lid_map *lids,
                                               const struct notice *notice);

/* Who sent that packet, and to whom (ends.c). Both may be NULL likewise. Strings live in the arena. 0 or -ENOMEM. */
int violation_ends_of_notice(struct arena *a, const struct subnet *subnet, const struct lid_map *lids,
                             const struct notice *notice, struct violation_ends *ret);
