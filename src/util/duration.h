/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A duration as a person writes it: a whole number of up to ten digits, and a unit, as in 500ms, 60s, 5m, 1h. */

#include <stdint.h>

#define DURATION_HINT "write a whole number and a unit, as in 500ms, 60s, 5m, 1h"

/* Returns NULL and sets *ret, in microseconds (UINT64_MAX: more than that holds); or what is wrong with the text, a clause. */
const char *duration_problem(const char *text, uint64_t *ret);
