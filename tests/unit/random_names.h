/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Random names and hostlists, made of few different parts, so that they often match or have the same beginning. */

#include <stdio.h>
#include <string.h>

#include "../fabsim/prng.h"
#include "policy/hostlist.h"

#define RANDOM_NAME_SIZE     32  /* more than random_name writes */
#define RANDOM_HOSTLIST_SIZE 256 /* more than random_hostlist_text writes */

static inline unsigned random_parts(struct prng *p)
{
        return (unsigned[]) { 1, 2, 2, 2, 2, 3, 3, 4 }[prng_below(p, 8)];
}

/* Words with the same beginning, and some that sort before or after all digits. */
static inline const char *random_word(struct prng *p)
{
        static const char *const words[] = { "n", "n", "n", "node", "r", "-", "x" };

        return words[prng_below(p, sizeof(words) / sizeof(words[0]))];
}

/* 1 to 3 digits, often small, with and without leading zeros. */
static inline unsigned random_number(struct prng *p, int *ret_width)
{
        static const unsigned limits[] = { 10, 30, 120 };
        unsigned v = prng_below(p, limits[prng_below(p, 3)]);

        *ret_width = (int) prng_between(p, 1, 3);
        return v;
}

/* Up to four parts: words, numbers, and sometimes a byte that no literal of a hostlist can have. */
static inline void random_name(struct prng *p, char ret[RANDOM_NAME_SIZE])
{
        static const char *const odd[] = { "\x07", "\\", "!", "~", "\xc3" };
        unsigned parts = random_parts(p), i;
        size_t used = 0;
        int width;

        for (i = 0; i < parts; i++) {
                if (prng_permille(p, 30))
                        used += (size_t) sprintf(ret + used, "%s", odd[prng_below(p, 5)]);
                else if ((i + prng_below(p, 5)) % 2 == 0)
                        used += (size_t) sprintf(ret + used, "%s", random_word(p));
                else {
                        unsigned v = random_number(p, &width);

                        used += (size_t) sprintf(ret + used, "%0*u", width, v);
                }
        }
}

static inline size_t random_brackets(struct prng *p, char *ret)
{
        unsigned n = prng_between(p, 1, 3), i;
        size_t used = (size_t) sprintf(ret, "[");
        int width;

        for (i = 0; i < n; i++) {
                unsigned v = random_number(p, &width);

                used += (size_t) sprintf(ret + used, "%s%0*u", i ? "," : "", width, v);
                if (prng_permille(p, 700))
                        used += (size_t) sprintf(ret + used, "-%0*u", width,
                                                 v + prng_below(p, prng_permille(p, 100) ? 99999999 : 40));
        }
        return used + (size_t) sprintf(ret + used, "]");
}

/* Up to four parts; some of these texts are refused as hostlists. */
static inline void random_hostlist_text(struct prng *p, char ret[RANDOM_HOSTLIST_SIZE])
{
        unsigned parts = random_parts(p), i;
        size_t used = 0;
        int width;

        for (i = 0; i < parts; i++) {
                unsigned kind = prng_below(p, 20);

                if (kind == 0)
                        used += (size_t) sprintf(ret + used, "*");
                else if (kind == 1)
                        used += (size_t) sprintf(ret + used, "?");
                else if (kind == 2) {
                        unsigned v = random_number(p, &width);

                        used += (size_t) sprintf(ret + used, "%0*u", width, v);
                } else if ((i + kind % 5) % 2 == 0)
                        used += (size_t) sprintf(ret + used, "%s", random_word(p));
                else
                        used += random_brackets(p, ret + used);
        }
}

/* The next text that is a hostlist. */
static inline struct hostlist *random_hostlist(struct prng *p, struct arena *a)
{
        char text[RANDOM_HOSTLIST_SIZE];
        struct hostlist_error error = {};
        struct hostlist *h = NULL;

        do
                random_hostlist_text(p, text);
        while (hostlist_parse(a, text, strlen(text), &error, &h) != 0);
        return h;
}
