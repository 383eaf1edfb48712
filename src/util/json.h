/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Members of JSON objects as pkeyd stores them: each is there, of its type and in its range, or the whole is refused. */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/cleanup.h"

static inline void json_decref_p(json_t **j)
{
        json_decref(*j);
}
#define _cleanup_json_ _cleanup_(json_decref_p)

/* A whole number from min to max. False: it is none, or absent. */
bool json_member_number(const json_t *object, const char *name, json_int_t min, json_int_t max, json_int_t *ret);
/* "0x" with 1 to 16 digits 0 to 9 and a to f. */
bool json_member_hex(const json_t *object, const char *name, uint64_t max, uint64_t *ret);
