/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/nearest.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "util/macros.h"

static int folded(char c)
{
        return tolower((unsigned char) c);
}

static unsigned cell(const char *a, const char *b, size_t i, size_t j, unsigned (*rows)[NEAREST_MAX_LENGTH + 1])
{
        const unsigned *before = rows[(i + 1) % 3], *above = rows[(i + 2) % 3], *row = rows[i % 3];
        bool same = folded(a[i - 1]) == folded(b[j - 1]);
        unsigned d = MIN(above[j] + 1, row[j - 1] + 1);

        d = MIN(d, above[j - 1] + !same);
        if (i > 1 && j > 1 && folded(a[i - 1]) == folded(b[j - 2]) && folded(a[i - 2]) == folded(b[j - 1]))
                d = MIN(d, before[j - 2] + 1);
        return d;
}

unsigned edit_distance(const char *a, const char *b, unsigned limit)
{
        unsigned rows[3][NEAREST_MAX_LENGTH + 1] = {};
        size_t la = strnlen(a, NEAREST_MAX_LENGTH + 1), lb = strnlen(b, NEAREST_MAX_LENGTH + 1);

        if (la > NEAREST_MAX_LENGTH || lb > NEAREST_MAX_LENGTH || MAX(la, lb) - MIN(la, lb) > limit)
                return limit + 1;
        for (size_t j = 0; j <= lb; j++)
                rows[0][j] = (unsigned) j;
        for (size_t i = 1; i <= la; i++) {
                unsigned least = rows[i % 3][0] = (unsigned) i;

                for (size_t j = 1; j <= lb; j++) {
                        rows[i % 3][j] = cell(a, b, i, j, rows);
                        least = MIN(least, rows[i % 3][j]);
                }
                /* not at `limit` already, because a swap continues from the row before */
                if (least > limit + 1)
                        return limit + 1;
        }
        return MIN(rows[la % 3][lb], limit + 1);
}

/* A third of the letters may differ, at least one and at most three. */
void nearest_init(struct nearest *n, const char *text)
{
        size_t length = strlen(text);

        *n = (struct nearest) { .text = text, .limit = (unsigned) MIN(MAX(length / 3, (size_t) 1), (size_t) 3) };
}

void nearest_offer(struct nearest *n, const char *candidate)
{
        unsigned d = edit_distance(n->text, candidate, n->limit);

        /* a word without a letter in common is not near, however short it is */
        if (d > n->limit || d >= strlen(candidate) || d >= MAX(strlen(n->text), (size_t) 1) || (n->best && d == n->limit))
                return;
        n->best = candidate;
        n->limit = d;
}

const char *nearest_word(const char *text, const char *const *words, size_t n)
{
        struct nearest nearest;

        nearest_init(&nearest, text);
        for (size_t i = 0; i < n; i++)
                nearest_offer(&nearest, words[i]);
        return nearest.best;
}

const char *nearest_certain(const char *text, const char *const *words, size_t n)
{
        const char *best = nearest_word(text, words, n);
        unsigned limit = best ? edit_distance(text, best, NEAREST_MAX_LENGTH) + 1 : 0;

        for (size_t i = 0; best && i < n; i++)
                if (words[i] != best && edit_distance(text, words[i], limit) <= limit)
                        return NULL;
        return best;
}

const char *nearest_hint(struct arena *a, const char *text, const char *const *words, size_t n, const char *in_front,
                         const char *otherwise)
{
        const char *near = nearest_word(text, words, n);

        return near ? arena_printf(a, "did you mean '%s%s'?", in_front, near) : otherwise;
}
