/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Any bytes as OpenSM's file `neighbors`: each line is a link or ignored, and reading it again changes nothing. */
#include <stdlib.h>
#include <string.h>

#include "discovery/links.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void require(bool condition)
{
        if (!condition)
                abort();
}

static uint32_t count_lines(const uint8_t *data, size_t n)
{
        uint32_t n_lines = 0;

        for (size_t i = 0; i < n; i++)
                n_lines += data[i] != '\n' && (i + 1 == n || data[i + 1] == '\n');
        return n_lines;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        struct discovery_links *links = discovery_links_new();
        uint32_t n_ignored = 0, n_ignored_again = 0;
        struct guid before;

        require(links != NULL);
        require(discovery_links_set(links, (struct guid) { 0x10 }, 1, (struct guid) { 0x20 }) == 0);
        require(discovery_links_add_neighbors(links, (const char *) data, n, &n_ignored) == 0);
        require(n_ignored <= count_lines(data, n));
        require(discovery_links_get(links, (struct guid) { 0x10 }, 1).v == 0x20);
        require(discovery_links_get(links, (struct guid) { 0 }, 1).v == 0);
        before = discovery_links_get(links, (struct guid) { 0x0002c90300100000 }, 1);
        require(discovery_links_add_neighbors(links, (const char *) data, n, &n_ignored_again) == 0);
        require(n_ignored_again == n_ignored);
        require(discovery_links_get(links, (struct guid) { 0x0002c90300100000 }, 1).v == before.v);
        (void) discovery_links_free(links);
        return 0;
}
