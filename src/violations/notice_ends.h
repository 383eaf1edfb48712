/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Who took part in what a notice reports, by the LIDs and GIDs in it. LIDs of a snapshot are untrusted, like all of it. */

#include "violations/violations.h"

/* More than one endport claims the LID. */
#define LID_SEVERAL (UINT32_MAX - 1)

struct lid_map;
/* Which endport has a LID: a port with LMC n has 2^n of them. It lives in the arena and does not need the subnet; NULL: out of
 * memory. */
struct lid_map *lid_map_new(struct arena *a, const struct subnet *s);
/* The endport (an index into s->ports), SUBNET_NONE, or LID_SEVERAL. */
uint32_t lid_map_find(const struct lid_map *m, struct lid lid);

static inline bool lid_is_multicast(struct lid lid)
{
        return lid.v > LID_MAX_UNICAST && lid.v != UINT16_MAX; /* which is the permissive LID */
}

/* The port that refused the packet of a notice: for 259 a switch port, else an endport; node GUID 0 if it is not known. subnet and
 * lids may be NULL: nothing is known of the fabric. */
struct violation_port violation_port_of_notice(const struct subnet *subnet, const struct lid_map *lids,
                                               const struct notice *notice);

/* The sender and the receiver of that packet. subnet and lids may be NULL, as above. Strings live in the arena. 0 or -ENOMEM. */
int violation_ends_of_notice(struct arena *a, const struct subnet *subnet, const struct lid_map *lids,
                             const struct notice *notice, struct violation_ends *ret);
