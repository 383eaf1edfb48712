/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The virtual fabric: nodes, ports, cables, and their management agents.
 *
 *     frame in --fabsim_route--> place, hops --fabsim_answer--> frame out
 *     packet(a, b, P_Key) --fabsim_send_packet--> passed or dropped; with counters and notices as in hardware
 *
 *     Report <--fabsim_sa_next_report-- notices of traps 257 and 259, for subscribers
 *
 * It models the hardware independently of pkeyd: the entries of tables alone decide here which packets
 * pass, so that the promises can be checked against it. libibmad codes the bytes.
 *
 * There is no clock: time is an argument (only the lease of the M_Key needs it). wire.h adds latency, loss
 * and other faults. Forwarding tables are not modelled: a LID is reachable if cables and switches that
 * are up lead to it, as if the subnet manager had just configured them.
 */

#include "ib/smp.h"

#define FABSIM_MAX_NODES   40
#define FABSIM_MAX_PORTS   16
#define FABSIM_MAX_ENTRIES 128
#define FABSIM_MAX_NOTICES 64
#define FABSIM_MAX_SUBSCRIPTIONS 8
#define FABSIM_MAX_REPORTS 64

/* The requests that an SMA does not answer. */
enum fabsim_mute {
        FABSIM_ANSWERS,
        FABSIM_MUTE_P_KEYS,     /* P_KeyTable MADs are dropped */
        FABSIM_MUTE_ANSWERS,    /* ... are carried out but not answered */
        FABSIM_MUTE,            /* everything is dropped */
};

struct fabsim_port {
        struct guid guid;               /* endports */
        struct lid lid;
        uint8_t lmc;
        struct lid sm_lid;              /* of the master SM in this port's PortInfo; 0: the actual one */
        bool is_cabled;
        unsigned peer_node;             /* the other end of the cable */
        uint8_t peer_port;
        uint16_t capacity;              /* entries of the P_Key table; 0: no table */
        struct p_key table[FABSIM_MAX_ENTRIES];
        struct p_key swallows;          /* an entry that this table does not store, although it answers success */
        bool lies;                      /* ... and the answer to the Set has what was sent, not what is stored */
        bool enforce_inbound, enforce_outbound;
        enum fabsim_mute mute;          /* of the SMA there: of a switch, that of port 0 */
        uint64_t m_key;                 /* 0: none */
        uint8_t m_key_protection;       /* 0-3 */
        uint16_t m_key_lease;           /* seconds; 0: forever */
        usec_t m_key_expires;           /* 0: no violation since the lease began */
        uint16_t m_key_violations, p_key_violations;
        uint64_t rcv_constraint_errors, xmit_constraint_errors;
};

struct fabsim_node {
        struct guid guid;
        enum node_type type;
        uint8_t num_ports;
        uint16_t partition_cap, partition_enforcement_cap;
        bool inbound_cap, outbound_cap;
        char description[NODE_DESCRIPTION_SIZE];
        bool is_up;                     /* it answers and, if a switch, forwards */
        bool has_wide_errors;           /* its PMA: PortCountersExtended with error counters, of 64 bits */
        bool has_no_class_port_info;    /* its PMA refuses it */
        bool is_forged;                 /* it is a lie: neither LIDs nor distances lead over it */
        struct fabsim_port ports[FABSIM_MAX_PORTS + 1]; /* by number; [0]: port 0 of a switch */
};

/* Traps 257 and 258 (P_Key of a packet wrong at an endport), 259 (at a switch's external port). */
struct fabsim_notice {
        uint16_t trap;
        struct lid lid1, lid2;          /* of the sender, of the receiver */
        struct p_key key;
        struct lid switch_lid;          /* of 259 */
        uint8_t switch_port;            /* of 259 */
};

struct fabsim_place {
        unsigned node;
        uint8_t port;                   /* the port it came in by; 0 on a switch */
};

/* A subscription of f->self, by trap number and type; 0xffff: any. */
struct fabsim_subscription {
        uint16_t trap, type;
};

/* In flight until it is answered. */
struct fabsim_report {
        struct mad_frame frame;
        usec_t next_at;
        unsigned tries;                 /* left; 0: a free slot */
};

/* The subnet administrator, at f->sm. */
struct fabsim_sa {
        uint64_t key;                   /* a request with a key other than this or 0 gets no answer */
        bool distrusts;                 /* refuses subscriptions to traps 256 to 259 by number without the key */
        bool lacks_subscriptions;       /* it does not support InformInfo */
        struct fabsim_subscription subscriptions[FABSIM_MAX_SUBSCRIPTIONS];
        unsigned n_subscriptions;
        unsigned n_seen;                /* notices of the fabric */
        struct fabsim_report reports[FABSIM_MAX_REPORTS];
        uint64_t next_tid;
        unsigned n_given_up;            /* Reports without an answer */
        unsigned n_asked, n_refused;    /* InformInfos */
};

struct fabsim {
        struct fabsim_node nodes[FABSIM_MAX_NODES];
        unsigned n_nodes;
        struct fabsim_place self, sm;   /* endports */
        bool sm_runs;                   /* false: it assigned the LIDs and ended */
        struct fabsim_notice notices[FABSIM_MAX_NOTICES]; /* a ring buffer */
        unsigned n_notices;             /* total */
        struct fabsim_sa sa;
};

/* Everything down, no node. */
void fabsim_init(struct fabsim *f);
/* A node that is up, without cables; tables of all its endports (partition_cap) and, of a switch, external ports
 * (partition_enforcement_cap) are empty. Returns its number. */
unsigned fabsim_add_node(struct fabsim *f, enum node_type type, uint8_t num_ports, uint16_t partition_cap,
                         const char *description);
/* What a switch can enforce. */
void fabsim_set_enforcement_cap(struct fabsim *f, unsigned node, uint16_t entries, bool inbound, bool outbound);
void fabsim_connect(struct fabsim *f, unsigned node_a, uint8_t port_a, unsigned node_b, uint8_t port_b);
void fabsim_disconnect(struct fabsim *f, unsigned node, uint8_t port);

static inline struct fabsim_port *fabsim_port_at(struct fabsim *f, struct fabsim_place p)
{
        return &f->nodes[p.node].ports[p.port];
}

static inline bool fabsim_is_endport(const struct fabsim *f, struct fabsim_place p)
{
        return f->nodes[p.node].type == NODE_SWITCH ? p.port == 0 : p.port > 0;
}

/* Sets which requests the SMA of this port does not answer. */
bool fabsim_is_mute(const struct fabsim *f, struct fabsim_place p);
/* The other end of the cable; false: no cable, or the other end is down. */
bool fabsim_peer(const struct fabsim *f, struct fabsim_place p, struct fabsim_place *ret);
/* The number of hops from pkeyd's port to this place; -1: unreachable. */
int fabsim_distance(const struct fabsim *f, struct fabsim_place to);

/* The place where a frame sent by f->self arrives. False: none. */
bool fabsim_route(const struct fabsim *f, const struct mad_frame *frame, struct fabsim_place *ret, unsigned *ret_hops);
/* Lets the agent at that place carry out and answer a request; 256 bytes in, 256 out. False: no answer (wrong M_Key, a class
 * that it does not support). */
bool fabsim_answer(struct fabsim *f, usec_t now, struct fabsim_place at, const struct mad_frame *frame,
                   struct mad_frame *ret);

/* sa.c. The SA drops all subscriptions and pending Reports. */
void fabsim_sa_restart(struct fabsim *f);
/* The next Report to f->self that is due. The SA makes a Report of each new notice for each matching
 * subscription, repeats it until it is answered, and gives up after some tries. */
bool fabsim_sa_next_report(struct fabsim *f, usec_t now, struct mad_frame *ret);
usec_t fabsim_sa_due(const struct fabsim *f);
/* The answer of the SA; for fabsim_answer. */
bool fabsim_sa_answer(struct fabsim *f, const struct mad_frame *frame, struct mad_frame *ret);

/* The P_Key table that a SubnSet or SubnGet(P_KeyTable) with this modifier means there; NULL: no such. */
struct fabsim_port *fabsim_table_at(struct fabsim *f, struct fabsim_place at, uint32_t modifier, uint16_t *ret_block);

/* The level of a port in a base by its own table: 0 none, 1 limited, 2 full. */
int fabsim_level(const struct fabsim_port *p, uint16_t base);

/*
 * Does the hardware let a packet of this base pass from endport a to endport b? a sends with its best entry. The
 * packet passes if the tables of a and b match (IBA 1.5, 10.9.3) and their leaf ports let it pass, if they enforce in
 * that direction. A limited entry of a switch has two interpretations: lenient (any entry of the base
 * lets all packets of the base pass) and strict (a limited entry makes the port behind it at most a limited member). The
 * promises must hold for both.
 */
bool fabsim_base_passes(const struct fabsim *f, struct fabsim_place a, struct fabsim_place b, uint16_t base, bool strict);
/* The same for a packet with exactly this P_Key, lenient; a must have it in its table. */
bool fabsim_may_pass(const struct fabsim *f, struct fabsim_place a, struct fabsim_place b, struct p_key key);
/* An instant reboot: counters are 0, tables stay. */
void fabsim_reset_counters(struct fabsim *f, unsigned node);
/* Sends a packet; the port that drops it counts it and raises a notice. Returns fabsim_may_pass. */
bool fabsim_send_packet(struct fabsim *f, struct fabsim_place a, struct fabsim_place b, struct p_key key);
