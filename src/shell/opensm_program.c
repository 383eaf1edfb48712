/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "shell/opensm_program.h"

#include <errno.h>

#include "shell/file.h"

/* Where distributions, a build from source, and UFM install it. */
static const char *const programs[] = { "/usr/sbin/opensm", "/usr/local/sbin/opensm", "/opt/ufm/opensm/sbin/opensm" };

enum opensm_numbers opensm_program_numbers(void)
{
        enum opensm_numbers numbers = OPENSM_NUMBERS_UNKNOWN;
        bool found = false;

        for (size_t i = 0; i < ELEMENTS(programs); i++) {
                _cleanup_arena_ struct arena *a = arena_new();
                const char *bytes;
                enum opensm_numbers these;
                size_t n;
                int r = a ? file_read(a, programs[i], OPENSM_PROGRAM_MAX_SIZE, &bytes, &n) : -ENOMEM;

                if (r == -ENOENT || r == -ENOTDIR)
                        continue;
                these = r < 0 ? OPENSM_NUMBERS_UNKNOWN : opensm_numbers_of_program(bytes, n);
                if (these == OPENSM_NUMBERS_UNKNOWN || (found && these != numbers))
                        return OPENSM_NUMBERS_UNKNOWN;
                numbers = these;
                found = true;
        }
        return numbers;
}
