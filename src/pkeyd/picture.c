/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyd/picture.h"

#include <errno.h>
#include <string.h>

struct picture *picture_free(struct picture *p)
{
        if (!p)
                return NULL;
        arena_free(p->arena);
        free(p);
        return NULL;
}

struct picture *picture_new(void)
{
        _cleanup_(picture_free_p) struct picture *p = calloc(1, sizeof(*p));

        if (!p)
                return NULL;
        p->arena = arena_new();
        if (!p->arena)
                return NULL;
        return STEAL(p);
}

int picture_prepare(struct picture *p)
{
        p->failed = arena_new_array(p->arena, bool, p->subnet->n_ports);
        if (!p->failed)
                return -ENOMEM;
        return observed_new(p->arena, p->subnet, &p->observed);
}

static bool could_not_be_read(const struct observed_table *t)
{
        return t->entries && t->source != TABLE_READ && t->failure != MAD_ANSWERED;
}

void picture_merge(struct picture *p, const struct observed *seen)
{
        for (uint32_t i = 0; i < p->subnet->n_ports; i++) {
                const struct observed_table *from = &seen->tables[i];
                struct observed_table *to = &p->observed->tables[i];

                if (!from->entries || !to->entries)
                        continue;
                if (from->source == TABLE_READ) {
                        memcpy(to->entries, from->entries, from->capacity * sizeof(from->entries[0]));
                        to->source = TABLE_READ;
                } else if (!could_not_be_read(from)) {
                        continue; /* was not asked */
                } else if (to->source == TABLE_READ) {
                        to->source = TABLE_ASSUMED;
                }
                to->failure = from->failure;
                to->mad_status = from->mad_status;
        }
}

void picture_reset_failed(struct picture *p)
{
        for (uint32_t i = 0; i < p->subnet->n_ports; i++)
                p->failed[i] = could_not_be_read(&p->observed->tables[i]);
}

uint32_t picture_n_failed(const struct picture *p)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < p->subnet->n_ports; i++)
                n += p->failed[i];
        return n;
}

int picture_failed_ports(const struct picture *p, struct arena *a, uint32_t **ret_ports, uint32_t *ret_n)
{
        uint32_t *ports = arena_new_array(a, uint32_t, picture_n_failed(p));
        uint32_t n = 0;

        if (!ports)
                return -ENOMEM;
        for (uint32_t i = 0; i < p->subnet->n_ports; i++)
                if (p->failed[i])
                        ports[n++] = i;
        *ret_ports = ports;
        *ret_n = n;
        return 0;
}
