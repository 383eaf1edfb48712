/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Makes JSON arrays and texts that JSON accepts, and reads members of JSON objects that pkeyd stored. The caller refuses the object
 * if a member is absent, of another type, or out of range. */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/macros.h"

static inline void json_decref_p(json_t **j)
{
        json_decref(*j);
}
#define _cleanup_json_ _cleanup_(json_decref_p)

/* A new array: for each i below n for which the condition holds the value of `item`, an expression with i. NULL: out of memory. */
#define JSON_ARRAY_IF(i, n, condition, item)                                                                           \
        ({                                                                                                             \
                _cleanup_json_ json_t *_array = json_array();                                                          \
                for (size_t i = 0; _array && i < (n); i++)                                                             \
                        if ((condition) && json_array_append_new(_array, (item)) < 0)                                  \
                                json_decref(STEAL(_array));                                                            \
                STEAL(_array);                                                                                         \
        })
#define JSON_ARRAY(i, n, item) JSON_ARRAY_IF(i, n, true, item)

/* Reads an integer from min to max. Returns false if there is none. */
bool json_member_number(const json_t *object, const char *name, json_int_t min, json_int_t max, json_int_t *ret);
/* Reads a string of "0x" and 1 to 16 digits 0 to 9 and a to f, up to max. Returns false if there is none. */
bool json_member_hex(const json_t *object, const char *name, uint64_t max, uint64_t *ret);
/* A copy of the text; if it is not UTF-8, with each byte that is not ASCII as \xNN. Owned; NULL: out of memory. */
char *json_make_utf8(const char *text);
