/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "discovery/links.h"

#define MAX_GUID_DIGITS 16

struct cursor {
        const char *at, *end;
};

static bool is_blank(char c)
{
        return c == ' ' || c == '\t';
}

static void skip_blanks(struct cursor *c)
{
        while (c->at < c->end && is_blank(*c->at))
                c->at++;
}

static bool parse_guid(struct cursor *c, struct guid *ret)
{
        unsigned n = 0;

        if (c->end - c->at < 2 || c->at[0] != '0' || c->at[1] != 'x')
                return false;
        c->at += 2;
        ret->v = 0;
        for (; c->at < c->end && digit_value(*c->at) < 16; c->at++, n++)
                ret->v = ret->v << 4 | digit_value(*c->at);
        return n > 0 && n <= MAX_GUID_DIGITS && ret->v != 0;
}

static bool parse_port_number(struct cursor *c, uint8_t *ret)
{
        unsigned number = 0;

        for (; c->at < c->end && *c->at >= '0' && *c->at <= '9' && number <= UINT8_MAX; c->at++)
                number = number * 10 + (unsigned) (*c->at - '0');
        *ret = (uint8_t) number;
        return number >= 1 && number <= UINT8_MAX;
}

/* "0x0002c90300000001:1" */
static bool parse_port(struct cursor *c, struct guid *ret_guid, uint8_t *ret_number)
{
        if (!parse_guid(c, ret_guid) || c->at == c->end || *c->at != ':')
                return false;
        c->at++;
        return parse_port_number(c, ret_number);
}

/* Returns 1 for a line that is a link, 0 for another one, -ENOMEM, -ENOSPC. */
static int add_line(struct discovery_links *l, struct cursor c)
{
        struct guid guid, peer;
        uint8_t number, peer_number;
        int r;

        if (!parse_port(&c, &guid, &number) || c.at == c.end || !is_blank(*c.at))
                return 0;
        skip_blanks(&c);
        if (!parse_port(&c, &peer, &peer_number))
                return 0;
        skip_blanks(&c);
        if (c.at != c.end)
                return 0;
        if (discovery_links_get(l, guid, number).v != 0)
                return 1;
        r = discovery_links_set(l, guid, number, peer);
        return r < 0 ? r : 1;
}

int discovery_links_add_neighbors(struct discovery_links *l, const char *bytes, size_t n, uint32_t *ret_ignored)
{
        const char *at = bytes, *end = bytes + n;
        uint32_t n_ignored = 0;

        if (n > DISCOVERY_MAX_NEIGHBORS_SIZE)
                return -EFBIG;
        while (at < end) {
                const char *newline = memchr(at, '\n', (size_t) (end - at)), *line_end = newline ? newline : end;
                int r = 1;

                if (line_end > at) /* OpenSM leaves every second line empty */
                        r = add_line(l, (struct cursor) { at, line_end });
                if (r < 0)
                        return r;
                n_ignored += r == 0;
                at = line_end + (newline ? 1 : 0);
        }
        *ret_ignored = n_ignored;
        return 0;
}
