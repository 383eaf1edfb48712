/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Fixture of the tests of src/discovery: a walk over the virtual fabric (tests/fabsim), with requests and answers
 * encoded as on the wire, or over a fabric whose answers are computed from the route (64 hops, an endless fabric, a
 * walk that starts at a switch). Rules determine which answers are lost or changed.
 */

#include <check.h>
#include <errno.h>
#include <infiniband/mad.h>
#include <stdlib.h>
#include <string.h>

#include "../fabsim/fabric.h"
#include "../fabsim/prng.h"
#include "discovery/discovery.h"

#define G(x) ((struct guid) { (x) })
/* For checks at every request, because ck_assert writes to a file each time. */
#define REQUIRE(what)                                                                                                  \
        do {                                                                                                           \
                if (!(what))                                                                                           \
                        ck_abort_msg("not true: %s", #what);                                                           \
        } while (0)

#define MAX_REQUESTS 4096 /* in flight */

extern struct fabsim f;
extern struct arena *arena;
extern struct subnet *subnet; /* the last snapshot */
extern struct discovery_links *links; /* learned by all walks */
extern struct m_keys *keys;
extern struct discovery_config config;
extern unsigned n_again; /* requests with fewer retries than others, of all walks */
extern int finished; /* what discovery_finish returned */

/* Hooks of a test; NULL: none. */
struct fabric_rules {
        bool (*answer)(const struct mad_request *request, struct mad_result *ret); /* replaces the virtual fabric */
        bool (*lose)(const struct mad_request *request, struct fabsim_place at);
        void (*change)(const struct mad_request *request, struct fabsim_place at, struct mad_result *ret);
        void (*before)(unsigned nth); /* called before the nth request, from 1 on, is answered */
        unsigned (*rank)(const struct mad_request *request); /* determines the order: the lowest is answered first */
        bool (*together)(const struct mad_request *request); /* the next answer arrives in the same burst */
};
extern struct fabric_rules rules;

extern struct prng prng;
enum answer_order { FIRST_COME, LAST_COME, ANY_ORDER };
extern enum answer_order order;
extern unsigned window; /* most requests in flight */
extern unsigned burst;  /* most answers between two requests */
extern unsigned n_requests, n_most_at_once; /* of the last walk */

/*
 * Host A (its port 1 is the local port) on leaf 1, host B on leaf 2, port 2 of host A on leaf 2, a router on leaf 1,
 * two cables between the leaves. LIDs: A 1 and 2, B 4 to 7 (with the SM), router 9, leaf 1 10, leaf 2 11.
 */
extern unsigned host_a, host_b, leaf1, leaf2, router;

/* A checked fixture: this fabric, and no expected links. */
void setup(void);
void teardown(void);
/* The state after power-on: no LIDs, no SM. */
void forget_lids(void);

bool is_switch(unsigned n);
/* Tries n_tries times to connect two free ports, which may belong to the same node. */
void connect_any(unsigned n_tries);
void make_random_fabric(void);

/* Answers one request according to the rules. */
void carry(const struct mad_request *request, struct mad_result *ret);
/* Runs the stage: takes requests, answers one of them, and so on. Answers come in any order. */
void run(struct discovery *d);
/* A walk and its snapshot; returns what discovery_finish() returned. */
int discover(void);

/* --- rules ----------------------------------------------------------------------------------------------------------- */

/* Which requests a rule applies to. */
struct meant {
        unsigned node;
        unsigned port;      /* that answers; ANY */
        uint16_t attribute; /* ANY */
        uint32_t modifier;  /* ANY */
        unsigned from, to;  /* the first and the last of these requests, counted from 1 */
        unsigned n;         /* so far */
};
extern struct meant meant;
#define ANY 0xffff

/* All such requests. */
void mean(unsigned n, uint16_t attribute, uint32_t modifier);
/* A `lose` rule. */
bool is_meant(const struct mad_request *request, struct fabsim_place at);

/* A `change` rule: the request ends with `failure`. */
extern enum mad_outcome failure;
extern uint16_t failure_status;
void spoil(const struct mad_request *request, struct fabsim_place at, struct mad_result *ret);

/* Sets the `change` rule that one field of the node's answers has this value. */
void lie_about(unsigned n, uint16_t attribute, enum MAD_FIELDS field, uint64_t value);

bool is_port_info_of(const struct mad_request *request, struct fabsim_place at, unsigned n, unsigned number);
void set_state(struct mad_result *ret, enum port_state state);

/* For `answer` rules. */
void fill_node_info(struct mad_result *ret, enum node_type type, uint8_t num_ports, uint64_t guid, uint8_t local_port);
void fill_port_info(struct mad_result *ret, uint16_t lid);

/* --- the snapshot ---------------------------------------------------------------------------------------------------- */

struct guid guid_of(unsigned n);
bool has_node(unsigned n);
const struct subnet_node *node(unsigned n);
bool has_port(unsigned n, uint8_t number);
const struct subnet_port *port(unsigned n, uint8_t number);
const struct subnet_port *peer(const struct subnet_port *p);
struct subnet_place place(unsigned n, uint8_t number);
unsigned count_incomplete(void);
void assert_directed(const struct subnet_port *p, uint8_t hops, const uint8_t *path);
#define PATH(...) ((const uint8_t[]) { __VA_ARGS__ })
/* Checks that the route of the port leads to its agent. */
void assert_leads_there(const struct subnet_port *p);
void assert_conflict(uint32_t i, struct guid guid, struct subnet_place first, struct subnet_place second);
