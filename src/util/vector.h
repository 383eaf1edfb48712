/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Arrays that grow. They live in an arena, which also keeps the outgrown arrays, or are malloc'ed (arena NULL) and freed by their
 * owner. Sizes double, so that all outgrown arrays together are at most as large as the last one. */

#include <stdint.h>

#include "util/arena.h"

/* Makes room for `wanted` items, at most 2^31, in an array of which n of *allocated items are used. items: the address of the
 * pointer to the array. Returns 0, or -ENOMEM without a change. */
int vector_reserve(struct arena *a, void *items, size_t item_size, size_t n, size_t *allocated, size_t wanted);

/* Make room for `wanted` items; for n + `more` items; for n + 1 items. They evaluate to 0 or -ENOMEM. */
#define VECTOR_RESERVE(arena, items, n, allocated, wanted)                                                             \
        ({                                                                                                             \
                size_t _size = (allocated);                                                                            \
                int _r = vector_reserve((arena), &(items), sizeof(*(items)), (n), &_size, (wanted));                   \
                (allocated) = (__typeof__(allocated)) _size;                                                           \
                _r;                                                                                                    \
        })
#define VECTOR_EXTEND(arena, items, n, allocated, more)                                                                \
        ({                                                                                                             \
                size_t _wanted = (size_t) (n) + (more);                                                                \
                if (_wanted > (allocated))                                                                             \
                        _wanted = MAX(_wanted, MAX((size_t) (allocated) * 2, (size_t) 64));                            \
                VECTOR_RESERVE(arena, items, n, allocated, _wanted);                                                   \
        })
#define VECTOR_GROW(arena, items, n, allocated) VECTOR_EXTEND(arena, items, n, allocated, 1)

/* Append an item; insert one at an index. They evaluate to 0 or -ENOMEM. */
#define VECTOR_ADD(arena, items, n, allocated, ...)                                                                    \
        ({                                                                                                             \
                int _added = VECTOR_GROW(arena, items, n, allocated);                                                  \
                if (_added == 0)                                                                                       \
                        (items)[(n)++] = (__VA_ARGS__);                                                                \
                _added;                                                                                                \
        })
#define VECTOR_INSERT(arena, items, n, allocated, at, ...)                                                             \
        ({                                                                                                             \
                int _added = VECTOR_GROW(arena, items, n, allocated);                                                  \
                if (_added == 0) {                                                                                     \
                        memmove(&(items)[(at) + 1], &(items)[at], ((n)++ - (at)) * sizeof(*(items)));                  \
                        (items)[at] = (__VA_ARGS__);                                                                   \
                }                                                                                                      \
                _added;                                                                                                \
        })
