/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fail_alloc.h"

#include <errno.h>
#include <stddef.h>

#include "util/arena.h"

static struct fail_alloc_state own, *now = &own;

void fail_alloc_use(struct fail_alloc_state *state)
{
        now = state;
}

void fail_alloc_at(unsigned n)
{
        now->left = n;
        now->happened = now->goes_on = false;
}

void fail_alloc_from(unsigned n)
{
        fail_alloc_at(n);
        now->goes_on = true;
}

bool fail_alloc_happened(void)
{
        return now->happened;
}

void fail_alloc_enter(void)
{
        now->depth++;
}

void fail_alloc_leave(void)
{
        now->depth--;
}

static bool fails(void)
{
        if (now->depth == 0 || now->left == 0 || --now->left > 0)
                return false;
        now->left = now->goes_on;
        now->happened = true;
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
