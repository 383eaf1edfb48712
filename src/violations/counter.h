/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * One counter of one port: how many violations are between two samples.
 *
 * Counters of 8 and 16 bits are those of PortCounters and PortInfo: they stop at their maximum (IBA 1.5, 16.1.3.5, 14.2.5.6) and
 * stay there until they are cleared. Wider ones wrap around: their maximum means nothing, and one that was just below it and is
 * just above 0 wrapped around. Any other that went down was reset.
 */

#include "ib/types.h"

#define VIOLATION_COUNTER_SATURATING_BITS 16

struct violation_counter {
        uint64_t value;  /* at the last sample */
        usec_t when;     /* of it */
        uint8_t bits;    /* 0: there was no sample yet, the next one is a baseline */
};

struct counter_change {
        uint64_t count;       /* violations since the last sample: at least so many */
        usec_t since;         /* that sample; 0: there was none */
        bool saturated;       /* it is at its maximum ... */
        bool newly_saturated; /* ... and was not at the last sample */
};

/* What a counter of this many bits holds at most. */
uint64_t violation_counter_maximum(unsigned bits);
/* bits is 1 to 64; with another width than before it is another counter. A value that does not fit counts as the greatest that
 * does. */
struct counter_change violation_counter_see(struct violation_counter *c, usec_t now, unsigned bits, uint64_t value);
/* pkeyd set it to 0. */
void violation_counter_cleared(struct violation_counter *c);
