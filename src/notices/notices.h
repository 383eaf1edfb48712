/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * notices/: what the subnet administrator tells without being asked.
 *
 *     InformInfo (subscribe) -> SA ... SA -> Report(Notice) -> struct notice
 *
 * Whoever wants to hear of traps 257 (P_Key mismatch at an endport), 258 (Q_Key mismatch there) and 259 (P_Key
 * mismatch at a switch's external port) asks the SA with one InformInfo for each. An SA need not tell of them to who
 * does not have its SM_Key, and one that is given a wrong SM_Key keeps silent. So where single trap numbers are
 * refused, or nobody answers to our SM_Key, all notices of the type "security" are asked for (OpenSM refuses the
 * numbers without its sa_key, but not the type), and what is none of the three is passed over. What the SA took before
 * and is asked for in the other way now is given back: otherwise each notice would come twice. So is what an earlier process
 * on this port may have asked for by type: an SA knows a subscriber by its port, and forgets none that answers.
 *
 * The SA forgets subscribers when it restarts, and another one never knew them: so the subscription is a state machine
 * that is kept alive. It subscribes anew when the SM's LID changes, when the SM asks for client reregistration, and
 * every ten minutes anyway; what the SA refuses or does not answer is tried again with growing patience. One request
 * is under way at a time. Nothing is taken back at the end: an SA that finds no listener gives up by itself.
 *
 * Sans I/O: the subscription is a background task (mad_engine/stage.h), `now` is an argument, what is to be told comes out as
 * data.
 *
 * Reports are hostile input: only those from the very LID that is asked are taken (a channel adapter writes the LID of
 * who sends, so another host cannot speak for the SA), and a frame is a notice only if every field that is used says
 * so. What the SA sends is answered even if it is no such notice, so that it does not send it again for ever; what
 * others send is not.
 *
 * This folder refuses to know whom a LID belongs to, what a violation is, and who logs.
 */

#include "ib/sa.h"
#include "mad_engine/stage.h"
#include "util/cleanup.h"

#define NOTICES_MAX_QUEUED 256

struct notices;

/* Where the SA is, and how to ask it. */
struct notices_sa {
        struct lid lid;  /* PortInfo:MasterSMLID of our port; 0: there is none, nothing is asked */
        uint8_t sl;      /* PortInfo:MasterSMSL */
        uint64_t sm_key; /* 0: none; never shown */
};

enum notices_state {
        NOTICES_OFF,         /* no SA */
        NOTICES_SUBSCRIBING,
        NOTICES_SUBSCRIBED,  /* the SA took all of it */
        NOTICES_REFUSED,     /* it answered with a status; tried again later */
        NOTICES_UNANSWERED,  /* nobody answered; tried again later */
        NOTICES_N_STATES,
};

/* "off", "subscribing", ...; a static string: metrics, the bus. */
const char *notices_state_to_string(enum notices_state s);

struct notices_status {
        enum notices_state state;
        uint16_t mad_status;   /* of NOTICES_REFUSED; 0: it answered without one, but did not subscribe us */
        bool by_type;          /* asked for by type, not by number */
        bool key_unanswered;   /* ... since nobody answered to our SM_Key: it may be wrong */
        uint64_t n_reports;    /* Reports that held a notice that we asked for */
        uint64_t n_malformed;  /* ... that held what cannot be */
        uint64_t n_others;     /* ... of another trap */
        uint64_t n_repeated;   /* the same Report again: the SA had not seen our answer */
        uint64_t n_foreign;    /* from somebody else than the SA; not answered */
        uint64_t n_lost;       /* no room was left; they count as reports */
};

/* Returns owned, or NULL when memory is out. */
struct notices *notices_new(void);
struct notices *notices_free(struct notices *n);
DEFINE_CLEANUP(struct notices *, notices_free)

/* Tells where the SA is. One that differs from before is subscribed at anew; so is any when `again` (client
 * reregistration, SM change). */
void notices_set_sa(struct notices *n, usec_t now, const struct notices_sa *sa, bool again);

/* Borrows n. */
struct mad_background_task notices_task(struct notices *n);

/* The next notice that came; false: none. At most NOTICES_MAX_QUEUED wait. */
bool notices_next(struct notices *n, struct notice *ret);

void notices_get_status(const struct notices *n, struct notices_status *ret);
