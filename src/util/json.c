/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/json.h"

#include <string.h>

bool json_member_number(const json_t *object, const char *name, json_int_t min, json_int_t max, json_int_t *ret)
{
        const json_t *j = json_object_get(object, name);

        if (!json_is_integer(j) || json_integer_value(j) < min || json_integer_value(j) > max)
                return false;
        *ret = json_integer_value(j);
        return true;
}

bool json_member_hex(const json_t *object, const char *name, uint64_t max, uint64_t *ret)
{
        const char *text = json_string_value(json_object_get(object, name));
        size_t n;
        uint64_t v;

        if (!text || strncmp(text, "0x", 2) != 0)
                return false;
        n = strlen(text + 2);
        if (n == 0 || n > 16 || strspn(text + 2, "0123456789abcdef") != n)
                return false;
        v = strtoull(text + 2, NULL, 16);
        if (v > max)
                return false;
        *ret = v;
        return true;
}

char *json_make_utf8(const char *text)
{
        _cleanup_json_ json_t *value = json_string(text);
        size_t n = 0;
        char *out;

        if (value)
                return strdup(text);
        out = malloc(4 * strlen(text) + 1);
        if (!out)
                return NULL;
        for (; *text; text++) {
                unsigned char c = (unsigned char) *text;

                if (c < 0x80)
                        out[n++] = *text;
                else
                        n += (size_t) snprintf(out + n, sizeof("\\xff"), "\\x%02x", (unsigned) c);
        }
        out[n] = '\0';
        return out;
}
