/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* One switch, whose port i + 1 leads to host i, and the knowledge of their tables. For tests of knowledge and gate. */

#include "knowledge/knowledge_internal.h"
#include "knowledge/table_records.h"

#define G(x)      ((struct guid) { (x) })
#define HOSTS     4
#define ALL       ((1u << HOSTS) - 1)
#define CAPACITY  40 /* two blocks, the last of eight entries */
#define BLOCKS    2
#define SWITCH    0x10
#define MINUTE    (60 * USEC_PER_SEC)
#define HOLD      (15 * MINUTE)
#define NO_PORT   SUBNET_NONE

extern struct arena *arena;
extern struct knowledge *k;

void knowledge_setup(void);
void knowledge_teardown(void);

struct scene {
        unsigned there, silent;          /* a bit for each host; silent: its link is up, but it is not discovered */
        unsigned filters, outbound;      /* likewise: filters of what it sends; of what it receives */
        bool incomplete;                 /* the switch did not answer all queries */
        bool moved;                      /* host 1 is at the port of host 0 */
};

/* The bounds of what a port (an endport, or the device at a place) sends through its filter. */
static inline struct bounds knowledge_port_bounds(const struct knowledge *knowledge, uint32_t record, uint16_t base)
{
        return knowledge_class_of(knowledge, record, base, (struct knowledge_view) { FILTER_BY_LEVEL, SENDS }).bounds;
}

uint64_t host_guid(unsigned host);
struct subnet *make_subnet(const struct scene *s);
/* KNOWLEDGE_NONE: none. */
uint32_t host_record(unsigned host);
uint32_t leaf_record(unsigned host);
uint32_t place_record(unsigned host);
/* NO_PORT: not in this subnet. */
uint32_t port_at(const struct subnet *s, uint64_t node, uint8_t number);
struct subnet *discover(unsigned there, unsigned silent, unsigned filters, usec_t now);

/* Adds a switch; a host at port 1 of one, whose GUID it returns. */
void add_leaf(struct subnet_builder *b, const struct subnet_node *leaf);
struct guid add_leaf_host(struct subnet_builder *b, struct guid leaf, unsigned host);

/* Another fabric. The switches are 0x10, 0x20 and 0x900, each with a host at its port 1. Two links lead from ports 2 and 4 of the
 * first to ports 3 and 5 of the second, and one from port 6 of the second to port 7 of the third. Only the first n switches
 * answer. make_chain_of: of the hosts those with a bit in `hosts`. */
struct subnet *make_chain(unsigned n);
struct subnet *make_chain_of(unsigned n, unsigned hosts);
void see_chain(struct subnet *s, usec_t now);

/* Reads the table of a port with one entry; 0: none. */
void read_table(struct subnet *s, uint32_t port, uint16_t key);
void read_host(struct subnet *s, unsigned host, uint16_t key);
void read_leaf(struct subnet *s, unsigned host, uint16_t key);

/* The policy gives base 1 to the hosts with a bit in `full`. */
void want(struct subnet *s, unsigned full);
/* A block with one entry; 0: none. */
void block_of(uint16_t key, struct p_key ret[P_KEY_BLOCK_ENTRIES]);
/* Announces a block, which is stored; sends it, and ends the phase without confirmation. */
void announce(uint32_t record, uint16_t number, const struct p_key block[P_KEY_BLOCK_ENTRIES]);
void send_announced(uint32_t record, uint16_t number, const struct p_key block[P_KEY_BLOCK_ENTRIES]);
