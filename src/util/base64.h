/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Base64 with padding, in one line (RFC 4648, section 4). */

#include <stdbool.h>
#include <stddef.h>

/* Size of a text of n bytes, with its NUL. */
#define BASE64_SIZE(n) (((n) + 2) / 3 * 4 + 1)
/* The most bytes that a text of n characters has. */
#define BASE64_BYTES(n) ((n) / 4 * 3)

/* Writes BASE64_SIZE(n) characters. */
void base64_encode(const void *bytes, size_t n, char *ret);
/* Decodes into BASE64_BYTES(strlen(text)) bytes. Returns false if the text is not well-formed. */
bool base64_decode(const char *text, void *ret, size_t *ret_n);
