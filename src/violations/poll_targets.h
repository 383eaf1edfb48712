/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What the poll reads. A target is a port. An agent answers for it: one for all ports of a switch, one for each port of a channel
 * adapter. An item is a target and one of its blocks, which is read once in a round. Items are in the order of a hash of both, so
 * that consecutive ones are in different places of the fabric, and an item keeps its place when others come and go.
 */

#include "ib/pma.h"
#include "violations/poll.h"

enum poll_block {
        POLL_BLOCK_PORT_INFO,
        POLL_BLOCK_COUNTERS,
        N_POLL_BLOCKS,
};

enum poll_agent_state {
        AGENT_UNKNOWN,
        AGENT_QUERIED,     /* for ClassPortInfo */
        AGENT_KNOWN,
        AGENT_UNREACHABLE, /* it is at a queue pair that pkeyd cannot address: its counters are silent */
};

struct poll_agent {
        struct violation_port port;  /* number 0: of a switch, for all its ports */
        uint32_t first, end;         /* targets */
        enum poll_agent_state state;
        bool is_extended;            /* has PortCountersExtended with errors */
        struct lid redirect_lid;     /* 0: the port's own */
        bool is_silent;              /* did not answer a request; when it answers again, its ClassPortInfo is read anew */
};

/* Whether a block may be requested, and what it waits for. */
enum poll_progress {
        PROGRESS_IDLE,
        PROGRESS_WAITING, /* of POLL_BLOCK_COUNTERS: its turn came while the agent had a request */
        PROGRESS_QUEUED,  /* ... which has been answered: it is in the queue TODO_READ */
        PROGRESS_PENDING, /* an answer is to come, or a check after it */
};

/* What the last request led to. */
enum poll_answer {
        ANSWER_GOOD,    /* or there was no request yet */
        ANSWER_SILENT,
        ANSWER_REFUSED, /* there is no other request until its node comes back */
};

/* What is to be confirmed before the values of a block become samples. */
enum poll_check {
        CHECK_NONE,
        CHECK_IDENTITY, /* the node at the LID is still the one of the snapshot */
        CHECK_HOST,     /* ... and so is the host that is plugged into this switch port */
};

/* What pkeyd knows of one block of a port. */
struct poll_block_state {
        enum poll_progress progress;
        enum poll_answer answer;
        enum poll_check check; /* not NONE: a counter moved, or was read for the first time */
        struct lid lid;      /* of the port, when the values were read */
        uint64_t cycle;      /* of its last request while silent */
        uint64_t values[PMA_N_COUNTERS]; /* as they were read last; PortInfo has only the first */
        unsigned bits;       /* width of the counters: 8, 16 or 64; 0: never read */
        unsigned sampled_bits;           /* of what became samples last */
};

struct poll_target {
        struct violation_port port;
        bool is_endport;                 /* else it is a switch's external port */
        struct mad_route route;
        uint32_t destination;
        struct lid lid;
        struct lid host_lid;             /* of a leaf port: of the endport plugged into it; 0: it is not known */
        struct guid port_guid;           /* of a switch's ports: of its port 0 */
        uint32_t agent;
        struct poll_block_state blocks[N_POLL_BLOCKS];
        bool is_clearing[VIOLATION_N_COUNTERS];
};

/* External ports have no PortInfo:P_KeyViolations, and ports without a LID no counters. */
static inline bool poll_target_has(const struct poll_target *t, enum poll_block block)
{
        return block == POLL_BLOCK_PORT_INFO ? t->is_endport : t->lid.v != 0;
}

static inline enum poll_block poll_block_of(enum violation_source source)
{
        return source == VIOLATION_P_KEY_VIOLATIONS ? POLL_BLOCK_PORT_INFO : POLL_BLOCK_COUNTERS;
}

struct poll_item {
        uint64_t hash;
        uint32_t target;
        enum poll_block block;
};

struct poll_targets {
        struct poll_target *targets; /* ascending (node GUID, number) */
        struct poll_agent *agents;   /* ascending port */
        struct poll_item *items;     /* ascending hash */
        uint32_t n_targets, n_agents, n_items;
};

/* The targets of a snapshot, with what `old` knows of those that were there before. Returns 0 or -ENOMEM; *ret is to be given to
 * poll_targets_done(). */
int poll_targets_make(const struct subnet *subnet, const struct poll_targets *old, struct poll_targets *ret);
void poll_targets_done(struct poll_targets *t);

/* NULL: there is none. */
struct poll_target *poll_targets_find(const struct poll_targets *t, struct violation_port port);
struct poll_agent *poll_targets_find_agent(const struct poll_targets *t, struct violation_port port);
/* A port of this agent that is not known to be silent has not answered the request for its counters yet. */
bool poll_targets_have_pending(const struct poll_targets *t, const struct poll_agent *agent);
