/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/base64.h"

#include <stdint.h>
#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(const void *bytes, size_t n, char *ret)
{
        const uint8_t *b = bytes;

        for (size_t i = 0; i < n; i += 3) {
                uint32_t bits = (uint32_t) b[i] << 16 | (i + 1 < n ? (uint32_t) b[i + 1] << 8 : 0) | (i + 2 < n ? b[i + 2] : 0);

                *ret++ = digits[bits >> 18];
                *ret++ = digits[bits >> 12 & 63];
                *ret++ = i + 1 < n ? digits[bits >> 6 & 63] : '=';
                *ret++ = i + 2 < n ? digits[bits & 63] : '=';
        }
        *ret = '\0';
}

bool base64_decode(const char *text, void *ret, size_t *ret_n)
{
        size_t n = strlen(text), length = 0, padding = n - strcspn(text, "=");
        uint8_t *bytes = ret;
        uint32_t bits = 0;

        if (n % 4 != 0 || padding > 2)
                return false;
        for (size_t i = 0; i < n; i++) {
                const char *digit = i < n - padding ? strchr(digits, text[i]) : text[i] == '=' ? digits : NULL;

                if (!digit)
                        return false;
                bits = bits << 6 | (uint32_t) (digit - digits);
                if (i % 4 == 3)
                        for (int shift = 16; shift >= 0; shift -= 8)
                                bytes[length++] = (uint8_t) (bits >> shift);
        }
        *ret_n = length - padding;
        return true;
}
