/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A fabric that we command: nodes, ports, cables, and the management agents that answer for them.
 *
 *     frame in --fabsim_route--> place, hops --fabsim_answer--> frame out
 *     packet(a, b, P_Key) --fabsim_send_packet--> passed or refused; counters and notices as hardware moves them
 *
 *     Report <--fabsim_sa_next_report-- notices of traps 257 and 259, for whom subscribed
 *
 * The hardware's side of pkeyd's world, and nothing of pkeyd's own ideas: what a table lets through is decided here from
 * the entries themselves, so that the promises can be checked against it. Bytes are coded by libibmad.
 *
 * There is no clock here: time is an argument (only the M_Key's lease needs it). Latency, loss and everything else that
 * goes wrong on the way is the wire's matter (wire.h). Forwarding tables are not modelled: a LID is reachable where
 * cables and switches that are up lead to it, as if the subnet manager had always just been there.
 */

#include "ib/smp.h"

#define FABSIM_MAX_NODES   40
#define FABSIM_MAX_PORTS   16
#define FABSIM_MAX_ENTRIES 128
#define FABSIM_MAX_NOTICES 64
#define FABSIM_MAX_SUBSCRIPTIONS 8
#define FABSIM_MAX_REPORTS 64

/* What an SMA does not answer. */
enum fabsim_mute {
        FABSIM_ANSWERS,
        FABSIM_MUTE_P_KEYS,     /* P_KeyTable MADs are dropped */
        FABSIM_MUTE_ANSWERS,    /* ... are carried out, and not answered */
        FABSIM_MUTE,            /* everything is dropped */
};

struct fabsim_port {
        struct guid guid;               /* endports */
        struct lid lid;
        uint8_t lmc;
        struct lid sm_lid;              /* of the master SM, as this port was told; 0: as it is */
        bool is_cabled;
        unsigned peer_node;             /* the other end of the cable */
        uint8_t peer_port;
        uint16_t capacity;              /* entries of the P_Key table; 0: no table */
        struct p_key table[FABSIM_MAX_ENTRIES];
        struct p_key swallows;          /* an entry that this table does not take, though it answers as if it did */
        bool lies;                      /* ... and the answer to the Set shows what was sent, not what is there */
        bool enforce_inbound, enforce_outbound;
        enum fabsim_mute mute;          /* of the SMA there: of a switch, that of port 0 */
        uint64_t m_key;                 /* 0: none */
        uint8_t m_key_protection;       /* 0-3 */
        uint16_t m_key_lease;           /* seconds; 0: for ever */
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

/* On its way until it is answered. */
struct fabsim_report {
        struct mad_frame frame;
        usec_t next_at;
        unsigned tries;                 /* left; 0: a free place */
};

/* The subnet administrator, at f->sm. */
struct fabsim_sa {
        uint64_t key;                   /* a request with another one than this or 0 has no answer */
        bool distrusts;                 /* without the key no subscription to traps 256 to 259 by number */
        bool lacks_subscriptions;       /* it does not know InformInfo */
        struct fabsim_subscription subscriptions[FABSIM_MAX_SUBSCRIPTIONS];
        unsigned n_subscriptions;
        unsigned n_seen;                /* notices of the fabric */
        struct fabsim_report reports[FABSIM_MAX_REPORTS];
        uint64_t next_tid;
        unsigned n_given_up;            /* Reports that nobody answered */
        unsigned n_asked, n_refused;    /* InformInfos */
};

struct fabsim {
        struct fabsim_node nodes[FABSIM_MAX_NODES];
        unsigned n_nodes;
        struct fabsim_place self, sm;   /* endports */
        bool sm_runs;                   /* false: it gave out the LIDs and ended */
        struct fabsim_notice notices[FABSIM_MAX_NOTICES]; /* a ring: the oldest fall out */
        unsigned n_notices;             /* all that were raised */
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

/* The SMA of this port does not answer everything. */
bool fabsim_is_mute(const struct fabsim *f, struct fabsim_place p);
/* The cable's other end; false: no cable, or what is there is not up. */
bool fabsim_peer(const struct fabsim *f, struct fabsim_place p, struct fabsim_place *ret);
/* Hops from the port pkeyd works through to this place; -1: no way. */
int fabsim_distance(const struct fabsim *f, struct fabsim_place to);

/* Where a frame sent by f->self arrives. False: nowhere. */
bool fabsim_route(const struct fabsim *f, const struct mad_frame *frame, struct fabsim_place *ret, unsigned *ret_hops);
/* What the agent at that place does and answers; 256 bytes in, 256 out. False: it keeps silent (wrong M_Key, a class that
 * it does not speak). */
bool fabsim_answer(struct fabsim *f, usec_t now, struct fabsim_place at, const struct mad_frame *frame,
                   struct mad_frame *ret);

/* sa.c. The SA forgets who subscribed, and what it had still to report. */
void fabsim_sa_restart(struct fabsim *f);
/* The next Report to f->self that is due. The SA turns each notice that the fabric raised meanwhile into one for each
 * subscription that it fits, sends it again until it is answered, and gives up after some tries. */
bool fabsim_sa_next_report(struct fabsim *f, usec_t now, struct mad_frame *ret);
usec_t fabsim_sa_due(const struct fabsim *f);
/* What it answers; fabsim_answer asks it. */
bool fabsim_sa_answer(struct fabsim *f, const struct mad_frame *frame, struct mad_frame *ret);

/* The P_Key table that a SubnSet or SubnGet(P_KeyTable) with this modifier means there; NULL: no such. */
struct fabsim_port *fabsim_table_at(struct fabsim *f, struct fabsim_place at, uint32_t modifier, uint16_t *ret_block);

/* What a port is in a base by its own table: 0 nothing, 1 limited, 2 full. */
int fabsim_level(const struct fabsim_port *p, uint16_t base);

/*
 * May a packet of this base get from endport a to endport b, as the hardware is programmed? a sends with the best entry it
 * has. It passes if a's and b's tables match (IBA 1.5, 10.9.3) and the switch ports beside them, where they enforce in
 * that direction, let it. How a switch takes an entry that is limited is told in two ways: lenient (any entry of the base
 * lets every packet of the base pass) and strict (a limited entry makes whoever is behind it a limited member at best). The
 * promises must hold in both.
 */
bool fabsim_base_passes(const struct fabsim *f, struct fabsim_place a, struct fabsim_place b, uint16_t base, bool strict);
/* The same of one packet with this very P_Key, lenient; a must have it in its table. */
bool fabsim_may_pass(const struct fabsim *f, struct fabsim_place a, struct fabsim_place b, struct p_key key);
/* A reboot that takes no time: counters are back at 0, tables stay. */
void fabsim_reset_counters(struct fabsim *f, unsigned node);
/* Sends it: what refuses it counts it and raises a notice. Returns fabsim_may_pass. */
bool fabsim_send_packet(struct fabsim *f, struct fabsim_place a, struct fabsim_place b, struct p_key key);
