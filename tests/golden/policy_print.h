/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "policy/policy.h"

/* The normal form of a policy as YAML: parsing it gives an equal policy. Allocated from a; NULL: out of memory. */
const char *policy_print(struct arena *a, const struct policy *policy);
