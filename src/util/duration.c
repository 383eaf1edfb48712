/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/duration.h"

#include <stdlib.h>
#include <string.h>

#include "util/macros.h"

const char *duration_problem(const char *text, uint64_t *ret)
{
        static const struct {
                const char *name;
                uint64_t usec;
        } units[] = {
                { "ms", UINT64_C(1000) }, { "s", UINT64_C(1000000) }, { "m", UINT64_C(60000000) }, { "h", UINT64_C(3600000000) },
        };
        size_t digits = strspn(text, "0123456789");
        const char *unit = text + digits;
        uint64_t v;

        if (digits == 0 || digits > 10)
                return "is not a duration";
        v = strtoull(text, NULL, 10);
        for (size_t i = 0; i < ELEMENTS(units); i++)
                if (strcmp(unit, units[i].name) == 0) {
                        *ret = v > UINT64_MAX / units[i].usec ? UINT64_MAX : v * units[i].usec;
                        return NULL;
                }
        return *unit ? "has an unknown unit" : "has no unit";
}
