/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Which of two head nodes writes (role: follow-sm): the one that the master SM is on.
 *
 *     where the master SM is, LIDs of this host, an SM change event, now --role_see--> stands by, takes over, writes
 *
 * There is no lock between hosts. What keeps two pkeyds from writing at once is that both follow the same thing: a master
 * SM tells every port its own LID (PortInfo:MasterSMLID), its own port first. So whoever finds the SM on his host waits
 * (`hold`) until the other must have been told too, has ended what he wrote, and only then reads the tables and writes.
 * Who stops being the master's host stops writing at once.
 *
 * An SM change event says that the SM may have gone and come back between two looks; the other may have written then, so
 * the wait begins anew.
 *
 * Refuses to know how it was found out where the SM is, and what a standby does with its time.
 */

#include "subnet/subnet.h"

/* How long the other is given, beyond the answer to one MAD, to hear of a new master SM: a subnet manager sets
 * PortInfo of all ports within a second or two on the largest fabrics. */
#define ROLE_HOLD (2 * USEC_PER_SEC)
/* How often the writer asks, while it writes, whether the SM is still there. Far below ROLE_HOLD. */
#define ROLE_ASK  (250 * USEC_PER_MSEC)

/* LIDs of one port: LMC low bits are free (IBA 1.5, 3.5.10). */
struct role_port {
        struct lid lid; /* base; 0: none */
        uint8_t lmc;
};

/* More ports than this a host is not expected to have in one subnet; others are left out, which writes less. */
#define ROLE_MAX_PORTS 64

struct role_view {
        struct role_port own[ROLE_MAX_PORTS]; /* of this host, in this subnet */
        size_t n_own;
        struct lid sm_lid;                    /* of the master SM; 0: not known */
};

enum role_state {
        ROLE_UNKNOWN,    /* nobody looked yet */
        ROLE_STANDS_BY,  /* the master SM is elsewhere, or nobody knows where */
        ROLE_TAKES_OVER, /* it is here, and the other may not know that yet */
        ROLE_WRITES,
};

struct role {
        enum role_state state;
        struct lid sm_lid;   /* as last seen */
        usec_t since;        /* of ROLE_TAKES_OVER */
        bool doubted;        /* an SM change event came since the last look */
};

/* Adds a port to the view, if there is room and it has a LID. */
void role_view_add(struct role_view *v, struct lid lid, uint8_t lmc);
/* Those ports of this host that are in the picture. GUIDs and not LIDs find them: a port of another fabric may have the
 * same LIDs. */
void role_view_add_known(struct role_view *v, const struct subnet *s, const struct guid *guids, size_t n);
/* True if one of them has the master SM's LID. */
bool role_sm_is_here(const struct role_view *v);

/* A look. True if the state, or where the SM of a standby is, is another than before. */
bool role_see(struct role *r, const struct role_view *v, usec_t hold, usec_t now);
/* An event: the master SM may have moved. */
void role_doubt(struct role *r);
/* When a role that takes over is to be looked at again. */
usec_t role_due(const struct role *r, usec_t hold);
