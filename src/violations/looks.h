/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The last look at each counter of each port. Bounded: the port that was looked at longest ago makes room. */

#include "violations/counter.h"
#include "violations/list.h"
#include "violations/violations.h"

/* More than a subnet can have: 49151 endports, each beside one port of a switch. */
#define VIOLATION_MAX_PORTS 131072

struct violation_port_looks {
        struct violation_port port;
        struct violation_counter counters[VIOLATION_N_COUNTERS];
};

struct violation_looks {
        struct violation_port_looks *ports;
        struct violation_link *links;
        uint32_t n, allocated;
        struct hash_index index;
        struct record_list by_age;
};

void violation_looks_init(struct violation_looks *l);
void violation_looks_done(struct violation_looks *l);
/* Borrowed until the next _take. NULL: never looked at. */
struct violation_port_looks *violation_looks_find(const struct violation_looks *l, struct violation_port port);
/* The same for a port that is looked at now, made if need be. NULL: memory is out. */
struct violation_port_looks *violation_looks_take(struct violation_looks *l, struct violation_port port);
