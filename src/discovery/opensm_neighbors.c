/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>

#include "discovery/links.h"
#include "util/scan.h"

#define MAX_GUID_SIZE 18 /* with 0x */

/* "0x0002c90300000001:1" */
static bool take_port(struct scan *s, struct guid *ret_guid, uint8_t *ret_number)
{
        const char *start = s->p;
        uint64_t number;

        if (!scan_word(s, "0x") || !scan_number(s, 16, UINT64_MAX, &ret_guid->v) || s->p - start > MAX_GUID_SIZE ||
            !scan_char(s, ':') || !scan_number(s, 10, UINT8_MAX, &number))
                return false;
        *ret_number = (uint8_t) number;
        return ret_guid->v != 0 && number != 0;
}

/* Returns 1 for a line that is a link, 0 for another one, -ENOMEM, -ENOSPC. */
static int add_line(struct discovery_links *l, struct scan line)
{
        struct guid guid, peer;
        uint8_t number, peer_number;
        int r;

        if (!take_port(&line, &guid, &number) || !scan_blanks(&line) || !take_port(&line, &peer, &peer_number))
                return 0;
        (void) scan_blanks(&line);
        if (line.p != line.end)
                return 0;
        if (discovery_links_get(l, guid, number).v != 0)
                return 1;
        r = discovery_links_set(l, guid, number, peer);
        return r < 0 ? r : 1;
}

int discovery_links_add_neighbors(struct discovery_links *l, const char *bytes, size_t n, uint32_t *ret_ignored)
{
        struct scan rest = { bytes, bytes + n }, line;
        uint32_t n_ignored = 0;

        if (n > DISCOVERY_MAX_NEIGHBORS_SIZE)
                return -EFBIG;
        while (scan_line(&rest, &line)) {
                int r = line.p == line.end ? 1 : add_line(l, line); /* OpenSM leaves every second line empty */

                if (r < 0)
                        return r;
                n_ignored += r == 0;
        }
        *ret_ignored = n_ignored;
        return 0;
}
