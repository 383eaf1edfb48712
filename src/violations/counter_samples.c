/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "violations/counter_samples.h"

#include <errno.h>

#include "util/macros.h"

uint64_t violation_counter_maximum(unsigned bits)
{
        return bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
}

/* A wide counter that was closer than the margin to its maximum and is closer than that to 0 wrapped around; else it was reset. A
 * reset taken for a wrap would be reported as thousands of millions of violations. */
static uint64_t moved(const struct violation_counter *c, uint64_t value)
{
        uint64_t max = violation_counter_maximum(c->bits), margin = max >> 8;

        if (value >= c->value)
                return value - c->value;
        if (c->bits > VIOLATION_COUNTER_SATURATING_BITS && c->value > max - margin && value < margin)
                return max - c->value + value + 1;
        return value;
}

static bool is_saturated(const struct violation_counter *c)
{
        return c->bits <= VIOLATION_COUNTER_SATURATING_BITS && c->value == violation_counter_maximum(c->bits);
}

struct counter_change violation_counter_see(struct violation_counter *c, usec_t now, unsigned bits, uint64_t value)
{
        const struct violation_counter before = *c;
        bool is_first = before.bits != bits, saturated;

        *c = (struct violation_counter) { MIN(value, violation_counter_maximum(bits)), now, (uint8_t) bits };
        saturated = is_saturated(c);
        return (struct counter_change) {
                .count = is_first ? 0 : moved(&before, c->value),
                .since = is_first ? 0 : before.when,
                .saturated = saturated,
                .newly_saturated = saturated && (is_first || !is_saturated(&before)),
        };
}

void violation_counter_cleared(struct violation_counter *c)
{
        c->value = 0;
}

/* --- the samples of all ports --------------------------------------------------------------------------------------- */

void counter_samples_init(struct counter_samples *l)
{
        *l = (struct counter_samples) {};
        record_list_init(&l->by_age);
}

void counter_samples_done(struct counter_samples *l)
{
        for (uint32_t i = 0; i < l->n; i++)
                violation_host_unref(l->ports[i].host);
        free(l->ports);
        free(l->links);
        hash_index_done(&l->index);
}

static uint32_t find(const struct counter_samples *l, struct violation_port port)
{
        return HASH_INDEX_FIND(i, &l->index, violation_port_hash(port), violation_port_equal(l->ports[i].port, port));
}

struct port_samples *counter_samples_find(const struct counter_samples *l, struct violation_port port)
{
        uint32_t i = find(l, port);

        return i == VIOLATION_NONE ? NULL : &l->ports[i];
}

void counter_samples_doubt(struct port_samples *p)
{
        for (enum violation_source s = 0; s < VIOLATION_N_COUNTERS; s++)
                p->doubted[s] = p->counters[s].bits > 0;
}

static int grow(struct counter_samples *l)
{
        uint32_t n = MAX(l->allocated * 2, 64u);

        if (record_array_grow(&l->ports, sizeof(*l->ports), n) < 0 || record_array_grow(&l->links, sizeof(*l->links), n) < 0 ||
            hash_index_reserve(&l->index, n) < 0)
                return -ENOMEM;
        l->allocated = n;
        return 0;
}

/* A place for one more port. */
static uint32_t make_room(struct counter_samples *l)
{
        uint32_t i;

        if (l->n == VIOLATION_MAX_PORTS) {
                i = l->by_age.first;
                hash_index_remove(&l->index, i);
                record_list_remove(&l->by_age, l->links, i);
                l->ports[i].host = violation_host_unref(l->ports[i].host);
                return i;
        }
        if (l->n == l->allocated && grow(l) < 0)
                return VIOLATION_NONE;
        return l->n++;
}

struct port_samples *counter_samples_take(struct counter_samples *l, struct violation_port port)
{
        uint32_t i = find(l, port);

        if (i != VIOLATION_NONE) {
                record_list_remove(&l->by_age, l->links, i);
        } else {
                i = make_room(l);
                if (i == VIOLATION_NONE)
                        return NULL;
                l->ports[i] = (struct port_samples) { .port = port };
                hash_index_add(&l->index, i, violation_port_hash(port));
        }
        record_list_append(&l->by_age, l->links, i);
        return &l->ports[i];
}
