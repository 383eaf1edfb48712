/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "subnet/subnet.h"
#include "util/text.h"

/* A piece of an escaped description. */
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

const char *node_description_escape(struct arena *a, const char *raw, size_t size)
{
        static const char hex[] = "0123456789abcdef";
        size_t n_raw = strnlen(raw, MIN(size, (size_t) NODE_DESCRIPTION_SIZE)), n = 0;
        char buf[NODE_DESCRIPTION_SIZE * 4];

        while (n_raw > 0 && is_blank(raw[n_raw - 1]))
                n_raw--;
        for (size_t i = 0; i < n_raw; i++) {
                unsigned char c = (unsigned char) raw[i];

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

/* The length of the blank at the beginning, which may be escaped; 0: there is none. */
static size_t blank_at(const char *p)
{
        static const char *const escaped[] = { "\\x09", "\\x0a", "\\x0d" };

        for (size_t i = 0; i < ELEMENTS(escaped); i++)
                if (strncmp(p, escaped[i], 4) == 0)
                        return 4;
        return *p == ' ';
}

/* Takes the first word off *rest, which ends at `end`, too. */
static struct piece take_word(const char **rest, const char *end)
{
        struct piece word;

        while (*rest < end && blank_at(*rest))
                *rest += blank_at(*rest);
        word.p = *rest;
        while (*rest < end && !blank_at(*rest))
                ++*rest;
        word.n = (size_t) (*rest - word.p);
        return word;
}

/* "MF0;NAME:MODEL/U1"; the number is that of the part of the chassis. True: the name is what is left until *end. */
static bool find_switch_name(const char **rest, const char **end)
{
        const char *number = *rest + 2, *name, *colon;

        if (strncmp(*rest, "MF", 2) != 0)
                return false;
        name = number + strspn(number, "0123456789");
        colon = name > number && *name == ';' ? strchr(name, ':') : NULL;
        if (!colon)
                return false;
        *rest = name + 1;
        *end = colon;
        return true;
}

int node_description_split(struct arena *a, const char *description, const char **ret_name, const char **ret_device)
{
        const char *rest = description, *end = description + strlen(description);
        struct piece name = { "", 0 }, device = { "", 0 };

        /* The CA inside a switch for collective operations (SHARP) is an endport, but no host. */
        if (!text_ends_with(description, "Aggregation Node")) {
                bool is_switch = find_switch_name(&rest, &end);

                name = take_word(&rest, end);
                if (!is_switch)
                        device = take_word(&rest, end);
        }
        *ret_name = arena_strndup(a, name.p, name.n);
        *ret_device = arena_strndup(a, device.p, device.n);
        return *ret_name && *ret_device ? 0 : -ENOMEM;
}
