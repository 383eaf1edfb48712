/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The last sample of each counter of each port, with the host behind the port. The port that was sampled longest ago makes room. */

#include "violations/counter.h"
#include "violations/hosts.h"
#include "violations/list.h"

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
