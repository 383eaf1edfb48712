/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * mad_engine/: many transactions in flight, sans I/O.
 *
 * Bytes and time in, bytes and results out. The engine has no file descriptor, no clock, no thread and calls nobody:
 *
 *     submit(request) ............ queues it
 *     next_send(now) ............. a MAD to put on the wire now, if the window allows one
 *     receive(now, frame) ........ a MAD that came
 *     next_result() .............. how a request ended
 *     deadline() ................. when to call next_send() again at the latest
 *
 * One window for the port adapts like TCP's (VL15 has no flow control): it grows while answers come, is halved when one
 * does not, and never exceeds what the settings allow. At most one request to a destination is outstanding; further ones
 * wait in order. An answer is matched by transaction ID and then checked (length, class, attribute, modifier, method); a
 * late, double or foreign one is counted and dropped. Busy is answered by waiting. The engine keeps its own deadlines,
 * whatever the kernel says about a timeout.
 *
 * Whoever does not answer a second time, or did not before (mad_request), is dead rather than far away behind a full buffer, and
 * does not narrow the window again. What this host could not send was no try; after a few attempts it ends MAD_UNSENT.
 *
 * Retries of one request carry the same transaction ID, so that a late answer to an earlier try still counts. Timeouts
 * double from try to try, up to 4 times the first.
 *
 * window.h is the window, transactions.h where the transactions live; both are of no interest outside of this folder.
 *
 * It refuses to know what the MADs mean.
 */

#include "ib/mad.h"
#include "util/cleanup.h"

struct mad_engine;

struct mad_engine_config {
        unsigned window;     /* upper bound of MADs in flight, at least 1 */
        usec_t timeout;      /* of the first try */
        uint32_t first_tid;  /* so that two runs do not take each other's late answers */
};

struct mad_engine_counters {
        uint64_t sent;       /* tries, the first ones included */
        uint64_t retried;    /* tries after the first */
        uint64_t timed_out;  /* tries that had no answer in time */
        uint64_t answered, busy;
        uint64_t stray;      /* no such transaction: late, double, or to another program */
        uint64_t malformed;  /* short, or not the attribute asked for */
        unsigned window;     /* as it is now */
        unsigned in_flight;
        size_t slots;        /* requests that there is memory for; never shrinks */
};

/* Returns 0, -EINVAL, -ENOMEM. *ret is owned by the caller. */
int mad_engine_new(const struct mad_engine_config *config, struct mad_engine **ret);
struct mad_engine *mad_engine_free(struct mad_engine *e);
DEFINE_CLEANUP(struct mad_engine *, mad_engine_free)

/* Copies the request. Returns 0 or -ENOMEM. */
int mad_engine_submit(struct mad_engine *e, const struct mad_request *request);

/* How many more requests the engine likes to have queued now so that the window stays full; 0: enough. Submitting more is
 * allowed, it only costs memory. */
unsigned mad_engine_wants(const struct mad_engine *e);

/* The next MAD to send at `now`. False: none now (window full, nothing queued, or all destinations busy). Also where
 * deadlines are looked at: requests that ran out of tries become results. */
bool mad_engine_next_send(struct mad_engine *e, usec_t now, struct mad_frame *ret);

/* The MAD that next_send gave could not be sent by this host (errno in error): tried again later, or ends MAD_UNSENT, as a Set of
 * subnet management does at once. */
void mad_engine_send_failed(struct mad_engine *e, usec_t now, const struct mad_frame *frame, int error);

/* A MAD that came. Returns 1: it ended a request or told busy; 0: stray; -EBADMSG: malformed, or not an answer to the
 * request that has its transaction ID (which goes on waiting). */
int mad_engine_receive(struct mad_engine *e, usec_t now, const struct mad_frame *frame);

/* No answer to a request of this lane is waited for any more: all of them end MAD_TIMED_OUT, those that were never sent, too. What
 * was sent may still be carried out; its answer is a stray. */
void mad_engine_give_up(struct mad_engine *e, uint8_t lane);

/* The next result. False: none. */
bool mad_engine_next_result(struct mad_engine *e, struct mad_result *ret);

/* When the engine wants next_send() to be called again, whatever else happens. USEC_INFINITY: it waits for nothing. */
usec_t mad_engine_deadline(const struct mad_engine *e);

/* True if nothing is queued, in flight, or waiting to be fetched as a result. */
bool mad_engine_is_idle(const struct mad_engine *e);

void mad_engine_get_counters(const struct mad_engine *e, struct mad_engine_counters *ret);
