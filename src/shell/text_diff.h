/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Two texts as a unified diff, by diff(1) of diffutils. */

#include <stddef.h>

#include "util/arena.h"

#define TEXT_DIFF_MAX ((size_t) 8 << 20) /* bytes of a diff */

struct text_version {
        const char *label; /* in the first lines of the diff */
        const char *bytes;
        size_t n;
};

/* *ret lives in the arena, has a NUL after its last byte, and contains their bytes as they are; it is empty if both are equal.
 * Returns 0, -ENOENT (diff is not installed), -EFBIG (the diff is larger than TEXT_DIFF_MAX), -EIO (diff failed), -ENOMEM, or
 * another negative errno. */
int text_diff(struct arena *a, const struct text_version *before, const struct text_version *after, const char **ret,
              size_t *ret_n);
