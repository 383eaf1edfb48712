/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The last sample of each counter of each port, with the host behind the port; and how many violations are between two samples. The
 * port that was sampled longest ago makes room.
 *
 * Counters of 8 and 16 bits are those of PortCounters and PortInfo: they stop at their maximum (IBA 1.5, 16.1.3.5, 14.2.5.6) and
 * stay there until they are cleared. Wider ones wrap around: their maximum means nothing, and one that was just below it and is
 * just above 0 wrapped around. Any other that went down was reset.
 */

#include "violations/hosts.h"
#include "violations/list.h"

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

/* More than a subnet can have: 49151 endports, each with a leaf port. */
#define VIOLATION_MAX_PORTS 131072

/* As violation_record.first; 0: never. */
struct first_counted {
        usec_t first, since;
};

struct port_samples {
        struct violation_port port;
        struct violation_counter counters[VIOLATION_N_COUNTERS];
        const struct violation_host *host;  /* a reference; NULL: none was set */
        bool is_empty;                      /* nothing was plugged in in the last snapshot: host was there before */
        enum violation_filter filter[VIOLATION_N_COUNTERS]; /* at the last sample */
        bool doubted[VIOLATION_N_COUNTERS]; /* what the next sample finds may be of another host */
        uint32_t saturated[VIOLATION_N_COUNTERS]; /* entry of the record that is `saturated`, if there is one */
        /* Of an endport: when it first counted violations, and when the leaf port of that time first counted violations by it. */
        struct first_counted own[VIOLATION_N_COUNTERS], at_leaf[VIOLATION_N_COUNTERS];
};

struct counter_samples {
        struct port_samples *ports;
        struct violation_link *links;
        uint32_t n, allocated;
        struct hash_index index;
        struct record_list by_age;
};

void counter_samples_init(struct counter_samples *l);
void counter_samples_done(struct counter_samples *l);
/* Borrowed until the next _take. NULL: never sampled. */
struct port_samples *counter_samples_find(const struct counter_samples *l, struct violation_port port);
/* Finds or adds the port, which is sampled now. NULL: out of memory. */
struct port_samples *counter_samples_take(struct counter_samples *l, struct violation_port port);

/* Records that what the next sample of each counter finds may be of another host. */
void counter_samples_doubt(struct port_samples *p);
