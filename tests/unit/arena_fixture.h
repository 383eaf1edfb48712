/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* An arena for each test. */

#include <check.h>

#include "util/arena.h"

static struct arena *arena;

static void setup(void)
{
        arena = arena_new();
        ck_assert_ptr_nonnull(arena);
}

static void teardown(void)
{
        arena_free(arena);
}
