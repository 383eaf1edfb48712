/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "records/record_json.h"

#include <errno.h>
#include <string.h>

void record_put_object(struct store_transaction *t, const char *key, json_t *object)
{
        _cleanup_free_ char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;

        json_decref(object);
        if (text)
                store_put(t, key, text, strlen(text));
        else
                t->error = t->error ?: -ENOMEM;
}

json_t *record_guid(struct guid guid)
{
        return json_sprintf("0x%016" PRIx64, guid.v);
}
