/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A string builder, and checks of strings. Errors of the builder stick, so that the caller checks `failed` once at the end. */

#include <stdbool.h>
#include <stddef.h>

#include "util/arena.h"

struct text {
        char *bytes; /* owned; NULL while empty */
        size_t n, allocated;
        bool failed; /* out of memory */
};

void text_done(struct text *t);
#define _cleanup_text_ _cleanup_(text_done)

void text_add_n(struct text *t, const char *bytes, size_t n);
void text_add(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A copy in the arena, of NUL bytes, too; NULL: out of memory, now or while the text grew. */
char *text_copy(struct arena *a, const struct text *t);

/* The index of the first of n words that the text is; n: it is none of them, or NULL. */
size_t text_find_word(const char *text, const char *const *words, size_t n);
/* The same for an array of words, whose index becomes the value at ret; evaluates to false, without a change, if there is none. */
#define TEXT_READ_WORD(text, words, ret)                                                                               \
        ({                                                                                                             \
                size_t _i = text_find_word((text), (words), ELEMENTS(words));                                          \
                if (_i < ELEMENTS(words))                                                                              \
                        *(ret) = (__typeof__(*(ret))) _i;                                                              \
                _i < ELEMENTS(words);                                                                                  \
        })
/* Defines NAME_to_string() as DEFINE_WORDS() does, and the function back, NAME_from_string(): it returns false for another text, or
 * NULL. */
#define DEFINE_WORDS_AND_BACK(name, type, other, ...)                                                                  \
        static const char *const name##_words[] = { __VA_ARGS__ };                                                     \
        const char *name##_to_string(type value) { return WORD(name##_words, value, other); }                          \
        bool name##_from_string(const char *word, type *ret) { return TEXT_READ_WORD(word, name##_words, ret); }

/* Returns whether the text is one of n words. */
bool text_is_one_of(const char *text, const char *const *words, size_t n);
bool text_ends_with(const char *text, const char *tail);
/* Returns whether both have the same words in the same order. */
bool text_lists_are_equal(const char *const *a, size_t n_a, const char *const *b, size_t n_b);
#define TEXT_LETTERS_AND_DIGITS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
/* Returns whether the text has 1 to `max` characters, and all of them are in `accepted`. */
bool text_has_only(const char *text, size_t max, const char *accepted);
/* Returns whether the text is an absolute path of at most 4095 bytes without control characters. */
bool text_is_path(const char *text);
/* Returns whether the text has 1 to `max` bytes without control characters. */
bool text_is_printable(const char *text, size_t max);
/* "s" unless n is 1. */
static inline const char *text_plural(uint64_t n)
{
        return n == 1 ? "" : "s";
}
