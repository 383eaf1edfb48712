/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A lease of etcd, which is renewed on the loop until it is given back, or etcd answers that it has ended. */

#include "etcd/etcd_http.h"

struct etcd_lease {
        struct etcd_http *http;       /* borrowed */
        uint64_t id;                  /* 0: there is none */
        usec_t deadline;              /* CLOCK_BOOTTIME until which etcd certainly keeps it, less ETCD_MARGIN; 0: it has ended */
        unsigned seconds;
        sd_event_source *timer;       /* the next renewal */
        struct etcd_request *renewal; /* under way; NULL: none is */
        usec_t asked_at;              /* CLOCK_BOOTTIME when the last renewal was sent */
};

/* Asks etcd for a lease of so many seconds. Returns 0 or an error of etcd_http.h. */
int etcd_lease_take(struct etcd_lease *l, struct etcd_http *http, sd_event *event, unsigned seconds);
/* Ends it, with every key that belongs to it. If etcd does not answer, it ends by itself. Accepts a zeroed lease. */
void etcd_lease_give_back(struct etcd_lease *l);
