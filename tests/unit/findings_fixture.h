/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* An arena and findings for each test. */

#include <check.h>

#include "util/findings.h"

static struct arena *arena;
static struct findings findings;

static void setup(void)
{
        arena = arena_new();
        ck_assert_ptr_nonnull(arena);
        findings = (struct findings) { .arena = arena };
}

static void teardown(void)
{
        findings_done(&findings);
        arena_free(arena);
}
