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
#include <stdint.h>

/* As it stands; all zero at first. */
struct fail_alloc_state {
        uint32_t left;     /* until one fails; 0: none does */
        uint32_t depth;    /* of enter */
        uint32_t happened;
        uint32_t goes_on;  /* all behind it fail, too */
};

/* From now on the state is this one, as in memory that another process has, too. Borrowed. */
void fail_alloc_use(struct fail_alloc_state *state);

/* The n-th from now (from 1) fails, all others do not. 0: none. */
void fail_alloc_at(unsigned n);

/* The n-th from now (from 1) and all behind it. */
void fail_alloc_from(unsigned n);

/* Did it come to that? */
bool fail_alloc_happened(void);

/* They nest. */
void fail_alloc_enter(void);
void fail_alloc_leave(void);
