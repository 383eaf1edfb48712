/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "discovery/links.h"

#include <errno.h>

#include "util/hash_index.h"
#include "util/vector.h"

struct link {
        struct guid port_guid, peer;
        uint8_t number;
};

struct discovery_links {
        struct link *items;
        uint32_t n, allocated;
        struct hash_index by_port;
};

struct discovery_links *discovery_links_new(void)
{
        return calloc(1, sizeof(struct discovery_links));
}

struct discovery_links *discovery_links_free(struct discovery_links *l)
{
        if (!l)
                return NULL;
        hash_index_done(&l->by_port);
        free(l->items);
        free(l);
        return NULL;
}

static uint64_t hash_of(struct guid port_guid, uint8_t number)
{
        return hash_mix(hash_mix(0, port_guid.v), number);
}

static struct link *find(const struct discovery_links *l, struct guid port_guid, uint8_t number)
{
        uint32_t i = HASH_INDEX_FIND(k, &l->by_port, hash_of(port_guid, number),
                                     l->items[k].port_guid.v == port_guid.v && l->items[k].number == number);

        return i == HASH_INDEX_NONE ? NULL : &l->items[i];
}

static int make_room(struct discovery_links *l)
{
        if (l->n >= DISCOVERY_MAX_LINKS)
                return -ENOSPC;
        if (VECTOR_GROW(NULL, l->items, l->n, l->allocated) < 0)
                return -ENOMEM;
        return hash_index_reserve(&l->by_port, l->n + 1);
}

int discovery_links_set(struct discovery_links *l, struct guid port_guid, uint8_t number, struct guid peer)
{
        struct link *known = find(l, port_guid, number);
        int r;

        if (known) {
                known->peer = peer;
                return 0;
        }
        r = make_room(l);
        if (r < 0)
                return r;
        hash_index_add(&l->by_port, l->n, hash_of(port_guid, number));
        l->items[l->n++] = (struct link) { .port_guid = port_guid, .peer = peer, .number = number };
        return 0;
}

struct guid discovery_links_get(const struct discovery_links *l, struct guid port_guid, uint8_t number)
{
        const struct link *known = l ? find(l, port_guid, number) : NULL;

        return known ? known->peer : (struct guid) { 0 };
}
