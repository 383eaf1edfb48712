/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "violations/counter.h"

#include "util/cleanup.h"

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
