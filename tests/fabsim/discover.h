/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "sim.h"

/* The picture of the fabric as it is now, and its census. 0 or negative. */
int sim_discover(struct sim *s, struct arena *a, struct subnet **ret);
