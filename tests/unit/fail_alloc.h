/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Makes one allocation fail: malloc, calloc, realloc, reallocarray, strdup, or an allocation in an arena. It applies to the
 * program that links with $(FAIL_ALLOC) (tests/local.mk), not to its libraries, and only between fail_alloc_enter() and
 * fail_alloc_leave(), which exclude the allocations of the test. pkeyd is unchanged: the linker interposes the functions.
 *
 * For one thread only.
 */

#include <stdbool.h>
#include <stdint.h>

/* The state; initially zero. */
struct fail_alloc_state {
        uint32_t left;     /* until one fails; 0: none fails */
        uint32_t depth;    /* of enter */
        uint32_t happened;
        uint32_t goes_on;  /* all later ones fail, too */
};

/* Uses this state from now on, which may be shared with another process. Borrowed. */
void fail_alloc_use(struct fail_alloc_state *state);

/* Makes the n-th from now (from 1) fail, and no other. 0: none. */
void fail_alloc_at(unsigned n);

/* Makes the n-th from now (from 1) and all later ones fail. */
void fail_alloc_from(unsigned n);

/* Has an allocation failed? */
bool fail_alloc_happened(void);

/* These can be nested. */
void fail_alloc_enter(void);
void fail_alloc_leave(void);
