/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/vector.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

int vector_reserve(struct arena *a, void *items, size_t item_size, size_t n, size_t *allocated, size_t wanted)
{
        void *old, *larger;

        assert(n <= *allocated);
        if (wanted <= *allocated)
                return 0;
        if (wanted > (size_t) INT32_MAX + 1)
                return -ENOMEM;
        memcpy(&old, items, sizeof(old));
        larger = a ? arena_alloc_array(a, wanted, item_size) : reallocarray(old, wanted, item_size);
        if (!larger)
                return -ENOMEM;
        if (a && n > 0)
                memcpy(larger, old, n * item_size);
        memcpy(items, &larger, sizeof(larger));
        *allocated = wanted;
        return 0;
}
