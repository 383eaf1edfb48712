/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Lets one allocation fail: of malloc, calloc, realloc, reallocarray, strdup, and of what an arena gives. Of the program that
 * links with $(FAIL_ALLOC) (tests/local.mk), not of its libraries, and only between fail_alloc_enter() and fail_alloc_leave(), so
 * that the test's own do not count. Nothing in pkeyd knows of it: the linker puts it between.
 *
 * One thread.
 */

#include <stdbool.h>

/* The n-th from now (from 1) fails, all others do not. 0: none. */
void fail_alloc_at(unsigned n);

/* The n-th from now (from 1) and all behind it. */
void fail_alloc_from(unsigned n);

/* Did it come to that? */
bool fail_alloc_happened(void);

/* They nest. */
void fail_alloc_enter(void);
void fail_alloc_leave(void);
