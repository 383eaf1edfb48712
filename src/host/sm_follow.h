/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * SM tracking: which of two head nodes writes (role: follow-sm). It is the one that the master SM is on.
 *
 *     where the master SM is, LIDs of this host, an SM change event, now --sm_follow_see--> standby, taking over, writer
 *
 * There is no lock between hosts. What keeps two pkeyds from writing at once is that both follow the same thing: a master
 * SM tells every port its own LID (PortInfo:MasterSMLID), its own port first. So the pkeyd that finds the SM on its host
 * waits (`hold`) until the other one must have heard of it, too, and has ended what it wrote; only then it reads the tables
 * and writes. The pkeyd that is not on the master's host any more stops writing at once.
 *
 * An SM change event says that the SM may have gone and come back between two queries; the other one may have written then,
 * so the wait begins anew.
 *
 * The guard is a stage around an apply: while the apply runs, it queries again and again where the SM is, and ends the apply
 * when that is not here any more.
 *
 * This file refuses to know what a standby does with its time.
 */

#include "host/port_query.h"
#include "subnet/subnet.h"

/* How long the other one is given, beyond the answer to one MAD, to hear of a new master SM: a subnet manager sets
 * PortInfo of all ports within a second or two on the largest fabrics. */
#define SM_HOLD (2 * USEC_PER_SEC)
/* How often the writer asks, while it writes, whether the SM is still there. Far below SM_HOLD. */
#define SM_ASK  (250 * USEC_PER_MSEC)

/* LIDs of one port: LMC low bits are free (IBA 1.5, 3.5.10). */
struct sm_port {
        struct lid lid; /* base; 0: none */
        uint8_t lmc;
};

/* A host is not expected to have more ports than this in one subnet; others are left out, which writes less. */
#define SM_MAX_PORTS 64

struct sm_view {
        struct sm_port own[SM_MAX_PORTS]; /* of this host, in this subnet */
        size_t n_own;
        struct lid sm_lid;                /* of the master SM; 0: not known */
};

enum sm_follow_state {
        SM_FOLLOW_UNKNOWN,     /* nobody looked yet */
        SM_FOLLOW_STANDBY,     /* the master SM is elsewhere, or nobody knows where */
        SM_FOLLOW_TAKING_OVER, /* it is here, and the other one may not know that yet */
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
/* Those ports of this host that are in the subnet. GUIDs and not LIDs find them: a port of another fabric may have the
 * same LIDs. */
void sm_view_add_known(struct sm_view *v, const struct subnet *s, const struct guid *guids, size_t n);
/* True if one of them has the master SM's LID. */
bool sm_is_here(const struct sm_view *v);

/* An answer. True if the state, or where the SM of a standby is, is another than before. */
bool sm_follow_see(struct sm_follow *f, const struct sm_view *v, usec_t hold, usec_t now);
/* An event: the master SM may have moved. */
void sm_follow_doubt(struct sm_follow *f);
/* When one that is taking over is to query again. */
usec_t sm_follow_due(const struct sm_follow *f, usec_t hold);

/* One line: "standing by: the master SM is at LID 5 (node head2)". sm_name: of the node that the master SM is on; "": not
 * known. */
void sm_follow_describe(const struct sm_follow *f, const char *sm_name, char *ret, size_t size);

/* No Set of `inner` is sent later than SM_ASK after the last question whose answer was that the SM is here (asked_at, to begin
 * with), however long it waits behind others. When it is not here any more, or the port does not answer, end(userdata) is
 * called, which is to end inner. */
struct sm_guard {
        struct mad_stage inner;
        struct sm_view others;  /* ports of this host but the local port, which answers for itself */
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
