/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Values of records as compact JSON. Private to records/. */

#include "ib/types.h"
#include "store/store.h"
#include "util/json.h"

/* Takes the object; NULL: out of memory. */
void record_put_object(struct store_transaction *t, const char *key, json_t *object);
/* "0x0002c90300800001" */
json_t *record_guid(struct guid guid);
