/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/scan.h"

#include <string.h>

#include "util/macros.h"

bool scan_blanks(struct scan *s)
{
        const char *start = s->p;

        while (s->p < s->end && (*s->p == ' ' || *s->p == '\t'))
                s->p++;
        return s->p > start;
}

bool scan_char(struct scan *s, char c)
{
        bool is_next = s->p < s->end && *s->p == c;

        s->p += is_next;
        return is_next;
}

bool scan_word(struct scan *s, const char *word)
{
        size_t n = strlen(word);
        bool is_next = (size_t) (s->end - s->p) >= n && memcmp(s->p, word, n) == 0;

        s->p += is_next ? n : 0;
        return is_next;
}

bool scan_number(struct scan *s, unsigned base, uint64_t max, uint64_t *ret)
{
        const char *p = s->p;
        uint64_t v = 0;

        for (; p < s->end && digit_value(*p) < base; p++) {
                uint64_t d = digit_value(*p);

                if (d > max || v > (max - d) / base)
                        return false;
                v = v * base + d;
        }
        if (p == s->p)
                return false;
        s->p = p;
        *ret = v;
        return true;
}

bool scan_line(struct scan *s, struct scan *ret)
{
        const char *newline = s->p < s->end ? memchr(s->p, '\n', (size_t) (s->end - s->p)) : NULL;

        if (s->p == s->end)
                return false;
        *ret = (struct scan) { s->p, newline ?: s->end };
        s->p = newline ? newline + 1 : s->end;
        return true;
}
