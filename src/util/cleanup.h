/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Scope-bound ownership: what a variable owns is given back when it goes out of scope, unless it was stolen. */

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(f) __attribute__((cleanup(f)))

/* Takes the value out of an owning variable. */
#define STEAL(p)                                                                                                       \
        ({                                                                                                             \
                __typeof__(p) *_p = &(p);                                                                              \
                __typeof__(p) _v = *_p;                                                                                \
                *_p = NULL;                                                                                            \
                _v;                                                                                                    \
        })

#define DEFINE_CLEANUP(type, function)                                                                                 \
        static inline void function##_p(type *p) {                                                                     \
                if (*p)                                                                                                \
                        (void) function(*p);                                                                           \
        }

static inline void free_p(void *p) {
        free(*(void **) p);
}
#define _cleanup_free_ _cleanup_(free_p)

#define ELEMENTS(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b)   ((a) < (b) ? (a) : (b))
#define MAX(a, b)   ((a) > (b) ? (a) : (b))
