/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "subnet/subnet.h"

/* Invariants of every snapshot that discovery makes. Returns the one that is broken; NULL: none. */
const char *snapshot_rules_broken(const struct subnet *s);
