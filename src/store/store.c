/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "store/store.h"

#include <errno.h>
#include <string.h>

#include "util/vector.h"

#define CHARACTER_FIRST '!'
#define CHARACTER_LAST  '~'

/* --- keys --------------------------------------------------------------------------------------------------------- */

static bool is_prefix(const char *s)
{
        size_t n = 0;

        while (n <= STORE_KEY_MAX && s[n] >= CHARACTER_FIRST && s[n] <= CHARACTER_LAST)
                n++;
        return n <= STORE_KEY_MAX && s[n] == '\0';
}

bool store_key_is_valid(const char *key)
{
        return key[0] != '\0' && is_prefix(key);
}

int store_prefix_end(const char *prefix, char ret_end[static STORE_KEY_MAX + 1])
{
        size_t n;

        if (!is_prefix(prefix))
                return -EINVAL;
        n = strlen(prefix);
        memcpy(ret_end, prefix, n + 1);
        /* The byte after the last character is in no key, so the end may have it. */
        if (n > 0)
                ret_end[n - 1]++;
        else
                memcpy(ret_end, (char[]) { CHARACTER_LAST + 1, '\0' }, 2);
        return 0;
}

/* --- transactions ------------------------------------------------------------------------------------------------- */

void store_transaction_init(struct store_transaction *t, struct arena *a)
{
        *t = (struct store_transaction) { .arena = a };
}

static void add(struct store_transaction *t, const char *key, const void *value, size_t n)
{
        struct store_op op = { .value = value, .n = n };

        op.key = arena_strdup(t->arena, key);
        if (!op.key || VECTOR_GROW(t->arena, t->ops, t->n, t->allocated) < 0)
                t->error = -ENOMEM;
        else
                t->ops[t->n++] = op;
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

void store_delete(struct store_transaction *t, const char *key)
{
        if (t->error)
                return;
        if (store_key_is_valid(key))
                add(t, key, NULL, 0);
        else
                t->error = -EINVAL;
}

int store_transaction_error(const struct store_transaction *t)
{
        return t->error;
}
