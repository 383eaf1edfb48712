/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * mad_engine/: many transactions in flight, sans I/O.
 *
 * Bytes and time in, bytes and results out. The engine has no file descriptor, no clock and no thread, and calls no one back:
 *
 *     submit(request) ............ queues it
 *     next_send(now) ............. a MAD to send now, if the window allows one
 *     receive(now, frame) ........ a MAD that came
 *     next_result() .............. how a request ended
 *     deadline() ................. when to call next_send() again at the latest
 *
 * One window for the port adapts like TCP's (VL15 has no flow control): it grows while answers come, is halved after a loss, and
 * never exceeds the settings. At most one request to a destination is in flight; further ones wait in order. An answer is matched
 * by transaction ID and then checked (length, class, attribute, modifier, method, sender); a late, duplicate or foreign one is
 * counted and dropped. After a busy status the engine waits and tries again. It has its own deadlines, whatever timeouts the kernel
 * reports.
 *
 * Silent ports, even many, slow down nobody. A destination that did not answer before (mad_request), or does not answer a second
 * time, is silent rather than behind a full buffer, so its loss does not narrow the window (window.h). And a try after the first
 * leaves the window long before its timeout: a MAD that is not lost is answered long before, too.
 *
 * A MAD that this host could not send does not count as a try; after a few attempts its request ends with MAD_UNSENT.
 *
 * Retries of one request have the same transaction ID, so that a late answer to an earlier try still counts. Timeouts double from
 * try to try, up to 4 times the first.
 *
 * window.h and transactions.h are private to this folder.
 *
 * The engine does not know what the MADs mean.
 */

#include "ib/mad.h"
#include "util/macros.h"

struct mad_engine;

struct mad_engine_config {
        unsigned window;     /* upper bound of MADs in flight, at least 1 */
        usec_t timeout;      /* of the first try */
        uint64_t tid_key;    /* without it nobody can predict transaction IDs. It differs between runs, so that one does not take
                              * late answers of the other */
};

struct mad_engine_counters {
        uint64_t sent;       /* tries, the first ones included */
        uint64_t retried;    /* tries after the first */
        uint64_t timed_out;  /* tries without an answer in time */
        uint64_t answered, busy;
        uint64_t stray;      /* no such transaction: late, duplicate, or for another program */
        uint64_t malformed;  /* too short, another attribute than requested, or from another LID */
        unsigned window;     /* current size */
        unsigned in_flight;
        size_t slots;        /* requests for which memory is allocated; never shrinks */
};

/* Returns 0, -EINVAL, -ENOMEM. *ret is owned by the caller. */
int mad_engine_new(const struct mad_engine_config *config, struct mad_engine **ret);
struct mad_engine *mad_engine_free(struct mad_engine *e);
DEFINE_CLEANUP(struct mad_engine *, mad_engine_free)

/* Copies the request. Returns 0 or -ENOMEM. */
int mad_engine_submit(struct mad_engine *e, const struct mad_request *request);

/* How many more requests should be submitted now to keep the window full; 0: enough. Submitting more is allowed and only costs
 * memory. */
unsigned mad_engine_wants(const struct mad_engine *e);

/* Gets the next MAD to send at `now`. False: none now (window full, nothing queued, or all destinations have a request in flight).
 * It also checks deadlines: requests without tries left become results. */
bool mad_engine_next_send(struct mad_engine *e, usec_t now, struct mad_frame *ret);

/* The MAD of next_send() could not be sent by this host (errno in error): it is tried again later, or ends MAD_UNSENT, as a Set of
 * subnet management does at once. */
void mad_engine_send_failed(struct mad_engine *e, usec_t now, const struct mad_frame *frame, int error);

/* Takes a MAD that came. Returns 1: it ended a request, or reported busy; 0: stray; -EBADMSG: malformed, or not an answer to the
 * request with its transaction ID (which stays in flight). */
int mad_engine_receive(struct mad_engine *e, usec_t now, const struct mad_frame *frame);

/* Gives up all requests of this lane: they end MAD_TIMED_OUT, also those that were never sent. What was sent may still be carried
 * out; its answer is a stray. */
void mad_engine_give_up(struct mad_engine *e, uint8_t lane);

/* Gets the next result. False: none. */
bool mad_engine_next_result(struct mad_engine *e, struct mad_result *ret);

/* When next_send() has to be called again at the latest. USEC_INFINITY: never. */
usec_t mad_engine_deadline(const struct mad_engine *e);

/* True if nothing is queued or in flight, and no result waits to be fetched. */
bool mad_engine_is_idle(const struct mad_engine *e);

void mad_engine_get_counters(const struct mad_engine *e, struct mad_engine_counters *ret);
