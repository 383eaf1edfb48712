/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "store/store.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "util/json.h"
#include "util/vector.h"

#define CHARACTER_FIRST '!'
#define CHARACTER_LAST  '~'

/* --- keys --------------------------------------------------------------------------------------------------------- */

struct store_key store_key(const char *format, ...)
{
        struct store_key key;
        va_list ap;
        int n;

        va_start(ap, format);
        n = vsnprintf(key.text, sizeof(key.text), format, ap);
        va_end(ap);
        assert(n > 0 && n <= STORE_KEY_MAX);
        return key;
}

bool store_key_is_valid(const char *key)
{
        size_t n = 0;

        while (n <= STORE_KEY_MAX && key[n] >= CHARACTER_FIRST && key[n] <= CHARACTER_LAST)
                n++;
        return n >= 1 && n <= STORE_KEY_MAX && key[n] == '\0';
}

/* --- transactions ------------------------------------------------------------------------------------------------- */

void store_transaction_init(struct store_transaction *t, struct arena *a)
{
        *t = (struct store_transaction) { .arena = a };
}

static void add(struct store_transaction *t, const char *key, const void *value, size_t n)
{
        const char *copy = arena_strdup(t->arena, key);

        if (!copy || VECTOR_ADD(t->arena, t->ops, t->n, t->allocated, (struct store_op) { copy, value, n }) < 0)
                t->error = -ENOMEM;
}

void store_put(struct store_transaction *t, const char *key, const void *value, size_t n)
{
        void *copy;

        if (t->error)
                return;
        if (!store_key_is_valid(key) || n > STORE_VALUE_MAX) {
                t->error = n > STORE_VALUE_MAX ? -EFBIG : -EINVAL;
                return;
        }
        copy = arena_alloc_array(t->arena, n, 1);
        if (!copy) {
                t->error = -ENOMEM;
                return;
        }
        if (n > 0)
                memcpy(copy, value, n);
        add(t, key, copy, n);
}

void store_put_json(struct store_transaction *t, const char *key, json_t *object)
{
        _cleanup_json_ json_t *value = object;
        _cleanup_free_ char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;

        if (text)
                store_put(t, key, text, strlen(text));
        else
                t->error = t->error ?: -ENOMEM;
}

void store_delete(struct store_transaction *t, const char *key)
{
        if (t->error)
                return;
        if (store_key_is_valid(key))
                add(t, key, NULL, 0);
        else
                t->error = -EINVAL;
}

/* --- stores --------------------------------------------------------------------------------------------------------- */

static int stop_at_first(void *, const char *, const void *, size_t)
{
        return 1;
}

int store_is_empty(struct store *s)
{
        int r = store_load(s, stop_at_first, NULL);

        return r < 0 ? r : !r;
}
