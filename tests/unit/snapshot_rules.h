/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "subnet/subnet.h"

/* Checks the invariants of a snapshot by discovery. Returns the violated one; NULL: none. */
const char *snapshot_rules_broken(const struct subnet *s);
