/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * SM tracking: which of two head nodes writes (role: follow-sm). It is the one that the master SM runs on.
 *
 *     LID of the master SM, LIDs of this host, SM change events, now --sm_follow_see--> standby, taking over, writer
 *
 * Without a shared store there is no lock between hosts. Two pkeyds do not write at the same time because both follow the master
 * SM, which sets its own LID in PortInfo:MasterSMLID of every port, beginning with its own. The pkeyd that finds the SM on its host
 * waits (`hold`) until the other one must have noticed that and must have ended its writes; only then does it read the tables and
 * write. The pkeyd whose host the master SM has left stops writing at once.
 *
 * After an SM change event the SM may have moved to the other host and back between two queries. The other pkeyd may have written
 * then, so the wait begins again.
 *
 * The guard is a stage around an apply. While the apply runs, it queries again and again where the SM is, and ends the apply when
 * the SM is not on this host any more.
 *
 * This file does not know what a standby does.
 */

#include "host/port_query.h"
#include "subnet/subnet.h"

/* How long the other pkeyd may take to notice a new master SM, in addition to the timeout of one MAD: a subnet manager sets
 * PortInfo of all ports within a second or two on the largest fabrics. */
#define SM_HOLD (2 * USEC_PER_SEC)
/* How long the answer that the SM is on this host lets the writer write: it queries as often. Far below SM_HOLD. */
#define SM_ANSWER_VALID (250 * USEC_PER_MSEC)

/* LIDs of one port: LMC low bits are free (IBA 1.5, 3.5.10). */
struct sm_port {
        struct lid lid; /* base; 0: none */
        uint8_t lmc;
};

/* No host is expected to have more ports than this in one subnet. With more, pkeyd may not find the SM on this host, and then does
 * not write. */
#define SM_MAX_PORTS 64

struct sm_view {
        struct sm_port own[SM_MAX_PORTS]; /* of this host, in this subnet */
        size_t n_own;
        struct lid sm_lid;                /* of the master SM; 0: not known */
};

enum sm_follow_state {
        SM_FOLLOW_UNKNOWN,     /* not queried yet */
        SM_FOLLOW_STANDBY,     /* the master SM is on another host, or its place is not known */
        SM_FOLLOW_TAKING_OVER, /* it is on this host, and the other pkeyd may not have noticed that yet */
        SM_FOLLOW_WRITER,
};

struct sm_follow {
        enum sm_follow_state state;
        struct lid sm_lid;   /* as last seen */
        usec_t since;        /* of SM_FOLLOW_TAKING_OVER */
        bool doubted;        /* an SM change event came since the last query */
};

/* Adds a port to the view, if there is room and it has a LID. */
void sm_view_add(struct sm_view *v, struct lid lid, uint8_t lmc);
/* Adds the ports with these GUIDs that are in the subnet. GUIDs, not LIDs: a port in another fabric may have the same LID. */
void sm_view_add_known(struct sm_view *v, const struct subnet *s, const struct guid *guids, size_t n);
/* True if a port of this host has the master SM's LID. */
bool sm_is_here(const struct sm_view *v);

/* Takes the answer to a query. True if the state changed, or the LID of the SM while standing by. */
bool sm_follow_see(struct sm_follow *f, const struct sm_view *v, usec_t now, usec_t hold);
/* An SM change event came: the master SM may have moved. */
void sm_follow_doubt(struct sm_follow *f);
/* When to query again while taking over. */
usec_t sm_follow_due(const struct sm_follow *f, usec_t hold);

/* One line: "standing by: the master SM is at LID 5 (node head2)". sm_name: of the node that the master SM runs on; "": not known.
 * */
void sm_follow_describe(const struct sm_follow *f, const char *sm_name, char *ret, size_t size);

/* No Set of `inner` is sent later than SM_ANSWER_VALID after the last query that found the SM on this host (asked_at before the
 * first one), however long the Set waits behind others. When the SM is not here any more, or the port does not answer,
 * end(userdata) is called, which must end inner. */
struct sm_guard {
        struct mad_stage inner;
        struct sm_view others;  /* ports of this host except the local port, which the query covers */
        uint64_t m_key;         /* of the local port */
        usec_t asked_at;
        void (*end)(void *userdata);
        void *userdata;

        struct port_query query;
        struct mad_stage ask;   /* of query */
        bool asking;
};
/* Borrows g. */
struct mad_stage sm_guard_stage(struct sm_guard *g);
