/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "violations/phrase.h"

#include "util/macros.h"

struct phrase phrase_number(uint64_t n)
{
        struct phrase ret;
        char digits[24];
        int length = snprintf(digits, sizeof(digits), "%" PRIu64, n);
        size_t k = 0;

        for (int i = 0; i < length; i++) {
                if (i > 0 && (length - i) % 3 == 0)
                        ret.text[k++] = ',';
                ret.text[k++] = digits[i];
        }
        ret.text[k] = '\0';
        return ret;
}

struct phrase phrase_count(uint64_t n, const char *one, const char *many)
{
        struct phrase ret;

        (void) snprintf(ret.text, sizeof(ret.text), "%.32s %s", phrase_number(n).text, n == 1 ? one : many);
        return ret;
}

struct phrase phrase_duration(usec_t duration)
{
        static const struct {
                usec_t unit;
                const char *one, *many;
        } units[] = {
                { 86400 * USEC_PER_SEC, "day", "days" },
                { 3600 * USEC_PER_SEC, "hour", "hours" },
                { 60 * USEC_PER_SEC, "minute", "minutes" },
                { USEC_PER_SEC, "second", "seconds" },
        };

        for (size_t i = 0; i < ELEMENTS(units); i++) {
                usec_t n = duration / units[i].unit;

                if (n >= 2 || (n == 1 && i == ELEMENTS(units) - 1))
                        return phrase_count(n + (duration % units[i].unit >= units[i].unit / 2), units[i].one, units[i].many);
        }
        return (struct phrase) { "a moment" };
}
