/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/text.h"

#include <limits.h>
#include <string.h>

#include "util/vector.h"

void text_done(struct text *t)
{
        free(t->bytes);
        *t = (struct text) {};
}

static bool reserve(struct text *t, size_t n)
{
        /* one more for the NUL */
        t->failed = t->failed || VECTOR_EXTEND(NULL, t->bytes, t->n, t->allocated, n + 1) < 0;
        return !t->failed;
}

void text_add_n(struct text *t, const char *bytes, size_t n)
{
        if (n == 0 || !reserve(t, n))
                return;
        memcpy(t->bytes + t->n, bytes, n);
        t->n += n;
        t->bytes[t->n] = '\0';
}

void text_add(struct text *t, const char *format, ...)
{
        va_list ap;
        int n;

        va_start(ap, format);
        n = vsnprintf(NULL, 0, format, ap);
        va_end(ap);
        if (n < 0 || !reserve(t, (size_t) n)) {
                t->failed = true;
                return;
        }
        va_start(ap, format);
        (void) vsnprintf(t->bytes + t->n, (size_t) n + 1, format, ap);
        va_end(ap);
        t->n += (size_t) n;
}

char *text_copy(struct arena *a, const struct text *t)
{
        return t->failed ? NULL : arena_copy(a, t->bytes ?: "", t->n + 1);
}

size_t text_find_word(const char *text, const char *const *words, size_t n)
{
        size_t i = 0;

        while (i < n && (!text || strcmp(text, words[i]) != 0))
                i++;
        return i;
}

bool text_is_one_of(const char *text, const char *const *words, size_t n)
{
        return text_find_word(text, words, n) < n;
}

bool text_ends_with(const char *text, const char *tail)
{
        size_t n = strlen(text), n_tail = strlen(tail);

        return n >= n_tail && strcmp(text + n - n_tail, tail) == 0;
}

bool text_lists_are_equal(const char *const *a, size_t n_a, const char *const *b, size_t n_b)
{
        for (size_t i = 0; i < n_a && i < n_b; i++)
                if (strcmp(a[i], b[i]) != 0)
                        return false;
        return n_a == n_b;
}

bool text_has_only(const char *text, size_t max, const char *accepted)
{
        size_t n = strspn(text, accepted);

        return n > 0 && n <= max && text[n] == '\0';
}

bool text_is_printable(const char *text, size_t max)
{
        size_t n = 0;

        while ((unsigned char) text[n] >= ' ' && text[n] != 0x7f)
                n++;
        return n > 0 && n <= max && text[n] == '\0';
}

bool text_is_path(const char *text)
{
        return text[0] == '/' && text[1] && text_is_printable(text, PATH_MAX - 1);
}
