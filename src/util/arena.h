/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * util/: what every stage needs and no library gives: arenas, findings, a hash index, members of JSON objects, texts
 * that grow, near words.
 *
 * An arena owns everything that was allocated from it and gives it back at once: one per policy generation, one per
 * observed fabric, one per plan. Nothing in an arena is freed on its own; pointers into an older arena may be held only
 * as long as a header says so ("borrows"). Allocation can fail and says so with NULL: running out of memory refuses a
 * policy or ends a pass, it never ends the daemon.
 *
 * This folder refuses to know InfiniBand.
 */

#include <stdarg.h>
#include <stddef.h>

#include "util/cleanup.h"

struct arena;

/* Returns owned, or NULL when memory is out. */
struct arena *arena_new(void);
/* Frees all that was allocated from it. Accepts NULL; returns NULL. */
struct arena *arena_free(struct arena *a);
DEFINE_CLEANUP(struct arena *, arena_free)
#define _cleanup_arena_ _cleanup_(arena_free_p)

/* Zeroed memory for n elements of `size` bytes, aligned for any type; NULL when memory is out or n * size overflows.
 * n == 0 gives a valid pointer. Belongs to the arena. a NULL: there was no memory for an arena, so there is none here, either;
 * likewise below. */
void *arena_alloc_array(struct arena *a, size_t n, size_t size);
#define arena_new_array(a, type, n) ((type *) arena_alloc_array((a), (n), sizeof(type)))
#define arena_new_object(a, type)   arena_new_array((a), type, 1)

/* A copy of the first n bytes of s with a NUL behind; NULL when memory is out. */
char *arena_strndup(struct arena *a, const char *s, size_t n);
char *arena_strdup(struct arena *a, const char *s);
/* With one printable character for each byte, NULs too, so that columns stay. */
char *arena_printable(struct arena *a, const char *bytes, size_t n);
char *arena_vprintf(struct arena *a, const char *format, va_list ap) __attribute__((format(printf, 2, 0)));
char *arena_printf(struct arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Bytes taken from the system so far. */
size_t arena_size(const struct arena *a);
