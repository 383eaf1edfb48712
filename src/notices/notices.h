/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * notices/: the subscription to notices of the subnet administrator (SA).
 *
 *     InformInfo (subscribe) -> SA ... SA -> Report(Notice) -> struct notice
 *
 * A subscriber to traps 257 (P_Key mismatch at an endport), 258 (Q_Key mismatch at an endport) and 259 (P_Key mismatch at an
 * external port of a switch) sends the SA one InformInfo for each. An SA may refuse these to a subscriber without its SM_Key, and
 * does not answer one with a wrong SM_Key. So where trap numbers are refused, or a request with the SM_Key is not answered, pkeyd
 * subscribes to all notices of the type "security" (OpenSM refuses the numbers without its sa_key, but not the type), and drops
 * those of other traps. It unsubscribes from what it subscribed to in the other way before, or each notice would come twice; and
 * from what an earlier process on this port may have subscribed to by type: an SA identifies a subscriber by its port, and keeps
 * its subscriptions as long as Reports to that port are answered.
 *
 * The SA loses its subscribers when it restarts, and another SA never had them. So the subscription is a state machine that
 * renews it: when the SM's LID changes, when the SM requests client reregistration, and every ten minutes. If the SA refuses or
 * does not answer, pkeyd tries again after waits that double. One request is in flight at a time. pkeyd does not unsubscribe at
 * its end: an SA that does not reach a subscriber drops it.
 *
 * Sans I/O: the subscription is a background task (mad_engine/stage.h), `now` is an argument, notices come out as data.
 *
 * Reports are hostile input: only those from the LID of the SA are accepted (a channel adapter writes the sender's LID, so another
 * host cannot pretend to be the SA), and a frame is a notice only if every field that is used is valid. Any Report of the SA is
 * answered, so that it does not send it again for ever; those of others are not.
 *
 * This folder does not know which port has a LID, what a violation is, or what logs.
 */

#include "ib/sa.h"
#include "mad_engine/stage.h"
#include "util/macros.h"

#define NOTICES_MAX_QUEUED 256

struct notices;

/* The address of the SA, and how requests reach it. */
struct notices_sa {
        struct lid lid;  /* PortInfo:MasterSMLID of the local port; 0: there is none, nothing is sent */
        uint8_t sl;      /* PortInfo:MasterSMSL */
        uint64_t sm_key; /* 0: none; never shown */
};

enum notices_state {
        NOTICES_OFF,         /* no SA */
        NOTICES_SUBSCRIBING,
        NOTICES_SUBSCRIBED,
        NOTICES_REFUSED,     /* the SA answered with a status; pkeyd tries again later */
        NOTICES_UNANSWERED,  /* pkeyd tries again later */
        NOTICES_N_STATES,
};

/* "off", "subscribing", ...; a static string: metrics, the bus. */
const char *notices_state_to_string(enum notices_state s);

struct notices_status {
        enum notices_state state;
        uint16_t mad_status;   /* of NOTICES_REFUSED; 0: the SA answered without one, but did not accept the subscription */
        bool by_type;          /* subscribed by type, not by number */
        bool key_unanswered;   /* ... because the SA did not answer a request with the SM_Key, which may be wrong */
        uint64_t n_reports;    /* Reports with a notice of the three traps */
        uint64_t n_malformed;  /* Reports with invalid content */
        uint64_t n_others;     /* Reports of another trap */
        uint64_t n_repeated;   /* the same Report again: the SA did not get the answer */
        uint64_t n_foreign;    /* Reports of another sender than the SA; not answered */
        uint64_t n_lost;       /* dropped because the queue was full; n_reports has them, too */
};

/* Returns owned, or NULL: out of memory. */
struct notices *notices_new(void);
struct notices *notices_free(struct notices *n);
DEFINE_CLEANUP(struct notices *, notices_free)

/* Sets the SA. Subscribes anew if it is another one, or with `again` (client reregistration, SM change). */
void notices_set_sa(struct notices *n, usec_t now, const struct notices_sa *sa, bool again);

/* Borrows n. */
struct mad_background_task notices_task(struct notices *n);

/* The next notice that came; false: none. At most NOTICES_MAX_QUEUED wait. */
bool notices_next(struct notices *n, struct notice *ret);

void notices_get_status(const struct notices *n, struct notices_status *ret);
