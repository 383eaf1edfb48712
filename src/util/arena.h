/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * util/: helpers for all folders that no library offers: arenas, arrays that grow, findings, a hash index, members of JSON objects,
 * YAML files with the place of each value, texts to build and to take apart, the search for similar words, durations, base64.
 *
 * An arena owns everything that is allocated from it and frees it at once: there is one for each generation, snapshot and plan.
 * Nothing in an arena is freed on its own. A pointer into another arena may be kept only as the header of its module allows
 * ("borrows"). Allocation returns NULL on failure: running out of memory refuses a policy or ends a sweep, but never ends the
 * daemon.
 *
 * This folder knows nothing about InfiniBand.
 */

#include <stdarg.h>
#include <stddef.h>

#include "util/macros.h"

struct arena;

/* Returns owned, or NULL if out of memory. */
struct arena *arena_new(void);
/* Frees the arena with everything in it. Accepts NULL; returns NULL. */
struct arena *arena_free(struct arena *a);
DEFINE_CLEANUP(struct arena *, arena_free)
#define _cleanup_arena_ _cleanup_(arena_free_p)

/* Returns zeroed memory for n elements of `size` bytes, aligned for any type; NULL if out of memory or if n * size overflows.
 * With n == 0 it returns a valid pointer. All functions that allocate return NULL if the arena is NULL, as after a failed
 * arena_new(). */
void *arena_alloc_array(struct arena *a, size_t n, size_t size);
#define arena_new_array(a, type, n) ((type *) arena_alloc_array((a), (n), sizeof(type)))
#define arena_new_object(a, type)   arena_new_array((a), type, 1)
/* A copy of n items; NULL is accepted if n is 0. */
void *arena_copy_array(struct arena *a, const void *items, size_t n, size_t size);
#define arena_copy(a, items, n) arena_copy_array((a), (items), (n), sizeof(*(items)))

/* A copy of at most n bytes of s, up to its first NUL, with a NUL at the end. NULL if out of memory, as below. */
char *arena_strndup(struct arena *a, const char *s, size_t n);
char *arena_strdup(struct arena *a, const char *s);
/* A copy of n bytes with one printable character for each byte, NUL bytes included, so that columns are kept. */
char *arena_printable(struct arena *a, const char *bytes, size_t n);
char *arena_vprintf(struct arena *a, const char *format, va_list ap) __attribute__((format(printf, 2, 0)));
char *arena_printf(struct arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The number of bytes that the arena has allocated from the system. */
size_t arena_size(const struct arena *a);
