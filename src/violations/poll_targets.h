/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Whom the poll asks. A target is a port, an agent who answers for it: one for all ports of a switch, one for each port of
 * a channel adapter. Items are what is asked in a round: a target and one of its blocks, in the order of a hash of both, so
 * that what follows in the round is elsewhere in the fabric, and an item keeps its place when others come and go.
 */

#include "ib/pma.h"
#include "violations/poll.h"

enum poll_block {
        BLOCK_PORT_INFO,
        BLOCK_COUNTERS,
        N_BLOCKS,
};

enum poll_agent_state {
        AGENT_UNKNOWN,
        AGENT_ASKED, /* for ClassPortInfo */
        AGENT_KNOWN,
};

struct poll_agent {
        struct violation_port who;   /* number 0: of a switch, for all its ports */
        uint32_t first, end;         /* targets */
        enum poll_agent_state state;
        bool is_extended;            /* has PortCountersExtended with errors */
        bool is_elsewhere;           /* where we cannot ask */
        struct lid redirect_lid;     /* 0: the port's own */
        bool is_silent;              /* did not answer something; when it answers again, it is asked anew what it knows */
};

enum poll_wait {
        WAIT_NONE,
        WAIT_FOR_AGENT, /* its turn came while ClassPortInfo was asked for */
        WAIT_TO_SEND,   /* that has been answered */
};

struct poll_target {
        struct violation_port port;
        struct mad_route route;
        uint32_t destination;
        struct lid lid;
        struct lid host_lid;             /* of a switch's port: of the endport beside it; 0: it is not known */
        struct guid port_guid;           /* of a switch's ports: of its port 0 */
        uint32_t agent;
        enum poll_wait wait;
        bool has[N_BLOCKS];
        bool is_refused[N_BLOCKS];
        bool is_silent[N_BLOCKS];        /* the last time */
        uint64_t cycle[N_BLOCKS];        /* in which it was last asked while it was silent */
        bool is_asked[N_BLOCKS];         /* an answer is to come, or who is plugged in is checked after it */
        uint64_t counters[PMA_N_COUNTERS]; /* as they were read last */
        unsigned bits;                   /* of them; 0: never */
        uint16_t p_key_violations;       /* likewise, of PortInfo */
        bool has_p_key_violations;
        bool is_unchecked[N_BLOCKS];     /* it moved, and did not come out yet */
        bool is_clearing[PMA_N_COUNTERS];
};

/* Else it is a switch's external port. */
static inline bool poll_target_is_endport(const struct poll_target *t)
{
        return t->has[BLOCK_PORT_INFO];
}

struct poll_item {
        uint64_t hash;
        uint32_t target;
        enum poll_block block;
};

struct poll_targets {
        struct poll_target *targets; /* ascending (node GUID, number) */
        struct poll_agent *agents;   /* likewise */
        struct poll_item *items;     /* ascending hash */
        uint32_t n_targets, n_agents, n_items;
};

/* Those of a snapshot, with what `old` knows of those that were there before. Returns 0 or -ENOMEM; to be given to
 * poll_targets_done. */
int poll_targets_make(const struct subnet *subnet, const struct poll_targets *old, struct poll_targets *ret);
void poll_targets_done(struct poll_targets *t);

/* NULL: there is none. */
struct poll_target *poll_targets_find(const struct poll_targets *t, struct violation_port port);
struct poll_agent *poll_targets_find_agent(const struct poll_targets *t, struct violation_port who);
