/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* etcd clusters on loopback, for tests. Their members end with the process that started them. */

#include <stdbool.h>
#include <sys/types.h>

#include "etcd/etcd.h"

#define ETCD_MAX_MEMBERS   3
#define ETCD_FIXTURE_LEASE 5 /* seconds */

struct etcd_cluster {
        unsigned n;
        pid_t pids[ETCD_MAX_MEMBERS];
        char urls[ETCD_MAX_MEMBERS][40];
        const char *endpoints[ETCD_MAX_MEMBERS];
        char dir[64];
};

/* With the API that pkeyd uses: version 3.4 or later. */
bool etcd_is_installed(void);
/* Returns when every member answers. */
void etcd_cluster_start(struct etcd_cluster *c, unsigned n);
/* Also accepts a zeroed cluster. */
void etcd_cluster_stop(struct etcd_cluster *c);
/* Pauses a member; SIGCONT continues it. Returns when none of its threads runs, which takes a while if the host is busy. */
void etcd_cluster_pause(const struct etcd_cluster *c, unsigned member);
void etcd_cluster_config(const struct etcd_cluster *c, struct etcd_config *ret);
