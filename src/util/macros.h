/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Macros and small functions that all folders use:
 *
 *     cleanup     a variable frees what it owns when it goes out of scope, unless the value was stolen
 *     words       of the values of an enum
 *     order       comparing, sorting, searching in sorted arrays
 *     digits
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define _cleanup_(f) __attribute__((cleanup(f)))

/* Returns the value of an owning variable, a pointer or a struct, and sets the variable to NULL or zeros. */
#define STEAL(p)                                                                                                       \
        ({                                                                                                             \
                __typeof__(p) *_p = &(p);                                                                              \
                __typeof__(p) _v = *_p;                                                                                \
                memset(_p, 0, sizeof(*_p));                                                                            \
                _v;                                                                                                    \
        })

#define DEFINE_CLEANUP(type, function)                                                                                 \
        static inline void function##_p(type *p) {                                                                     \
                if (*p)                                                                                                \
                        (void) function(*p);                                                                           \
        }

static inline void free_p(void *p)
{
        free(*(void **) p);
}
#define _cleanup_free_ _cleanup_(free_p)

#define ELEMENTS(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b)   ((a) < (b) ? (a) : (b))
#define MAX(a, b)   ((a) > (b) ? (a) : (b))

/* The word for an enum's value, from an array with one word for each value; `other` if the array has none. */
#define WORD(words, value, other) ((size_t) (value) < ELEMENTS(words) && (words)[value] ? (words)[value] : (other))

/* Defines a function that returns the word for a value, a static string, by a table of them. */
#define DEFINE_WORDS(function, type, other, ...)                                                                       \
        const char *function(type value) {                                                                             \
                static const char *const words[] = { __VA_ARGS__ };                                                    \
                return WORD(words, value, other);                                                                      \
        }

/* -1, 0 or 1 if a comes before b, is equal, or comes after it. For several criteria: ORDER(...) ?: ORDER(...). */
#define ORDER(a, b)                                                                                                    \
        ({                                                                                                             \
                __typeof__(a) _a = (a);                                                                                \
                __typeof__(b) _b = (b);                                                                                \
                (_a > _b) - (_a < _b);                                                                                 \
        })

/* Defines a comparison for qsort() and bsearch(); `order` is an expression about the pointers a and b. */
#define DEFINE_COMPARE(function, type, order)                                                                          \
        static int function(const void *left, const void *right) {                                                     \
                const type *a = left, *b = right;                                                                      \
                return order;                                                                                          \
        }

/* qsort() of n items; items may be NULL if n is 0. */
#define SORT(items, n, compare)                                                                                        \
        do {                                                                                                           \
                if ((n) > 1)                                                                                           \
                        qsort((items), (n), sizeof(*(items)), (compare));                                              \
        } while (0)

/* For qsort() and bsearch(). */
static inline int uint32_compare(const void *a, const void *b)
{
        return ORDER(*(const uint32_t *) a, *(const uint32_t *) b);
}

/* The index of the first of n sorted items for which is_before, an expression about the pointer `item`, is false; n: there is
 * none. */
#define LOWER_BOUND(item, items, n, is_before)                                                                         \
        ({                                                                                                             \
                __typeof__((n) + 0) _low = 0, _high = (n);                                                             \
                while (_low < _high) {                                                                                 \
                        __typeof__((n) + 0) _middle = _low + (_high - _low) / 2;                                       \
                        __typeof__(&*(items)) item = &(items)[_middle];                                                \
                        if (is_before)                                                                                 \
                                _low = _middle + 1;                                                                    \
                        else                                                                                           \
                                _high = _middle;                                                                       \
                }                                                                                                      \
                _low;                                                                                                  \
        })

/* The address of the one of n sorted items for which order is 0; NULL: there is none. order: an expression about the pointer
 * `item`, less than 0 for items before that one, and more than 0 for those after it. */
#define FIND_SORTED(item, items, n, order)                                                                             \
        ({                                                                                                             \
                size_t _at = LOWER_BOUND(item, items, n, (order) < 0);                                                 \
                __typeof__(&*(items)) item = _at < (n) ? &(items)[_at] : NULL;                                         \
                item && (order) == 0 ? item : NULL;                                                                    \
        })

/* The value of a hexadecimal digit in upper or lower case; 16: not a digit. */
static inline unsigned digit_value(char c)
{
        if (c >= '0' && c <= '9')
                return (unsigned) (c - '0');
        c |= 0x20;
        return c >= 'a' && c <= 'f' ? (unsigned) (c - 'a') + 10 : 16;
}
