/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A fabric in memory for unit tests of plan and apply: `n` hosts on one leaf switch that can enforce partitions, tables that
 * answer SMPs, and what those tables let through. Independent of the planner: the promises are checked against this.
 */

#include "apply/apply.h"
#include "gate/gate.h"

#define FAKE_MAX_HOSTS 8
#define FAKE_CAPACITY  64
#define FAKE_BASE(i)   ((uint16_t) (0x0010 + (i)))

struct fake_fabric {
        struct arena *arena;
        struct subnet *subnet;
        struct policy policy;
        struct policy_partition partitions[4];
        struct base_range owns;
        unsigned n_hosts;
        uint32_t host[FAKE_MAX_HOSTS], leaf[FAKE_MAX_HOSTS]; /* ports */
        struct p_key tables[2 * FAKE_MAX_HOSTS + 1][FAKE_CAPACITY]; /* by port index: the tables in the hardware */
        bool enforce_inbound[2 * FAKE_MAX_HOSTS + 1], enforce_outbound[2 * FAKE_MAX_HOSTS + 1];
        uint16_t m_key_violations; /* of port 0 of the leaf, and of the ports of the hosts, in PortInfo */
        unsigned sets, gets, asked_who;
};

/* with_leaf: the switch can enforce (capability bits and a table). */
void fake_fabric_init(struct fake_fabric *f, struct arena *a, unsigned n_hosts, bool with_leaf);

/* Writes the entries of `membership` for a base to a table, at the first free indexes. */
void fake_fabric_put(struct fake_fabric *f, uint32_t port, uint16_t base, enum membership membership);

/* The result of desired_compute for these memberships: membership[host][partition]; partition 0 is the default one. */
void fake_fabric_desire(struct fake_fabric *f, struct arena *a, enum membership membership[][4], unsigned n_partitions,
                        struct desired *ret);

/* Reads all tables into a new observed. */
struct observed *fake_fabric_observe(struct fake_fabric *f, struct arena *a);

/* The level of host x in this base for other hosts: 0 none, 1 limited, 2 full. By its own table and,
 * if its leaf port enforces, by that of the leaf port. strict: a limited entry of a leaf port makes its host at most a limited
 * member (otherwise any entry of the base lets packets pass). */
int fake_fabric_level(const struct fake_fabric *f, unsigned x, uint16_t base, bool strict);

/* The knowledge of the fabric and the gate for every Set, as control has them for an apply. */
struct fake_wire {
        struct knowledge *knowledge;
        struct gate *gate;
        uint64_t n_refused;
};
void fake_wire_init(struct fake_wire *w, const struct observed *observed, const struct desired *desired,
                    const struct policy *policy);
void fake_wire_done(struct fake_wire *w);
/* Sends a request. False: the gate refused it, and it ends with MAD_UNSENT. */
bool fake_wire_send(struct fake_wire *w, const struct mad_request *request);
/* The result of a request. */
void fake_wire_end(struct fake_wire *w, const struct mad_request *request, struct mad_result *result);

/* Carries out a request and makes the result. False: no such port. */
bool fake_fabric_answer(struct fake_fabric *f, const struct mad_request *request, struct mad_result *ret);
/* The port of a request. */
uint32_t fake_fabric_port_of(const struct fake_fabric *f, const struct mad_request *request);
