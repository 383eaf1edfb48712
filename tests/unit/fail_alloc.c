/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fail_alloc.h"

#include <errno.h>
#include <stddef.h>

#include "util/arena.h"

static unsigned left; /* until one fails */
static unsigned depth;
static bool happened, goes_on;

void fail_alloc_at(unsigned n)
{
        left = n;
        happened = goes_on = false;
}

void fail_alloc_from(unsigned n)
{
        fail_alloc_at(n);
        goes_on = true;
}

bool fail_alloc_happened(void)
{
        return happened;
}

void fail_alloc_enter(void)
{
        depth++;
}

void fail_alloc_leave(void)
{
        depth--;
}

static bool fails(void)
{
        if (depth == 0 || left == 0 || --left > 0)
                return false;
        left = goes_on;
        happened = true;
        errno = ENOMEM;
        return true;
}

/* The linker's names for what is called and for what stands behind it (ld --wrap). */
#define WRAP(type, name, parameters, arguments)      \
        type __real_##name parameters;               \
        type __wrap_##name parameters;               \
        type __wrap_##name parameters                \
        {                                            \
                return fails() ? NULL : __real_##name arguments; \
        }

WRAP(void *, malloc, (size_t size), (size))
WRAP(void *, calloc, (size_t n, size_t size), (n, size))
WRAP(void *, realloc, (void *p, size_t size), (p, size))
WRAP(void *, reallocarray, (void *p, size_t n, size_t size), (p, n, size))
WRAP(char *, strdup, (const char *text), (text))
WRAP(void *, arena_alloc_array, (struct arena *a, size_t n, size_t size), (a, n, size))
