/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "subnet/subnet.h"

/* A piece of a raw description. */
struct piece {
        const char *p;
        size_t n;
};

static bool is_blank(char c)
{
        return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool needs_escape(unsigned char c)
{
        return c < 0x20 || c > 0x7e || c == '\\';
}

static const char *escape(struct arena *a, struct piece s)
{
        static const char hex[] = "0123456789abcdef";
        char buf[NODE_DESCRIPTION_SIZE * 4];
        size_t n = 0;

        for (size_t i = 0; i < s.n && n + 4 <= sizeof(buf); i++) {
                unsigned char c = (unsigned char) s.p[i];

                if (needs_escape(c)) {
                        buf[n++] = '\\';
                        buf[n++] = 'x';
                        buf[n++] = hex[c >> 4];
                        buf[n++] = hex[c & 0xf];
                } else
                        buf[n++] = (char) c;
        }
        return arena_strndup(a, buf, n);
}

static struct piece trim(const char *raw, size_t size)
{
        size_t n = strnlen(raw, MIN(size, (size_t) NODE_DESCRIPTION_SIZE));

        while (n > 0 && is_blank(raw[n - 1]))
                n--;
        return (struct piece) { raw, n };
}

/* Takes the first word off *rest. */
static struct piece take_word(struct piece *rest)
{
        struct piece word;
        size_t i = 0;

        while (i < rest->n && is_blank(rest->p[i]))
                i++;
        word.p = rest->p + i;
        while (i < rest->n && !is_blank(rest->p[i]))
                i++;
        word.n = (size_t) (rest->p + i - word.p);
        *rest = (struct piece) { rest->p + i, rest->n - i };
        return word;
}

static bool ends_with(struct piece s, const char *tail)
{
        size_t n = strlen(tail);

        return s.n >= n && memcmp(s.p + s.n - n, tail, n) == 0;
}

/* "MF0;NAME:MODEL/U1"; the number is that of the part of the chassis. */
static bool managed_switch_name(struct piece s, struct piece *ret)
{
        const char *colon;
        size_t i = 2;

        if (s.n < 4 || memcmp(s.p, "MF", 2) != 0)
                return false;
        while (i < s.n && s.p[i] >= '0' && s.p[i] <= '9')
                i++;
        if (i == 2 || i >= s.n || s.p[i] != ';')
                return false;
        i++;
        colon = memchr(s.p + i, ':', s.n - i);
        if (!colon)
                return false;
        *ret = (struct piece) { s.p + i, (size_t) (colon - s.p) - i };
        return true;
}

int node_description_split(struct arena *a, const char *raw, size_t size, const char **ret_description,
                           const char **ret_name, const char **ret_device)
{
        struct piece all = trim(raw, size), name = { "", 0 }, device = { "", 0 }, rest = all;
        const char *description, *n, *d;

        /* The CA inside a switch for collective operations (SHARP) is an endport, but no host. */
        if (!ends_with(all, "Aggregation Node")) {
                bool is_switch = managed_switch_name(all, &rest);

                name = take_word(&rest);
                if (!is_switch)
                        device = take_word(&rest);
        }

        description = escape(a, all);
        n = escape(a, name);
        d = escape(a, device);
        if (!description || !n || !d)
                return -ENOMEM;

        *ret_description = description;
        *ret_name = n;
        *ret_device = d;
        return 0;
}
