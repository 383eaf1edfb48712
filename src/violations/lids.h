/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Which endport has a LID: a port with LMC n has 2^n of them. LIDs of a snapshot are untrusted, like all of it. */

#include "violations/violations.h"

/* More than one endport claims it. */
#define LID_SEVERAL (UINT32_MAX - 1)

struct lid_map;

/* It lives in the arena and does not need the subnet; NULL: out of memory. */
struct lid_map *lid_map_new(struct arena *a, const struct subnet *s);
/* The endport (an index into s->ports), SUBNET_NONE, or LID_SEVERAL. */
uint32_t lid_map_find(const struct lid_map *m, struct lid lid);
