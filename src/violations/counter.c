/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "violations/counter.h"

#include "util/cleanup.h"

static uint64_t maximum(unsigned bits)
{
        return bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
}

/* A wide counter that was closer than the margin to its maximum and is closer than that to 0 wrapped around; else it was reset. A
 * reset taken for a wrap would be reported as thousands of millions of violations. */
static uint64_t moved(const struct violation_counter *c, uint64_t value)
{
        uint64_t max = maximum(c->bits), margin = max >> 8;

        if (value >= c->value)
                return value - c->value;
        if (c->bits > VIOLATION_COUNTER_SATURATING_BITS && c->value > max - margin && value < margin)
                return max - c->value + value + 1;
        return value;
}

struct counter_change violation_counter_see(struct violation_counter *c, usec_t now, unsigned bits, uint64_t value)
{
        bool saturated = bits <= VIOLATION_COUNTER_SATURATING_BITS && value >= maximum(bits);
        struct counter_change change;

        value = MIN(value, maximum(bits));
        /* With another width it is another counter. */
        if (c->bits != bits)
                *c = (struct violation_counter) { .bits = (uint8_t) bits };
        change = (struct counter_change) {
                .count = c->seen ? moved(c, value) : 0,
                .since = c->seen ? c->when : 0,
                .saturated = saturated,
                .newly_saturated = saturated && !c->saturated,
        };
        *c = (struct violation_counter) { value, now, (uint8_t) bits, .seen = true, .saturated = saturated };
        return change;
}

void violation_counter_cleared(struct violation_counter *c)
{
        c->value = 0;
        c->saturated = false;
}
